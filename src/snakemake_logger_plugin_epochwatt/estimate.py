"""How long jobs take, learnt as they finish, and from that the time left for all of them."""

import heapq
import json
import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from snakemake_logger_plugin_epochwatt.stages import MEASURING

# Seconds of a job, from its start to Snakemake's note that it has finished, two jobs at a time on
# two x86 cores with nothing else to do: geometric means of two `make run` with an empty results/,
# on two machines (2026-11-23, 24), of which one needed 1.3 times as long as the other.
# `judge_transfer`, `check_external`, `score_sweep` and `score_sweeps` are CPU seconds.
DEFAULT_S = {
    "advise_runs": 0.6,
    "all": 0.0,
    "check_claims": 6.0,
    "check_external": 12.0,
    "choose_power_modes": 0.41,
    "collect_ceilings": 0.25,
    "collect_idle": 0.26,
    "collect_run": 0.23,
    "collect_study": 1.6,
    "count_work": 2.4,
    "count_workload": 2.3,
    "draw_rooflines": 1.5,
    "explain_runs": 0.6,
    "fit_epoch_energy": 1.1,
    "fit_epoch_time": 1.2,
    "fit_roofline": 0.7,
    "judge_transfer": 60.0,
    "list_ceiling_modes": 0.17,
    "make_dataset": 1.5,
    "collect_sweep": 0.7,
    "list_modes": 0.2,
    "measure_ceilings": 11.4,
    "measure_idle": 60.0,
    "measure_modes": 30.0,
    "place_points": 0.26,
    "learn_schedules": 130.0,
    "play_schedules": 12.0,
    "replan_schedules": 10.0,
    "score_predictions": 13.5,
    "score_schedules": 78.0,
    "score_sweep": 16.0,
    "score_sweeps": 4.0,
    "show_index": 4.9,
    "simulate_idle": 0.29,
    "simulate_run": 0.2,
    "simulate_sweep": 1.1,
    "split_energy": 0.46,
    "summarise": 0.8,
    "sweeps": 0.0,
    "tabulate_setup": 0.45,
    "tabulate_text_only": 0.9,
    "train_epoch": 6.4,
    "validate_twin": 2.9,
}
FIGURE_S, UNKNOWN_S = 1.3, 1.5
STEADY_S = 5.0  # of jobs that have to finish before their pace counts half for other rules
MOST_WEIGHT_S, MOST_LOG = 20.0, 1.1  # of one rule in what is expected of others; of all of them
MOST_PIECES = 40  # of one rule's jobs, when the rest is planned
RECORD = Path(".snakemake/epochwatt-job-times.json")


def default_s(rule: str) -> float:
    """Return the seconds of a job on the machine that the defaults come from."""
    return DEFAULT_S.get(rule, FIGURE_S if rule.startswith("plot_") else UNKNOWN_S)


@dataclass
class _Pace:
    """Seconds that jobs took, beside what had been expected of them."""

    took_s: float = 0.0
    expected_s: float = 0.0

    def ratio(self, before: float, steady_s: float) -> float:
        """Return took / expected, drawn towards `before` while little has finished."""
        return (self.took_s + before * steady_s) / (self.expected_s + steady_s)


@dataclass
class JobTimes:
    """Expected seconds of jobs: a prior of each, times how jobs of its kind went so far.

    Parameters
    ----------
    slowness : how much slower this machine is than that of the defaults
    recorded_s : rule -> mean seconds of its jobs in an earlier start here
    """

    slowness: float = 1.0
    recorded_s: Mapping[str, float] = field(default_factory=dict)
    _paces: dict[tuple[str, ...], _Pace] = field(default_factory=dict)
    _sums: dict[str, list[float]] = field(default_factory=dict)

    def prior_s(self, rule: str) -> float:
        """Return what is expected of a job before any has finished."""
        recorded_s = self.recorded_s.get(rule)
        return default_s(rule) * self.slowness if recorded_s is None else recorded_s

    def finished(self, kinds: tuple[str, ...], prior_s: float, took_s: float) -> None:
        """Learn from a job. `kinds`: its rule, then what is more special (network, run)."""
        for depth in range(1, len(kinds) + 1):
            pace = self._paces.setdefault(kinds[:depth], _Pace())
            pace.took_s += took_s
            pace.expected_s += prior_s
        sums = self._sums.setdefault(kinds[0], [0.0, 0.0])
        sums[0] += took_s
        sums[1] += 1

    def expected_s(self, kinds: tuple[str, ...], prior_s: float) -> float:
        """Return what is expected of a job now."""
        ratio = self._of_other_rules()
        for depth in range(1, len(kinds) + 1):
            if pace := self._paces.get(kinds[:depth]):
                ratio = pace.ratio(ratio, max(prior_s, 1e-3))
        return prior_s * ratio

    def _of_other_rules(self) -> float:
        """Return took / expected of a rule of which no job has finished: as others went.

        A rule whose default is far off says little of others, however many jobs it has.
        """
        paces = [pace for kinds, pace in self._paces.items() if len(kinds) == 1]
        weights = [min(pace.expected_s, MOST_WEIGHT_S) for pace in paces]
        logs = [math.log(pace.ratio(1.0, 1.0)) for pace in paces]
        mean = sum(w * x for w, x in zip(weights, logs, strict=True)) / (sum(weights) + STEADY_S)
        return math.exp(max(-MOST_LOG, min(MOST_LOG, mean)))

    def means_s(self) -> dict[str, float]:
        """Return the mean seconds of each rule: as recorded, or of this start."""
        return {**self.recorded_s, **{rule: s / n for rule, (s, n) in self._sums.items()}}


def read_record(path: Path = RECORD) -> dict[str, float]:
    """Return rule -> mean seconds of an earlier start; empty where there is none to be read."""
    try:
        held = json.loads(path.read_text("utf-8"))
        return {str(rule): float(seconds) for rule, seconds in held.items()}
    except (OSError, ValueError, AttributeError, TypeError):
        return {}


def write_record(times: JobTimes, path: Path = RECORD) -> None:
    """Keep the mean seconds of each rule for the next start; where that fails, do without."""
    means_s = {rule: round(s, 3) for rule, s in sorted(times.means_s().items())}
    temporary = path.with_suffix(".tmp")
    try:
        temporary.write_text(json.dumps(means_s, indent=1) + "\n", "utf-8")
        os.replace(temporary, path)
    except OSError:
        return


@dataclass
class Left:
    """What is left of a rule.

    Attributes
    ----------
    seconds : of each job that is not started yet
    running : seconds that each of those under way still needs
    after : rules whose jobs have to be finished first
    """

    rule: str
    seconds: list[float]
    running: list[float] = field(default_factory=list)
    after: frozenset[str] = frozenset()


def time_left_s(rules: Iterable[Left], cores: int) -> float:
    """Return how long all of it takes, started as Snakemake does: measuring first, and alone."""
    left = {entry.rule: entry for entry in rules if entry.seconds or entry.running}
    waiting = {rule: _pieces(entry.seconds) for rule, entry in left.items()}
    undone = {rule: len(waiting[rule]) + len(entry.running) for rule, entry in left.items()}
    under_way: list[tuple[float, str]] = [
        (seconds, rule) for rule, entry in left.items() for seconds in entry.running
    ]
    heapq.heapify(under_way)
    order = sorted(left, key=lambda rule: rule not in MEASURING)
    now_s = 0.0
    while True:
        for rule in order:
            if any(undone.get(before) for before in left[rule].after - {rule}):
                continue
            measures = rule in MEASURING
            while waiting[rule] and _fits(under_way, cores, measures):
                heapq.heappush(under_way, (now_s + waiting[rule].pop(), rule))
        if not under_way:  # rules that wait for each other by turns: their work at least
            return now_s + sum(map(sum, waiting.values())) / cores
        now_s, rule = heapq.heappop(under_way)
        undone[rule] -= 1


def _fits(under_way: list[tuple[float, str]], cores: int, measures: bool) -> bool:
    if measures:
        return not under_way
    return len(under_way) < cores and not any(rule in MEASURING for _, rule in under_way)


def _pieces(seconds: list[float]) -> list[float]:
    """Return the same work as a few equal jobs at the most, which is fast enough to plan."""
    if len(seconds) <= MOST_PIECES:
        return list(seconds)
    return [sum(seconds) / MOST_PIECES] * MOST_PIECES
