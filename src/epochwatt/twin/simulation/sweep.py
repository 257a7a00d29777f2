"""Simulate sweeps: one workload in many modes, all at once and without events.

A mini-batch of a sweep is one of the long run: the loader's workers run, its queue is as full as it
gets, the page cache is as a former epoch left it. The closed form (`model/epoch.py`) gives its mean
time and the module's mean power during it. The event simulation (`simulation/run.py`) draws every
mini-batch around the same means; without the spread between mini-batches both say the same. With
it the events' mean differs as any mean of drawn values does, and more in a balance: where loader
and loop are equally fast, the loop waits for late mini-batches and gains nothing by early ones.
`AGREE` and `AGREE_BALANCED` are how close the two stay over hundreds of mini-batches.

Inference (`task: infer`) has kernels of its own, and its mini-batches come from the same loader.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from epochwatt.columns import FACTOR_DEFAULTS
from epochwatt.errors import EpochwattError
from epochwatt.twin.inputs.numbers import Array, Clocks, Factors, Values
from epochwatt.twin.inputs.twin import Twin
from epochwatt.twin.model.epoch import Setting, steady
from epochwatt.twin.model.spread import of_unit
from epochwatt.twin.simulation.run import setting_at

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

    Parameters
    ----------
    modes : shape (n, 5): cores, clocks of CPU, GPU and memory, MHz, share of the GPU that is on
    factors : of the workload, as in the run table; its power mode is not looked at, and others
        than device, model, dataset, storage, num_workers and batch_size may be left out

    Raises EpochwattError: a board, network, data set or arithmetic that is not simulated, or a mode
    that the board cannot have; no simulated GPU is on in part.
    """
    complete = {**FACTOR_DEFAULTS, **factors}
    for name in NOT_SIMULATED:
        if complete[name] != FACTOR_DEFAULTS[name]:
            raise EpochwattError(
                f"{name} {complete[name]} is not simulated", allowed=FACTOR_DEFAULTS[name]
            )
    twin.find(complete["device"], complete["model"], complete["dataset"], complete["task"])
    time, power = of_unit(complete["instance"], twin.boards[complete["device"]])

    def some(setting: Setting) -> tuple[Array, Array]:
        mean = steady(setting, parameters)
        return time * mean.e2e_s / setting.n_minibatches, power * mean.power_w

    return Sweep(*mode_by_mode(modes, complete, twin, some))


def mode_by_mode(
    modes: Numbers,
    factors: Factors,
    twin: Twin,
    values: Callable[[Setting], tuple[Array, ...]],
) -> tuple[Numbers, ...]:
    """Return values of a workload in each mode, each of shape (n,).

    Parameters
    ----------
    modes, factors, twin : as `simulate_sweep` takes them; all factors that count
    values : of a setting with some of the modes, each a number or of their shape

    Raises EpochwattError: as `simulate_sweep`.
    """
    rows = np.asarray(modes, float)
    if rows.ndim != 2 or rows.shape[1] != N_PARTS or not rows.size:
        raise EpochwattError(f"modes of shape {rows.shape}", allowed=f"(n, {N_PARTS}), n above 0")
    if (gated := rows[rows[:, -1] != 1]).size:
        raise EpochwattError(
            "a simulated board has its whole GPU on", found=f"{100 * gated[0, -1]:g} % of it"
        )
    cold = factors["cache_policy"] == "dropped"
    columns: list[tuple[Numbers, ...]] = []
    for part in np.array_split(rows, -(-len(rows) // AT_ONCE)):
        setting = setting_at(Clocks(*part[:, :-1].T), factors, twin, cold)
        columns.append(tuple(np.broadcast_to(value, len(part)) for value in values(setting)))
    return tuple(np.concatenate(column) for column in zip(*columns, strict=True))
