"""Points of measured runs below their roof: work and time of the mean mini-batch."""

from collections.abc import Iterable, Mapping
from typing import Any

from epochwatt.counting.kernel_counts import KernelCounts, load_kernel_counts
from epochwatt.epochs.table import read_rows
from epochwatt.roofline.points import Point, write_points


def place_points(runs: Iterable[Mapping[str, Any]], path: str) -> None:
    """Write a point for each run of which a valid epoch says how much it computed, and how long.

    Parameters
    ----------
    runs : as `epochwatt.roofline.wanted.point_run` gives them
    path : where to write

    Raises
    ------
    RecordError : a table or the counts of a network cannot be read
    RecordWriteError : the points cannot be written
    """
    points = []
    for run in runs:
        epochs = [r for r in read_rows(run["epochs"]) if r["valid"] and r["n_samples"]]
        # the first epoch holds what is done once; where there is no other, it has to do
        later = [row for row in epochs if row["epoch"] > 0] or epochs
        if any(row["compute_s"] for row in later):
            points.append(_point(run["columns"], later, load_kernel_counts(run["counts"])))
    write_points(path, points)


def _point(columns: Mapping[str, Any], epochs: list[dict[str, Any]], counts: KernelCounts) -> Point:
    """Return the point of the mean mini-batch; the last of an epoch may be smaller."""
    n_minibatches = sum(row["n_minibatches"] for row in epochs)
    sizes = [size for row in epochs for size in _sizes(row, columns["batch_size"])]
    flops, moved = (
        sum(n * float(count(size).sum()) for size, n in sizes) / n_minibatches
        for count in (counts.flops, counts.bytes)
    )
    return Point(
        **columns,
        processor="gpu" if "cuda" in (epochs[0]["timing_method"] or "") else "cpu",
        flops=flops,
        bytes=moved,
        launches=len(counts.name),
        time_s=sum(row["compute_s"] for row in epochs) / n_minibatches,
    )


def _sizes(row: Mapping[str, Any], batch_size: int) -> list[tuple[int, int]]:
    """Return size and number of the mini-batches of an epoch."""
    whole, rest = divmod(row["n_samples"], batch_size)
    return [(batch_size, whole), (rest, 1 if rest else 0)]
