"""Name what holds an epoch back, for the page, `summary`, advice, `explain` and `what-if`.

An epoch waits for the loader, copies to the GPU, computes, and has overhead. Where rooflines or a
simulation split the computing, it is limited by the CPU's launches, the GPU's arithmetic or memory.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

LOADER, COPY, COMPUTE, OVERHEAD = "loader", "copy", "compute", "overhead"
LAUNCHES, ARITHMETIC, MEMORY, BELOW_ROOF = "launches", "arithmetic", "memory", "below the roof"
COMPUTE_PARTS = (LAUNCHES, ARITHMETIC, MEMORY)
PART_COLUMNS = {LOADER: "wait_s", COPY: "copy_s", COMPUTE: "compute_s", OVERHEAD: "overhead_s"}
TOO_SHORT_S = 1.0  # below, start-up and the clock's steps are much of an epoch
TOO_SHORT = "Too short to tell what holds it back."


class Bottleneck(NamedTuple):
    """The part that costs an epoch most."""

    bound_by: str  # loader, copy, compute or overhead
    limit: str = ""  # of computing: launches, arithmetic or memory; empty: not known

    @property
    def cause(self) -> str:
        """Return what it is bound by, as a sentence names it: `the loader`."""
        return {LOADER: "the loader", COPY: "copying to the GPU"}.get(self.bound_by, self.bound_by)

    def __str__(self) -> str:
        """Return the beginning of a sentence: `Bound by compute, its limit is memory`."""
        has_limit = self.bound_by == COMPUTE and self.limit
        return f"Bound by {self.cause}" + (f", its limit is {self.limit}" if has_limit else "")


def find_bottleneck(costs: Mapping[str, float]) -> Bottleneck:
    """Return the part of an epoch that costs most, and the limit of its computing.

    `costs`: part -> the time that it takes, or that an epoch would save if it were faster;
    computing as `compute`, or as its parts; NaN counts as zero
    """
    known = {part: cost for part, cost in costs.items() if not math.isnan(cost)}
    compute = sum(known.get(part, 0.0) for part in (COMPUTE, *COMPUTE_PARTS, BELOW_ROOF))
    by_part = {**known, COMPUTE: compute}
    limits = [part for part in COMPUTE_PARTS if part in known]
    return Bottleneck(
        bound_by=max(PART_COLUMNS, key=lambda part: by_part.get(part, 0.0)),
        limit=max(limits, key=lambda part: known[part]) if limits else "",
    )


def find_longest_part(epoch: Mapping[str, object]) -> Bottleneck:
    """Return the bottleneck of an epoch, or of means of epochs, by the columns of epochs.csv.

    `bound_by` is empty where no part of the time is known: of an imported power log.
    """
    costs = {part: _seconds(epoch[column]) for part, column in PART_COLUMNS.items()}
    return find_bottleneck(costs) if any(cost > 0 for cost in costs.values()) else Bottleneck("")


def _seconds(cell: object) -> float:
    return float(cell) if cell not in (None, "") else 0.0  # type: ignore[arg-type]
