"""Micro-kernels: what they compute, what is counted, and that nothing else is done."""

import pytest
import torch

from epochwatt import columns
from epochwatt.board.training.ceilings import kernels as module
from epochwatt.board.training.ceilings.kernels import kernels

CPU = torch.device("cpu")


@pytest.fixture
def small(monkeypatch):
    """Few and small sizes."""
    monkeypatch.setattr(module, "ARRAY_BYTES", [2**12, 2**14])
    monkeypatch.setattr(module, "MOST_BYTES", {"cpu": 2**14})
    monkeypatch.setattr(module, "MATRICES", {"cpu": (8, 16)})
    monkeypatch.setattr(module, "PICTURES", 2**12)


def of(name, *precisions):
    return [k for k in kernels(list(precisions or ("fp32",)), CPU) if k.kernel == name]


@pytest.mark.usefixtures("small")
def test_every_kind_is_there_and_each_can_be_called():
    made = list(kernels(["fp32", "bf16"], CPU))
    assert {kernel.kernel for kernel in made} == set(columns.CEILING_KERNELS)
    with torch.no_grad():
        for kernel in made:
            kernel.call()


@pytest.mark.usefixtures("small")
def test_operations_of_products_and_convolutions_are_torchs_own_count():
    from torch.utils.flop_counter import FlopCounterMode

    for kernel in [*of("matmul"), *(k for k in of("fma") if k.way == "convolution")]:
        with FlopCounterMode(display=False) as counter:
            kernel.call()
        assert counter.get_total_flops() == kernel.flops
