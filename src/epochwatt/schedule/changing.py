"""Judge ways to plan anew as rates of requests change, against the best way of all.

Requests are played slot by slot: what each mode gives after each mode before. A slot is played on
its own: it begins with nothing waiting, and its last requests are served beyond its end. So what a
way of planning gives is the sum over its slots, and the best way of all can be found. As at most
`QUEUE` mini-batches wait, little is lost by that.

While clocks settle nothing is trained, requests are served at the pace of the slower of both modes,
and the power is that of the hungrier one. A change of mode takes time; another mini-batch size, or
another share of training, takes none. So what is decided from slot to slot is the mode, and in each
mode the mini-batch of requests is the best one at the rate of the slot.

Random arrivals are a Poisson process: at the times where the sum of the rates so far passes sums of
exponential numbers. Where it passes whole numbers arrivals are steady.

All ways but the oracle see the rate of the slots before. A path is the mode of each slot, (k,), as
its place among the options; the first is there before anything begins, and costs no change.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from epochwatt.board.training.interleave.arrivals import read_times
from epochwatt.errors import ConfigError
from epochwatt.schedule.config import Rates, required_schedule
from epochwatt.schedule.problem import NONE, SLACK, Bools, Indices, Numbers, Problems, Space
from epochwatt.schedule.simulation import Interleaved, Slot, play
from epochwatt.schedule.solvers import exhaustive
from epochwatt.schedule.tables import tables_of_job, workload_of
from epochwatt.sweeps.mode_table import read_mode_tables
from epochwatt.tables import write_frame

SHARE = 1e-9  # of a request: one that is due at the very end comes
N_RATES = 12  # from the lowest to the highest; the best mode of each is one to choose from
BAND = 0.2  # relative; a rate that differs by less from that of the plan is taken for the same
# ASSUME: a late request undoes ten mini-batches of training. With one it can be worth it to leave a
# whole slot late; the budget of latency is to be kept first
LATE_COST = 10.0
ARRIVALS = {"steady": None, "poisson": 0}  # kind -> seed
ORACLE = "oracle"
CASE_COLUMNS = (
    *("provenance", "device", "train", "infer", "rates", "arrivals", "switch_s", "policy"),
)
SCORE_COLUMNS = (  # regret_pct: less worth than the oracle's, % of the training of the oracle's
    *(*CASE_COLUMNS, "n_slots", "n_requests", "trained_per_s", "late_pct", "over_power_pct"),
    *("n_switches", "regret_pct"),
)
SLOT_COLUMNS = (
    *(*CASE_COLUMNS, "t_s", "rate_per_s", "gpu_mhz", "worst_s", "max_latency_s", "trained_per_s"),
)


# -- arrivals --------------------------------------------------------------------------------------


class Arrivals(NamedTuple):
    """Requests of a stream."""

    times_s: Numbers  # (n,), ascending, from 0
    slot_s: float  # length of a slot
    n_slots: int  # how many

    @property
    def bounds(self) -> Indices:
        """Index of the first request of each slot, then the number of requests, (n_slots + 1,)."""
        return np.searchsorted(self.times_s, self.slot_s * np.arange(self.n_slots + 1))

    @property
    def rates_per_s(self) -> Numbers:
        """Requests a second in each slot, (n_slots,); an empty slot counts as one request."""
        return np.maximum(np.diff(self.bounds), 1) / self.slot_s


def build_arrivals(
    rates: Rates, peak_per_s: float, slot_s: float, seed: int | None, root: Path = Path()
) -> Arrivals:
    """Build a stream's arrivals from its trace file, its steps of rate, or its daily curve.

    `peak_per_s`: highest rate; not used with a file
    `seed`: of Poisson arrivals; None: evenly spaced ones. Not used with a file
    `root`: folder that a file's path starts from

    Raises ConfigError: the file cannot be read or is no list of times; fewer than two slots.
    """
    if rates.file is not None:
        times_s = np.array(read_times(str(root / rates.file)))
        n_slots = math.ceil(times_s[-1] / slot_s) if len(times_s) else 0
        arrivals = Arrivals(times_s[times_s < n_slots * slot_s], slot_s, n_slots)
    else:
        durations_s, shares = np.array(rates.steps or [[rates.day[1], 0.0]], float).T
        ends_s = np.cumsum(durations_s)
        middle_s = slot_s * (np.arange(int(ends_s[-1] / slot_s)) + 0.5)
        if rates.day:
            low, day_s = rates.day
            share = low + (1 - low) * (1 - np.cos(2 * np.pi * middle_s / day_s)) / 2
        else:
            share = shares[np.searchsorted(ends_s, middle_s)]
        arrivals = arrivals_at_rates(peak_per_s * share, slot_s, seed)
    if arrivals.n_slots < 2:
        raise ConfigError(
            "rates that change need two slots at least", found=f"{arrivals.n_slots} of {slot_s:g} s"
        )
    return arrivals


def arrivals_at_rates(rates_per_s: Numbers, slot_s: float, seed: int | None) -> Arrivals:
    """Return arrivals whose rate changes from slot to slot, (n_slots,).

    A request arrives where the integral of the rate passes 1, 2, 3, ...; with a seed, where it
    passes sums of exponential numbers: a Poisson process.
    """
    integral = np.concatenate([[0.0], np.cumsum(rates_per_s * slot_s)])
    total = integral[-1]
    if seed is None:
        levels = np.arange(1.0, total + SHARE)
    else:
        n_enough = int(total + 10 * math.sqrt(total) + 10)  # ten standard deviations
        levels = np.random.default_rng(seed).exponential(size=n_enough).cumsum()
    ends_s = slot_s * np.arange(len(integral))
    times_s = np.interp(levels[levels < total + SHARE], integral, ends_s)
    return Arrivals(times_s, slot_s, len(rates_per_s))


# -- modes to choose from --------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Options:
    """Modes to choose from, for one training job and one stream within budgets."""

    space: Space
    max_power_w: float
    max_latency_s: float
    modes: Indices  # (c,), indices among the modes of the space, those for low rates first

    def problems(self, rates_per_s: Numbers) -> Problems:
        """Return one problem with these budgets for each rate, (k,)."""
        powers_w = np.full(len(rates_per_s), self.max_power_w)
        latencies_s = np.full((len(rates_per_s), 1), self.max_latency_s)
        return Problems(powers_w, rates_per_s[:, None], latencies_s)

    def best_per_mode(self, rates_per_s: Numbers) -> tuple[Indices, Bools, Numbers]:
        """Find the best choice in each of c modes at each of k rates, for steady arrivals.

        Returns three arrays (k, c): index of the choice in the space, where none keeps the budgets
        the one that serves most requests a second; whether it keeps the budgets; its mini-batches
        of training a second, 0 where it does not.
        """
        problems, (infer,) = self.problems(rates_per_s), self.space.infer
        columns = []
        for mode in self.modes:
            choices = np.flatnonzero(self.space.choices[:, 0] == mode)
            judged = self.space.judge(problems, choices[None])
            best = exhaustive.best_of(judged)
            served_per_s = infer.batch_sizes / infer.time_s[mode]
            fastest = np.where(judged.keeps_power[0], served_per_s, 0).argmax()
            column = np.where(best == NONE, fastest, best)
            throughput = -np.take_along_axis(judged.cost, column[:, None], 1)[:, 0]
            columns.append((choices[column], best != NONE, np.where(best == NONE, 0.0, throughput)))
        choice, holds, throughput_per_s = zip(*columns, strict=True)
        return np.stack(choice, 1), np.stack(holds, 1), np.stack(throughput_per_s, 1)

    def best_mode(self, *rates_per_s: Numbers) -> Indices:
        """Return the mode (index in `modes`, (k,)) that keeps the budgets at several rates.

        Each argument has one rate for each of k slots. Of several modes the one with the most
        training on average; where no mode keeps the budgets, the one for the highest rates.
        """
        _, holds, throughput = zip(*map(self.best_per_mode, rates_per_s), strict=True)
        holds_always = np.logical_and.reduce(holds)
        score = np.where(holds_always, np.mean(throughput, axis=0), -1.0)
        return np.where(holds_always.any(1), score.argmax(1), len(self.modes) - 1)


def options_for(
    space: Space, max_power_w: float, max_latency_s: float, rates_per_s: Numbers
) -> Options:
    """Return the modes that are best at one of `N_RATES` rates between the least and the greatest.

    Raises ConfigError: no mode keeps the budgets at the highest rate.
    """
    ladder = np.geomspace(rates_per_s.min(), rates_per_s.max(), N_RATES)
    ladder[-1] = rates_per_s.max()  # exactly
    options = Options(space, max_power_w, max_latency_s, np.zeros(0, np.intp))
    choice = exhaustive.solve(space, options.problems(ladder)).choice
    if choice[-1] == NONE:
        raise ConfigError(
            f"no mode serves {ladder[-1]:.4g} requests/s within {max_latency_s:g} s "
            f"and {max_power_w:g} W",
            do="lower the rates, or raise a budget",
        )
    modes = space.choices[choice[choice != NONE], 0]
    distinct = dict.fromkeys(modes[::-1].tolist())  # highest rate of each mode first
    return Options(space, max_power_w, max_latency_s, np.array([*distinct][::-1]))


# -- slots -----------------------------------------------------------------------------------------


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
    """Simulate every slot in every mode, after every mode in the slot before.

    In a mode, slots with the same best mini-batch size are simulated together.

    `switch_s`: time that clocks need to settle
    """
    best_choice, *_ = options.best_per_mode(arrivals.rates_per_s)
    best_size = options.space.choices[best_choice, 1]  # (slots, modes), index of the size
    n_modes = len(options.modes)
    outcome = Slots(*(np.zeros((arrivals.n_slots, n_modes, n_modes)) for _ in Slots._fields))
    for mode in range(n_modes):
        for size in np.unique(best_size[:, mode]):
            slots = np.flatnonzero(best_size[:, mode] == size)
            simulated = _play(options, arrivals, mode, int(size), switch_s, slots)
            for array, values in zip(outcome, simulated, strict=True):
                array[slots, :, mode] = values
    return outcome


def _play(
    options: Options, arrivals: Arrivals, mode: int, size: int, switch_s: float, slots: Indices
) -> Slots:
    """Simulate w slots in one mode at one mini-batch size, after each of c modes: arrays (w, c)."""
    train, (infer,) = options.space.train, options.space.infer
    assert train is not None
    batch_size, table_row = int(infer.batch_sizes[size]), options.modes[mode]
    infer_s, train_s = infer.time_s[table_row, size], train.time_s[table_row, 0]
    period_s = batch_size / arrivals.rates_per_s[slots]
    n_train = np.floor(np.maximum(period_s - infer_s, 0) / train_s * (1 + SLACK))
    times_s, belongs = _requests(arrivals, slots, batch_size)
    n_modes = len(options.modes)
    settled_s = np.where(np.arange(n_modes) == mode, 0.0, switch_s)
    slower_s = np.maximum(infer.time_s[options.modes, size], infer_s)
    with np.errstate(invalid="ignore"):  # what never comes is never answered
        played = play(
            np.repeat(times_s, n_modes, 0),
            Interleaved(batch_size, infer_s, np.repeat(n_train, n_modes), train_s),
            Slot(arrivals.slot_s, np.tile(settled_s, len(slots)), np.tile(slower_s, len(slots))),
        )
    shape = len(slots), n_modes, -1
    latency_s = np.where(np.repeat(belongs, n_modes, 0), played.latency_s, 0.0).reshape(shape)
    infer_w = infer.power_w[options.modes, size]
    busiest_w = max(train.power_w[table_row, 0], infer_w[mode])
    settled_w = np.where(n_train > 0, busiest_w, infer_w[mode])
    settling_w = np.maximum(infer_w, infer_w[mode])
    most_w = options.max_power_w * (1 + SLACK)
    over_s = np.where((settled_w > most_w)[:, None], arrivals.slot_s - settled_s, 0.0)
    over_s = over_s + np.where(settling_w > most_w, settled_s, 0.0)
    return Slots(
        played.n_trained.reshape(shape[:2]),
        (latency_s > options.max_latency_s * (1 + SLACK)).sum(-1),
        np.where(np.isfinite(latency_s), latency_s, 0.0).max(-1),
        over_s,
    )


def _requests(arrivals: Arrivals, slots: Indices, batch_size: int) -> tuple[Numbers, Bools]:
    """Cut arrivals into whole mini-batches for each of w slots; arrays (w, k).

    Returns arrival times, s after the slot's beginning, infinite as padding; and whether a request
    belongs to the slot. The last mini-batch of a slot is filled with requests of the next slot;
    requests whose mini-batch never fills belong to none. The last mini-batch is all padding.
    """
    start, end = arrivals.bounds[slots], arrivals.bounds[slots + 1]
    n_batches = int(np.ceil((end - start) / batch_size).max()) + 1
    requests = start[:, None] + np.arange(n_batches * batch_size)
    n_filled = -(-(end - start) // batch_size) * batch_size  # rounded up to whole mini-batches
    arrives = (requests < (start + n_filled)[:, None]) & (requests < len(arrivals.times_s))
    begins_s = arrivals.slot_s * slots
    padded_s = np.append(arrivals.times_s, np.inf)
    times_s = np.where(
        arrives, padded_s[np.where(arrives, requests, -1)] - begins_s[:, None], np.inf
    )
    is_whole = arrives.reshape(len(slots), n_batches, batch_size).all(-1)
    return times_s, (requests < end[:, None]) & np.repeat(is_whole, batch_size, 1)


# -- ways of planning ------------------------------------------------------------------------------


class View(NamedTuple):
    """Knowledge as each slot begins."""

    options: Options
    rates_per_s: Numbers  # (k,), of each slot as it came
    slot_s: float  # length of a slot
    switch_s: float  # time that clocks need to settle

    @property
    def estimates_per_s(self) -> Numbers:
        """Estimated rate of each slot, (k,): the rate of the slot before; the first is known."""
        return np.append(self.rates_per_s[:1], self.rates_per_s[:-1])


def never(view: View) -> Indices:
    """Keep to the mode that is best at the highest rate, which is known beforehand."""
    *_, throughput_per_s = view.options.best_per_mode(view.rates_per_s.max()[None])
    return np.full(len(view.rates_per_s), int(throughput_per_s[0].argmax()))


def always(view: View) -> Indices:
    """Take the best mode for the rate of the slot before, whatever the change costs."""
    return view.options.best_mode(view.estimates_per_s)


def hysteresis(view: View) -> Indices:
    """Change the mode only for a change of the rate that lasts, once it has paid for itself.

    A mode is planned for all rates that differ from the estimate by at most `BAND`, and stays while
    the estimate does not leave them. Beyond, it is changed at once where it no longer keeps the
    budgets; else when the training forgone since then reaches what the change costs: at worst twice
    as much is lost as with the change at the right moment.
    """
    estimates, options = view.estimates_per_s, view.options
    _, holds, throughput_per_s = options.best_per_mode(estimates)
    wanted = options.best_mode(*(estimates * factor for factor in (1 - BAND, 1, 1 + BAND)))
    path = np.empty(len(estimates), np.intp)
    mode, planned_per_s, forgone = int(wanted[0]), estimates[0], 0.0
    for slot, rate in enumerate(estimates):
        better = int(wanted[slot])
        if abs(rate / planned_per_s - 1) <= BAND:
            forgone = 0.0
        else:
            best_per_s = throughput_per_s[slot, better]
            forgone += max(best_per_s - throughput_per_s[slot, mode], 0.0) * view.slot_s
            if not holds[slot, mode] or forgone > view.switch_s * best_per_s:
                mode, planned_per_s, forgone = better, rate, 0.0
        path[slot] = mode
    return path


POLICIES: dict[str, Callable[[View], Indices]] = {
    "never": never,
    "always": always,
    "hysteresis": hysteresis,
}


def oracle(value: Numbers) -> Indices:
    """Return the path of modes (k,) with the greatest sum of values, by dynamic programming.

    `value`: (k, c, c): of each slot, by mode in the slot before and mode in this slot.
    """
    n_modes = value.shape[1]
    total = np.diagonal(value[0])
    predecessor = np.empty((len(value), n_modes), np.intp)
    for slot in range(1, len(value)):
        sums = total[:, None] + value[slot]
        predecessor[slot] = sums.argmax(0)
        total = sums.max(0)
    path = np.empty(len(value), np.intp)
    path[-1] = total.argmax()
    for slot in range(len(value) - 1, 0, -1):
        path[slot - 1] = predecessor[slot, path[slot]]
    return path


def on_path(numbers: Numbers, path: Indices) -> Numbers:
    """Pick from numbers (k, c, c), by mode before and mode in a slot, those on a path (k,)."""
    return numbers[np.arange(len(path)), np.append(path[:1], path[:-1]), path]


# -- the study -------------------------------------------------------------------------------------


def policy_paths(
    options: Options, arrivals: Arrivals, slots: Slots, switch_s: float
) -> dict[str, Indices]:
    """Return the path of modes, (k,), that each policy and the oracle take, by name."""
    view = View(options, arrivals.rates_per_s, arrivals.slot_s, switch_s)
    return {
        ORACLE: oracle(slots.value),
        **{name: policy(view) for name, policy in POLICIES.items()},
    }


def policy_rows(
    options: Options, arrivals: Arrivals, switch_s: float
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Simulate a stream under each policy; return a frame of scores by policy, and one by slot."""
    slots = play_slots(options, arrivals, switch_s)
    seconds, n_requests = arrivals.n_slots * arrivals.slot_s, len(arrivals.times_s)
    scores, by_slot = [], []
    for name, path in policy_paths(options, arrivals, slots, switch_s).items():
        n_trained, n_late, worst_s, over_s = (on_path(numbers, path) for numbers in slots)
        sums = {
            "policy": name,
            "n_slots": arrivals.n_slots,
            "n_requests": n_requests,
            "trained_per_s": float(n_trained.sum()) / seconds,
            "late_pct": 100 * float(n_late.sum()) / max(n_requests, 1),
            "over_power_pct": 100 * float(over_s.sum()) / seconds,
            "n_switches": int(np.count_nonzero(np.diff(path))),
            "n_trained": float(n_trained.sum()),
            "value": float(on_path(slots.value, path).sum()),
        }
        columns = {
            "policy": name,
            "t_s": np.arange(arrivals.n_slots) * arrivals.slot_s,
            "rate_per_s": arrivals.rates_per_s,
            "gpu_mhz": options.space.modes[options.modes[path], 2],
            "worst_s": worst_s,
            "max_latency_s": options.max_latency_s,
            "trained_per_s": n_trained / arrivals.slot_s,
        }
        scores.append(sums)
        by_slot.append(pd.DataFrame(columns))
    frame = pd.DataFrame(scores)
    best = frame.iloc[0]  # the oracle's
    regret_pct = 100 * (best["value"] - frame["value"]) / max(best["n_trained"], 1.0)
    return frame.assign(regret_pct=regret_pct), pd.concat(by_slot)


def write_judged(tables: Path, scores_path: Path, slots_path: Path) -> None:
    """Judge all policies on all streams of the study; write the scores, and a row for each slot.

    Raises ConfigError: the study has no rates that change; a trace cannot be read; no mode serves.
    """
    changing = required_schedule().changing
    if changing is None:
        raise ConfigError("config/schedule.yaml has no key changing")
    all_tables = read_mode_tables(tables)
    scores, slots = [], []
    for jobs in changing.jobs:
        train = tables_of_job(jobs.train, "train", all_tables)
        infer = tables_of_job(jobs.infer, "infer", all_tables)
        space, key = Space(workload_of(train), (workload_of(infer),)), train[0].key
        case = {"provenance": key.provenance, "device": key.device}
        case |= {"train": jobs.train, "infer": jobs.infer}
        for name, rates in changing.rates.items():
            for kind, seed in {"trace": 0}.items() if rates.file else ARRIVALS.items():
                arrivals = build_arrivals(rates, jobs.peak_per_s, changing.slot_s, seed)
                budgets = jobs.max_power_w, jobs.max_latency_s
                options = options_for(space, *budgets, arrivals.rates_per_s)
                for switch_s in changing.switch_s:
                    rows, by_slot = policy_rows(options, arrivals, switch_s)
                    label: dict[str, str | float] = {
                        **case,
                        "rates": name,
                        "arrivals": kind,
                        "switch_s": switch_s,
                    }
                    scores.append(rows.assign(**label)[list(SCORE_COLUMNS)])
                    slots.append(by_slot.assign(**label)[list(SLOT_COLUMNS)])
    write_frame(scores_path, "rates that change", pd.concat(scores))
    write_frame(slots_path, "rates that change, by slot", pd.concat(slots))
