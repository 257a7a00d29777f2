"""Simulate the ceilings of boards: micro-kernels as a real board would be measured with.

Each call is awaited: the CPU launches it, the front end fetches it, the GPU executes it. A kernel
is a copy, a matrix product or a chain of multiply-adds, with the simulation's own equations
(`compute.py`, `power.py`), so fits to it say what simulated boards are made of.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from epochwatt.columns import CLOCKS
from epochwatt.counting.kernel_counts import FLOAT_BYTES, KernelCounts
from epochwatt.roofline.ceilings import CeilingRow, write_ceilings
from epochwatt.roofline.fits import FitRow
from epochwatt.roofline.points import Point, write_points
from epochwatt.sweeps.mode_table import ModeTable, read_mode_tables
from epochwatt.twin.boards import Board, Clocks, Values
from epochwatt.twin.compute import FLOP_PER_CORE_CLOCK, MAIN_OTHERS, kernels_s, slowdown, work_s
from epochwatt.twin.power import Load, parts
from epochwatt.twin.power_modes import load_twin_with_modes
from epochwatt.twin.twin import Twin

COPIES = (2**22, 2**24, 2**26)  # elements of an array
PRODUCTS = (1024, 2048, 4096)  # rows of square matrices
CHAINS = tuple(2.0**n for n in range(-2, 9))  # operations per byte of an array read and written
CHAINED = 2**24  # elements
GPU = {"processor": "gpu", "precision": "fp32"}
# All arithmetic as convolutions do it, which on Orin is faster (TF32): no network is above that,
# and an operation costs the same in all kernels; else a fit books the difference to their time
KINDS = {"matmul": "convolution", "fma": "convolution"}

Kernel = tuple[str, int, float, float, float]  # name, size, operations, bytes, elements
KERNELS: tuple[Kernel, ...] = (
    *(("copy", n, 0.0, 2.0 * FLOAT_BYTES * n, float(n)) for n in COPIES),
    *(("matmul", n, 2.0 * n**3, 3.0 * FLOAT_BYTES * n**2, float(n**2)) for n in PRODUCTS),
    *(
        ("fma", CHAINED, k * 2.0 * FLOAT_BYTES * CHAINED, 2.0 * FLOAT_BYTES * CHAINED, CHAINED)
        for k in CHAINS
    ),
    ("launch", 1, 0.0, 0.0, 1.0),
)


def _gpu_columns(device: str, mode: Iterable[Any]) -> dict[str, Any]:
    """Return the columns that all rows of a board's GPU in a mode share."""
    clocks = dict(zip(CLOCKS, mode, strict=True))
    clocks["cores"] = None if clocks["cores"] is None else int(clocks["cores"])
    return {"provenance": "simulated", "device": device, **clocks} | GPU


def simulate_ceilings(device: str, board: Board, modes: Clocks, p: Values) -> list[CeilingRow]:
    """Return a row per mode and micro-kernel, with the time and power that it would be measured at.

    `modes`: cores and clocks, (n,) each
    """
    names, _, flops, moved_bytes, elements = (
        np.array(column) for column in zip(*KERNELS, strict=True)
    )
    zeros = np.zeros(len(KERNELS))
    work = KernelCounts(
        model="micro-kernels",
        parameters=0,
        input=(1,),
        name=names,
        kind=np.array([KINDS.get(name, "elementwise") for name in names]),
        phase=np.full(len(KERNELS), "forward"),
        flops_fixed=flops,
        flops_per_sample=zeros,
        bytes_fixed=moved_bytes,
        bytes_per_sample=zeros,
        elements_fixed=elements,
        elements_per_sample=zeros,
    )
    p = {**p, "convolution_traffic": 1.0}  # what a micro-kernel reads, it reads once
    exec_s, computing_s = kernels_s(work, 1, board, modes.gpu_mhz, modes.emc_mhz, p)
    launch_s = work_s(p["launch_kcycles"], board, modes.cpu_mhz, modes.emc_mhz, p)
    launch_s = launch_s * slowdown(MAIN_OTHERS, modes.cores, p)
    launch_s = launch_s + 1e-3 * p["front_kcycles"] / modes.emc_mhz
    call_s = np.asarray(launch_s)[:, None] + exec_s
    clocks = Clocks(*(np.asarray(part)[:, None] for part in modes))
    busy = 1.0 + p["monitor_cores"] / board.ipc
    shares = (exec_s / call_s, computing_s / call_s, work.bytes(1) / call_s)
    load = Load(np.minimum(busy, clocks.cores), *shares)
    power_w = np.broadcast_to(parts(board, clocks, load, p).module_w, call_s.shape)
    return [
        CeilingRow(
            **_gpu_columns(device, mode),
            kernel=name,  # type: ignore[arg-type]
            size=size,
            flops=operations,
            bytes=n_bytes,
            repeats=1,
            time_s=float(call_s[i, j]),
            best_s=float(call_s[i, j]),
            power_w=float(power_w[i, j]),
            power_scope="module",
        )
        for i, mode in enumerate(np.column_stack(modes).tolist())
        for j, (name, size, operations, n_bytes, _) in enumerate(KERNELS)
    ]


def simulated_fits(device: str, root: Path = Path()) -> list[FitRow]:
    """Return the rooflines of a simulated board in its named power modes: its own constants.

    Nothing is fitted. Its constant power is that of the mode without work.
    """
    twin = load_twin_with_modes([], root)
    board, p = twin.boards[device], twin.parameters
    fits = []
    modes = [tuple(map(float, clocks)) for clocks in twin.modes[device].values()]
    for mode in dict.fromkeys(modes):
        cores, cpu_mhz, gpu_mhz, emc_mhz = mode
        launch_s = work_s(p["launch_kcycles"], board, cpu_mhz, emc_mhz, p)
        launch_s = float(launch_s * slowdown(MAIN_OTHERS, cores, p))
        monitor, clocks = p["monitor_cores"] / board.ipc, Clocks(*mode)
        idle_w, waiting_w, computing_w = (
            float(parts(board, clocks, Load(monitor, *gpu, 0.0), p).module_w)
            for gpu in ((0.0, 0.0), (1.0, 0.0), (1.0, 1.0))
        )
        flops_per_s = 1e6 * gpu_mhz * FLOP_PER_CORE_CLOCK * board.cuda_cores
        flops_per_s *= board.tf32_gain * p["dense_efficiency"]
        bytes_per_s = 1e6 * emc_mhz * board.emc_bytes_per_clock
        bytes_per_s *= board.bandwidth_gain * p["memory_efficiency"]
        fit = FitRow(
            **_gpu_columns(device, mode),
            flops_per_s=float(flops_per_s),
            bytes_per_s=float(bytes_per_s),
            # the GPU's front end fetches one launch after the other, too
            launch_s=max(launch_s, 1e-3 * float(p["front_kcycles"]) / emc_mhz),
            j_per_flop=float((computing_w - idle_w) / flops_per_s),
            j_per_byte=float((waiting_w - idle_w) / bytes_per_s + 1e-12 * p["memory_pj_per_byte"]),
            constant_w=idle_w,
            ridge_flop_per_byte=float(flops_per_s / bytes_per_s),
            power_scope="module",
            n=0,
        )
        fits.append(fit)
    return fits


def write_simulated_ceilings(
    tables: Iterable[str], workloads: Sequence[str], ceilings: str, points: str, root: Path
) -> None:
    """Write ceilings of simulated boards, and the mini-batches of networks below them.

    In the boards' named power modes and in those of tables of modes; the latter are the points.

    `tables`: of simulated sweeps; `workloads`: paths of the counts of their work

    Raises EpochwattError: a board that is not simulated, or a file that is wrong.
    """
    twin = load_twin_with_modes(workloads, root)
    swept = [table for path in tables for table in read_mode_tables(Path(path))]
    rows: list[CeilingRow] = []
    for device, board in sorted(twin.boards.items()):
        if named := [tuple(clocks) for clocks in twin.modes[device].values()]:
            grids = [table.modes[:, :4] for table in swept if table.key.device == board.kind]
            modes = np.unique(np.concatenate([np.array(named, float), *grids]), axis=0)
            rows += simulate_ceilings(device, board, Clocks(*modes.T), twin.parameters)
    write_ceilings(ceilings, rows)
    write_points(points, [point for table in swept for point in _points(table, twin)])


def _points(table: ModeTable, twin: Twin) -> list[Point]:
    """Return a point per valid mode of a workload: its mini-batch, waits included."""
    works = twin.inferred if table.key.task == "infer" else twin.works
    work = works[table.key.workload]
    device = next(name for name, board in twin.boards.items() if board.kind == table.key.device)
    size = table.key.batch_size or 1
    flops, moved = float(work.flops(size).sum()), float(work.bytes(size).sum())
    return [
        Point(
            **_gpu_columns(device, (row.cores, row.cpu_mhz, row.gpu_mhz, row.emc_mhz)),
            workload=row.workload,
            task=row.task,
            batch_size=row.batch_size,
            flops=flops,
            bytes=moved,
            launches=len(work.name),
            time_s=row.time_s,
            power_w=row.power_w,
            power_scope=row.power_scope,
        )
        for row in table.valid().rows
    ]
