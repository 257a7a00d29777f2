"""Kernels of a training mini-batch: known networks, small ones by hand, and what is refused."""

from collections import Counter

import numpy as np
import pytest
import torch
from torch import nn

from epochwatt.board.training.workloads import Workload, workload_of
from epochwatt.counting.count_workload import (
    count_network,
    count_workload,
    launches,
    network_factors,
)
from epochwatt.counting.kernel_counts import load_kernel_counts
from epochwatt.errors import TrainingError
from epochwatt.study.config import WorkloadRow

MODELS = ("lenet", "mobilenet", "resnet", "vgg11")
MULTIPLIES = ("convolution", "depthwise", "gemm")


@pytest.fixture(scope="module")
def counted(network_counts):
    """Model -> its counts."""
    return {model: load_kernel_counts(network_counts(model)) for model in MODELS}


def multiply_adds(work, phase, b=1):
    """Return the multiply-adds of convolutions and products in a phase."""
    chosen = (work.phase == phase) & np.isin(work.kind, MULTIPLIES)
    return work.flops(b)[chosen].sum() / 2


def small(*modules, shape=(8,)):
    """Return a workload that trains these modules."""
    return Workload(
        build=lambda: nn.Sequential(*modules),
        transform=lambda raw: raw,
        made_up=lambda: torch.empty(shape),
    )


def named(work, size=4):
    """Return phase.name of every launch of a small workload, without zero_grad and optimiser."""
    inner = ("forward", "backward")
    return [f"{p}.{k.name.split('.', 1)[1]}" for p, k in launches(work, size) if p in inner]


# -- the papers' networks ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "parameters", "per_sample", "n_launches"),
    [
        ("lenet", 61_706, 416_520, 94),
        ("mobilenet", 4_462_075, 215_569_600, 1438),
        ("resnet", 11_173_962, 555_422_720, 593),
        ("vgg11", 132_863_336, 276_398_080, 212),
    ],
)
def test_known_sizes(counted, model, parameters, per_sample, n_launches):
    work = counted[model]
    assert work.parameters == parameters
    assert multiply_adds(work, "forward") == per_sample
    assert len(work.kind) == n_launches


@pytest.mark.parametrize("model", MODELS)
def test_backward_multiplies_twice_as_much_and_the_optimiser_touches_every_parameter(
    counted, model
):
    work = counted[model]
    forward, backward = multiply_adds(work, "forward"), multiply_adds(work, "backward")
    first = work.flops(1)[(work.phase == "forward") & (work.kind == "convolution")][0] / 2
    assert backward == 2 * forward - first
    in_phase = Counter(work.phase.tolist())
    assert in_phase["optimiser"] == 3 * in_phase["zero_grad"]
    moved = {phase: work.bytes(1)[work.phase == phase].sum() for phase in in_phase}
    assert moved["zero_grad"] == 4 * work.parameters
    assert moved["optimiser"] == (2 + 3 + 3) * 4 * work.parameters
    added = (work.phase == "backward") & (work.name == "aten.add_")
    assert work.bytes(16)[added].sum() == 3 * 4 * work.parameters


@pytest.mark.parametrize("model", ["lenet", "resnet"])
def test_counts_hold_for_a_size_that_was_not_looked_at(counted, model):
    from epochwatt.board.training.workloads import WORKLOADS

    work, size = counted[model], 23
    found = [kernel for _, kernel in launches(WORKLOADS[model], size)]
    assert work.flops(size).tolist() == [kernel.flops for kernel in found]
    assert work.bytes(size).tolist() == [kernel.bytes for kernel in found]
    assert work.elements(size).tolist() == [kernel.elements for kernel in found]


# -- small networks, by hand ---------------------------------------------------------------------


def test_a_dense_layer():
    kernels = dict(launches(small(nn.Linear(8, 3)), 4))["forward"]
    assert (kernels.kind, kernels.flops, kernels.elements) == ("gemm", 2 * 4 * 8 * 3, 4 * 3)
    assert kernels.bytes == 4 * (4 * 8 + 8 * 3 + 2 * 4 * 3)  # the output is added to
    assert named(small(nn.Linear(8, 3))) == [
        *("forward.addmm.bias", "forward.addmm"),
        *("backward.ones_like", "backward.nll_loss_backward.zero", "backward.nll_loss_backward"),
        *("backward._log_softmax_backward_data", "backward.mm"),
        *("backward.sum", "backward.add_", "backward.add_"),
    ]


def test_a_batch_norm_reads_twice_and_counts_its_batches():
    work = small(nn.BatchNorm1d(8), nn.Linear(8, 3))
    found = {f"{p}.{k.name}": k for p, k in launches(work, 4)}
    assert found["forward.aten.add_"].bytes == 2 * 8  # num_batches_tracked, int64
    # input twice, output once, and per channel: weight, bias, running and batch mean and variance
    forward = found["forward.aten.native_batch_norm"]
    assert forward.bytes == 4 * (3 * 4 * 8 + 6 * 8)
    assert (forward.kind, forward.elements) == ("normalise", 32)


# -- what is refused, and the command ------------------------------------------------------------


class Uneven(nn.Module):
    """Works on all pairs of samples, or otherwise on large mini-batches."""

    def __init__(self, how):
        super().__init__()
        self.dense, self.how = nn.Linear(8, 3), how

    def forward(self, inputs):
        scores = self.dense(inputs)
        if self.how == "pairs":
            return scores + (scores @ scores.T).sum()
        return scores + 1 if len(inputs) > 10 else scores


@pytest.mark.parametrize(
    ("how", "said"), [("pairs", "aten.mm is"), ("large", "launches other kernels")]
)
def test_a_network_that_is_not_linear_in_the_mini_batch_is_refused(how, said, monkeypatch):
    from epochwatt.board.training.workloads import WORKLOADS

    monkeypatch.setitem(WORKLOADS, "uneven", small(Uneven(how)))
    with pytest.raises(TrainingError, match=said):
        count_workload({"model": "uneven"})


def row(**keys):
    return WorkloadRow(
        title="x", dataset="mnist", dataset_source="digits", guess_samples_per_s=1, **keys
    )


def test_a_network_of_ones_own_is_counted_with_the_input_of_another(tmp_path, monkeypatch):
    (tmp_path / "own_counted.py").write_text(
        "from torch import nn\ndef flat():\n"
        "    return nn.Sequential(nn.Flatten(), nn.Linear(784, 10))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    rows = {"flat": row(build="own_counted.flat", like="lenet"), "lenet": row()}
    assert network_factors("lenet", rows) == {"model": "lenet"}
    counts = count_workload(network_factors("flat", rows))
    assert (counts["input"], counts["classes"], counts["parameters"]) == ([1, 28, 28], 10, 7850)


def test_somebodys_own_loop_is_counted_like_the_packages(counted):
    lenet, images = workload_of({"model": "lenet"}), torch.rand(24, 1, 28, 28)
    minibatch = (images, torch.zeros(24, dtype=torch.long))
    own = count_network(lenet.build(), minibatch, "my-run", lambda n, m: lenet.loss(n, *m))
    assert own["kernels"] == count_workload({"model": "lenet"})["kernels"]
    assert (own["batch_size"], own["input"]) == (24, [28 * 28 + 2])  # a label has eight bytes
    network = torch.compile(lenet.build())
    assert len(count_network(network, images, "bare")["kernels"]["name"]) < len(
        counted["lenet"].kind
    )


@pytest.mark.filterwarnings("ignore")
def test_network_that_looks_at_its_masks_and_has_a_loss_is_counted():
    transformers = pytest.importorskip("transformers")
    names = ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")
    sizes = dict(zip(names, (8, 1, 2, 8), strict=True))
    network = transformers.BertForSequenceClassification(
        transformers.BertConfig(**sizes, vocab_size=9)
    )
    words = torch.ones(6, 16, dtype=torch.long)
    minibatch = {"input_ids": words, "attention_mask": words, "labels": words[:, 0]}
    own = count_network(network, transformers.BatchEncoding(minibatch), "b", optimiser="adamw")
    assert (own["batch_size"], own["input"]) == (6, [2 * (16 + 16 + 1)])
    assert "aten.nll_loss_backward" in own["kernels"]["name"]
