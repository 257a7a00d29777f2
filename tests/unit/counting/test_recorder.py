"""Kernels of any network, both tasks and all precisions: against torch's counter and by hand."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from epochwatt.board.training.modern_networks import LanguageModel
from epochwatt.counting.recorder import PRECISIONS, record
from epochwatt.errors import TrainingError

PRODUCTS = ("convolution", "depthwise", "gemm", "gemm16")


def products(kernels):
    """Return the operations of convolutions and matrix products."""
    return sum(kernel.flops for _, kernel in kernels if kernel.kind in PRODUCTS)


@st.composite
def convnets(draw, most_groups=1):
    """Return a network of convolutions and a dense layer, and its input."""
    edge, channels = draw(st.integers(5, 9)), draw(st.integers(1, 3))
    layers, shape = [], (channels, edge, edge)
    for _ in range(draw(st.integers(1, 3))):
        parts = draw(st.integers(1, most_groups))
        first = nn.Conv2d(shape[0], 2 * parts, 1, bias=draw(st.booleans()))
        kernel, stride = draw(st.integers(1, 3)), draw(st.integers(1, 2))
        second = nn.Conv2d(
            2 * parts, parts * draw(st.integers(1, 3)), kernel, stride, 1, groups=parts,
            bias=draw(st.booleans()),
        )  # fmt: skip
        layers += [first, nn.ReLU(), second]
        shape = tuple(nn.Sequential(*layers)(torch.zeros(1, channels, edge, edge)).shape[1:])
    layers += [nn.Flatten(), nn.Linear(torch.Size(shape).numel(), 3, bias=draw(st.booleans()))]
    return nn.Sequential(*layers), torch.zeros(draw(st.integers(1, 4)), channels, edge, edge)


@given(convnets(most_groups=3))
def test_inference_is_counted_as_torch_counts_it(made):
    network, inputs = made
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        network(inputs)
    assert products(record(network, inputs, task="infer")) == counter.get_total_flops()


@given(convnets())
def test_training_is_counted_as_torch_counts_it(made):
    network, inputs = made
    with FlopCounterMode(display=False) as counter:
        network(inputs).mean().backward()
    assert products(record(network, inputs)) == counter.get_total_flops()


@pytest.mark.parametrize("task", ["train", "infer"])
def test_half_precision_does_the_same_products_on_half_the_bytes(task):
    network = nn.Sequential(nn.Conv2d(8, 64, 3), nn.Flatten(), nn.Linear(64 * 36, 64))
    runs = {
        p: record(network, torch.zeros(64, 8, 8, 8), task=task, precision=p) for p in PRECISIONS
    }
    assert len({products(run) for run in runs.values()}) == 1
    assert runs["tf32"] == runs["fp32"]

    def of_products(run):
        return sum(k.bytes for _, k in run if k.name.startswith(("aten.convolution", "aten.mm")))

    full, *halves = (of_products(runs[name]) for name in ("fp32", "fp16", "bf16"))
    assert halves == [full / 2, full / 2]
    names = [k.name for _, k in runs["fp16"]]
    assert "aten._to_copy" in names  # the casts
    assert ("aten._amp_foreach_non_finite_check_and_unscale_" in names) == (task == "train")


def test_the_network_is_left_as_it_is_and_shared_weights_are_counted_once():
    network = LanguageModel(words=50, width=8)
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    run = record(network, torch.zeros(2, 3, dtype=torch.int64), loss=lambda n, x: n(x).mean())
    assert all(torch.equal(before[name], t) for name, t in network.state_dict().items())
    assert all(weight.grad is None for weight in network.parameters())
    assert network.training
    zeroed = sum(kernel.bytes for phase, kernel in run if phase == "zero_grad")
    assert zeroed == 4 * sum(weight.numel() for weight in network.parameters())


class Chooses(nn.Module):
    """Does what its input says."""

    def forward(self, inputs):
        """Return the input, doubled if its sum is positive."""
        return 2 * inputs if inputs.sum() > 0 else inputs


@pytest.mark.parametrize(("task", "passes"), [("infer", 1), ("train", 2)])
def test_an_lstm_is_launched_once_each_way_with_the_work_of_all_its_steps(task, passes):
    network = nn.LSTM(8, 8, 2, batch_first=True)
    fused = record(network, torch.empty(4, 5, 8), task=task, loss=lambda lstm, x: lstm(x)[0].mean())
    recurrent = [kernel for _, kernel in fused if kernel.name.startswith("recurrent")]
    assert [kernel.kind for kernel in recurrent] == ["gemm", "elementwise"] * passes
    products = 2 * 2 * 4 * 5 * 8 * (4 * 8) * 2  # layers, input and state, batch, steps, in, gates
    assert recurrent[0].flops == products
    assert recurrent[0].elements <= 4 * 5 * 4 * 8  # the input's product of all steps at most


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_work_that_depends_on_numbers_is_refused(precision):
    with pytest.raises(TrainingError, match="Chooses cannot be counted"):
        record(Chooses(), torch.zeros(3), task="infer", precision=precision)
