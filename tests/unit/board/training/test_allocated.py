"""The forecast of a step's tensors: closed forms, and what torch's profiler counts of a step."""

import pytest
import torch
from torch import nn

from benchmarks import memory_steps
from epochwatt.board.training.allocated import (
    Manner,
    Subject,
    checkpoint_blocks,
    forecast,
    libraries_mib,
    repeated_blocks,
)
from epochwatt.board.training.resident import CPU
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
