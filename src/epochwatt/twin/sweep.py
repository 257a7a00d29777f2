"""Simulate sweeps: one workload in many modes, all at once and without events.

A mini-batch of a sweep is one of the long run: the loader's workers run, its queue is as full as it
gets, the page cache is as a former epoch left it. The closed form (`epoch.py`) gives its mean
time and the module's mean power during it. The event simulation (`run.py`) draws every
mini-batch around the same means; without the spread between mini-batches both say the same. With
it the events' mean differs as any mean of drawn values does, and more in a balance: where loader
and loop are equally fast, the loop waits for late mini-batches and gains nothing by early ones.
`AGREE` and `AGREE_BALANCED` are how close the two stay over hundreds of mini-batches.

Inference (`task: infer`) has kernels of its own, and its mini-batches come from the same loader.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from epochwatt import columns
from epochwatt.board.records.shapes import Document
from epochwatt.errors import EpochwattError
from epochwatt.sweeps.mode_table import SweepRow, tables_of, write_mode_tables
from epochwatt.sweeps.modes import SweepFacts, SweepMode, mode_rows
from epochwatt.twin.boards import Array, Clocks, Factors, Values
from epochwatt.twin.epoch import Setting, steady
from epochwatt.twin.run import setting_of
from epochwatt.twin.twin import Twin, load_twin

Numbers = NDArray[np.float64]

NOT_SIMULATED = ("precision", "compile")  # but as they are by default
N_PARTS = 5  # numbers of a mode: cores, MHz of CPU, GPU and memory, share of the GPU that is on
AGREE = 0.01  # relative distance of time and power to the events' means
AGREE_BALANCED = 0.03  # where the workers take within BALANCED of the loop's own time
BALANCED = 0.1
AT_ONCE = 256  # modes: more do not fit into a CPU's cache, and large networks get slow


class Sweep(NamedTuple):
    """Time and power of each mode of a sweep."""

    time_s: Numbers  # mean of one mini-batch, from its request to the next one's, s: shape (modes,)
    power_w: Numbers  # mean of the module, W: shape (modes,)


def simulate_sweep(modes: Numbers, factors: Factors, twin: Twin, parameters: Values) -> Sweep:
    """Return time and power of a mini-batch of one workload in each mode.

    `modes`: shape (n, 5): cores, clocks of CPU, GPU and memory, MHz, share of the GPU that is on
    `factors`: of the workload, as in the run table; its power mode is not looked at, and others
    than device, model, dataset, storage, num_workers and batch_size may be left out

    Raises EpochwattError: a board, network, data set or arithmetic that is not simulated, or a mode
    that the board cannot have; no simulated GPU is on in part.
    """
    complete = {**columns.FACTOR_DEFAULTS, **factors}
    for name in NOT_SIMULATED:
        if complete[name] != columns.FACTOR_DEFAULTS[name]:
            problem = f"{name} {complete[name]} is not simulated"
            raise EpochwattError(problem, allowed=columns.FACTOR_DEFAULTS[name])
    twin.find(complete["device"], complete["model"], complete["dataset"], complete["task"])
    time, power = twin.boards[complete["device"]].factors_of(complete["instance"])

    def minibatch(setting: Setting) -> tuple[Array, Array]:
        mean = steady(setting, parameters)
        return time * mean.e2e_s / setting.n_minibatches, power * mean.power_w

    return Sweep(*mode_by_mode(modes, complete, twin, minibatch))


def mode_by_mode(
    modes: Numbers,
    factors: Factors,
    twin: Twin,
    values: Callable[[Setting], tuple[Array, ...]],
) -> tuple[Numbers, ...]:
    """Return `values` of a workload in n modes, `AT_ONCE` modes at a time: arrays of shape (n,).

    `values`: setting of some modes -> values, each a number or one per mode; `factors`: complete.
    The rest, and what is raised, as of `simulate_sweep`.
    """
    rows = np.asarray(modes, float)
    if rows.ndim != 2 or rows.shape[1] != N_PARTS or not rows.size:
        raise EpochwattError(f"modes of shape {rows.shape}", allowed=f"(n, {N_PARTS}), n above 0")
    if (gated := rows[rows[:, -1] != 1]).size:
        raise EpochwattError(
            "a simulated board has its whole GPU on", found=f"{100 * gated[0, -1]:g} % of it"
        )
    cold = factors["cache_policy"] == "dropped"
    parts: list[tuple[Numbers, ...]] = []
    for chunk in np.array_split(rows, -(-len(rows) // AT_ONCE)):
        setting = setting_of(factors, twin, cold, Clocks(*chunk[:, :-1].T))
        parts.append(tuple(np.broadcast_to(value, len(chunk)) for value in values(setting)))
    return tuple(np.concatenate(column) for column in zip(*parts, strict=True))


def write_simulated_sweep(facts: Document, config: Path, workload: str, table: Path) -> None:
    """Simulate a sweep and write its table of modes.

    `facts`: `epochwatt.sweeps.modes.SweepFacts` as plain values.

    Raises EpochwattError: a board, a network or a mode that cannot be simulated; RecordWriteError:
    the table cannot be written.
    """
    sweep = SweepFacts(**facts)
    write_mode_tables(table, tables_of(simulated_rows(sweep, load_twin(config, [workload]))))


def simulated_rows(sweep: SweepFacts, twin: Twin) -> list[SweepRow]:
    """Return a row per mode of a simulated sweep; `twin`: with the counts of its network."""
    factors = columns.with_defaults(json.loads(sweep.factors))
    modes = [SweepMode(*mode) for mode in sweep.modes]
    time_s, power_w = simulate_sweep(mode_rows(modes), factors, twin, twin.parameters)
    return [
        SweepRow(
            **sweep.columns(),
            **mode._asdict(),
            gpu_share=1.0,
            time_s=float(time),
            power_w=float(power),
            power_scope="module",
        )
        for mode, time, power in zip(modes, np.asarray(time_s), np.asarray(power_w), strict=True)
    ]
