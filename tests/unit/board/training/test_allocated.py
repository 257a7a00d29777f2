"""The forecast of a step's tensors: closed forms, and what torch's profiler counts of a step."""

import pandas as pd
import pytest
import torch
from torch import nn

from benchmarks import memory, memory_steps
from epochwatt.board.training.allocated import (
    Manner,
    Subject,
    checkpoint_blocks,
    forecast,
    libraries_mib,
    repeated_blocks,
    temporary_bytes,
)
from epochwatt.board.training.resident import CPU, GPU, MIB, blas_mib, need_of
from epochwatt.errors import TrainingError

WIDTH, DEPTH, FLOAT = 256, 6, 4


class Block(nn.Module):
    """A layer with a square of its output, which backward needs."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, x):
        return self.layer(x).tanh()


def stack():
    return nn.Sequential(*(Block() for _ in range(DEPTH)))


SUBJECT = Subject(stack, lambda: torch.zeros(1, WIDTH), lambda network, x: network(x).sum())
WEIGHTS = DEPTH * WIDTH * WIDTH * FLOAT


@pytest.mark.parametrize(("optimiser", "states"), [("sgd", 1), ("adam", 2)])
def test_weights_gradients_and_states_are_counted(optimiser, states):
    made = forecast(SUBJECT, 1, Manner(optimiser=optimiser))
    assert (made.weights, made.gradients, made.optimiser) == (WEIGHTS, WEIGHTS, states * WEIGHTS)
    assert made.minibatch == WIDTH * FLOAT
    assert made.peak >= (2 + states) * WEIGHTS


def test_activations_grow_by_what_backward_needs():
    sizes = (1024, 2048)
    small, large = (forecast(SUBJECT, n, Manner()).activations for n in sizes)
    per_sample = (large - small) / (sizes[1] - sizes[0])
    # the output of each tanh, and of the last product or its gradient before it
    assert DEPTH <= per_sample / (WIDTH * FLOAT) <= DEPTH + 2


def test_checkpointing_keeps_one_output_a_block_and_inference_keeps_none():
    batch_size = 8192
    usual = forecast(SUBJECT, batch_size, Manner()).activations
    inference = forecast(SUBJECT, batch_size, Manner(task="infer")).activations
    assert inference <= 3.1 * batch_size * WIDTH * FLOAT < usual
    assert len(repeated_blocks(stack())) == DEPTH
    network = stack()
    assert checkpoint_blocks(network)
    x = torch.randn(3, WIDTH)
    torch.testing.assert_close(network(x), nn.Sequential(*network)(x))


def test_a_network_that_looks_at_numbers_is_refused():
    subject = SUBJECT._replace(loss=lambda network, x: network(x).sum() if x.sum() > 0 else x.sum())
    with pytest.raises(TrainingError, match="does not run on shapes alone"):
        forecast(subject, 2, Manner())


CASES = [
    pytest.param(
        {"network": "squeezenet1_1", "batch_size": 8, "precision": "fp32", "optimiser": "adam"},
        marks=pytest.mark.thorough,
    ),
    {"network": "resnet18", "batch_size": 4, "optimiser": "sgd", "checkpointing": True},
]


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["network"])
def test_the_profiler_counts_the_same_of_a_real_step(case):
    made = forecast(
        memory_steps.subject(case["network"]), case["batch_size"], memory_steps.manner_of(case)
    )
    assert made.peak == pytest.approx(memory_steps.profiled(case)["peak"], rel=0.05)


def per_sample(subject, manner):
    """Return what a sample adds to the peak, bytes."""
    small, large = (forecast(subject, n, manner).peak for n in (512, 1024))
    return (large - small) / 512


@pytest.mark.parametrize(("on_gpu", "kept"), [(False, 2 + 2), (True, 2 + 4)])
def test_a_gpu_normalises_layers_in_fp32(on_gpu, kept):
    """A product keeps its input in 16 bits; the normalisation keeps its own, on a GPU in fp32."""
    layers = [nn.Linear(WIDTH, WIDTH), nn.LayerNorm(WIDTH)]
    manner = Manner("bf16", on_gpu=on_gpu)
    shallow, deep = (
        per_sample(SUBJECT._replace(build=lambda n=n: nn.Sequential(*n * layers)), manner)
        for n in (8, 16)
    )
    assert (deep - shallow) / (8 * WIDTH) == pytest.approx(kept, rel=0.02)


class Attention(nn.Module):
    """Layers of attention whose queries share keys and values in groups."""

    def __init__(self, heads, groups, dropout):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(64, 64, bias=False) for _ in range(6))
        self.heads, self.groups, self.dropout = heads, groups, dropout

    def forward(self, x):
        for layer in self.layers:
            query = layer(x).view(*x.shape[:2], self.heads, -1).transpose(1, 2)
            keys = query[:, : self.groups]
            grouped = {"enable_gqa": True} if self.groups < self.heads else {}
            x = nn.functional.scaled_dot_product_attention(
                query, keys, keys, dropout_p=self.dropout, **grouped
            )
            x = x.transpose(1, 2).flatten(2)
        return x.sum()


@pytest.mark.parametrize(
    ("manner", "groups", "dropout", "keeps_scores"),
    [
        (Manner("bf16", on_gpu=True), 2, 0.1, False),  # flash
        (Manner("fp32", on_gpu=True), 4, 0.1, False),  # the efficient one
        (Manner("fp32", on_gpu=True), 2, 0.0, True),  # neither knows groups in fp32
        (Manner("fp32"), 4, 0.1, True),  # that of a CPU knows no dropout
    ],
)
def test_attention_keeps_its_scores_only_without_a_kernel_of_its_own(
    manner, groups, dropout, keeps_scores
):
    def subject(tokens):
        return Subject(
            lambda: Attention(4, groups, dropout),
            lambda: torch.zeros(1, tokens, 64),
            lambda network, x: network(x),
        )

    short, long = (forecast(subject(tokens), 8, manner).activations for tokens in (512, 1024))
    assert long / short == pytest.approx(4 if keeps_scores else 2, rel=0.2)


def test_threads_that_multiply_on_a_gpu_have_a_workspace_each():
    convolutions = SUBJECT._replace(
        build=lambda: nn.Conv2d(3, 8, 3), sample=lambda: torch.zeros(1, 3, 8, 8)
    )
    assert forecast(convolutions, 2, Manner(on_gpu=True)).blas_threads == 0
    assert forecast(SUBJECT, 2, Manner()).blas_threads == 0
    assert forecast(SUBJECT, 2, Manner(task="infer", on_gpu=True)).blas_threads == 1
    made = forecast(SUBJECT, 2, Manner(on_gpu=True))
    assert made.blas_threads == 2  # backward has a thread of its own
    assert [blas_mib(major) for major in (7, 8, 9, 11)] == [8.125, 8.125, 32.0, 8.125]
    alone = need_of(made._replace(blas_threads=0), GPU)
    assert need_of(made, GPU).total - alone.total == pytest.approx(2 * 8.125 * MIB, abs=2)


def test_convolutions_are_copied_in_backward_unless_each_channel_is_by_itself():
    def arguments(weight, groups):
        images = torch.empty(2, 8, 6, 6, device="meta")
        return (images, images, torch.empty(weight, device="meta"), *[None] * 6, groups)

    name, floats = "aten.convolution_backward", 2 * 2 * 8 * 6 * 6
    for weight, groups in (((8, 8, 3, 3), 1), ((8, 2, 3, 3), 4)):
        args = arguments(weight, groups)
        expected = FLOAT * (floats + args[2].numel())
        assert temporary_bytes(name, args, None, on_gpu=True) == expected
    assert temporary_bytes(name, arguments((8, 1, 3, 3), 8), None, on_gpu=True) == 0


SEEN = pd.read_csv(memory.FOLDER / "gpu.csv")


@pytest.mark.slow
@pytest.mark.parametrize("network", ["vgg11", "gpt2", "llama"])
def test_forecasts_are_what_a_gpu_was_seen_to_take(network):
    if network in memory_steps.CONFIGS:
        pytest.importorskip("transformers")
    rows = memory.with_gpu_forecasts(SEEN[SEEN.network == network])
    assert len(rows) >= 2
    assert list(rows.forecast_mib) == pytest.approx(list(rows.allocated_mib), rel=0.02)


@pytest.mark.parametrize(
    ("optimiser", "modules", "expected_mib"),
    [
        ("sgd", set(), 0.0),  # ours, which imports nothing
        ("sgd", {"torchvision.models"}, CPU.libraries),
        ("adam", set(), CPU.libraries),
        ("sgd", {"torchvision.models", "transformers"}, CPU.transformers),
    ],
)
def test_libraries_are_those_that_training_imports(optimiser, modules, expected_mib):
    assert libraries_mib(Manner(optimiser=optimiser), CPU, modules) == expected_mib
