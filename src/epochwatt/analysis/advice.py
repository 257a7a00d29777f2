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

from epochwatt.analysis.collect_study import counted_epochs, join_ranks, read_epochs
from epochwatt.analysis.compare import interval
from epochwatt.columns import FACTOR_NAMES
from epochwatt.epochs.bottleneck import (
    LOADER,
    OVERHEAD,
    PART_COLUMNS,
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
OWN = "setting "  # begins the name of a setting that only an own loop knows; it is tried last, too
Settings = Mapping[str, Mapping[str, Any]]  # run -> its own settings
NO_SETTINGS: Settings = {}
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

    def __init__(self, row: "pd.Series[Any]", epochs: pd.DataFrame, settings: Settings) -> None:
        self.run, self.epochs = str(row.run), epochs
        own = {f"{OWN}{name}": value for name, value in settings.get(self.run, {}).items()}
        self.factors: dict[str, Any] = {**row[[*FACTOR_NAMES]], **own}
        # a loop of one's own may not tell it
        self.workers = 0 if pd.isna(row.num_workers) else int(row.num_workers)

    def mean(self, *columns: str) -> float:
        """Return the sum of the columns' means over epochs; NaN: no epoch has one of them."""
        return float(self.epochs[[*columns]].mean().sum(skipna=False))

    def share_pct(self, *columns: str) -> float:
        """Return the share of columns in the mean epoch time, %."""
        return 100.0 * self.mean(*columns) / self.mean("e2e_s")


@dataclass(frozen=True)
class _Sibling:
    """A run that differs in one setting, and how much faster it is."""

    run: _Run
    lever: str
    ratio: float | None  # of its E2E to ours, with the interval; None: one has no spread
    low: float = 0.0
    high: float = math.inf

    @property
    def is_learning(self) -> bool:
        """Whether the setting may change what is learned."""
        return self.lever not in LEVERS

    @property
    def is_faster(self) -> bool:
        """Whether it is faster for certain, and by enough to say so."""
        return self.ratio is not None and self.high < 1.0 and self.ratio < 1.0 - LEAST_GAIN


def write_advice(paths: Iterable[str], path: str, settings: Settings = NO_SETTINGS) -> None:
    """Write `advice.csv`: a row for each run; settings as of `advise`."""
    write_entries(path, "advice", Advice, advise(join_ranks(read_epochs(paths)), settings))


def advise(epochs: pd.DataFrame, settings: Settings = NO_SETTINGS) -> list[Advice]:
    """Return the advice on each run of a table of epochs, in the order of the runs.

    `settings`: run -> settings of its own loop that have no column
    """
    valid = counted_epochs(epochs)
    rows = epochs.drop_duplicates("run")
    runs = [_Run(row, valid[valid.run == row.run], settings) for _, row in rows.iterrows()]
    return [_advice(run, runs) for run in runs]


def _advice(run: _Run, runs: Sequence[_Run]) -> Advice:
    """Advise on a run: by a faster sibling, else by an estimate, else say why not."""
    if run.epochs.empty or run.mean("e2e_s") < TOO_SHORT_S:
        reason = "No valid epoch after the first."
        if not run.epochs.empty:
            reason = f"An epoch takes {run.mean('e2e_s'):.2f} s; judged from {TOO_SHORT_S:g} s on."
        return Advice(run.run, "", NONE, TOO_SHORT, reason)
    bound = find_longest_part({name: run.mean(name) for name in PART_COLUMNS.values()})
    if not bound.bound_by:
        reason = "Only start and end of its epochs are known."
        return Advice(run.run, "", NONE, "No part of its time is known.", reason)
    siblings = [
        _sibling(run, other, lever) for other in runs if (lever := _differing_lever(run, other))
    ]
    for is_learning in (False, True):
        if faster := [s for s in siblings if s.is_learning == is_learning and s.is_faster]:
            return _measured_advice(run, bound, min(faster, key=lambda s: s.ratio or 0.0))
    if bound.bound_by == LOADER:
        return _estimated_advice(run, bound)
    if bound.bound_by == OVERHEAD and run.workers:
        reason = (
            f"Starting and ending {counted(run.workers, 'workers')} and the rest of the overhead "
            f"are {run.share_pct('overhead_s'):.0f} % of the epoch; longer epochs have less of it."
        )
    else:
        stalls, verb = ["wait_s", "copy_s"], "and copying are"
        if math.isnan(run.mean("wait_s")):  # logs of others have both in one
            stalls = ["stall_s"]
        elif math.isnan(run.mean("copy_s")):  # own loops may have it within computing
            stalls, verb = ["wait_s"], "is"
        reason = (
            f"Waiting for data {verb} {run.share_pct(*stalls):.0f} % of the epoch; hiding all of "
            "it would save no more."
        )
    return Advice(run.run, bound.bound_by, NONE, f"{bound}: {_standing(siblings)}", reason)


def _differing_lever(run: _Run, other: _Run) -> str:
    """Return the one lever in which two runs differ; empty: none, several, or another factor.

    Without workers there is no prefetch factor, so that one goes along with their number.
    """
    names = {**run.factors, **other.factors}
    values = {name: (run.factors.get(name), other.factors.get(name)) for name in names}
    differing = [
        name
        for name, (a, b) in values.items()
        if pd.isna(a) != pd.isna(b) or (pd.notna(a) and a != b)
    ]
    if "num_workers" in differing and 0 in (run.workers, other.workers):
        differing = [name for name in differing if name != "prefetch_factor"]
    if len(differing) != 1 or not differing[0].startswith((*LEVERS, *LEARNING, OWN)):
        return ""
    is_known = all(map(pd.notna, values[differing[0]]))
    return differing[0] if is_known else ""


def _sibling(run: _Run, other: _Run, lever: str) -> _Sibling:
    """Return the ratio of E2E times, other / run, with its interval; two epochs each are needed."""
    e2e_s, other_e2e_s = (r.epochs.e2e_s.to_numpy(dtype=float) for r in (run, other))
    if min(len(e2e_s), len(other_e2e_s)) < 2:
        return _Sibling(other, lever, None)
    low, high = interval(e2e_s, other_e2e_s)
    return _Sibling(other, lever, float(other_e2e_s.mean() / e2e_s.mean()), low, high)


def _measured_advice(run: _Run, bound: Bottleneck, sibling: _Sibling) -> Advice:
    """Advise the setting of a sibling that was measured to be faster."""
    other, lever = sibling.run, sibling.lever
    assert sibling.ratio is not None
    saved_pct = 100.0 * (1.0 - sibling.ratio)
    low_pct, high_pct = 100.0 * (1.0 - sibling.high), 100.0 * (1.0 - sibling.low)
    value = other.factors[lever]
    if lever == "num_workers":
        setting = counted(int(value), "workers") if value else "running without workers"
    elif lever.startswith(OWN):
        setting = f"{lever.removeprefix(OWN)} {value}"
    else:
        setting = LEVER_WORDS[lever].format(value)
    is_plural = setting[0].isdigit() and not setting.startswith("1 ")
    wait_s, other_wait_s, hidden_pct = run.mean("wait_s"), other.mean("wait_s"), None
    if bound.bound_by == LOADER and other_wait_s < wait_s:
        hidden_pct = 100.0 * (1.0 - other_wait_s / wait_s)
        effect = f"{'hide' if is_plural else 'hides'} {hidden_pct:.0f} % of the wait"
    else:
        effect = f"{'take' if is_plural else 'takes'} {saved_pct:.0f} % less time"
    reason = (
        f"{run.mean('e2e_s'):.3g} s here, {other.mean('e2e_s'):.3g} s there: "
        f"{saved_pct:.0f} % less, 95 % interval {low_pct:.0f} to {high_pct:.0f} %."
    )
    energy_wh, other_wh = run.mean("energy_wh"), other.mean("energy_wh")
    same_sensor = set(run.epochs.power_scope) == set(other.epochs.power_scope)
    if energy_wh > 0 and other_wh > 0 and same_sensor:
        change_pct = 100.0 * (other_wh / energy_wh - 1.0)
        reason += f" Energy: {abs(change_pct):.0f} % {'less' if change_pct < 0 else 'more'}."
    if lever in LEARNING:
        reason += " Another batch size also changes what is learned."
    elif sibling.is_learning:
        reason += f" Another {lever.removeprefix(OWN)} may also change what is learned."
    return Advice(
        run=run.run,
        bound_by=bound.bound_by,
        kind=MEASURED,
        advice=f"{bound}: {setting} {effect} (measured).",
        reason=reason,
        compared_run=other.run,
        saved_pct=saved_pct,
        saved_low_pct=low_pct,
        saved_high_pct=high_pct,
        hidden_pct=hidden_pct,
    )


def _standing(siblings: Sequence[_Sibling]) -> str:
    """Return in words why no sibling is recommended."""
    if not siblings:
        return "no run that differs in one setting was measured."
    if all(sibling.ratio is None for sibling in siblings):
        return "its neighbours cannot be told apart, as one epoch has no spread."
    if all(sibling.low > 1.0 for sibling in siblings):
        n = len(siblings)
        others = "the neighbouring setting" if n == 1 else f"all {n} neighbouring settings"
        return f"faster than {others} measured."
    return "no neighbouring setting is faster beyond the spread of the epochs."


def _estimated_advice(run: _Run, bound: Bottleneck) -> Advice:
    """Advise a number of workers that would keep up on average, from mean times of an epoch.

        workers = ceil(load / max(training, CPU)), where CPU = utilisation x E2E

    An epoch cannot be shorter than the work of the CPU, which stays the same. Where loading times
    vary, a part of the wait stays, since a worker loads only two mini-batches ahead.
    """
    load_s, work_s = run.mean("fetch_s", "preprocess_s"), run.mean("compute_s", "copy_s")
    row = Advice(run.run, bound.bound_by, NONE, f"{bound}.", "")
    if not (load_s > 0 and work_s > 0):
        reason = "How long loading takes was not recorded, so no number of workers is estimated."
        return replace(row, reason=reason)
    cpu_pct = run.mean("cpu_util_pct")
    cpu_s = 0.0 if math.isnan(cpu_pct) else cpu_pct / 100.0 * run.mean("e2e_s")
    load_ms, work_ms = (1000.0 * s / run.mean("n_minibatches") for s in (load_s, work_s))
    reason = (
        f"Loading a mini-batch takes {load_ms:.3g} ms of one worker, "
        f"{100 * run.mean('fetch_s') / load_s:.0f} % of it fetching; training on it takes "
        f"{work_ms:.3g} ms."
    )
    needed = max(math.ceil(load_s / max(work_s, cpu_s)), 1)
    if cpu_pct > BUSY_PCT:
        text = f"{bound}, and the CPU is {cpu_pct:.0f} % busy: more workers find no free core."
        return replace(row, advice=text, reason=reason)
    if needed <= run.workers:
        words = "keep up" if cpu_s <= work_s else "load as fast as the CPU lets them"
        text = f"{bound}, although {counted(run.workers, 'workers')} should {words}."
        return replace(row, advice=text, reason=reason)
    hidden_pct = 100.0 * (1.0 - max(cpu_s - work_s, 0.0) / run.mean("wait_s"))
    text = f"{bound}: {counted(needed, 'workers')} would"
    if hidden_pct < 100.0:
        text += f" hide up to {hidden_pct:.0f} % of the wait (estimated)."
        reason += " With more of them the CPU has no free core."
    else:
        text += " keep up on average (estimated)."
        reason += " Where loading times vary, a part of the wait stays."
    return replace(row, kind=ESTIMATED, workers=needed, advice=text, reason=reason)
