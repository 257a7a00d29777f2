"""One job: methods that learn from the same draws of a workload's modes, judged on all others."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from epochwatt.analysis.pareto import pareto_front
from epochwatt.errors import ConfigError
from epochwatt.prediction.data.mode_tables import observations_of
from epochwatt.prediction.data.modes import Mode, Numbers, PredictionError
from epochwatt.prediction.data.observations import Observations
from epochwatt.prediction.evaluation.cross_validation import (
    absolute_errors_pct,
    mape_pct,
    predictors,
    score,
)
from epochwatt.prediction.models.powertrain.methods import is_constant, reference_network
from epochwatt.prediction.models.powertrain.recipe import ROWS_PER_MODE, Recipe
from epochwatt.prediction.names import POWER, TIME
from epochwatt.prediction.predictor import Method, Reference
from epochwatt.prediction.registry import load_method
from epochwatt.prediction.transfer.baselines import best_profiled, stock_choices, strongest
from epochwatt.prediction.transfer.config import Job, PowertrainGroup
from epochwatt.prediction.transfer.limits import (
    NONE,
    Judgement,
    Places,
    fastest_within,
    judge,
    penalties_pct,
)
from epochwatt.prediction.transfer.names import (
    BASELINES,
    MAXN,
    OBSERVED,
    OF_JOBS,
    POWERTRAIN_ALL,
    RANDOM_FRONT,
    STOCK_MODES,
)
from epochwatt.sweeps.mode_table import ModeTable

N_LIMITS = 34  # as many as from 17 to 50 W, where no limits are named
FRONT_PROFILED = 50  # most profiled modes of which fronts are kept: the paper's number
SECONDS = 60  # of a minute

Row = dict[str, Any]
Expected = Mapping[str, Numbers]  # target -> what is expected in each mode of the table


@dataclass(frozen=True, eq=False)
class Work:
    """A job with its tables read."""

    job: Job
    group: PowertrainGroup
    table: ModeTable
    rows: Observations  # one per mode of the workload
    limits_w: Numbers  # (k,), ascending
    best: Places  # (k,), place of the fastest mode within each limit
    # of 40 mini-batches in each mode, (n,); None: the work is no mini-batch
    minutes: Numbers | None
    # reference, cache: as of `predictor.Context`
    reference: Reference | None
    cache: Path | None
    # rows of the tables of `names.OF_JOBS`, as they grow
    tables: dict[str, list[Row]] = field(default_factory=lambda: {name: [] for name in OF_JOBS})

    def trial(self, method: str, n_profiled: int, draw: int, transfers: bool = False) -> Row:
        """Return the columns that all rows of a trial share."""
        return {
            "provenance": self.table.key.provenance,
            "group": self.job.group,
            "reference": self.job.reference if transfers else "",
            "workload": self.job.workload,
            "device": self.table.key.device,
            **{"method": method, "n_profiled": n_profiled, "draw": draw},
        }


def run_job(
    job: Job,
    group: PowertrainGroup,
    table: ModeTable,
    reference: ModeTable | None = None,
    cache: Path | None = None,
    root: Path = Path(),
    say: Callable[[str], None] = lambda line: None,
) -> dict[str, list[Row]]:
    """Return the rows of a job, by table.

    Raises EpochwattError: tables without power, too few modes, a part of the modes that a method
    does not know, a reference that a method cannot transfer from, a baseline that the table cannot
    have.
    """
    work = _work(job, group, table, reference, cache)
    methods = [
        load_method(name, root, "methods") for name in group.methods if name not in BASELINES
    ]
    for method in methods:
        _check(work, method)
    _without_draws(work, say)
    for n_profiled in _sizes(work):
        for draw in range(group.draws):
            profiled = _profiled(len(work.rows.modes), n_profiled, draw)
            for method in methods:
                _of_method(work, method, profiled, draw)
            if RANDOM_FRONT in group.methods:
                places = best_profiled(work.rows, profiled, work.limits_w)
                _choices(work, work.trial(RANDOM_FRONT, n_profiled, draw), places, {})
        say(f"{job.workload}: {group.draws} draws of {n_profiled} modes")
    return work.tables


def _work(
    job: Job,
    group: PowertrainGroup,
    table: ModeTable,
    reference: ModeTable | None,
    cache: Path | None,
) -> Work:
    rows = observations_of(table)
    rows.need_energy()
    if is_constant(rows.power_w):
        raise PredictionError(
            f"power_w of {rows.power_w[0]:g} in all {len(rows.modes)} modes",
            where=rows.workload,
            allowed="powers that differ: no limit parts modes that all need the same",
        )
    if not group.limits_w:
        limits_w = np.linspace(rows.power_w.min(), rows.power_w.max(), N_LIMITS)
    else:
        limits_w = np.arange(group.limits_w[0], group.limits_w[1] + 1.0)
    is_minibatch = table.key.work == "mini-batch"
    return Work(
        job,
        group,
        table,
        rows,
        limits_w,
        best=fastest_within(rows.time_s, rows.power_w, limits_w),
        minutes=ROWS_PER_MODE * rows.time_s / SECONDS if is_minibatch else None,
        reference=None if reference is None else _reference(reference, table),
        cache=cache,
    )


def _reference(reference: ModeTable, table: ModeTable) -> Reference:
    is_other_board = reference.key.device != table.key.device
    return Reference(observations_of(reference), is_other_board=is_other_board)


def _check(work: Work, method: Method) -> None:
    """Refuse a method that cannot answer for this workload at all."""
    where = f"{work.job.group}: {work.job.workload}"
    if unknown := [part for part in work.table.varied() if part not in method.parts]:
        raise PredictionError(
            f"{method.name} does not know what {', '.join(unknown)} does", where=where
        )
    if not {TIME, POWER} <= {*method.predicts}:
        raise PredictionError(f"{method.name} does not predict time and power", where=where)
    if method.needs_reference and work.reference is None:
        raise ConfigError(
            f"{method.name} transfers from a reference", where=where, do="name references"
        )


def _sizes(work: Work) -> list[int]:
    """Return how many modes are profiled. Raises PredictionError where the table has too few."""
    n_modes = len(work.rows.modes)
    sizes = [n for n in work.group.n_profiled if n <= n_modes / 2]
    if work.group.n_profiled and not sizes:
        raise PredictionError(
            f"a table of {n_modes} modes",
            where=work.rows.workload,
            allowed=f"{2 * min(work.group.n_profiled)} or more: half of them are to be predicted",
        )
    return sizes


def _profiled(n_modes: int, n_profiled: int, draw: int) -> Places:
    """Return places of profiled modes; more of a draw begin with the fewer ones."""
    return np.random.default_rng(draw).permutation(n_modes)[:n_profiled]


def _of_method(work: Work, method: Method, profiled: Places, draw: int) -> None:
    is_profiled = np.isin(np.arange(len(work.rows.modes)), profiled)
    few = work.rows.rows(is_profiled)
    fitted = predictors(method, few, [few], reference=work.reference, cache=work.cache)
    trial = work.trial(method.name, len(profiled), draw, transfers=method.needs_reference)
    expected = {}
    for target in (TIME, POWER):
        predicted = fitted[target].predict(work.rows.modes)
        _errors(work, trial, target, predicted, ~is_profiled)
        expected[target] = fitted[target].mean(work.rows.modes)  # as `recommend` goes by
    _choices(work, trial, _by_prediction(work, expected), expected)
    if len(profiled) == max((n for n in _sizes(work) if n <= FRONT_PROFILED), default=0):
        _front(work, trial, expected)


def _by_prediction(work: Work, expected: Expected) -> Places:
    return fastest_within(expected[TIME], expected[POWER], work.limits_w)


def _without_draws(work: Work, say: Callable[[str], None]) -> None:
    """Judge what needs no draw: MAXN, presets, and the network that has seen all modes."""
    rows, methods, n_modes = work.rows, work.group.methods, len(work.rows.modes)
    if MAXN in methods:
        places = np.full(len(work.limits_w), strongest(rows))
        _choices(work, work.trial(MAXN, 0, 0), places, {})
    if STOCK_MODES in methods:
        places = stock_choices(rows, work.table.key.device, work.limits_w)
        _choices(work, work.trial(STOCK_MODES, 0, 0), places, {})
    if POWERTRAIN_ALL not in methods:
        return
    trial, expected = work.trial(POWERTRAIN_ALL, n_modes, 0), {}
    for target in (TIME, POWER):
        network = reference_network(rows, target, Recipe(), work.cache)
        expected[target] = network.predict(rows.modes)
        _errors(work, trial, target, expected[target], np.ones(n_modes, bool))
    _choices(work, trial, _by_prediction(work, expected), expected)
    _front(work, trial, expected)
    observed = {TIME: rows.time_s, POWER: rows.power_w}
    _front(work, work.trial(OBSERVED, n_modes, 0), observed)
    say(f"{work.job.workload}: a network of all {n_modes} modes")


def _errors(work: Work, trial: Row, target: str, predicted: Numbers, judged: Any) -> None:
    truth = getattr(work.rows, target)[judged]
    scored = score(absolute_errors_pct(predicted[judged], truth))
    n = trial["n_profiled"]
    learned = ~judged if n < len(judged) else judged
    work.tables["errors"].append(
        trial
        | {"target": target, "n_judged": scored.n, "median_pct": scored.median_pct}
        | {"p90_pct": scored.p90_pct, "mape_pct": mape_pct(predicted[judged], truth)}
        | {"minutes": None if work.minutes is None else float(work.minutes[learned].sum())}
    )


def _choices(work: Work, trial: Row, places: Places, expected: Expected) -> None:
    """Add the choices of a trial, and what they come to over all limits."""
    time_s, power_w = _observed(work, places)
    best_s, best_w = _observed(work, work.best)
    for k, limit_w in enumerate(work.limits_w.tolist()):
        work.tables["choices"].append(
            trial
            | {"limit_w": limit_w}
            | _mode(work, int(places[k]), expected)
            | {"time_s": time_s[k], "power_w": power_w[k]}
            | {"best_time_s": best_s[k], "best_power_w": best_w[k]}
            | {"penalty_pct": float(penalties_pct(time_s[k], best_s[k]))}
            | {"over_w": power_w[k] - limit_w}
        )
    judgement: Judgement = judge(work.limits_w, time_s, power_w, best_s)
    work.tables["penalties"].append(trial | judgement._asdict())


def _observed(work: Work, places: Places) -> tuple[Numbers, Numbers]:
    """Return observed time and power of places (k,), NaN for `NONE`."""
    answered = places != NONE
    time_s, power_w = (
        np.where(answered, column[places], np.nan)
        for column in (work.rows.time_s, work.rows.power_w)
    )
    return time_s, power_w


def _mode(work: Work, place: int, expected: Expected) -> Row:
    """Return the parts of a mode and what was expected of it; nothing of `NONE`."""
    if place == NONE:
        return {}
    parts = dict(zip(Mode._fields, work.rows.modes[place].tolist(), strict=True))
    return parts | {f"predicted_{target}": float(v[place]) for target, v in expected.items()}


def _front(work: Work, trial: Row, expected: Expected) -> None:
    for place in pareto_front(expected[TIME], expected[POWER]).tolist():
        observed = {
            TIME: float(work.rows.time_s[place]),
            POWER: float(work.rows.power_w[place]),
        }
        work.tables["fronts"].append(trial | _mode(work, place, expected) | observed)
