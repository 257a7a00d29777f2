"""Fit rooflines to what others measured: micro-kernels on Orin boards, kernels of ResNets on a TX2.

Those of Orin boards are tables in config/rooflines/. On the TX2, time and power of the GPU's rail
were published (Energy Time Fairness, SEC 2023); operations and bytes are ours
(config/rooflines/resnet-kernels.csv). There are no micro-kernels, so the roof is what the best of
these kernels reach, and memory may well have more to give.
"""

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import numpy as np

from epochwatt.roofline.fit import N_DRAWS, Kernels, fit_kernels
from epochwatt.roofline.fits import FitRow, fit_tables, fitted_row, write_fits
from epochwatt.roofline.points import Point, read_points, write_points
from epochwatt.sweeps.mode_table import ModeTable, read_mode_tables
from epochwatt.tables import read_table

TX2_SWEEP, TX2_SOURCE = "energy-time-fairness-tx2", "umassos/energy-time-fairness@a7d5fea1c1c1"
KERNELS = "resnet-kernels.csv"  # in config/rooflines/


def write_public(
    ceilings: str, points: str, work: str, kernels: str, fits: str, all_points: str
) -> None:
    """Fit what others measured, and write their points as one table: rule fit_public_rooflines.

    Raises EpochwattError: a table cannot be read; RecordWriteError: one cannot be written.

    `ceilings`, `points`, `work`: of config/rooflines/; `kernels`: table of modes of the TX2's
    kernels, which are points and fitted to as well
    """
    measured = tx2_points(read_mode_tables(Path(kernels)), Path(work))
    write_fits(fits, [*fit_tables([ceilings]), *fit_points(measured)])
    write_points(all_points, [*read_points(points), *measured])


def tx2_points(tables: Sequence[ModeTable], work: Path) -> list[Point]:
    """Return a point for each kernel of the TX2's networks at each clock.

    `tables`: of times and powers; `work`: path of a table of operations and bytes; both in the
    order of a network's layers, by which they are matched

    Raises ValueError: a network has not as many tables as rows in `work`.
    """
    counted = (row for _, row in read_table(work))
    points = []
    for network, rows in groupby(counted, key=lambda row: row["network"]):
        measured = [table for table in tables if table.key.workload.startswith(f"{network} ")]
        for table, kernel in zip(measured, rows, strict=True):
            points += [
                Point(
                    provenance="public",
                    device=row.device,
                    instance=f"{row.gpu_mhz:g} MHz",
                    gpu_mhz=row.gpu_mhz,
                    processor="gpu",
                    precision="fp32",
                    workload=row.workload.replace("tvmgen_default_fused_nn_", ""),
                    task="infer",
                    batch_size=1,
                    flops=int(kernel["flops"]),
                    bytes=int(kernel["bytes"]),
                    launches=1,
                    time_s=row.time_s,
                    power_w=row.power_w,
                    power_scope=row.power_scope,
                    source=TX2_SOURCE,
                )
                for row in table.valid().rows
            ]
    return points


def fit_points(points: Sequence[Point], n_draws: int = N_DRAWS) -> list[FitRow]:
    """Return the rooflines of each mode that the points were measured in.

    Raises EpochwattError: a mode with too few kernels.
    """
    fits = []
    for device, instance in dict.fromkeys((p.device, p.instance) for p in points):
        in_mode = [p for p in points if (p.device, p.instance) == (device, instance)]
        flops, moved, time_s, power_w = (
            np.array([getattr(p, name) for p in in_mode], float)
            for name in ("flops", "bytes", "time_s", "power_w")
        )
        kernels = Kernels(flops, moved, time_s, time_s, power_w, 0.0, f"{device} {instance}")
        fits.append(fitted_row(in_mode[0], fit_kernels(kernels, n_draws), in_mode[0].power_scope))
    return fits
