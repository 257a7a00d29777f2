"""Advise on each measured run: name what holds it back, and the setting that would shorten it.

Advice rests on a sibling where there is one: a run that differs in one setting and is faster beyond
the spread of the epochs. Else it is an estimate, called so, or there is none, and the reason says
why. Only measured runs are judged; learning is not.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from epochwatt.analysis.collect_study import epoch_sets, read_epochs
from epochwatt.analysis.compare import interval
from epochwatt.columns import FACTOR_NAMES
from epochwatt.epochs.bottleneck import (
    COLUMNS,
    LOADER,
    OVERHEAD,
    TOO_SHORT,
    TOO_SHORT_S,
    Bottleneck,
    find_longest_part,
)
from epochwatt.tables import write_entries
from epochwatt.text import counted

LEAST_GAIN = 0.02  # of an epoch; less is not worth a sentence
BUSY_PCT = 90.0  # of the CPU: no core is free for another worker
# settings that may be turned without changing what is learned; batch size is tried last
LEVERS = ("num_workers", "prefetch_factor", "storage", "torch_threads", "power_mode", "dvfs")
LEARNING = ("batch_size",)
MEASURED, ESTIMATED, NONE = "measured", "estimated", "none"
LEVER_WORDS = {
    "prefetch_factor": "prefetch {}",
    "storage": "storage {}",
    "torch_threads": "{} torch threads",
    "power_mode": "mode {}",
    "dvfs": "DVFS {}",
    "batch_size": "batch {}",
}


@dataclass(frozen=True)
class Advice:
    """Advice on one run; a row of `results/tables/advice.csv`."""

    run: str  # its id
    bound_by: str  # as `Bottleneck`; empty: too short to tell
    kind: str  # measured, estimated or none
    advice: str  # a sentence each, with the numbers that they rest on
    reason: str
    compared_run: str = ""  # the sibling that was measured
    saved_pct: float | None = None  # of the epoch's time, with the 95 % interval
    saved_low_pct: float | None = None
    saved_high_pct: float | None = None
    hidden_pct: float | None = None  # share of the wait that the sibling does not have
    # that are estimated to load as fast as the training or the CPU lets them
    workers: int | None = None


class _Run:
    """The valid epochs of a run after the first, and its factors."""

    def __init__(self, run: str, factors: Mapping[str, Any], epochs: pd.DataFrame) -> None:
        self.run, self.factors, self.epochs = run, factors, epochs

    def mean(self, column: str) -> float:
        """Return the mean of a column; nan where no epoch has it."""
        return float(self.epochs[column].mean()) if len(self.epochs) else math.nan

    def share_pct(self, *columns: str) -> float:
        """Return what columns are of the epoch, in %."""
        return 100.0 * sum(self.mean(column) for column in columns) / self.mean("e2e_s")

    @property
    def workers(self) -> int:
        """Number of loader workers."""
        return int(self.factors["num_workers"])


def write_advice(paths: Iterable[str], path: str) -> None:
    """Write `advice.csv`: a row for each run."""
    write_entries(path, "advice", Advice, advise(read_epochs(paths)))


def advise(epochs: pd.DataFrame) -> list[Advice]:
    """Return what is said of each run, in their order."""
    later = epoch_sets(epochs)["1+"]
    valid = later[later.valid]
    runs = [
        _Run(
            first["run"],
            {name: first[name] for name in FACTOR_NAMES},
            valid[valid.run == first["run"]],
        )
        for first in epochs.drop_duplicates("run").to_dict("records")
    ]
    return [_advice(run, runs) for run in runs]


def _advice(run: _Run, runs: Sequence[_Run]) -> Advice:
    if not len(run.epochs):
        reason = "No valid epoch after the first."
        return Advice(run.run, "", NONE, TOO_SHORT, reason)
    if run.mean("e2e_s") < TOO_SHORT_S:
        reason = f"An epoch takes {run.mean('e2e_s'):.2f} s; judged from {TOO_SHORT_S:g} s on."
        return Advice(run.run, "", NONE, TOO_SHORT, reason)
    bound = find_longest_part({name: run.mean(name) for name in COLUMNS.values()})
    near = [(other, lever) for other in runs if (lever := lever_between(run, other))]
    return _measured(run, bound, near) or _unmeasured(run, bound, near)


def lever_between(run: _Run, other: _Run) -> str:
    """Return the one setting in which two runs differ; empty where it is none, or several.

    Without workers there is no prefetch factor, so that one goes along with their number.
    """
    differing = [name for name in FACTOR_NAMES if not _same(run.factors[name], other.factors[name])]
    if "num_workers" in differing and 0 in (run.workers, other.workers):
        differing = [name for name in differing if name != "prefetch_factor"]
    lever = differing[0] if len(differing) == 1 else ""
    return lever if lever in LEVERS + LEARNING else ""


def _same(one: Any, other: Any) -> bool:
    if pd.isna(one) or pd.isna(other):
        return bool(pd.isna(one) and pd.isna(other))
    return bool(one == other)


def _measured(run: _Run, bound: Bottleneck, near: Sequence[tuple[_Run, str]]) -> Advice | None:
    """Return the advice that the fastest sibling gives; None where none is faster for certain."""
    for levers in (LEVERS, LEARNING):
        faster = []
        for other, lever in near:
            ratio = _ratio(run, other) if lever in levers else None
            if ratio and ratio[2] < 1.0 and ratio[0] < 1.0 - LEAST_GAIN:
                faster.append((ratio, other, lever))
        if faster:
            ratio, other, lever = min(faster, key=lambda entry: entry[0])
            return _from_sibling(run, bound, other, lever, ratio)
    return None


def _ratio(run: _Run, other: _Run) -> tuple[float, float, float] | None:
    """Return other / run of E2E with its interval; None where one has no spread."""
    one, two = (r.epochs.e2e_s.to_numpy(dtype=float) for r in (run, other))
    if min(len(one), len(two)) < 2:
        return None
    low, high = interval(one, two)
    return float(two.mean() / one.mean()), low, high


def _from_sibling(
    run: _Run, bound: Bottleneck, other: _Run, lever: str, ratio: tuple[float, float, float]
) -> Advice:
    saved_pct, high_pct, low_pct = (100.0 * (1.0 - value) for value in ratio)
    words = setting_words(lever, other.factors[lever])
    is_plural = words[0].isdigit() and not words.startswith("1 ")
    row = Advice(run.run, bound.bound_by, MEASURED, "", "", other.run, saved_pct, low_pct, high_pct)
    wait_s, other_wait_s = run.mean("wait_s"), other.mean("wait_s")
    if bound.bound_by == LOADER and other_wait_s < wait_s:
        hidden_pct = 100.0 * (1.0 - other_wait_s / wait_s)
        verb = "hide" if is_plural else "hides"
        text = f"{words} {verb} {hidden_pct:.0f} % of the wait (measured)."
        row = replace(row, hidden_pct=hidden_pct)
    else:
        verb = "take" if is_plural else "takes"
        text = f"{words} {verb} {saved_pct:.0f} % less time (measured)."
    reason = (
        f"{run.mean('e2e_s'):.3g} s here, {other.mean('e2e_s'):.3g} s there: "
        f"{saved_pct:.0f} % less, 95 % interval {low_pct:.0f} to {high_pct:.0f} %."
    )
    reason += _energy_words(run, other)
    reason += " Another batch size also changes what is learned." if lever in LEARNING else ""
    return replace(row, advice=f"{bound}: {text}", reason=reason)


def _energy_words(run: _Run, other: _Run) -> str:
    """Return what a sibling does to the energy, where the same sensor saw both."""
    here, there = run.mean("energy_wh"), other.mean("energy_wh")
    if not (here > 0 and there > 0) or set(run.epochs.power_scope) != set(other.epochs.power_scope):
        return ""
    change_pct = 100.0 * (there / here - 1.0)
    return f" Energy: {abs(change_pct):.0f} % {'less' if change_pct < 0 else 'more'}."


def setting_words(lever: str, value: Any) -> str:
    """Return a setting in words: `2 workers`, `batch 32`."""
    if lever == "num_workers":
        return counted(int(value), "workers") if value else "running without workers"
    return LEVER_WORDS[lever].format(value)


def _unmeasured(run: _Run, bound: Bottleneck, near: Sequence[tuple[_Run, str]]) -> Advice:
    """Return an estimate where the loader holds the run back, else why there is no advice."""
    row = Advice(run.run, bound.bound_by, NONE, "", "")
    name = str(bound)
    if bound.bound_by == LOADER:
        return _loader_estimate(replace(row, advice=name), run)
    standing = _standing(run, near)
    if bound.bound_by == OVERHEAD and run.workers:
        reason = (
            f"Starting and ending {counted(run.workers, 'workers')} and the rest of the overhead "
            f"are {run.share_pct('overhead_s'):.0f} % of the epoch; longer epochs have less of it."
        )
    else:
        reason = (
            f"Waiting for data and copying are {run.share_pct('wait_s', 'copy_s'):.0f} % of the "
            "epoch; hiding all of it would save no more."
        )
    return replace(row, advice=f"{name}: {standing}", reason=reason)


def _standing(run: _Run, near: Sequence[tuple[_Run, str]]) -> str:
    """Return how a run stands among those that differ in one setting."""
    if not near:
        return "no run that differs in one setting was measured."
    ratios = [_ratio(run, other) for other, _ in near]
    if not any(ratios):
        return "its neighbours cannot be told apart, as one epoch has no spread."
    if all(ratio and ratio[1] > 1.0 for ratio in ratios):
        settings = counted(len(near), "neighbouring settings")
        return f"faster than {'the' if len(near) == 1 else 'all'} {settings} measured."
    return "no neighbouring setting is faster beyond the spread of the epochs."


def _loader_estimate(row: Advice, run: _Run) -> Advice:
    """Return how many workers would keep up on average, from what loading and training take.

    Loading that takes now longer, now shorter leaves a part of the wait, as two mini-batches of a
    worker are all that is loaded ahead. And the CPU has the same work to do in a shorter epoch, so
    none is shorter than that work takes.
    """
    load_s, fetch_s, work_s = (
        sum(run.mean(column) for column in columns)
        for columns in (("fetch_s", "preprocess_s"), ("fetch_s",), ("compute_s", "copy_s"))
    )
    if not (load_s > 0 and work_s > 0):
        reason = "How long loading takes was not recorded, so no number of workers is estimated."
        return replace(row, advice=f"{row.advice}.", reason=reason)
    cpu_pct = run.mean("cpu_util_pct")
    cpu_s = 0.0 if math.isnan(cpu_pct) else cpu_pct / 100.0 * run.mean("e2e_s")
    load_ms, work_ms = (1000.0 * s / run.mean("n_minibatches") for s in (load_s, work_s))
    reason = (
        f"Loading a mini-batch takes {load_ms:.3g} ms of one worker, "
        f"{100 * fetch_s / load_s:.0f} % of it fetching; training on it takes {work_ms:.3g} ms."
    )
    hidden_pct = 100.0 * (1.0 - max(cpu_s - work_s, 0.0) / run.mean("wait_s"))
    needed = max(math.ceil(load_s / max(work_s, cpu_s)), 1)
    if cpu_pct > BUSY_PCT:
        text = f"{row.advice}, and the CPU is {cpu_pct:.0f} % busy: more workers find no free core."
        return replace(row, advice=text, reason=reason)
    if needed <= run.workers:
        words = "keep up" if cpu_s <= work_s else "load as fast as the CPU lets them"
        text = f"{row.advice}, although {counted(run.workers, 'workers')} should {words}."
        return replace(row, advice=text, reason=reason)
    return _workers_words(replace(row, kind=ESTIMATED, workers=needed, reason=reason), hidden_pct)


def _workers_words(row: Advice, hidden_pct: float) -> Advice:
    """Return the estimate of a number of workers in words, as far as the CPU lets them hide."""
    workers = counted(row.workers or 1, "workers")
    if hidden_pct < 100.0:
        text = (
            f"{row.advice}: {workers} would hide up to {hidden_pct:.0f} % of the wait (estimated)."
        )
        reason = f"{row.reason} With more of them the CPU has no free core."
    else:
        text = f"{row.advice}: {workers} would keep up on average (estimated)."
        reason = f"{row.reason} Where loading times vary, a part of the wait stays."
    return replace(row, advice=text, reason=reason)
