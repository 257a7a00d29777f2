"""Kernels of ResNet-18 and ResNet-50 on a Jetson TX2, each with its work: rooflines by GPU clock.

Time and power of the GPU's rail were measured and published by others (Energy Time Fairness, SEC
2023); operations and bytes are ours (`resnet_kernels`). There are no micro-kernels, so the roof is
what the best of these kernels reach, and memory may well have more to give.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from epochwatt.roofline.fit import N_DRAWS, Work, fit_kernels
from epochwatt.roofline.fits import FitRow, fitted_row
from epochwatt.roofline.points import Point
from epochwatt.roofline.resnet_kernels import STAGES, KernelWork, resnet_kernels
from epochwatt.sweeps.mode_table import ModeTable, SweepRow, read_mode_tables

SWEEP = "energy-time-fairness-tx2"
SOURCE = "umassos/energy-time-fairness@a7d5fea1c1c1"


def tx2_points(tables: Sequence[ModeTable]) -> list[Point]:
    """Return the kernels at all clocks; each network's are in the order of its layers.

    Raises
    ------
    ValueError : a network has another number of kernels
    """
    return [
        _point(row, work)
        for network in STAGES
        for table, work in zip(
            [table for table in tables if table.key.workload.startswith(f"{network} ")],
            resnet_kernels(network),
            strict=True,
        )
        for row in table.valid().rows
    ]


def _point(row: SweepRow, work: KernelWork) -> Point:
    return Point(
        provenance="public",
        device=row.device,
        instance=f"{row.gpu_mhz:g} MHz",
        gpu_mhz=row.gpu_mhz,
        processor="gpu",
        precision="fp32",
        workload=row.workload.replace("tvmgen_default_fused_nn_", ""),
        task="infer",
        batch_size=1,
        flops=work.flops,
        bytes=work.moved_bytes,
        launches=1,
        time_s=row.time_s,
        power_w=row.power_w,
        power_scope=row.power_scope,
        source=SOURCE,
    )


def read_tx2_points(path: Path) -> list[Point]:
    """Return the kernels of a table of modes. Raises ConfigError where it cannot be read."""
    return tx2_points(read_mode_tables(path))


def work_of(points: Sequence[Point]) -> Work:
    """Return what kernels did, as fits take it."""
    columns = [
        (p.flops, p.bytes, p.time_s, p.time_s, np.nan if p.power_w is None else p.power_w)
        for p in points
    ]
    return Work(*np.array(columns, float).reshape(-1, len(Work._fields)).T)


def fit_points(points: Sequence[Point], n_draws: int = N_DRAWS) -> list[FitRow]:
    """Return the rooflines of each mode that the points were measured in.

    Raises
    ------
    EpochwattError : a mode with too few kernels
    """
    rows = []
    for place in dict.fromkeys((p.device, p.instance) for p in points):
        some = [p for p in points if (p.device, p.instance) == place]
        fitted = fit_kernels(work_of(some), 0.0, " ".join(place), n_draws)
        rows.append(fitted_row(some[0], fitted, some[0].power_scope))
    return rows
