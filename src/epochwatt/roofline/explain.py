"""Split an epoch's time and energy by the rooflines of its mode, to see what holds a run back.

Of the time of computing, each kernel of a mini-batch has taken at least what the ceilings allow:

    max(operations / F, bytes / B)

after its launch. Where the CPU computes, launches and kernels take turns. A GPU works while the CPU
launches ahead; the last kernel ends after the longest way through launches, then kernels:

    max over k of  launch_1 + ... + launch_k + kernel_k + ... + kernel_n

What is on that way is time of launches, of arithmetic or of memory; what it hides has no share.
What remains lies *below the roof*: the kernels do not reach the ceilings. Waiting for the loader,
copying and overhead were measured.
Operations and bytes cost the energy that they cost micro-kernels, and constant power goes on:

    energy = operations e_flop + bytes e_byte + P0 epoch + rest

ASSUME: where these parts are more than what was measured, all are scaled to it, and it is said.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from epochwatt.counting.kernel_counts import KINDS, KernelCounts
from epochwatt.epochs.bottleneck import (
    ARITHMETIC,
    BELOW_ROOF,
    COMPUTE_PARTS,
    COPY,
    LAUNCHES,
    LOADER,
    MEMORY,
    OVERHEAD,
    Bottleneck,
    find_bottleneck,
)
from epochwatt.roofline.model import Ceilings, EnergyCosts, Numbers

CONSTANT, REST = "constant power", "rest"
TIME_PARTS = (*COMPUTE_PARTS, BELOW_ROOF, LOADER, COPY, OVERHEAD)
ENERGY_PARTS = (ARITHMETIC, MEMORY, CONSTANT, REST)
GPU = "gpu"


@dataclass(frozen=True)
class Observed:
    """Means over epochs of a run."""

    n_minibatches: float
    batch_size: float  # the mean of an epoch, as its last mini-batch may be smaller
    num_workers: int
    e2e_s: float
    wait_s: float
    copy_s: float
    compute_s: float
    overhead_s: float
    fetch_s: float | None = None  # of an epoch, summed over the workers; None: not recorded
    preprocess_s: float | None = None
    energy_j: float | None = None  # of an epoch; None: not measured


@dataclass(frozen=True)
class Roof:
    """The rooflines of one mode; costs None: what work costs is not known."""

    processor: str
    ceilings: Ceilings
    costs: EnergyCosts | None = None


class Group(NamedTuple):
    """Kernels of one class of operators."""

    launches: int  # of one mini-batch
    flops: float
    bytes: float
    time_s: Mapping[str, float]  # of an epoch, by part, the least that it takes
    # of an epoch, by part, without constant power and rest; empty: not known
    energy_j: Mapping[str, float]


@dataclass(frozen=True)
class Explanation:
    """Time and energy of an epoch, split."""

    time_s: Mapping[str, float]  # by part of `TIME_PARTS`; they add up to the epoch
    # by part of `ENERGY_PARTS`; they add up to its energy; empty: not known
    energy_j: Mapping[str, float]
    groups: Mapping[str, Group]  # by class of operators
    roof_share: float  # least time over measured time of computing; above 1: the parts were scaled
    energy_scale: float = 1.0  # what the parts of the energy were multiplied by; 1: nothing

    @property
    def bottleneck(self) -> Bottleneck:
        """The part that holds the run back, and the largest part of the least time of computing."""
        return find_bottleneck(self.time_s)


def least_s(work: KernelCounts, size: float, roof: Roof) -> dict[str, Numbers]:
    """Return the least time of each kernel (n_kernels,), s, in the part that it belongs to."""
    flops, moved, ceilings = work.flops(size), work.bytes(size), roof.ceilings
    roof_s = ceilings.roof_s(flops, moved)
    launch_s = np.full(len(roof_s), ceilings.launch_s)
    if roof.processor == GPU:
        number = np.arange(len(roof_s))
        way_s = np.cumsum(launch_s) + np.cumsum(roof_s[::-1])[::-1]
        change = int(way_s.argmax())
        launch_s, roof_s = launch_s * (number <= change), roof_s * (number >= change)
    is_arithmetic = flops / ceilings.flops_per_s >= ceilings.roof_s(flops, moved)
    return {
        LAUNCHES: launch_s,
        ARITHMETIC: roof_s * is_arithmetic,
        MEMORY: roof_s * ~is_arithmetic,
    }


def least_compute_s(work: KernelCounts, size: float, roof: Roof) -> float:
    """Return the least time of computing one mini-batch, s."""
    return float(sum(part.sum() for part in least_s(work, size, roof).values()))


def explain(work: KernelCounts, seen: Observed, roof: Roof) -> Explanation:
    """Split the time and the energy of a run's mean epoch."""
    least = least_s(work, seen.batch_size, roof)
    least_epoch_s = seen.n_minibatches * sum(float(part.sum()) for part in least.values())
    roof_share = least_epoch_s / seen.compute_s if seen.compute_s > 0 else math.inf
    scale = seen.n_minibatches / max(roof_share, 1.0)
    time_s = {part: scale * float(spent_s.sum()) for part, spent_s in least.items()}
    time_s[BELOW_ROOF] = max(seen.compute_s - sum(time_s.values()), 0.0)
    time_s |= {LOADER: seen.wait_s, COPY: seen.copy_s, OVERHEAD: seen.overhead_s}
    every = np.ones(len(work.kind), bool)
    energy_j, energy_scale = _work_j(work, seen, roof.costs, every), 1.0
    if roof.costs is not None and seen.energy_j is not None:
        energy_j[CONSTANT] = roof.costs.constant_w * seen.e2e_s
        whole = sum(energy_j.values())
        energy_scale = min(1.0, seen.energy_j / whole) if whole > 0 else 1.0
        energy_j = {part: energy_scale * value for part, value in energy_j.items()}
        energy_j[REST] = max(seen.energy_j - sum(energy_j.values()), 0.0)
    groups = {
        kind: Group(
            int(chosen.sum()),
            float(work.flops(seen.batch_size)[chosen].sum()),
            float(work.bytes(seen.batch_size)[chosen].sum()),
            {part: scale * float(spent_s[chosen].sum()) for part, spent_s in least.items()},
            {p: energy_scale * j for p, j in _work_j(work, seen, roof.costs, chosen).items()},
        )
        for kind in KINDS
        if (chosen := work.kind == kind).any()
    }
    return Explanation(time_s, energy_j, groups, roof_share, energy_scale)


def _work_j(
    work: KernelCounts, seen: Observed, costs: EnergyCosts | None, chosen: NDArray[np.bool_]
) -> dict[str, float]:
    """Return what operations and bytes of chosen kernels cost in an epoch, J; empty: not known."""
    if costs is None or seen.energy_j is None:
        return {}
    flops, moved = (
        float(count(seen.batch_size)[chosen].sum()) for count in (work.flops, work.bytes)
    )
    return {
        ARITHMETIC: seen.n_minibatches * costs.j_per_flop * flops,
        MEMORY: seen.n_minibatches * costs.j_per_byte * moved,
    }
