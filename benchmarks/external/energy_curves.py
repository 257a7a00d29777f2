"""Energy against a clock or a power limit, as others measured it: where is its minimum?

Below it the power that no clock moves is paid for longer; above it voltage rises. The papers find
that the strongest power mode is rarely the one with the least energy.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.external import Finding, Inputs, in_range, show, simulated_workloads
from epochwatt.sweeps.mode_table import ModeTable
from epochwatt.twin.boards import Clocks
from epochwatt.twin.epoch import steady
from epochwatt.twin.run import setting_of

Numbers = NDArray[np.float64]

TX2 = "energy-time-fairness-tx2"
LIMITS = ("zeus-v100", "zeus-rtx6000")
LEAST_LIMITS = 4  # of a curve
N_CLOCKS = 40
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
    that of the module: the simulation books all power that no clock moves to the rest of the SoC.
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
