"""Power signals drawn anew each time from a family, with what the training loop records of itself.

Every number of a signal is drawn: levels, periods, shares, moments. Those of a loop come with the
starts of its mini-batches, as a record has them; beside the others runs a loop that has nothing to
do with the power. Half of them begin and end with the window, as an epoch does; the others go on.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Array = NDArray[np.float64]
Numbers = np.random.Generator

GRID_S = 0.0005  # step of the grid on which power is drawn
LEAD_S = 8.0  # of signal before and after the window: what the slowest sensor looks back


@dataclass(frozen=True)
class Signal:
    """Power on a grid, and the loop beside it."""

    start_s: float  # the window
    end_s: float
    power_w: Array  # (n,) from `start_s - LEAD_S` on, in steps of `GRID_S`
    energy_j: Array  # (n + 1,) integral up to each point of the grid
    minibatch_s: Array  # (m, 2) wait and compute of each mini-batch; together they fill the window

    def at(self, t_s: Array) -> Array:
        """Return the power at instants, W."""
        return self.power_w[self._place(t_s).astype(np.int64).clip(0, self.power_w.size - 1)]

    def mean(self, t_s: Array, length_s: float) -> Array:
        """Return the mean over the `length_s` that end at each instant, W."""
        return (self.integral(t_s) - self.integral(t_s - length_s)) / length_s

    def integral(self, t_s: Array) -> Array:
        """Return the energy up to each instant, J."""
        place = self._place(t_s).clip(0, self.power_w.size - 1e-9)
        n = place.astype(np.int64)
        return np.asarray(self.energy_j[n] + (place - n) * GRID_S * self.power_w[n])

    def _place(self, t_s: Array) -> Array:
        return (np.asarray(t_s) - self.start_s + LEAD_S) / GRID_S

    @property
    def truth_j(self) -> float:
        """Energy inside the window."""
        return float(np.diff(self.integral(np.array([self.start_s, self.end_s])))[0])

    @property
    def stall_j(self) -> float:
        """Energy inside the stalls."""
        starts, ends = self.stalls
        return float((self.integral(ends) - self.integral(starts)).sum())

    @property
    def stalls(self) -> tuple[Array, Array]:
        """Starts and ends of the stalls, s."""
        ends = self.start_s + np.cumsum(self.minibatch_s.sum(axis=1))
        starts = np.append(self.start_s, ends[:-1])
        return starts, starts + self.minibatch_s[:, 0]


Draw = Callable[[Numbers, Array], Array]  # (random numbers, t from the window's start) -> W
# the same, and how long the window is -> W, mini-batches
Make = Callable[[Numbers, Array, float], tuple[Array, Array]]


def _drawn(rng: Numbers, low: float, high: float) -> float:
    """Draw a number whose logarithm is even."""
    return math.exp(rng.uniform(*np.log([low, high])))


def _levels(rng: Numbers) -> tuple[float, float]:
    low_w = rng.uniform(3, 12)
    return low_w, low_w * rng.uniform(1.3, 4.0)


def _minibatches(
    rng: Numbers, length_s: float, wait_s: float, compute_s: float, jitter: float
) -> Array:
    """Return (m, 2) that fill `length_s`, each piece spread by `jitter` of its length."""
    n = math.ceil(length_s / (wait_s + compute_s) * (1 + 3 * jitter)) + 2
    pieces = np.array([wait_s, compute_s]) * (1 + jitter * rng.standard_normal((n, 2))).clip(0.05)
    bounds = np.minimum(np.cumsum(pieces.ravel()), length_s)
    told = np.diff(bounds, prepend=0.0).reshape(-1, 2)
    return told[told.sum(axis=1) > 0]


def _two_levels(t: Array, minibatch_s: Array, low_w: float, high_w: float) -> Array:
    """Return the power of a loop, low in its stalls and high in compute, W."""
    bounds = np.append(0.0, np.cumsum(minibatch_s.ravel()))
    place = np.searchsorted(bounds, t, side="right") - 1
    return np.where(place % 2 == 0, low_w, high_w)


def loop(
    periods_s: tuple[float, float] | tuple[float, ...],
    jitter: float = 0.0,
    first_s: float = 0.0,
    choose: bool = False,
) -> Make:
    """Return a maker of a training's two levels: low in its stalls, high in compute.

    `periods_s` are bounds of the period, or, with `choose`, those to choose from; `jitter` that of
    the pieces, of their length; `first_s` the mean length of a first stall.
    """

    def make(rng: Numbers, t: Array, length_s: float) -> tuple[Array, Array]:
        period_s = float(rng.choice(periods_s)) if choose else _drawn(rng, *periods_s)
        share = rng.uniform(0.1, 0.7)
        pieces_s = share * period_s, (1 - share) * period_s
        minibatch_s = _minibatches(rng, length_s, *pieces_s, jitter)
        if first_s:
            long_s = min(rng.exponential(first_s), length_s / 2)
            rest = _minibatches(rng, length_s - long_s, *pieces_s, jitter)
            minibatch_s = np.vstack([[long_s, 0.0], rest])
        return _two_levels(t, minibatch_s, *_levels(rng)), minibatch_s

    return make


def phases(rng: Numbers, t: Array, length_s: float) -> tuple[Array, Array]:
    """Return a loop whose compute has a power of its own in each of two to five unequal parts."""
    _, minibatch_s = loop((0.05, 3.0), rng.choice([0.0, 0.05]))(rng, t, length_s)
    low_w, high_w = _levels(rng)
    bounds = np.sort(rng.random(rng.integers(1, 5)))
    parts_w = rng.uniform(low_w, high_w, bounds.size + 1)
    starts = np.append(0.0, np.cumsum(minibatch_s.sum(axis=1)))
    k = (np.searchsorted(starts, t, side="right") - 1).clip(0, len(minibatch_s) - 1)
    computed = (t - starts[k] - minibatch_s[k, 0]) / np.maximum(minibatch_s[k, 1], 1e-9)
    return np.where(computed < 0, low_w, parts_w[np.searchsorted(bounds, computed)]), minibatch_s


def nearly(rng: Numbers, t: Array, length_s: float) -> tuple[Array, Array]:
    """Return a loop whose period is commensurate with a second but for up to a thirtieth."""
    off = rng.choice([-1.0, 1.0]) * _drawn(rng, 1e-4, 0.03)
    period_s = float(rng.choice(COMMENSURATE_S)) * (1 + off)
    return loop((period_s,), rng.choice([0.0, 0.01]), choose=True)(rng, t, length_s)


def beats(rng: Numbers, t: Array, length_s: float) -> tuple[Array, Array]:
    """Return a loop each second to eighth mini-batch of which takes another power."""
    power_w, minibatch_s = loop((0.05, 2.0), rng.choice([0.0, 0.02]))(rng, t, length_s)
    starts = np.append(0.0, np.cumsum(minibatch_s.sum(axis=1)))
    k = np.searchsorted(starts, t, side="right") - 1
    other_w = np.where(k % rng.integers(2, 9) == 0, power_w * rng.uniform(0.5, 1.5), power_w)
    return other_w, minibatch_s


def drifting(rng: Numbers, t: Array, length_s: float) -> tuple[Array, Array]:
    """Return a loop whose power rises, falls or sways by up to a third over the window."""
    power_w, minibatch_s = loop((0.05, 2.0), rng.choice([0.0, 0.05]))(rng, t, length_s)
    turns = rng.uniform(0.1, 4.0)
    sway = np.sin(2 * math.pi * (turns * t / length_s + rng.random()))
    return power_w * (1 + rng.uniform(0.05, 0.33) * sway), minibatch_s


def beside(other: Draw) -> Make:
    """Return a maker of a loop with a load of others on top, which has nothing to do with it."""

    def make(rng: Numbers, t: Array, length_s: float) -> tuple[Array, Array]:
        power_w, minibatch_s = loop((0.05, 2.0), rng.choice([0.0, 0.05]))(rng, t, length_s)
        return power_w + rng.uniform(0.1, 0.6) * other(rng, t), minibatch_s

    return make


def poisson(rng: Numbers, t: Array) -> Array:
    """Return bursts at random, each of the same length."""
    low_w, high_w = _levels(rng)
    rate, width_s = _drawn(rng, 0.15, 6), _drawn(rng, 0.008, 0.3)
    starts = np.sort(rng.uniform(t[0], t[-1], rng.poisson(rate * (t[-1] - t[0]))))
    if not starts.size:
        return np.full(t.size, low_w)
    last = np.searchsorted(starts, t, side="right") - 1
    return np.where((last >= 0) & (t - starts[last] < width_s), high_w, low_w)


def telegraph(rng: Numbers, t: Array) -> Array:
    """Return two levels that change at random."""
    low_w, high_w = _levels(rng)
    stay_s = _drawn(rng, 0.05, 8)
    changes = np.cumsum(rng.exponential(stay_s, int(3 * np.ptp(t) / stay_s) + 20)) + t[0]
    return np.where(np.searchsorted(changes, t) % 2 == 0, low_w, high_w)


def ramp(rng: Numbers, t: Array) -> Array:
    """Return a straight line from one level to another."""
    low_w, high_w = _levels(rng)
    return low_w + (high_w - low_w) * ((t - t[0]) / np.ptp(t))


def saw_teeth(rng: Numbers, t: Array) -> Array:
    """Return saw-teeth with a period that wanders by a tenth: no clock drives them."""
    low_w, high_w = _levels(rng)
    period_s = _drawn(rng, 0.2, 12)
    n = int(2 * np.ptp(t) / period_s) + 20
    start_s = t[0] - period_s * rng.uniform()
    periods_s = period_s * (1 + 0.1 * rng.standard_normal(n)).clip(0.3)
    bounds = start_s + np.append(0, np.cumsum(periods_s))
    k = np.searchsorted(bounds, t, side="right") - 1
    return low_w + (high_w - low_w) * (t - bounds[k]) / (bounds[k + 1] - bounds[k])


def spike(rng: Numbers, t: Array) -> Array:
    """Return one spike somewhere."""
    low_w, high_w = _levels(rng)
    inside_s = t[-1] - LEAD_S
    width_s = _drawn(rng, 0.01, 3)
    at_s = rng.uniform(0, inside_s)
    return np.where((t >= at_s) & (t < at_s + width_s), high_w, low_w)


def step(rng: Numbers, t: Array) -> Array:
    """Return one step up or down."""
    low_w, high_w = _levels(rng)
    if rng.random() < 0.5:
        low_w, high_w = high_w, low_w
    return np.where(t < rng.uniform(0, t[-1] - LEAD_S), low_w, high_w)


def checkpoint(rng: Numbers, t: Array) -> Array:
    """Return high power with a slow fall to the low level each so many seconds: a checkpoint."""
    low_w, high_w = _levels(rng)
    every_s, width_s = rng.uniform(6, 20), rng.uniform(0.2, 2.5)
    return np.where((t + rng.uniform(0, every_s)) % every_s < width_s, low_w, high_w)


def constant(rng: Numbers, t: Array) -> Array:
    """Return a constant power, as of a board that does nothing."""
    return np.full(t.size, rng.uniform(2, 9))


COMMENSURATE_S = (0.05, 0.1, 0.2, 0.25, 0.3, 0.35, 0.5, 1.0, 2.0, 3.0)
LOOPS = {
    "loop, any period": loop((0.02, 5.0)),
    "loop, commensurate": loop(COMMENSURATE_S, choose=True),
    "loop, 5 % jitter": loop((0.1, 2.0), 0.05),
    "loop, 20 % jitter": loop((0.1, 2.0), 0.2),
    "long first stall, loop": loop((0.1, 1.0), 0.05, 3.0),
}
OTHERS: dict[str, Draw] = {
    "bursts at random": poisson,
    "telegraph": telegraph,
    "ramp": ramp,
    "saw-teeth": saw_teeth,
    "one spike": spike,
    "step": step,
    "checkpoints": checkpoint,
    "constant": constant,
}
LOOPS_AND_MORE: dict[str, Make] = {
    "loop, nearly commensurate": nearly,
    "loop, phases of compute": phases,
    "loop, each k-th mini-batch": beats,
    "loop, drifting": drifting,
    "loop beside telegraph": beside(telegraph),
    "loop beside bursts": beside(poisson),
    "loop and one spike": beside(spike),
}
IDLE_TRAIN_TAIL = "idle, loop, tail"


def _grid(length_s: float) -> Array:
    n = math.ceil((length_s + 2 * LEAD_S) / GRID_S)
    return np.asarray((np.arange(n) + 0.5) * GRID_S - LEAD_S, dtype=np.float64)


def draw(name: str, rng: Numbers, length_s: float) -> Signal:
    """Return a signal of a family, in a window of that length that begins at any part of a second.

    Half of them are of an epoch between idle times, the others go on before and after.
    """
    t = _grid(length_s)
    unrelated = loop((0.1, 2.0), 0.05)
    loops = {**LOOPS, **LOOPS_AND_MORE}
    if name in loops:
        power_w, minibatch_s = loops[name](rng, t, length_s)
    elif name == IDLE_TRAIN_TAIL:
        power_w, minibatch_s = LOOPS["loop, 5 % jitter"](rng, t, length_s)
        idle_s, tail_s = rng.uniform(0, length_s / 3, 2)
        power_w = np.where((t < idle_s) | (t > length_s - tail_s), power_w.min(), power_w)
    else:
        power_w, (_, minibatch_s) = OTHERS[name](rng, t), unrelated(rng, t, length_s)
    if rng.random() < 0.5:
        power_w = np.where((t < 0) | (t > length_s), min(power_w.min(), 4.0), power_w)
    return _signal(rng.uniform(100, 101), length_s, power_w, minibatch_s)


def _signal(start_s: float, length_s: float, power_w: Array, minibatch_s: Array) -> Signal:
    energy_j = np.append(0.0, np.cumsum(power_w)) * GRID_S
    return Signal(start_s, start_s + length_s, power_w, energy_j, minibatch_s)


def recorded(folder: Path) -> Iterator[tuple[str, Array, Array]]:
    """Give name, stamps and watts of each power series that others measured, where it is here."""
    # columns by number: keys of a series, stamp, those whose sum is the power; its unit, W
    for place, name, keys, stamp, watts, unit_w in (
        ("measured/mlperf_inference_nvidia_jetson_maxq/power_samples.csv.gz",
         "wall power, 1 Hz", [0, 1, 2, 3], 4, [5], 1.0),
        ("sweeps/broncospace_agx_orin_training_modes/tegrastats_1hz.csv.gz",
         "AGX Orin training, 1 Hz", [0, 1], 2, [-4, -3, -2], 1e-3),
        ("sweeps/becirovski_agx_orin_llm_energy/power_samples.csv.gz",
         "AGX Orin, 10 Hz", [0], 1, [5], 1e-3),
    ):  # fmt: skip
        if not (folder / place).exists():
            continue
        rows = pd.read_csv(folder / place)
        power_w = rows.iloc[:, watts].astype(float).sum(axis=1, skipna=False) * unit_w
        stamps = rows.iloc[:, stamp].astype(float) * (1e-3 if stamp == 2 else 1.0)
        for _, run in rows.groupby([rows.iloc[:, key] for key in keys], sort=False):
            t_s, own_w = stamps[run.index].to_numpy(), power_w[run.index].to_numpy()
            good = np.isfinite(t_s) & (own_w >= 0) & (np.diff(t_s, prepend=-math.inf) > 0)
            if good.sum() > 100:
                yield name, t_s[good], own_w[good]


def replayed(rng: Numbers, t_s: Array, power_w: Array, length_s: float) -> Signal:
    """Return a part of a recorded series as a signal: lines between its readings are the truth."""
    t = _grid(length_s)
    start_s = rng.uniform(t_s[0] + LEAD_S, max(t_s[-1] - length_s - LEAD_S, t_s[0] + LEAD_S + 1))
    _, minibatch_s = loop((0.1, 2.0), 0.05)(rng, t, length_s)
    watts = np.interp(t + start_s, t_s, power_w)
    return _signal(rng.uniform(100, 101), length_s, watts, minibatch_s)


PLANTED_STALLS: dict[str, tuple[float, float, float, float]] = {
    # wait and compute, s; jitter; mean of the first stall, s: 8 W in stalls, 22 W in the rest
    "120 ms in 350": (0.12, 0.23, 0.0, 0.0),
    "120 ms in 350, jitter": (0.12, 0.23, 0.1, 0.0),
    "1 s in 3": (1.0, 2.0, 0.0, 0.0),
    "1 s in 3, jitter": (1.0, 2.0, 0.1, 0.0),
    "3 s in 9": (3.0, 6.0, 0.0, 0.0),
    "long first, then 60 ms in 300": (0.06, 0.24, 0.1, 4.0),
}
STALLS = (*PLANTED_STALLS, "of any length", "telegraph, not by stalls", "bursts, not by stalls")


def stalling(name: str, rng: Numbers, length_s: float) -> Signal:
    """Return a loop with stalls whose power is known; some of them do not follow it."""
    t = _grid(length_s)
    low_w, high_w = 8.0, 22.0
    if name in PLANTED_STALLS:
        wait_s, compute_s, jitter, first_s = PLANTED_STALLS[name]
    else:
        wait_s, compute_s = np.exp(rng.uniform(*np.log([[0.02, 0.05], [2.0, 3.0]])))
        jitter, first_s = rng.uniform(0, 0.3), rng.choice([0.0, 2.0])
        low_w, high_w = _levels(rng)
    long_s = min(rng.exponential(first_s), length_s / 2) if first_s else 0.0
    rest = _minibatches(rng, length_s - long_s, wait_s, compute_s, jitter)
    minibatch_s = np.vstack([[long_s, 0.0], rest]) if long_s else rest
    if name.endswith("not by stalls"):
        power_w = (telegraph if name.startswith("telegraph") else poisson)(rng, t)
    else:
        power_w = _two_levels(t, minibatch_s, low_w, high_w)
    return _signal(rng.uniform(100, 101), length_s, power_w, minibatch_s)
