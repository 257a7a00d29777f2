"""The study of rates that change: ways to plan anew, judged against the best way of all."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from epochwatt.errors import ConfigError
from epochwatt.schedule.config import required_schedule
from epochwatt.schedule.dynamic import policies
from epochwatt.schedule.dynamic.config import Changing, ChangingJobs
from epochwatt.schedule.dynamic.options import Options, options_for
from epochwatt.schedule.dynamic.rates import Arrivals, arrivals_of
from epochwatt.schedule.dynamic.slots import Slots, play_slots
from epochwatt.schedule.profiles import workload_of
from epochwatt.schedule.space import Places, Space
from epochwatt.sweeps.mode_table import ModeTable, read_mode_tables
from epochwatt.tables import write_table

ORACLE = "oracle"
ARRIVALS = {"steady": None, "poisson": 0}  # kind -> seed
POLICIES: dict[str, Callable[[policies.View], Places]] = {
    "never": policies.never,
    "always": policies.always,
    "hysteresis": policies.hysteresis,
}
CASE = ("provenance", "device", "train", "infer", "rates", "arrivals", "switch_s", "policy")
SCORES = (
    *CASE,
    *("n_slots", "n_requests", "trained_per_s", "late_pct", "over_power_pct"),
    *("n_switches", "regret_pct"),
)
SLOTS = (
    *CASE,
    *("t_s", "rate_per_s", "gpu_mhz", "worst_s", "max_latency_s", "trained_per_s"),
)


class Judged(NamedTuple):
    """What all ways of planning gave for one stream: modes taken, (k,), by name of the way."""

    arrivals: Arrivals
    options: Options
    slots: Slots
    paths: dict[str, Places]


def judge(options: Options, arrivals: Arrivals, switch_s: float) -> Judged:
    """Play a stream, and follow each way of planning through it."""
    slots = play_slots(options, arrivals, switch_s)
    view = policies.View(options, arrivals.rates_per_s, arrivals.slot_s, switch_s)
    paths = {ORACLE: policies.oracle(slots.value)}
    return Judged(arrivals, options, slots, paths | {n: way(view) for n, way in POLICIES.items()})


def scores(judged: Judged) -> Iterator[dict[str, Any]]:
    """Yield a row for each way of planning.

    `regret_pct` is how much less it is worth than the oracle's, % of the training of the oracle's.
    """
    arrivals, slots = judged.arrivals, judged.slots
    seconds = arrivals.n_slots * arrivals.slot_s
    sums = {
        name: [float(policies.along(n, path).sum()) for n in (*slots, slots.value)]
        for name, path in judged.paths.items()
    }
    best = sums[ORACLE]
    for name, path in judged.paths.items():
        n_trained, n_late, _, over_s, value = sums[name]
        yield {
            "policy": name,
            "n_slots": arrivals.n_slots,
            "n_requests": len(arrivals.times_s),
            "trained_per_s": n_trained / seconds,
            "late_pct": 100 * n_late / max(len(arrivals.times_s), 1),
            "over_power_pct": 100 * over_s / seconds,
            "n_switches": int(np.count_nonzero(np.diff(path))),
            "regret_pct": 100 * (best[-1] - value) / max(best[0], 1.0),
        }


def by_slot(judged: Judged) -> Iterator[dict[str, Any]]:
    """Yield a row for each way of planning and slot: rate, plan, latency, training."""
    arrivals, slots, options = judged.arrivals, judged.slots, judged.options
    for name, path in judged.paths.items():
        worst_s, n_trained = (policies.along(n, path) for n in (slots.worst_s, slots.n_trained))
        for slot, mode in enumerate(path):
            yield {
                "policy": name,
                "t_s": slot * arrivals.slot_s,
                "rate_per_s": arrivals.rates_per_s[slot],
                "gpu_mhz": options.space.modes[options.modes[mode], 2],
                "worst_s": worst_s[slot],
                "max_latency_s": options.max_latency_s,
                "trained_per_s": n_trained[slot] / arrivals.slot_s,
            }


def write_judged(tables: Path, scores_path: Path, slots_path: Path, root: Path = Path()) -> None:
    """Judge all of the study; write the scores, and what came of each slot.

    Raises ConfigError: the study has no rates that change, a trace that cannot be read, or no mode.
    """
    study = required_schedule(root)
    if study.changing is None:
        raise ConfigError("config/schedule.yaml has no key changing", where=str(root))
    mode_tables = read_mode_tables(tables)
    rows: list[dict[str, Any]] = []
    of_slots: list[dict[str, Any]] = []
    for jobs in study.changing.jobs:
        train, infer = (
            _named(mode_tables, jobs.train, "train"),
            _named(mode_tables, jobs.infer, "infer"),
        )
        space = Space(workload_of(train), (workload_of(infer),))
        key = train[0].key
        shared = {"provenance": key.provenance, "device": key.device}
        for case, judged in _judged(space, jobs, study.changing, root):
            case = {**shared, "train": jobs.train, "infer": jobs.infer, **case}
            rows += (case | row for row in scores(judged))
            of_slots += (case | row for row in by_slot(judged))
    write_table(scores_path, "rates that change", SCORES, _cells(rows, SCORES))
    write_table(slots_path, "rates that change, by slot", SLOTS, _cells(of_slots, SLOTS))


def _judged(
    space: Space, jobs: ChangingJobs, changing: Changing, root: Path
) -> Iterator[tuple[dict[str, Any], Judged]]:
    """Yield each case of one set of jobs, and what came of it."""
    for name, rates in changing.rates.items():
        for kind, seed in {"trace": 0}.items() if rates.file else ARRIVALS.items():
            arrivals = arrivals_of(rates, jobs.peak_per_s, changing.slot_s, seed, root)
            options = options_for(space, jobs.max_power_w, jobs.max_latency_s, arrivals.rates_per_s)
            for switch_s in changing.switch_s:
                case = {"rates": name, "arrivals": kind, "switch_s": switch_s}
                yield case, judge(options, arrivals, switch_s)


def _named(tables: Sequence[ModeTable], name: str, task: str) -> list[ModeTable]:
    named = [table for table in tables if (table.key.workload, table.key.task) == (name, task)]
    if not named:
        raise ConfigError(f"no table of {name} ({task})")
    return named


def _cells(rows: Sequence[dict[str, Any]], columns: Sequence[str]) -> Iterator[list[Any]]:
    return ([row[name] for name in columns] for row in rows)
