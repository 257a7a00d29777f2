"""Energy against a clock or a power limit, as others measured it: where is its minimum?

Below it the power that no clock moves is paid for longer; above it voltage rises. The papers find
that the strongest power mode is rarely the one with the least energy.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from epochwatt.external.check import AGREES, DIFFERS, PUBLIC, SIMULATED, Finding, held_by, show
from epochwatt.external.inputs import Inputs
from epochwatt.external.workloads import simulated_workloads
from epochwatt.sweeps.mode_table import ModeTable
from epochwatt.tables import write_table
from epochwatt.twin.inputs.numbers import Clocks
from epochwatt.twin.model.epoch import steady
from epochwatt.twin.simulation.run import setting_at

Numbers = NDArray[np.float64]

TX2 = "energy-time-fairness-tx2"
PANELS = ("GPU alone", "whole module", "training, GPU")  # of the figure
LIMITS = ("zeus-v100", "zeus-rtx6000")
LEAST_LIMITS = 4  # of a curve
N_CLOCKS = 40
SHAPE = {  # of a `Curve`: title, unit, by how much a range is widened
    "best": ("clock of the least energy", "of the highest", 0.05),
    "at_lowest": ("energy at the lowest clock", "of the least", 0.1),
    "at_highest": ("energy at the highest clock", "of the least", 0.1),
}


class Curve(NamedTuple):
    """Energy against one knob.

    Attributes
    ----------
    best : share of the highest setting at which energy is least
    at_lowest, at_highest : energy there over the least
    """

    best: float
    at_lowest: float
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
    networks = [table for table in inputs.tables(TX2) if table.key.work == "inference"]
    simulated = [_simulated(inputs, *workload) for workload in simulated_workloads(inputs.twin)]
    for table in networks:
        clocks, energies = table.column("gpu_mhz"), _energies(table)
        measured = curve_of(clocks, energies)
        yield _is_u(table, clocks, energies, measured)
        for what, (title, unit, margin) in SHAPE.items():
            values = [getattr(gpu, what) for gpu, _ in simulated]
            yield held_by(
                f"{table.key.device} {table.key.workload}: {title}, GPU alone",
                unit,
                getattr(measured, what),
                values,
                margin,
            )._replace(note=f"range of {len(values)} simulated workloads (three boards)")
    yield _module_has_u([module for _, module in simulated])


def _module_has_u(curves: Sequence[Curve]) -> Finding:
    """Return for how many simulated workloads the module's energy is least between both ends."""
    best = [curve.best for curve in curves if min(curve.at_lowest, curve.at_highest) > 1]
    count = f"{len(best)} of {len(curves)} workloads"
    where = f", at {show(min(best))} to {show(max(best))} of the highest clock" if best else ""
    return Finding(
        "simulated boards: energy of the whole module over GPU clocks",
        "",
        "least between both ends",
        count + where,
        None,
        AGREES if 2 * len(best) > len(curves) else DIFFERS,
        "no table here has the module's power over GPU clocks alone",
        SIMULATED,
    )


class CurvePoint(NamedTuple):
    """A point of a drawn curve.

    Attributes
    ----------
    panel : one of `PANELS`
    curve : what it is one of the curves of
    provenance : `PUBLIC` or `SIMULATED`
    setting : share of the highest clock or limit
    energy : over the least of its curve
    """

    panel: str
    curve: str
    provenance: str
    setting: float
    energy: float


def curve_points(inputs: Inputs) -> Iterator[CurvePoint]:
    """Yield the points of all curves that a figure shows: measured ones and simulated ones."""
    for table in inputs.tables(TX2):
        if table.key.work == "inference":
            name = f"{table.key.device} {table.key.workload}"
            points = (table.column("gpu_mhz"), _energies(table))
            yield from _points(PANELS[0], name, PUBLIC, *points)
    for device, factors in simulated_workloads(inputs.twin):
        name = f"{device} {factors['model']}, {factors['num_workers']} workers"
        gpu_mhz, energies = _simulated_energies(inputs, device, factors)
        for panel, some in zip(PANELS[:2], energies, strict=True):
            yield from _points(panel, name, SIMULATED, gpu_mhz, some)
    for sweep in LIMITS:
        yield from _limit_points(inputs.tables(sweep))


def _limit_points(tables: Iterable[ModeTable]) -> Iterator[CurvePoint]:
    """Yield a curve per network: the median over its batch sizes and optimisers."""
    energies: dict[str, dict[float, list[float]]] = defaultdict(lambda: defaultdict(list))
    for table in tables:
        limits, joule = table.column("power_limit_w"), _energies(table)
        if len(limits) >= LEAST_LIMITS:
            name = f"{table.key.device} {_network(table)}"
            for limit, energy in zip(limits.tolist(), joule / joule[limits.argmax()], strict=True):
                energies[name][limit].append(float(energy))
    for name, by_limit in energies.items():
        medians = np.array([np.median(some) for some in by_limit.values()])
        yield from _points(PANELS[2], name, PUBLIC, np.array(list(by_limit)), medians)


def _points(
    panel: str, curve: str, provenance: str, settings: Numbers, energies: Numbers
) -> Iterator[CurvePoint]:
    order = np.argsort(settings)
    shares, least = settings[order] / settings.max(), energies / energies.min()
    for share, energy in zip(shares.tolist(), least[order].tolist(), strict=True):
        yield CurvePoint(panel, curve, provenance, share, energy)


def write_curves(path: Path, points: Iterable[CurvePoint]) -> None:
    """Write the table that the figure is drawn from. Raises RecordWriteError."""
    rows = ((*p[:3], f"{p.setting:.6g}", f"{p.energy:.6g}") for p in points)
    write_table(path, "curves of energy", CurvePoint._fields, rows)


def _network(table: ModeTable) -> str:
    return " on ".join(table.key.workload.split("-")[:2])


def _is_u(table: ModeTable, clocks: Numbers, energies: Numbers, curve: Curve) -> Finding:
    is_u = curve.at_lowest > 1 and curve.at_highest > 1
    least = clocks[energies.argmin()]
    ends = [energies[clocks.argmin()], energies.min(), energies[clocks.argmax()]]
    return Finding(
        f"{table.key.device} {table.key.workload}: energy of the GPU's rail at "
        f"{clocks.min():g}, {least:g} and {clocks.max():g} MHz",
        "mJ",
        "least between both ends",
        " / ".join(f"{1e3 * joule:.0f}" for joule in ends),
        None,
        AGREES if is_u else DIFFERS,
    )


def _simulated(inputs: Inputs, device: str, factors: Mapping[str, object]) -> tuple[Curve, Curve]:
    """Return the curves of a simulated GPU and its module."""
    gpu_mhz, (gpu, module) = _simulated_energies(inputs, device, factors)
    return curve_of(gpu_mhz, gpu), curve_of(gpu_mhz, module)


def _simulated_energies(
    inputs: Inputs, device: str, factors: Mapping[str, object]
) -> tuple[Numbers, tuple[Numbers, Numbers]]:
    """Return clocks of a simulated GPU, and energies of it and its module; all else at its most."""
    board = inputs.twin.boards[device]
    gpu_mhz = np.linspace(*board.gpu_mhz, N_CLOCKS)
    highest = (float(board.cores), board.cpu_mhz[1], board.emc_mhz[1])
    cores, cpu_mhz, emc_mhz = (np.full(N_CLOCKS, value) for value in highest)
    setting = setting_at(Clocks(cores, cpu_mhz, gpu_mhz, emc_mhz), factors, inputs.twin)
    mean = steady(setting, inputs.twin.parameters)
    return gpu_mhz, (np.asarray(mean.parts.gpu_w * mean.e2e_s), np.asarray(mean.energy_wh))


def power_limit_findings(name: str, inputs: Inputs) -> Iterator[Finding]:
    """Yield, network by network, at which power limit of a GPU training takes the least energy."""
    by_network: dict[str, list[tuple[Curve, float, float]]] = defaultdict(list)
    device, highest_w = "", 0.0
    for table in inputs.tables(name):
        limits = table.column("power_limit_w")
        if len(limits) < LEAST_LIMITS:
            continue
        energies, times = _energies(table), table.column("time_s")
        longer = times[energies.argmin()] / times[limits.argmax()] - 1.0
        curve = curve_of(limits, energies)
        by_network[_network(table)].append((curve, float(limits[energies.argmin()]), float(longer)))
        device, highest_w = table.key.device, max(highest_w, float(limits.max()))
    for network, curves in by_network.items():
        best_w = np.array([watts for _, watts, _ in curves])
        saved = np.median([1.0 - 1.0 / curve.at_highest for curve, _, _ in curves])
        longer = np.median([more for _, _, more in curves])
        n_lowest = sum(curve.at_lowest == 1 for curve, _, _ in curves)
        below = np.median(best_w) < highest_w
        yield Finding(
            f"{device} {network}: limit of the least energy per epoch",
            "W",
            f"below the highest, {highest_w:g}",
            f"{show(float(np.median(best_w)))} ({best_w.min():g} to {best_w.max():g})",
            100.0 * (float(np.median(best_w)) / highest_w - 1.0),
            AGREES if below else DIFFERS,
            f"median of {len(curves)} batch sizes and optimisers: {100 * saved:.0f} % less energy, "
            f"{100 * longer:+.0f} % time; the lowest limit is best in {n_lowest}",
        )


def _energies(table: ModeTable) -> Numbers:
    return table.column("time_s") * table.column("power_w")
