"""How time and power follow each clock: simulated boards beside real ones, in the same modes.

The measure is an exponent: time ~ cores^a cpu^b gpu^c emc^d, fitted to all modes of a table by
least squares of logarithms. A measured table's modes are carried over to each simulated board: a
clock at half of the highest stays at half. What others measured is inference, so another workload:
the simulated networks give a range, often a wide one, and a real exponent is expected in it.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from benchmarks.external import Finding, Inputs, in_range, show, simulated_workloads, training_logs
from epochwatt.columns import CLOCKS
from epochwatt.twin.boards import Board
from epochwatt.twin.sweep import simulate_sweep

Numbers = NDArray[np.float64]

TITLES = dict(zip(CLOCKS, ("CPU cores", "CPU clock", "GPU clock", "memory clock"), strict=True))
MARGIN = 0.05  # of an exponent or a ratio
ORIN_BATCH_SIZES = (16, 128)
# SOURCE: nvpmodel -p --verbose of AGX Orin: cores, clocks of CPU, GPU, memory; the whole GPU is on
ORIN_MODES = ((12, 2201.6, 1300.5, 3199.0, 1.0), (12, 1497.6, 816.0, 3199.0, 1.0))
SMOOTHER = 0.5  # a simulated table this much closer to the law than the real one is too regular


def findings(name: str, inputs: Inputs) -> Iterator[Finding]:
    """Yield exponents of time and power of real tables beside the simulated ones'.

    And how far both are from a sum of terms by clock: a simulation may be too regular.
    """
    for table in inputs.tables(name):
        title = f"{table.key.device} {table.key.workload}"
        rows = np.column_stack([table.column(knob) for knob in CLOCKS])
        swept = list(_simulated(rows, inputs))
        note = f"{len(rows)} measurements; range of {len(swept)} simulated workloads "
        note += "(training, three boards)"
        targets = {"time_s": ("time", 0)}
        if table.power_scope == "module":
            targets["power_w"] = ("power", 1)
        for column, (target, place) in targets.items():
            measured = exponents(rows, table.column(column))
            simulated = np.transpose([exponents(modes, values[place]) for modes, values in swept])
            for knob, theirs, ours in zip(TITLES.values(), measured, simulated, strict=True):
                subject = f"{title}: exponent of {target} by {knob}"
                yield in_range(subject, "", float(theirs), ours.tolist(), MARGIN, note)
        error_pct = law_error_pct(rows, table.column("time_s"))
        errors_pct = [law_error_pct(modes, time_s) for modes, (time_s, _) in swept]
        middle = float(np.median(errors_pct))
        yield Finding(
            f"{title}: median distance of time from a sum of 1/clock terms",
            "%",
            show(error_pct),
            f"{show(min(errors_pct))} to {show(max(errors_pct))}, median {show(middle)}",
            middle >= SMOOTHER * error_pct,
            "closer to the law than real times, which hold repeat noise too, flatters predictors",
        )


def exponents(modes: Numbers, values: Numbers) -> Numbers:
    """Return the exponents of each part of the modes, shape (parts,)."""
    terms = np.column_stack([np.ones(len(modes)), np.log(modes)])
    return np.asarray(np.linalg.lstsq(terms, np.log(values), rcond=None)[0][1:])


def law_error_pct(modes: Numbers, times: Numbers) -> float:
    """Return the median error of a fitted sum of 1, 1/f of each clock and 1/(f_cpu cores), %."""
    cores, cpu, gpu, emc = modes.T
    terms = np.column_stack([np.ones(len(modes)), 1 / gpu, 1 / emc, 1 / cpu, 1 / (cpu * cores)])
    scale = terms.max(axis=0)
    weights, _ = nnls(terms / scale / times[:, None], np.ones(len(modes)))
    return float(np.median(100.0 * np.abs(terms / scale @ weights / times - 1.0)))


def carried_over(modes: Numbers, board: Board) -> Numbers:
    """Return modes at the same shares of a board's highest clocks; its ends are not left."""
    limits = np.array([(1.0, board.cores), board.cpu_mhz, board.gpu_mhz, board.emc_mhz])
    shares = modes / modes.max(axis=0)
    moved = np.clip(shares * limits[:, 1], limits[:, 0], limits[:, 1])
    moved[:, 0] = np.clip(np.round(moved[:, 0]), 1, board.cores)
    return np.asarray(moved)


def _simulated(rows: Numbers, inputs: Inputs) -> Iterator[tuple[Numbers, tuple[Numbers, Numbers]]]:
    """Yield the modes of each simulated board, with time and power of each workload in them."""
    twin = inputs.twin
    distinct = np.unique(rows, axis=0)
    for device, factors in simulated_workloads(twin):
        modes = carried_over(distinct, twin.boards[device])
        whole = np.column_stack([modes, np.ones(len(modes))])
        swept = simulate_sweep(whole, factors, twin, twin.parameters)
        yield modes, (swept.time_s, swept.power_w)


def stock_mode_findings(inputs: Inputs) -> Iterator[Finding]:
    """Yield what the step from MAXN to the 50 W mode does to training on AGX Orin, and in the twin.

    The two modes that do not gate parts of the GPU, which the simulation cannot."""
    twin, (strongest, weaker) = inputs.twin, training_logs.module_powers(inputs)
    time, power = weaker.epoch_s / strongest.epoch_s, weaker.power_w / strongest.power_w
    simulated = []
    for _, factors in simulated_workloads(twin, ("orin",), ORIN_BATCH_SIZES):
        swept = simulate_sweep(np.array(ORIN_MODES), factors, twin, twin.parameters)
        simulated.append([float(values[1] / values[0]) for values in swept])
    times, powers = np.transpose(simulated)
    note = f"measured: ResNet-50, clocks not locked; range of {len(times)} simulated workloads"
    for name, ratio, ratios in (
        ("time", time, times),
        ("power", power, powers),
        ("energy", time * power, times * powers),
    ):
        subject = f"AGX Orin, 50W over MAXN: {name}"
        yield in_range(subject, "", ratio, ratios.tolist(), MARGIN, note)
