"""Judge ways to plan anew as rates of requests change, against the best way of all.

All ways but the oracle see the rate of the slots before. A path is the mode of each slot, (k,), as
its place among the options; the first is there before anything begins, and costs no change.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from epochwatt.errors import ConfigError
from epochwatt.schedule.config import Changing, ChangingJobs, required_schedule
from epochwatt.schedule.dynamic.slots import (
    Arrivals,
    Options,
    Slots,
    arrivals_of,
    options_for,
    play_slots,
)
from epochwatt.schedule.evaluation import tables_by_job, tables_of
from epochwatt.schedule.plans import Numbers
from epochwatt.schedule.profiles import workload_of
from epochwatt.schedule.space import Places, Space
from epochwatt.sweeps.mode_table import read_mode_tables
from epochwatt.tables import write_entries

BAND = 0.2  # relative; a rate that differs by less from that of the plan is taken for the same


@dataclass(frozen=True, eq=False)
class View:
    """Knowledge as each slot begins."""

    options: Options
    rates_per_s: Numbers  # (k,), of each slot as it came
    slot_s: float  # length of a slot
    switch_s: float  # time that clocks need to settle

    @property
    def estimates_per_s(self) -> Numbers:
        """Estimate of the rate, (k,): that of the slot before; the first is given."""
        return np.append(self.rates_per_s[:1], self.rates_per_s[:-1])


def never(view: View) -> Places:
    """Keep to the mode that is best at the highest rate, which is known beforehand."""
    best = view.options.at(view.rates_per_s.max()[None])
    return np.full(len(view.rates_per_s), int(best.throughput_per_s[0].argmax()))


def always(view: View) -> Places:
    """Take the best mode for the rate of the slot before, whatever the change costs."""
    return _best(view.options, view.estimates_per_s)


def hysteresis(view: View) -> Places:
    """Change the mode only for a change of the rate that lasts, once it has paid for itself.

    A mode is planned for all rates that differ from the estimate by at most `BAND`, and stays while
    the estimate does not leave them. Beyond, it is changed at once where it no longer keeps the
    budgets; else when the training forgone since then reaches what the change costs: at worst twice
    as much is lost as with the change at the right moment.
    """
    estimates, options = view.estimates_per_s, view.options
    now = options.at(estimates)
    wanted = _best(options, *(estimates * factor for factor in (1 - BAND, 1, 1 + BAND)))
    path = np.empty(len(estimates), np.intp)
    mode, planned_per_s, forgone = int(wanted[0]), estimates[0], 0.0
    for slot, rate in enumerate(estimates):
        better = int(wanted[slot])
        if abs(rate / planned_per_s - 1) <= BAND:
            forgone = 0.0
        else:
            gain_per_s = now.throughput_per_s[slot, better] - now.throughput_per_s[slot, mode]
            forgone += max(gain_per_s, 0.0) * view.slot_s
            cost = view.switch_s * now.throughput_per_s[slot, better]
            if not now.holds[slot, mode] or forgone > cost:
                mode, planned_per_s, forgone = better, rate, 0.0
        path[slot] = mode
    return path


def _best(options: Options, *rates_per_s: Numbers) -> Places:
    """Return the mode that trains most on average of some rates, (k,) each, and holds at all.

    Where none holds: that of the highest rate.
    """
    best = [options.at(rates) for rates in rates_per_s]
    holds = np.logical_and.reduce([one.holds for one in best])
    throughput = np.mean([one.throughput_per_s for one in best], axis=0)
    score = np.where(holds, throughput, -1.0)
    return np.where(holds.any(1), score.argmax(1), len(options.modes) - 1)


def oracle(value: Numbers) -> Places:
    """Return the path of most value of all, by dynamic programming.

    `value`: (k, c, c), of each slot, by mode before and mode in it.
    """
    n_modes = value.shape[1]
    total = np.diagonal(value[0])
    before = np.empty((len(value), n_modes), np.intp)
    for slot in range(1, len(value)):
        sums = total[:, None] + value[slot]
        before[slot] = sums.argmax(0)
        total = sums.max(0)
    path = np.empty(len(value), np.intp)
    path[-1] = total.argmax()
    for slot in range(len(value) - 1, 0, -1):
        path[slot - 1] = before[slot, path[slot]]
    return path


def along(numbers: Numbers, path: Places) -> Numbers:
    """Return the numbers (k, c, c) of each slot on a path, (k,)."""
    return numbers[np.arange(len(path)), np.append(path[:1], path[:-1]), path]


ORACLE = "oracle"
ARRIVALS = {"steady": None, "poisson": 0}  # kind -> seed
POLICIES: dict[str, Callable[[View], Places]] = {
    "never": never,
    "always": always,
    "hysteresis": hysteresis,
}


@dataclass(frozen=True, kw_only=True)
class Case:
    """One case: jobs of a device, their rates, and how long clocks take to settle."""

    provenance: str = ""
    device: str = ""
    train: str = ""
    infer: str = ""
    rates: str = ""
    arrivals: str = ""
    switch_s: float = 0.0
    policy: str = ""


@dataclass(frozen=True, kw_only=True)
class PolicyScore(Case):
    """Outcome of a way of planning: a row of changing.csv.

    `regret_pct` is how much less it is worth than the oracle's, % of the training of the oracle's.
    """

    n_slots: int
    n_requests: int
    trained_per_s: float
    late_pct: float
    over_power_pct: float
    n_switches: int
    regret_pct: float


@dataclass(frozen=True, kw_only=True)
class SlotRow(Case):
    """Rate, plan, latency and training of a slot: a row of changing-slots.csv."""

    t_s: float
    rate_per_s: float
    gpu_mhz: float
    worst_s: float
    max_latency_s: float
    trained_per_s: float


class Judged(NamedTuple):
    """Outcome of all ways of planning for one stream: modes taken, (k,), by name of the way."""

    arrivals: Arrivals
    options: Options
    slots: Slots
    paths: dict[str, Places]


def judge(options: Options, arrivals: Arrivals, switch_s: float) -> Judged:
    """Play a stream, and follow each way of planning through it."""
    slots = play_slots(options, arrivals, switch_s)
    view = View(options, arrivals.rates_per_s, arrivals.slot_s, switch_s)
    paths = {ORACLE: oracle(slots.value), **{name: way(view) for name, way in POLICIES.items()}}
    return Judged(arrivals, options, slots, paths)


def scores(judged: Judged) -> Iterator[PolicyScore]:
    """Yield a row for each way of planning."""
    arrivals, slots = judged.arrivals, judged.slots
    seconds = arrivals.n_slots * arrivals.slot_s
    sums = {
        name: [float(along(n, path).sum()) for n in (*slots, slots.value)]
        for name, path in judged.paths.items()
    }
    best = sums[ORACLE]
    for name, path in judged.paths.items():
        n_trained, n_late, _, over_s, value = sums[name]
        yield PolicyScore(
            policy=name,
            n_slots=arrivals.n_slots,
            n_requests=len(arrivals.times_s),
            trained_per_s=n_trained / seconds,
            late_pct=100 * n_late / max(len(arrivals.times_s), 1),
            over_power_pct=100 * over_s / seconds,
            n_switches=int(np.count_nonzero(np.diff(path))),
            regret_pct=100 * (best[-1] - value) / max(best[0], 1.0),
        )


def by_slot(judged: Judged) -> Iterator[SlotRow]:
    """Yield a row for each way of planning and slot."""
    arrivals, slots, options = judged.arrivals, judged.slots, judged.options
    for name, path in judged.paths.items():
        worst_s, n_trained = (along(n, path) for n in (slots.worst_s, slots.n_trained))
        for slot, mode in enumerate(path):
            yield SlotRow(
                policy=name,
                t_s=slot * arrivals.slot_s,
                rate_per_s=arrivals.rates_per_s[slot],
                gpu_mhz=options.space.modes[options.modes[mode], 2],
                worst_s=worst_s[slot],
                max_latency_s=options.max_latency_s,
                trained_per_s=n_trained[slot] / arrivals.slot_s,
            )


def write_judged(tables: Path, scores_path: Path, slots_path: Path, root: Path = Path()) -> None:
    """Judge all of the study; write the scores, and what came of each slot.

    Raises ConfigError: the study has no rates that change, a trace that cannot be read, or no mode.
    """
    study = required_schedule(root)
    if study.changing is None:
        raise ConfigError("config/schedule.yaml has no key changing", where=str(root))
    by_job = tables_by_job(read_mode_tables(tables))
    rows, of_slots = list[PolicyScore](), list[SlotRow]()
    for jobs in study.changing.jobs:
        train = tables_of(f"train-{jobs.train}", by_job)
        infer = tables_of(f"infer-{jobs.infer}", by_job)
        space, key = Space(workload_of(train), (workload_of(infer),)), train[0].key
        shared: dict[str, Any] = {
            "provenance": key.provenance,
            "device": key.device,
            "train": jobs.train,
            "infer": jobs.infer,
        }
        for rates, kind, switch_s, judged in _judged(space, jobs, study.changing, root):
            case: dict[str, Any] = {
                **shared,
                "rates": rates,
                "arrivals": kind,
                "switch_s": switch_s,
            }
            rows += (replace(row, **case) for row in scores(judged))
            of_slots += (replace(row, **case) for row in by_slot(judged))
    write_entries(scores_path, "rates that change", PolicyScore, rows, "")
    write_entries(slots_path, "rates that change, by slot", SlotRow, of_slots, "")


def _judged(
    space: Space, jobs: ChangingJobs, changing: Changing, root: Path
) -> Iterator[tuple[str, str, float, Judged]]:
    """Yield rates, kind of arrivals, time to settle, and what came of them."""
    for name, rates in changing.rates.items():
        for kind, seed in {"trace": 0}.items() if rates.file else ARRIVALS.items():
            arrivals = arrivals_of(rates, jobs.peak_per_s, changing.slot_s, seed, root)
            options = options_for(space, jobs.max_power_w, jobs.max_latency_s, arrivals.rates_per_s)
            for switch_s in changing.switch_s:
                yield name, kind, switch_s, judge(options, arrivals, switch_s)
