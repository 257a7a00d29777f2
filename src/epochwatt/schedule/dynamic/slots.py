"""Play requests at a rate that changes, slot by slot: what each mode gives after each mode before.

A slot is played on its own: it begins with nothing waiting, and its last requests are served beyond
its end. So what a way of planning gives is the sum over its slots, and the best way of all can be
found. As at most `QUEUE` mini-batches wait, little is lost by that.

While clocks settle nothing is trained, requests are served at the pace of the slower of both modes,
and the power is that of the hungrier one. A change of mode takes time; another mini-batch size, or
another share of training, takes none. So what is decided from slot to slot is the mode, and in each
mode the mini-batch of requests is the best one at the rate of the slot.

Random arrivals are a Poisson process: at the times where the sum of the rates so far passes sums of
exponential numbers. Where it passes whole numbers arrivals are steady.
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from epochwatt.board.training.interleave.arrivals import read_times
from epochwatt.board.training.interleave.plan import QUEUE
from epochwatt.errors import ConfigError
from epochwatt.schedule.config import Rates
from epochwatt.schedule.plans import SLACK, Numbers
from epochwatt.schedule.problem import NONE
from epochwatt.schedule.simulation import Interleaved, Slot, play
from epochwatt.schedule.solvers import exhaustive
from epochwatt.schedule.space import Bools, Places, Problems, Space

SHARE = 1e-9  # of a request: one that is due at the very end comes


class Arrivals(NamedTuple):
    """Requests of a stream."""

    times_s: Numbers  # (n,), ascending, from 0
    slot_s: float  # length of a slot
    n_slots: int  # how many

    @property
    def bounds(self) -> Places:
        """Place of the first request of each slot, and behind the last one, (n_slots + 1,)."""
        return np.searchsorted(self.times_s, self.slot_s * np.arange(self.n_slots + 1))

    @property
    def rates_per_s(self) -> Numbers:
        """Requests a second of each slot, (n_slots,); a slot without any counts as one with one."""
        return np.maximum(np.diff(self.bounds), 1) / self.slot_s


def arrivals_of(
    rates: Rates, peak_per_s: float, slot_s: float, seed: int | None, root: Path = Path()
) -> Arrivals:
    """Return the arrivals of configured rates.

    Parameters
    ----------
    peak_per_s : highest rate; not used with a file
    seed : of random arrivals; None: steady ones. Not used with a file
    root : folder that a file's path starts from

    Raises ConfigError: a file that cannot be read or is no list of times; less than two slots.
    """
    if rates.file is not None:
        times_s = np.array(read_times(str(root / rates.file)))
        n_slots = math.ceil(times_s[-1] / slot_s) if len(times_s) else 0
        arrivals = Arrivals(times_s[times_s < n_slots * slot_s], slot_s, n_slots)
    else:
        arrivals = at_rates(peak_per_s * _shares(rates, slot_s), slot_s, seed)
    if arrivals.n_slots < 2:
        raise ConfigError(
            "rates that change need two slots at least", found=f"{arrivals.n_slots} of {slot_s:g} s"
        )
    return arrivals


def _shares(rates: Rates, slot_s: float) -> Numbers:
    """Return the share of the highest rate in the middle of each slot, (n_slots,)."""
    if rates.day:
        low, day_s = rates.day
        middle_s = slot_s * (np.arange(int(day_s / slot_s)) + 0.5)
        return low + (1 - low) * (1 - np.cos(2 * np.pi * middle_s / day_s)) / 2
    lasts_s, shares = np.array(rates.steps).T
    ends_s = np.cumsum(lasts_s)
    middle_s = slot_s * (np.arange(int(ends_s[-1] / slot_s)) + 0.5)
    return np.asarray(shares[np.searchsorted(ends_s, middle_s)])


def at_rates(rates_per_s: Numbers, slot_s: float, seed: int | None) -> Arrivals:
    """Return arrivals at a rate for each slot, (n_slots,): random, or steady without a seed."""
    expected = np.concatenate([[0.0], np.cumsum(rates_per_s * slot_s)])
    if seed is None:
        passed = np.arange(1.0, expected[-1] + SHARE)
    else:
        n = int(expected[-1] + 10 * math.sqrt(expected[-1]) + 10)
        passed = np.random.default_rng(seed).exponential(size=n).cumsum()
    ends_s = slot_s * np.arange(len(expected))
    times_s = np.interp(passed[passed < expected[-1] + SHARE], expected, ends_s)
    return Arrivals(times_s, slot_s, len(rates_per_s))


N_RATES = 12  # from the lowest to the highest; the best mode of each is one to choose from


class Best(NamedTuple):
    """Best choice in each of c modes at k rates, (k, c) each."""

    # place in the space's choices; where none keeps the budgets, of most requests a second
    choice: Places
    holds: Bools  # whether it keeps the budgets, with steady arrivals
    throughput_per_s: Numbers  # of training; 0 where it does not hold


@dataclass(frozen=True, eq=False)
class Options:
    """Modes to choose from, for one training job and one stream within budgets."""

    space: Space
    max_power_w: float
    max_latency_s: float
    modes: Places  # (c,), places of the modes
    rates_per_s: Numbers  # (c,), the highest rate that each was found best for, ascending

    def at(self, rates_per_s: Numbers) -> Best:
        """Return what the modes are good for at some rates, (k,)."""
        problems = _problems(rates_per_s, self.max_power_w, self.max_latency_s)
        columns = [self._of_mode(problems, mode) for mode in self.modes]
        return Best(*(np.stack(column, 1) for column in zip(*columns, strict=True)))

    def _of_mode(self, problems: Problems, mode: int) -> tuple[Places, Bools, Numbers]:
        places = np.flatnonzero(self.space.choices[:, 0] == mode)
        judged = self.space.judge(problems, places[None])
        best = exhaustive.best_of(judged)
        (infer,) = self.space.infer
        most = np.where(judged.keeps_power[0], infer.batch_sizes / infer.time_s[mode], 0).argmax()
        column = np.where(best == NONE, most, best)
        throughput = -np.take_along_axis(judged.cost, column[:, None], 1)[:, 0]
        return places[column], best != NONE, np.where(best == NONE, 0.0, throughput)


def options_for(
    space: Space, max_power_w: float, max_latency_s: float, rates_per_s: Numbers
) -> Options:
    """Return the modes that are best for some rate between the lowest and the highest given.

    Raises ConfigError: no mode keeps the budgets at the highest rate.
    """
    ladder = np.geomspace(rates_per_s.min(), rates_per_s.max(), N_RATES)
    ladder[-1] = rates_per_s.max()
    problems = _problems(ladder, max_power_w, max_latency_s)
    choice = exhaustive.solve(space, problems).choice
    if choice[-1] == NONE:
        raise ConfigError(
            f"no mode serves {ladder[-1]:.4g} requests/s within {max_latency_s:g} s "
            f"and {max_power_w:g} W",
            do="lower the rates, or raise a budget",
        )
    modes = space.choices[choice, 0]
    highest = {
        int(mode): rate for mode, rate, c in zip(modes, ladder, choice, strict=True) if c >= 0
    }
    ascending = sorted(highest, key=lambda mode: highest[mode])
    return Options(
        space,
        max_power_w,
        max_latency_s,
        np.array(ascending),
        np.array([highest[mode] for mode in ascending]),
    )


def _problems(rates_per_s: Numbers, max_power_w: float, max_latency_s: float) -> Problems:
    return Problems(
        np.full(len(rates_per_s), max_power_w),
        rates_per_s[:, None],
        np.full((len(rates_per_s), 1), max_latency_s),
    )


# ASSUME: a late request undoes ten mini-batches of training. With one it can be worth it to leave a
# whole slot late; the budget of latency is to be kept first
LATE_COST = 10.0


class Slots(NamedTuple):
    """Outcome of k slots, by mode before (c) and mode in it (c): (k, c, c)."""

    n_trained: Numbers  # mini-batches of training
    n_late: Numbers  # requests that were refused or answered after the budget
    worst_s: Numbers  # longest latency of an answered request; 0: none was
    over_s: Numbers  # time in which the budget of power is exceeded

    @property
    def value(self) -> Numbers:
        """Worth, in mini-batches of training."""
        return self.n_trained - LATE_COST * self.n_late


def play_slots(options: Options, arrivals: Arrivals, switch_s: float) -> Slots:
    """Play all slots in all modes after all modes; clocks take `switch_s` to settle."""
    best = options.at(arrivals.rates_per_s)
    shape = arrivals.n_slots, len(options.modes), len(options.modes)
    slots = Slots(*(np.zeros(shape) for _ in Slots._fields))
    sizes = options.space.choices[best.choice, 1]
    for mode in range(len(options.modes)):
        for size in np.unique(sizes[:, mode]):
            which = np.flatnonzero(sizes[:, mode] == size)
            _play(options, arrivals, (mode, int(size)), switch_s, which, slots)
    return slots


def _play(
    options: Options,
    arrivals: Arrivals,
    choice: tuple[int, int],
    switch_s: float,
    which: Places,
    slots: Slots,
) -> None:
    """Play some slots in a mode at a mini-batch size, after all modes; write it into `slots`."""
    mode, size = choice
    train, (infer,) = options.space.train, options.space.infer
    assert train is not None
    batch_size, place = int(infer.batch_sizes[size]), options.modes[mode]
    infer_s, train_s = infer.time_s[place, size], train.time_s[place, 0]
    period_s = batch_size / arrivals.rates_per_s[which]
    n_train = np.floor(np.maximum(period_s - infer_s, 0) / train_s * (1 + SLACK))
    times_s, is_own = _requests(arrivals, which, batch_size)
    n_modes = len(options.modes)
    settled_s = np.where(np.arange(n_modes) == mode, 0.0, switch_s)
    slower_s = np.maximum(infer.time_s[options.modes, size], infer_s)
    with np.errstate(invalid="ignore"):  # what never comes is never answered
        played = play(
            np.repeat(times_s, n_modes, 0),
            Interleaved(batch_size, infer_s, np.repeat(n_train, n_modes), train_s),
            Slot(
                arrivals.slot_s,
                np.tile(settled_s, len(which)),
                np.tile(slower_s, len(which)),
                QUEUE,
            ),
        )
    shape = len(which), n_modes, -1
    latency_s = np.where(np.repeat(is_own, n_modes, 0), played.latency_s, 0.0).reshape(shape)
    slots.n_trained[which, :, mode] = played.n_trained.reshape(shape[:2])
    slots.n_late[which, :, mode] = (latency_s > options.max_latency_s * (1 + SLACK)).sum(-1)
    slots.worst_s[which, :, mode] = np.where(np.isfinite(latency_s), latency_s, 0.0).max(-1)
    infer_w = infer.power_w[options.modes, size]
    own_w = np.where(n_train > 0, max(train.power_w[place, 0], infer_w[mode]), infer_w[mode])
    most_w = options.max_power_w * (1 + SLACK)
    rest_s = arrivals.slot_s - settled_s
    slots.over_s[which, :, mode] = rest_s * (own_w > most_w)[:, None] + settled_s * (
        np.maximum(infer_w, infer_w[mode]) > most_w
    )


def _requests(arrivals: Arrivals, which: Places, batch_size: int) -> tuple[Numbers, Bools]:
    """Return the requests of some slots, s after their beginning, and which are their own.

    The last mini-batch of a slot is completed by requests of the next one; one that never is
    belongs to none. Behind all others a mini-batch stands that never comes.
    """
    first, behind = arrivals.bounds[which], arrivals.bounds[which + 1]
    n_batches = int(np.ceil((behind - first) / batch_size).max()) + 1
    places = first[:, None] + np.arange(n_batches * batch_size)
    n_wanted = -(-(behind - first) // batch_size) * batch_size
    comes = (places < (first + n_wanted)[:, None]) & (places < len(arrivals.times_s))
    begins_s = arrivals.slot_s * which
    padded = np.append(arrivals.times_s, np.inf)
    times_s = np.where(comes, padded[np.where(comes, places, -1)] - begins_s[:, None], np.inf)
    whole = comes.reshape(len(which), n_batches, batch_size).all(-1)
    return times_s, (places < behind[:, None]) & np.repeat(whole, batch_size, 1)
