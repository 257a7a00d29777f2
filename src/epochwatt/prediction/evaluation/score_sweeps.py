"""Judge all methods on mode tables: scores.csv, how far they are off, and how sure that is.

Every method learns from the same modes of a table and predicts all others of it; never does a mode
train and test at once. Methods that need a simulation have no rows: it does not know these devices.

A table of many modes stands alone. Tables that are too small for more than four profiled modes, as
a network at one batch size under eight power limits, and tables of a sweep that has many of them,
are judged together: errors are pooled, and the spread is that over the workloads.

`low` and `high` of a row are the central 95 % of a bootstrap. It resamples what the errors depend
on: draws of profiled modes and, crossed with them, predicted modes where a workload stands alone;
workloads where several are pooled. All methods of a comparison share the resamples, so that a ratio
of two methods has an interval of its own. No interval is corrected for the number of comparisons.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from epochwatt.errors import EpochwattError
from epochwatt.prediction.data.mode_tables import name_of, observations_of
from epochwatt.prediction.data.modes import Mode, Numbers, PredictionError
from epochwatt.prediction.data.observations import Observations
from epochwatt.prediction.evaluation import sweep_scores as columns
from epochwatt.prediction.evaluation.sweep_scores import (
    DESIGNED,
    LEFT_OUT,
    N_PROFILED,
    OVER_SHARE,
    OVER_W,
    PROFILED,
    RANDOM,
    RECOMMENDED,
    SCORE_COLUMNS,
)
from epochwatt.prediction.evaluation.workers import workers
from epochwatt.prediction.harness import (
    NONE,
    ROUNDING_W,
    Answers,
    Places,
    Trial,
    best_profiled,
    choices_frame,
    random_subsets,
    split,
)
from epochwatt.prediction.models.times_power import predictors
from epochwatt.prediction.names import ENERGY, POWER, REFERENCE, TARGETS, TIME
from epochwatt.prediction.predictor import Method, Predictor, Reference
from epochwatt.prediction.recommend.recommend import best_mode
from epochwatt.prediction.registry import load_method, load_methods
from epochwatt.prediction.selection.optimal_design import choose_modes, design_of_modes
from epochwatt.sweeps.mode_table import ModeTable
from epochwatt.text import by_reason, counted

CACHE = ".cache"  # of the checkout; git ignores it
LEAST_MODES = 6  # of a table, so that two are left to predict
TINY = 2 * N_PROFILED[1]  # fewer modes are enough for the least number of profiled modes alone
MOST_ALONE = 8  # tables of one sweep and device that are judged one by one
N_DRAWS = 10
BUDGETS = tuple(round(0.1 * n, 1) for n in range(1, 10))  # quantiles of the observed power
LEAST = 1e-3  # of the least observed value: a prediction below says no more by it
NO_ERROR = 1e-12  # %: a median below counts as this in ratios
N_BOOTSTRAP = 400
SURE = (0.025, 0.975)  # bounds of all bootstrap intervals


class Scores(NamedTuple):
    """Rows of scores.csv, `sweep_scores.SCORE_COLUMNS`, and why tables have none."""

    rows: pd.DataFrame
    left_out: list[str]


def judged_methods(root: Path = Path()) -> list[str]:
    """Return the names of the methods that are judged: those that need no simulation.

    Methods that transfer from a reference are judged where they are named: they take minutes.
    """
    methods = load_methods(root).values()
    return [method.name for method in methods if method.is_scored and not method.needs_prior]


def score_tables(
    tables: Iterable[ModeTable],
    methods: Sequence[str],
    root: Path = Path(),
    n_draws: int | None = None,
    processes: int = 1,
    say: Callable[[str], None] = lambda line: None,
    references: Sequence[ModeTable] = (),
) -> Scores:
    """Score methods on tables. Raises PredictionError: no table has enough modes.

    Each table is judged by itself, or with those of its sweep and device. `n_draws` is the number
    of random sets of profiled modes, None: `N_DRAWS`. Methods that transfer may learn all modes of
    `references`; none: of the other tables of the same device and provenance.
    """
    tables = list(tables)
    units, left_out = units_of(tables)
    if not units:
        raise PredictionError(
            "no table of modes that a method could learn from and be judged on",
            found="; ".join(left_out) or "no table",
        )
    if any(load_method(name, root).needs_reference for name in methods):
        for number, unit in enumerate(units):
            kind = unit.device, unit.provenance
            alike = [t for t in tables if (t.key.device, t.key.provenance) == kind]
            units[number] = with_reference(unit, references or alike, root / CACHE)
    parts = [
        (unit, how, n)
        for unit in units
        for how, n in [(DESIGNED, N_PROFILED[0]), *((RANDOM, n) for n in unit.sizes())]
    ]
    frames = []
    with workers(min(processes, len(parts))) as pool:
        settings = tuple(methods), root, n_draws or N_DRAWS
        jobs = [pool.submit(_score, *part, *settings) for part in parts]
        for number, ((unit, how, n_profiled), job) in enumerate(zip(parts, jobs, strict=True), 1):
            frames.append(job.result())
            part = f"{unit.sweep}, {unit.workload}: {n_profiled} {how} modes"
            say(f"{part} ({number} of {len(parts)})")
    for line in left_out:
        say(f"not judged: {line}")
    return Scores(pd.concat(frames, ignore_index=True), left_out)


# -- what is judged together, and the modes that methods learn from ------------------------------


@dataclass(frozen=True, eq=False)
class Unit:
    """Workloads of one sweep and device that are judged together; one where it stands alone."""

    sweep: str
    provenance: str
    device: str
    workload: str  # its name; how many there are where they are several
    knobs: tuple[str, ...]  # parts of a `Mode` that differ among the modes
    power_scope: str  # what the power is that of; empty: there is none
    tables: tuple[Observations, ...]  # a row per mode
    # what methods that need one transfer from; none: there is none. Several workloads have two:
    # where the first is one of them, the second is for that one
    references: tuple[Reference, ...] = ()
    no_reference: str = ""  # why there is none; empty: nobody looked for one
    cache: Path | None = None  # folder where methods keep what they learn of it; None: nowhere

    @property
    def is_pooled(self) -> bool:
        """Whether several workloads are judged together."""
        return len(self.tables) > 1

    @property
    def has_power(self) -> bool:
        """Whether power is known of every mode of every workload."""
        return not any(np.isnan(table.power_w).any() for table in self.tables)

    @property
    def n_modes(self) -> int:
        """Modes of the workload that has most."""
        return max(len(table.modes) for table in self.tables)

    def reference_of(self, table: Observations) -> Reference | None:
        """Return what methods transfer from to a workload: never itself."""
        others = (other for other in self.references if other.rows.workload != table.workload)
        return next(others, None)

    def sizes(self) -> list[int]:
        """Return how many modes are profiled: of `N_PROFILED`, up to half of the modes."""
        most = 0 if self.is_pooled else self.n_modes / 2
        return [n for n in N_PROFILED if n <= most] or [N_PROFILED[0]]


def units_of(tables: Iterable[ModeTable]) -> tuple[list[Unit], list[str]]:
    """Group tables into units, pooled where they are small or many; say why some are left out."""
    grouped: dict[tuple[str, str, str], dict[ModeTable, Observations]] = {}
    left_out: list[tuple[str, str]] = []  # name of a table, and why
    for table in tables:
        group = grouped.setdefault((table.key.sweep, table.key.provenance, table.key.device), {})
        name = name_of(table)
        try:
            rows = observations_of(table)
        except EpochwattError as error:
            left_out.append((name, str(error).replace("\n ", ";").removeprefix(f"{name}: ")))
            continue
        if len(rows.modes) >= LEAST_MODES:
            group[table] = rows
        else:
            n_modes = counted(len(rows.modes), "modes")
            left_out.append((name, f"{n_modes}, {LEAST_MODES} or more are needed"))
    units: list[Unit] = []
    for key, usable in grouped.items():
        large = [table for table, rows in usable.items() if len(rows.modes) >= TINY]
        alone = large if len(large) <= MOST_ALONE else []
        pooled = [table for table in usable if table not in alone]
        for together in [*([table] for table in alone), pooled]:
            if not together:
                continue
            name = name_of(together[0]).removeprefix(f"{key[0]}: ")
            varied = {part for table in together for part in table.varied()}
            scopes = [table.power_scope for table in together if table.power_scope]
            unit = Unit(
                *key,
                workload=name if len(together) == 1 else f"{len(together)} workloads",
                knobs=tuple(part for part in Mode._fields if part in varied),
                power_scope=scopes[0] if scopes else "",
                tables=tuple(usable[table] for table in together),
            )
            units.append(unit)
    return units, by_reason(left_out)


def with_reference(unit: Unit, tables: Iterable[ModeTable], cache: Path | None = None) -> Unit:
    """Return the unit with references: the largest tables of other workloads that can be used.

    Tables of the same device come first; a pooled workload may transfer from another one of its
    pool. One can be used that has `LEAST_MODES` or more, and power where the unit has power. Where
    there is none, `no_reference` says why.
    """
    ours = {table.workload for table in unit.tables}
    reasons: list[tuple[str, str]] = []
    references: list[Reference] = []
    order = sorted(tables, key=lambda t: (t.key.device != unit.device, -len(t.valid().rows)))
    for table in order:
        try:
            others = observations_of(table)
        except EpochwattError as error:
            reasons.append((name_of(table), error.problem))
            continue
        if ours == {others.workload}:
            reasons.append((others.workload, "the workload itself"))
        elif len(others.modes) < LEAST_MODES:
            reason = f"{len(others.modes)} modes, {LEAST_MODES} or more are needed"
            reasons.append((others.workload, reason))
        elif unit.has_power and np.isnan(others.power_w).any():
            reasons.append((others.workload, "no power in some modes"))
        else:
            references.append(Reference(others, is_other_board=table.key.device != unit.device))
            if {other.rows.workload for other in references} - ours or len(references) == 2:
                return replace(unit, references=tuple(references), cache=cache)
    if references:
        reasons = [(references[0].rows.workload, "it is judged, and no other one will do for it")]
    why = "; ".join(by_reason(dict.fromkeys(reasons))) or "no other workload was given"
    return replace(unit, no_reference=f"no reference: {why}")


def draws_of(unit: Unit, n_profiled: int, how: str, n_draws: int = N_DRAWS) -> list[Trial]:
    """Draw the trials of a unit, which are the same for all methods.

    `RANDOM` draws `n_draws` sets of modes of each workload, or all there are; `DESIGNED` is one
    set, chosen before any run. Raises EpochwattError: no design is possible.
    """
    trials = []
    for seed, table in enumerate(unit.tables):
        if how == RANDOM:
            splits = random_subsets(table.distinct(), n_profiled, n_draws, seed)
        else:
            design = design_of_modes(unit.device, table.modes, table.processes)
            chosen = np.array(choose_modes(design, N_PROFILED[0]).modes)
            # candidates may be rounded
            nearest = np.abs(table.modes - chosen[:, None]).sum(2).argmin(1)
            splits = [split(table.distinct(), [table.mode_of_row[row] for row in nearest])]
        trials += [
            Trial.of(table, table.only(train), test, draw)
            for draw, (train, test) in enumerate(splits)
        ]
    return trials


# -- what methods answer -------------------------------------------------------------------------


@dataclass(frozen=True)
class Answered:
    """All methods on one unit, from the same modes.

    A method that does not understand a part of the mode that varies is left out, and so is one that
    cannot be fitted to some of the draws: all rows of a comparison rest on the same modes.
    """

    answers: pd.DataFrame  # `harness.Answers.frame`
    # method -> the fastest mode by prediction within each budget (`harness.choices_frame`), trial
    # after trial; `PROFILED` among them
    choices: Mapping[str, pd.DataFrame]
    left_out: Mapping[str, str]  # method -> why it has no answer


def run_trials(unit: Unit, trials: Sequence[Trial], methods: Iterable[Method]) -> Answered:
    """Fit each method to each trial, and let it predict and recommend among all other modes."""
    frames: list[pd.DataFrame] = []
    choices: dict[str, pd.DataFrame] = {}
    left_out: dict[str, str] = {}
    for method in methods:
        if unknown := [part for part in unit.knobs if part not in method.parts]:
            left_out[method.name] = f"it does not know what {', '.join(unknown)} does"
        elif method.needs_reference and unit.no_reference:
            left_out[method.name] = unit.no_reference
        else:
            answers, chosen = Answers(intervals=True), []
            try:
                for trial in trials:
                    fitted = _fitted(unit, trial, method)
                    answers.add(fitted, trial, method.name)
                    if {TIME, ENERGY} <= fitted.keys():
                        chosen.append(_choices(trial, _recommended(trial, fitted)))
            except PredictionError as error:
                left_out[method.name] = str(error).partition("\n")[0]
                continue
            frames.append(answers.frame())
            if chosen:
                choices[method.name] = pd.concat(chosen)
    if unit.has_power:  # the fastest of the profiled modes, as observed: the least one could do
        choices[PROFILED] = pd.concat(
            _choices(trial, best_profiled(trial.table, trial.profiled, _budgets_w(trial)))
            for trial in trials
        )
    return Answered(pd.concat(frames) if frames else Answers().frame(), choices, left_out)


def _fitted(unit: Unit, trial: Trial, method: Method) -> dict[str, Predictor]:
    """Fit a method to a trial: a predictor of each target that is judged, as in `TARGETS`."""
    fitted = predictors(
        method,
        trial.train,
        [trial.train],
        intervals=True,
        reference=unit.reference_of(trial.table),
        cache=unit.cache,
    )
    judged = TARGETS if unit.has_power else (TIME,)
    return {target: fitted[target] for target in judged if target in method.predicts}


def _budgets_w(trial: Trial) -> Numbers:
    return np.quantile(trial.table.power_w, BUDGETS)


def _choices(trial: Trial, places: Places) -> pd.DataFrame:
    return choices_frame(trial.table, _budgets_w(trial), places)


def _recommended(trial: Trial, fitted: Mapping[str, Predictor]) -> Places:
    """Return the row of the mode that `recommend` would take within each budget, or `NONE`."""
    table, train = trial.table, trial.train
    epoch_s = np.maximum(fitted[TIME].mean(table.modes), LEAST * train.time_s.min())
    if POWER in fitted:
        watts = fitted[POWER].mean(table.modes)
    else:
        watts = 3600 * fitted[ENERGY].mean(table.modes) / epoch_s
    power_w = np.maximum(watts, LEAST * train.power_w.min())
    expected = {"epoch_s": epoch_s, "power_w": power_w, "energy_wh": epoch_s * power_w / 3600}
    places = []
    for budget_w in _budgets_w(trial).tolist():
        within = {"power_w": budget_w}
        try:
            choice = best_mode(table.modes, expected, train.modes, "time", within)
            places.append(choice.place)
        except PredictionError:  # no mode is expected to keep it
            places.append(NONE)
    return np.array(places)


# -- scores and their bootstrap ------------------------------------------------------------------


def _score(
    unit: Unit, how: str, n_profiled: int, methods: Sequence[str], root: Path, n_draws: int
) -> pd.DataFrame:
    """Score methods on a unit, for one way to choose modes and one number: rows of scores.csv."""
    shared: dict[str, Any] = {name: getattr(unit, name) for name in SCORE_COLUMNS[:4]}
    shared |= {"learned_from": how, "n_profiled": n_profiled}
    try:
        trials = draws_of(unit, n_profiled, how, n_draws)
    except EpochwattError as error:  # of a design: random modes are always there
        why = f"no design: {str(error).partition(chr(10))[0]}"
        frame = pd.DataFrame([{"statistic": LEFT_OUT, "note": why}], columns=SCORE_COLUMNS)
    else:
        shared |= {
            "n_workloads": len(unit.tables),
            "n_modes": unit.n_modes,
            "knobs": " ".join(unit.knobs),
            "power_scope": unit.power_scope,
            "n_draws": 1 + max(trial.draw for trial in trials),
        }
        loaded = [load_method(name, root) for name in methods]
        answered = run_trials(unit, trials, loaded)
        rows = list(statistics(unit, trials, answered))
        names = " and ".join(other.rows.workload for other in unit.references)
        transferred = {method.name for method in loaded if method.needs_reference}
        for row in rows:
            if names and row["method"] in transferred:
                note = f"{row['note']}; " if row.get("note") else ""
                row["note"] = f"{note}reference: {names}"
        frame = pd.DataFrame(rows, columns=SCORE_COLUMNS)
    frame = frame.assign(**shared).astype(object)
    return frame.where(frame.notna(), None)


class Sample(NamedTuple):
    """Counts of each error and each trial in each of b bootstrap samples."""

    weights: Numbers  # (b, n), of each predicted mode of each trial
    trial_weights: Numbers | None  # (b, d), of each trial; None: there is one


def resample(unit: Unit, trials: Sequence[Trial]) -> Sample:
    """Draw the bootstrap samples that all methods of a comparison share.

    Pooled workloads are drawn with replacement, and their trials count as often as they do. Of a
    workload alone the predicted modes are drawn and, independently of them, the trials.
    """
    rng = np.random.default_rng(0)
    trial_of_error = np.repeat(np.arange(len(trials)), [len(trial.places) for trial in trials])
    if unit.is_pooled:
        table_of_trial = [unit.tables.index(trial.table) for trial in trials]
        trial_weights = draw_counts(rng, len(unit.tables))[:, table_of_trial]
        return Sample(trial_weights[:, trial_of_error], trial_weights)
    modes = np.concatenate([trial.places for trial in trials])
    _, mode_of_error = np.unique(modes, return_inverse=True)
    mode_weights = draw_counts(rng, int(mode_of_error.max()) + 1)[:, mode_of_error]
    if len(trials) == 1:
        return Sample(mode_weights, None)
    trial_weights = draw_counts(rng, len(trials))
    return Sample(trial_weights[:, trial_of_error] * mode_weights, trial_weights)


def draw_counts(rng: np.random.Generator, n: int) -> Numbers:
    """Draw b bootstrap samples of n things; return how often each thing is in each, (b, n)."""
    return rng.multinomial(n, np.full(n, 1 / n), N_BOOTSTRAP).astype(float)


def quantiles(values: Numbers, weights: Numbers, shares: Sequence[float]) -> Numbers:
    """Return weighted quantiles of n values for each of b sets of weights, (len(shares), b).

    The least value up to which a share of the weight lies; NaN where all weights are zero.
    """
    order = np.argsort(values, kind="stable")
    cumulative = np.cumsum(weights[:, order], axis=1)
    total = cumulative[:, -1]
    result = np.empty((len(shares), len(weights)))
    for row, share in zip(result, shares, strict=True):
        ranks = (cumulative < (share * total)[:, None]).sum(1)
        row[:] = values[order][np.minimum(ranks, len(values) - 1)]
    result[:, total == 0] = np.nan
    return result


Row = dict[str, Any]  # of scores.csv, without what all rows of a comparison share


def statistics(unit: Unit, trials: Sequence[Trial], answered: Answered) -> Iterator[Row]:
    """Yield the rows of a comparison, with bootstrap bounds: errors by target, then choices."""
    sample = resample(unit, trials)
    for target in TARGETS:
        medians: dict[str, tuple[float, Numbers]] = {}
        of_target = answered.answers[answered.answers["target"] == target]
        for method, part in of_target.groupby("method", sort=False):
            shared = {"method": str(method), "target": target}
            errors = part["error_pct"].to_numpy()
            resampled = quantiles(errors, sample.weights, (0.5, 0.9))
            medians[str(method)] = _quantile(errors, 0.5), resampled[0]
            yield shared | _row(columns.MEDIAN, *medians[str(method)])
            yield shared | _row(columns.P90, _quantile(errors, 0.9), resampled[1])
            if unit.is_pooled:
                middles = part.groupby("table", sort=False)["error_pct"].median()
                low, middle, high = np.quantile(middles, [0.25, 0.5, 0.75]).tolist()
                spread = {"low": low, "high": high, "note": "bounds: quartiles of the workloads"}
                yield shared | _row(columns.BY_WORKLOAD, middle) | spread
            if part["low"].notna().any():
                held = part["truth"].between(part["low"], part["high"]).to_numpy(float)
                shares = sample.weights @ held / _positive(sample.weights.sum(1))
                width = 100 * (part["high"] - part["low"]) / part["prediction"].abs()
                yield shared | _row(columns.HELD, 100 * float(held.mean()), 100 * shares)
                yield shared | _row(columns.WIDTH, float(np.median(width)))
        # how many times another method's median each one is: the paper's, and the best one's
        best = min(medians, key=lambda name: medians[name][0], default="")
        for statistic, other in ((columns.TO_PAPER, REFERENCE), (columns.TO_BEST, best)):
            if other not in medians:
                continue
            other_median, other_resampled = medians[other]
            for method, (median, resampled) in medians.items():
                if method != other:
                    ratio = median / max(other_median, NO_ERROR)
                    ratios = resampled / np.maximum(other_resampled, NO_ERROR)
                    row = {"method": method, "target": target, "note": f"over {other}"}
                    yield row | _row(statistic, ratio, ratios)
    for method, choices in answered.choices.items():
        for row in _choice_rows(choices, sample.trial_weights):
            yield {"method": method, "target": RECOMMENDED} | row
    for method, why in answered.left_out.items():
        yield {"method": method, "statistic": LEFT_OUT, "note": why}


def _quantile(values: Numbers, share: float) -> float:
    """Return the quantile of values that count alike."""
    return float(np.quantile(values, share, method="inverted_cdf"))


def _positive(counts: Numbers) -> Numbers:
    return np.where(counts > 0, counts, np.nan)


def _choice_rows(choices: pd.DataFrame, trial_weights: Numbers | None) -> Iterator[Row]:
    """Yield regret and broken budgets of all answers, over draws and budgets alike."""

    def by_trial(name: str) -> Numbers:
        return choices[name].to_numpy().reshape(-1, len(BUDGETS))

    regret, over_w = by_trial("penalty_pct"), by_trial("over_w")
    over_share = by_trial("power_w") / by_trial("limit_w") - 1
    answered = ~np.isnan(regret)

    def share(statistic: str, mask: NDArray[np.bool_], among: NDArray[np.bool_] = answered) -> Row:
        counted = mask & among
        value = 100 * float(counted.sum() / among.sum())
        if trial_weights is None:
            return _row(statistic, value)
        resampled = trial_weights @ counted.sum(1) / _positive(trial_weights @ among.sum(1))
        return _row(statistic, value, 100 * np.asarray(resampled))

    yield share(columns.NO_ANSWER, ~answered, np.ones_like(answered))
    if not answered.any():
        return
    for statistic, quantile in ((columns.REGRET, 0.5), (columns.REGRET_P90, 0.9)):
        resampled = None
        if trial_weights is not None:
            weights = np.repeat(trial_weights, answered.sum(1), axis=1)
            (resampled,) = quantiles(regret[answered], weights, (quantile,))
        yield _row(statistic, _quantile(regret[answered], quantile), resampled)
    yield share(columns.BROKEN, over_share > ROUNDING_W)
    yield share(columns.BROKEN_W, over_w > OVER_W)
    yield share(columns.BROKEN_SHARE, over_share > OVER_SHARE)


def _row(statistic: str, value: float, resampled: Numbers | None = None) -> Row:
    """Return the cells of a number, with the bounds of its resamples where there are any."""
    row: Row = {"statistic": statistic, "value": value}
    if resampled is not None and not np.isnan(resampled).all():
        row["low"], row["high"] = np.nanquantile(resampled, SURE).tolist()
    return row
