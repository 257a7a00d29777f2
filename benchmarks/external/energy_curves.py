"""Energy against a clock or a power limit, as others measured it: where is its minimum?

Below it the power that no clock moves is paid for longer; above it voltage rises. The papers find
that the strongest power mode is rarely the one with the least energy.

Two real curves are held against the simulation's law of power. A TX2 is no simulated board and no
parameter has seen it: the law of AGX Xavier's GPU is carried over by the share of its highest
clock. Orin's voltages were read off the second curve, its other parameters were not.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.external import Finding, Inputs, in_range, near, show, simulated_workloads
from epochwatt.counting.kernel_counts import FLOAT_BYTES, KernelCounts
from epochwatt.sweeps.mode_table import ModeTable
from epochwatt.twin.boards import Board, Clocks, Values
from epochwatt.twin.compute import kernels_s, moved_bytes
from epochwatt.twin.epoch import steady
from epochwatt.twin.power import Load, parts
from epochwatt.twin.run import setting_of

Numbers = NDArray[np.float64]

TX2 = "energy-time-fairness-tx2"
LIMITS = ("zeus-v100", "zeus-rtx6000")
LEAST_LIMITS = 4  # of a curve
N_CLOCKS = 40
DEPTH_PCT = 20.0  # of the energies at both ends over the least, that a simulated curve may be off
TX2_CUDA_CORES, TX2_BYTES_PER_CLOCK, TX2_EMC_MHZ = 256, 32, 1866.0
KERNELS = "config/rooflines/resnet-kernels.csv"
TX2_KINDS = {"conv": "convolution", "dense": "gemm", "pool": "pool"}
# SOURCE: esainulab/slmdvfs@9e14047: fine-tuning of deberta-v2-xlarge on SST-2, AGX Orin 64 GB; GPU
# clock -> J of the rails VDD_GPU_SOC and VDD_CPU_CV (facts; thesis: Nazarbayev University, CC BY)
ORIN_J = {
    306: 55292, 408: 47512, 510: 43026, 612: 41044, 714: 40927, 816: 40982, 918: 42053,
    1020: 44379, 1122: 46298, 1224: 49987, 1300: 52476,
}  # fmt: skip
WEIGHTS, TOKENS = 884e6, 16 * 64  # of that network; ASSUME: tokens of a mini-batch
SHAPE = {  # of a `Curve`: title, unit, by how much a range is widened
    "best": ("clock of the least energy", "of the highest", 0.05),
    "at_lowest": ("energy at the lowest clock", "of the least", 0.1),
    "at_highest": ("energy at the highest clock", "of the least", 0.1),
}


class Curve(NamedTuple):
    """Energy against one knob."""

    best: float  # share of the highest setting at which energy is least
    at_lowest: float  # energy there over the least
    at_highest: float


def curve_of(settings: Numbers, energies: Numbers) -> Curve:
    """Return where energy is least, and how much more there is at both ends."""
    order = np.argsort(settings)
    settings, energies = settings[order], energies[order]
    least = int(energies.argmin())
    return Curve(
        float(settings[least] / settings[-1]),
        float(energies[0] / energies[least]),
        float(energies[-1] / energies[least]),
    )


def gpu_clock_findings(inputs: Inputs) -> Iterator[Finding]:
    """Yield the U of energy against GPU clock on a TX2, and where simulated boards have theirs.

    The energy is that of the GPU's rail. Of simulated boards it is that of the GPU, and once more
    that of the module.
    """
    simulated = [_simulated(inputs, *workload) for workload in simulated_workloads(inputs.twin)]
    for table in inputs.tables(TX2):
        if table.key.work != "inference":
            continue
        clocks, energies = table.column("gpu_mhz"), _energies(table)
        measured, title = curve_of(clocks, energies), f"{table.key.device} {table.key.workload}: "
        ends = [energies[clocks.argmin()], energies.min(), energies[clocks.argmax()]]
        least = clocks[energies.argmin()]
        yield Finding(
            f"{title}energy of the GPU's rail at {clocks.min():g}, {least:g} and "
            f"{clocks.max():g} MHz",
            "mJ",
            "least between both ends",
            " / ".join(f"{1e3 * joule:.0f}" for joule in ends),
            measured.at_lowest > 1 and measured.at_highest > 1,
        )
        note = f"range of {len(simulated)} simulated workloads (three boards)"
        for what, (words, unit, margin) in SHAPE.items():
            values = [getattr(gpu, what) for gpu, _ in simulated]
            value = getattr(measured, what)
            yield in_range(f"{title}{words}, GPU alone", unit, value, values, margin, note)
    modules = [module for _, module in simulated]
    best = [curve.best for curve in modules if min(curve.at_lowest, curve.at_highest) > 1]
    where = f", at {show(min(best))} to {show(max(best))} of the highest clock" if best else ""
    yield Finding(
        "simulated boards: energy of the whole module over GPU clocks",
        "",
        "least between both ends",
        f"{len(best)} of {len(modules)} workloads{where}",
        2 * len(best) > len(modules),
        "no table here has the module's power over GPU clocks alone",
    )


def law_findings(inputs: Inputs) -> Iterator[Finding]:
    """Yield where the simulation's law of power has the U of two real boards, and how deep."""
    p = inputs.twin.parameters
    for table in inputs.tables(TX2):
        if table.key.work == "inference":
            clocks = table.column("gpu_mhz")
            xavier = inputs.twin.boards["agx"]
            board = replace(
                xavier,
                cuda_cores=TX2_CUDA_CORES,
                emc_bytes_per_clock=TX2_BYTES_PER_CLOCK,
                gpu_mhz=(clocks.min(), clocks.max()),
                gpu_knee_mhz=xavier.gpu_knee_mhz / xavier.gpu_mhz[1] * clocks.max(),
                emc_mhz=(xavier.emc_mhz[0], TX2_EMC_MHZ),
            )
            work = _tx2_work(inputs, table.key.workload)
            simulated = _gpu_energies(board, work, clocks, p)
            title = f"TX2 {table.key.workload}, GPU"
            yield from _same_u(title, clocks, _energies(table), simulated)
    clocks, energies = (np.array(list(values), float) for values in (ORIN_J, ORIN_J.values()))
    simulated = orin_energies(inputs.twin.boards["orin"], p)
    yield from _same_u("AGX Orin, training, GPU with SoC and CPU", clocks, energies, simulated)


def orin_energies(board: Board, p: Values) -> Numbers:
    """Return the energy of the training of `ORIN_J` at its clocks, J of a mini-batch."""
    moved = np.array([0.0, 7.0 * FLOAT_BYTES * WEIGHTS])  # AdamW: read and written
    work = _work(["gemm", "optimiser"], np.array([6.0 * WEIGHTS * TOKENS, 0.0]), moved)
    clocks = np.array(list(ORIN_J), float)
    return _gpu_energies(board, work, clocks, p, ("soc_w", "cpu_w", "gpu_w"))


def _same_u(
    title: str, clocks: Numbers, measured: Numbers, simulated: Numbers
) -> Iterator[Finding]:
    """Yield whether the minima are a step of the clock apart at most, and how far the ends are."""
    order = np.argsort(clocks)
    best, found = (int(energies[order].argmin()) for energies in (measured, simulated))
    yield Finding(
        f"{title}: clock of the least energy",
        "MHz",
        f"{clocks[order][best]:g}, a step more or less",
        f"{clocks[order][found]:g}",
        abs(best - found) <= 1,
    )
    pairs = zip(curve_of(clocks, measured)[1:], curve_of(clocks, simulated)[1:], strict=True)
    for end, (expected, value) in zip(("lowest", "highest"), pairs, strict=True):
        subject = f"{title}: energy at the {end} clock"
        yield near(subject, "of the least", expected, value, DEPTH_PCT, "")


def _tx2_work(inputs: Inputs, network: str) -> KernelCounts:
    """Return the kernels of a network on one picture."""
    rows = pd.read_csv(inputs.root / KERNELS)
    rows = rows[rows.network == network]
    kinds = [TX2_KINDS.get(kernel, "elementwise") for kernel in rows.kernel]
    return _work(kinds, rows.flops.to_numpy(float), rows.bytes.to_numpy(float))


def _work(kinds: list[str], flops: Numbers, moved: Numbers) -> KernelCounts:
    """Return kernels that fill a GPU, of a mini-batch of one."""
    zeros, n = np.zeros(len(kinds)), len(kinds)
    full = np.full(n, np.inf)
    text = {"name": np.array(kinds), "kind": np.array(kinds), "phase": np.full(n, "forward")}
    return KernelCounts(
        "made up", 0, (1,), **text, flops_fixed=flops, flops_per_sample=zeros, bytes_fixed=moved,
        bytes_per_sample=zeros, elements_fixed=full, elements_per_sample=zeros,
    )  # fmt: skip


def _gpu_energies(
    board: Board,
    work: KernelCounts,
    gpu_mhz: Numbers,
    p: Values,
    parts_of: tuple[str, ...] = ("gpu_w",),
) -> Numbers:
    """Return the energy of parts of a board, J, while kernels follow one another; per clock."""
    emc_mhz = board.emc_mhz[1]
    exec_s, computing_s = (
        each.sum(axis=1) for each in kernels_s(work, 1, board, gpu_mhz, emc_mhz, p)
    )
    clocks = Clocks(board.cores, board.cpu_mhz[1], gpu_mhz, emc_mhz)
    load = Load(1.0, 1.0, computing_s / exec_s, moved_bytes(work, 1, p).sum() / exec_s)
    watts = parts(board, clocks, load, p)
    return np.asarray(sum(getattr(watts, name) for name in parts_of) * exec_s)


def _simulated(inputs: Inputs, device: str, factors: Mapping[str, object]) -> tuple[Curve, Curve]:
    """Return the curves of a simulated GPU and of its module, all other clocks at their highest."""
    board = inputs.twin.boards[device]
    gpu_mhz = np.linspace(*board.gpu_mhz, N_CLOCKS)
    highest = (float(board.cores), board.cpu_mhz[1], board.emc_mhz[1])
    cores, cpu_mhz, emc_mhz = (np.full(N_CLOCKS, value) for value in highest)
    setting = setting_of(factors, inputs.twin, clocks=Clocks(cores, cpu_mhz, gpu_mhz, emc_mhz))
    mean = steady(setting, inputs.twin.parameters)
    gpu, module = np.asarray(mean.parts.gpu_w * mean.e2e_s), np.asarray(mean.energy_wh)
    return curve_of(gpu_mhz, gpu), curve_of(gpu_mhz, module)


def power_limit_findings(name: str, inputs: Inputs) -> Iterator[Finding]:
    """Yield, network by network, at which power limit of a GPU training takes the least energy."""
    rows = []
    for table in inputs.tables(name):
        limits = table.column("power_limit_w")
        if len(limits) >= LEAST_LIMITS:
            energies, times = _energies(table), table.column("time_s")
            rows.append(
                {
                    **curve_of(limits, energies)._asdict(),
                    "network": " on ".join(table.key.workload.split("-")[:2]),
                    "device": table.key.device,
                    "highest_w": limits.max(),
                    "best_w": limits[energies.argmin()],
                    "longer": times[energies.argmin()] / times[limits.argmax()] - 1.0,
                }
            )
    curves = pd.DataFrame(rows)
    highest_w = curves.highest_w.max()
    for network, part in curves.groupby("network", sort=False):
        median_w, saved = part.best_w.median(), (1.0 - 1.0 / part.at_highest).median()
        yield Finding(
            f"{part.device.iloc[-1]} {network}: limit of the least energy per epoch",
            "W",
            f"below the highest, {highest_w:g}",
            f"{show(median_w)} ({part.best_w.min():g} to {part.best_w.max():g})",
            bool(median_w < highest_w),
            f"median of {len(part)} batch sizes and optimisers: {100 * saved:.0f} % less energy, "
            f"{100 * part.longer.median():+.0f} % time; the lowest limit is best in "
            f"{part.at_lowest.eq(1).sum()}",
        )


def _energies(table: ModeTable) -> Numbers:
    return table.column("time_s") * table.column("power_w")
