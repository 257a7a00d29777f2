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

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from epochwatt.errors import EpochwattError
from epochwatt.prediction.data.mode_tables import name_of, observations_of
from epochwatt.prediction.data.modes import Mode, Numbers, PredictionError
from epochwatt.prediction.data.observations import Observations
from epochwatt.prediction.evaluation.sweep_table import (
    BROKEN,
    BROKEN_SHARE,
    BROKEN_W,
    BY_WORKLOAD,
    DESIGNED,
    HELD,
    MEDIAN,
    N_PROFILED,
    NO_ANSWER,
    OVER_SHARE,
    OVER_W,
    P90,
    PROFILED,
    RANDOM,
    RECOMMENDED,
    REGRET,
    REGRET_P90,
    TO_BEST,
    TO_PAPER,
    WIDTH,
    ScoreRow,
)
from epochwatt.prediction.evaluation.workers import workers
from epochwatt.prediction.harness import (
    NONE,
    ROUNDING_W,
    Answers,
    Split,
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
N_DESIGNED = N_PROFILED[0]
BUDGETS = tuple(round(0.1 * n, 1) for n in range(1, 10))  # quantiles of the observed power
LEAST = 1e-3  # of the least observed value: a prediction below says no more by it
N_BOOTSTRAP = 400
SURE = (0.025, 0.975)  # bounds of all bootstrap intervals


class Scores(NamedTuple):
    """Rows of scores.csv, and why tables have none."""

    rows: list[ScoreRow]
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

    Parameters
    ----------
    tables : of any provenance; each is judged by itself, or with those of its sweep and device
    root : the checkout, whose config/predictors.yaml may name further methods
    n_draws : random sets of profiled modes; None: `N_DRAWS`
    say : called with a line for each part that is done, and for each table that is left out
    references : what methods that transfer may learn all modes of; none: the other tables of the
        same device and provenance
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
        for how, n in [(DESIGNED, N_DESIGNED), *((RANDOM, n) for n in unit.sizes())]
    ]
    rows: list[ScoreRow] = []
    with workers(min(processes, len(parts))) as pool:
        settings = tuple(methods), root, n_draws or N_DRAWS
        jobs = [pool.submit(_score, *part, *settings) for part in parts]
        for number, ((unit, how, n_profiled), job) in enumerate(zip(parts, jobs, strict=True), 1):
            rows += job.result()
            part = f"{unit.sweep}, {unit.workload}: {n_profiled} {how} modes"
            say(f"{part} ({number} of {len(parts)})")
    for line in left_out:
        say(f"not judged: {line}")
    return Scores(rows, left_out)


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

    def reference_of(self, table: Observations) -> Reference | None:
        """Return what methods transfer from to a workload: never itself."""
        others = (one for one in self.references if one.rows.workload != table.workload)
        return next(others, None)

    @property
    def n_modes(self) -> int:
        """Modes of the workload that has most."""
        return max(len(table.modes) for table in self.tables)

    def sizes(self) -> list[int]:
        """Return how many modes are profiled: of `N_PROFILED`, up to half of the modes."""
        if self.is_pooled:
            return [N_PROFILED[0]]
        return [n for n in N_PROFILED if n <= self.n_modes / 2] or [N_PROFILED[0]]


class Draw(NamedTuple):
    """Modes of one table to learn from, and all others of it to predict."""

    table: int  # its place in the unit
    number: int
    modes: Split


def units_of(tables: Iterable[ModeTable]) -> tuple[list[Unit], list[str]]:
    """Group tables that are judged together; also say why some are not judged."""
    grouped: dict[tuple[str, str, str], list[ModeTable]] = defaultdict(list)
    left_out: list[tuple[str, str]] = []  # name of a table, and why
    units: list[Unit] = []
    for table in tables:
        grouped[table.key.sweep, table.key.provenance, table.key.device].append(table)
    for key, some in grouped.items():
        usable: dict[ModeTable, Observations] = {}
        for table in some:
            try:
                rows = observations_of(table)
            except EpochwattError as error:
                reason = str(error).replace("\n ", ";").removeprefix(f"{name_of(table)}: ")
                left_out.append((name_of(table), reason))
                continue
            if len(rows.modes) >= LEAST_MODES:
                usable[table] = rows
            else:
                n_modes = counted(len(rows.modes), "modes")
                left_out.append((name_of(table), f"{n_modes}, {LEAST_MODES} or more are needed"))
        large = [table for table, rows in usable.items() if len(rows.modes) >= TINY]
        alone = large if len(large) <= MOST_ALONE else []
        units += [_unit(key, [table], usable) for table in alone]
        if pooled := [table for table in usable if table not in alone]:
            units.append(_unit(key, pooled, usable))
    return units, by_reason(left_out)


def _unit(
    key: tuple[str, str, str], tables: Sequence[ModeTable], usable: dict[ModeTable, Observations]
) -> Unit:
    name = name_of(tables[0]).removeprefix(f"{key[0]}: ")
    knobs = [part for part in Mode._fields if any(part in table.varied() for table in tables)]
    return Unit(
        *key,
        workload=name if len(tables) == 1 else f"{len(tables)} workloads",
        knobs=tuple(knobs),
        power_scope=next((table.power_scope for table in tables if table.power_scope), ""),
        tables=tuple(usable[table] for table in tables),
    )


def with_reference(unit: Unit, tables: Iterable[ModeTable], cache: Path | None = None) -> Unit:
    """Return the unit with references: the first tables of other workloads that will do.

    Tables of the same device come first. One will do that has as many modes as the smallest number
    that is profiled, twice, and power where the unit has power. Where none will do, the unit says
    why.
    """
    ours = {table.workload for table in unit.tables}
    reasons: list[tuple[str, str]] = []
    references: list[Reference] = []
    for table in sorted(tables, key=lambda table: table.key.device != unit.device):
        try:
            others = observations_of(table)
        except EpochwattError as error:
            reasons.append((name_of(table), error.problem))
            continue
        if ours == {others.workload}:
            reason = "the workload itself"
        elif len(others.modes) < TINY:
            reason = f"{len(others.modes)} modes, {TINY} or more are needed"
        elif unit.has_power and np.isnan(others.power_w).any():
            reason = "no power in some modes"
        else:
            references.append(Reference(others, is_other_board=table.key.device != unit.device))
            if {one.rows.workload for one in references} - ours or len(references) == 2:
                return replace(unit, references=tuple(references), cache=cache)
            continue
        reasons.append((others.workload, reason))
    if references:
        reasons = [(references[0].rows.workload, "it is judged, and no other one will do for it")]
    why = "; ".join(by_reason(dict.fromkeys(reasons))) or "no other workload was given"
    return replace(unit, no_reference=f"no reference: {why}")


def draws_of(unit: Unit, n_profiled: int, how: str, n_draws: int = N_DRAWS) -> list[Draw]:
    """Return what every method learns from and predicts: the same for all of them.

    Raises EpochwattError: no design is possible.

    Parameters
    ----------
    how : `RANDOM`, or `DESIGNED`: one set of modes, chosen before any run
    n_draws : random sets of a workload, or all there are
    """
    if how == DESIGNED:
        return [Draw(place, 0, _designed(unit, table)) for place, table in enumerate(unit.tables)]
    return [
        Draw(place, number, one)
        for place, table in enumerate(unit.tables)
        for number, one in enumerate(
            random_subsets(table.distinct(), n_profiled, n_draws, seed=place)
        )
    ]


def _designed(unit: Unit, table: Observations) -> Split:
    design = design_of_modes(unit.device, table.modes, table.processes)
    chosen = np.array(choose_modes(design, N_DESIGNED).modes)
    nearest = np.abs(table.modes - chosen[:, None]).sum(2).argmin(1)  # candidates may be rounded
    return split(table.distinct(), [table.mode_of_row[place] for place in nearest])


# -- what methods answer -------------------------------------------------------------------------


@dataclass(frozen=True)
class Trials:
    """All methods on one unit, from the same modes.

    A method that does not understand a part of the mode that varies is left out, and so is one that
    cannot be fitted to some of the draws: all rows of a comparison rest on the same modes.
    """

    answers: pd.DataFrame  # `harness.Answers.frame`; `draw` counts all draws of the unit
    # method -> the fastest mode by prediction within each budget (`harness.choices_frame`), draw
    # after draw; `PROFILED` among them
    choices: Mapping[str, pd.DataFrame]
    left_out: Mapping[str, str]  # method -> why it has no answer


def run_trials(unit: Unit, draws: Sequence[Draw], methods: Iterable[Method]) -> Trials:
    """Fit each method to each draw, and ask for all other modes."""
    answers: list[pd.DataFrame] = []
    choices: dict[str, pd.DataFrame] = {}
    left_out: dict[str, str] = {}
    for method in methods:
        if unknown := [part for part in unit.knobs if part not in method.parts]:
            left_out[method.name] = f"it does not know what {', '.join(unknown)} does"
            continue
        if method.needs_reference and unit.no_reference:
            left_out[method.name] = unit.no_reference
            continue
        try:
            frame, chosen = _of_method(unit, draws, method)
        except PredictionError as error:
            left_out[method.name] = str(error).partition("\n")[0]
            continue
        answers.append(frame)
        if chosen:
            choices[method.name] = pd.concat(chosen)
    if unit.has_power:
        choices[PROFILED] = pd.concat(_of_profiled(unit, draws))
    return Trials(pd.concat(answers) if answers else Answers().frame(), choices, left_out)


def _of_method(
    unit: Unit, draws: Sequence[Draw], method: Method
) -> tuple[pd.DataFrame, list[pd.DataFrame]]:
    answers, choices = Answers(intervals=True), []
    for number, draw in enumerate(draws):
        table = unit.tables[draw.table]
        train = table.only(draw.modes.train)
        fitted = predictors(
            method,
            train,
            [train],
            intervals=True,
            reference=unit.reference_of(table),
            cache=unit.cache,
        )
        places = predicted_places(table, draw)
        rest = table.rows(np.isin(np.arange(len(table.modes)), places))
        asked = {
            target: fitted[target]
            for target in TARGETS
            if target in method.predicts and (unit.has_power or target == TIME)
        }
        answers.add(asked, rest, places, method.name, len(train.modes), number)
        if unit.has_power and (expected := _expected(fitted, table, train)):
            budgets_w = np.quantile(table.power_w, BUDGETS)
            chosen = [_best(table, train, expected, float(budget_w)) for budget_w in budgets_w]
            choices.append(choices_frame(table, budgets_w, np.array(chosen)))
    return answers.frame(), choices


def predicted_places(table: Observations, draw: Draw) -> NDArray[np.intp]:
    """Return the places of the modes that are predicted."""
    profiled = set(draw.modes.train)
    return np.flatnonzero([mode not in profiled for mode in table.mode_of_row])


def _expected(
    fitted: Mapping[str, Predictor], table: Observations, train: Observations
) -> dict[str, Numbers]:
    """Return what `recommend` would go by: time, and power or what energy and time make of it."""
    if TIME not in fitted or not {POWER, ENERGY} & fitted.keys():
        return {}
    epoch_s = np.maximum(fitted[TIME].mean(table.modes), LEAST * train.time_s.min())
    if POWER in fitted:
        watts = fitted[POWER].mean(table.modes)
    else:
        watts = 3600 * fitted[ENERGY].mean(table.modes) / epoch_s
    power_w = np.maximum(watts, LEAST * train.power_w.min())
    return {"epoch_s": epoch_s, "power_w": power_w, "energy_wh": epoch_s * power_w / 3600}


def _best(
    table: Observations, train: Observations, expected: Mapping[str, Numbers], budget_w: float
) -> int:
    budgets = {"power_w": budget_w}
    try:
        return best_mode(table.modes, expected, train.modes, "time", budgets).place
    except PredictionError:  # no mode is expected to keep it
        return NONE


def _of_profiled(unit: Unit, draws: Sequence[Draw]) -> Iterator[pd.DataFrame]:
    """Choose the fastest of the profiled modes, as observed: the least one could do."""
    for draw in draws:
        table = unit.tables[draw.table]
        budgets_w = np.quantile(table.power_w, BUDGETS)
        profiled = np.flatnonzero([mode in draw.modes.train for mode in table.mode_of_row])
        yield choices_frame(table, budgets_w, best_profiled(table, profiled, budgets_w))


# -- scores and their bootstrap ------------------------------------------------------------------


def _score(
    unit: Unit, how: str, n_profiled: int, methods: Sequence[str], root: Path, n_draws: int
) -> list[ScoreRow]:
    """Return the rows of one unit, one way to choose modes and one number of them."""
    row = ScoreRow(
        unit.sweep,
        unit.provenance,
        unit.device,
        unit.workload,
        len(unit.tables),
        unit.n_modes,
        " ".join(unit.knobs),
        unit.power_scope,
        how,
        n_profiled,
        None,
    )
    try:
        draws = draws_of(unit, n_profiled, how, n_draws)
    except EpochwattError as error:  # of a design: random modes are always there
        why = f"no design: {str(error).partition(chr(10))[0]}"
        empty = {"n_workloads": None, "n_modes": None, "knobs": "", "power_scope": ""}
        return [replace(row, note=why, **empty)]  # type: ignore[arg-type]
    loaded = [load_method(name, root) for name in methods]
    most = max(sum(draw.table == place for draw in draws) for place in range(len(unit.tables)))
    rows = rows_of(unit, draws, run_trials(unit, draws, loaded), replace(row, n_draws=most))
    transferred = {method.name for method in loaded if method.needs_reference}
    names = " and ".join(one.rows.workload for one in unit.references)
    return [
        replace(row, note="; ".join(filter(None, (row.note, f"reference: {names}"))))
        if names and row.method in transferred
        else row
        for row in rows
    ]


class Sample(NamedTuple):
    """Resamples of what errors depend on."""

    weights: Numbers  # (b, n), how often each predicted mode counts
    of_draws: Numbers | None  # (b, d), how often each draw counts; None: there is one


def resample(unit: Unit, draws: Sequence[Draw]) -> Sample:
    """Return the resamples that all methods of a comparison share."""
    rng = np.random.default_rng(0)
    places = [predicted_places(unit.tables[draw.table], draw) for draw in draws]
    sizes = [len(some) for some in places]
    tables = np.array([draw.table for draw in draws])
    if unit.is_pooled:
        of_table = counts(rng, len(unit.tables))
        return Sample(of_table[:, np.repeat(tables, sizes)], of_table[:, tables])
    _, mode = np.unique(np.concatenate(places), return_inverse=True)
    of_mode = counts(rng, int(mode.max()) + 1)[:, mode]
    if len(draws) == 1:
        return Sample(of_mode, None)
    of_draw = counts(rng, len(draws))
    numbers = np.repeat([draw.number for draw in draws], sizes)
    return Sample(of_draw[:, numbers] * of_mode, of_draw)


def counts(rng: np.random.Generator, n: int) -> Numbers:
    """Return how often each of n is drawn in n draws with replacement, shape (b, n)."""
    return rng.multinomial(n, np.full(n, 1 / n), N_BOOTSTRAP).astype(float)


def quantiles(values: Numbers, weights: Numbers, shares: Sequence[float]) -> Numbers:
    """Return quantiles of n values for each of b sets of weights, shape (len(shares), b).

    The least value up to which a share of the weight lies; NaN where all weights are zero.
    """
    order = np.argsort(values, kind="stable")
    total = np.cumsum(weights[:, order], axis=1)
    whole = total[:, -1]
    bounds = np.empty((len(shares), len(weights)))
    for row, share in zip(bounds, shares, strict=True):
        places = (total < (share * whole)[:, None]).sum(1)
        row[:] = values[order][np.minimum(places, len(values) - 1)]
    bounds[:, whole == 0] = np.nan
    return bounds


def rows_of(
    unit: Unit, draws: Sequence[Draw], trials: Trials, shared: ScoreRow
) -> Iterator[ScoreRow]:
    """Yield the rows of all trials; `shared` has what they have in common."""
    sample = resample(unit, draws)
    for target in TARGETS:
        own = replace(shared, target=target)
        by_target = trials.answers[trials.answers["target"] == target]
        medians: dict[str, tuple[float, Numbers]] = {}
        for method, part in by_target.groupby("method", sort=False):
            row = replace(own, method=str(method))
            errors = part["error_pct"].to_numpy()
            some = quantiles(errors, sample.weights, (0.5, 0.9))
            medians[row.method] = _quantile(errors, 0.5), some[0]
            yield _row(row, MEDIAN, *medians[row.method])
            yield _row(row, P90, _quantile(errors, 0.9), some[1])
            if unit.is_pooled:
                middles = part.groupby("table", sort=False)["error_pct"].median()
                low, middle, high = np.quantile(middles, [0.25, 0.5, 0.75]).tolist()
                note = "bounds: quartiles of the workloads"
                yield replace(
                    row, statistic=BY_WORKLOAD, value=middle, low=low, high=high, note=note
                )
            if part["low"].notna().any():
                held = part["truth"].between(part["low"], part["high"]).to_numpy(float)
                shares = sample.weights @ held / _positive(sample.weights.sum(1))
                width = 100 * (part["high"] - part["low"]) / part["prediction"].abs()
                yield _row(row, HELD, 100 * float(held.mean()), 100 * shares)
                yield replace(row, statistic=WIDTH, value=float(np.median(width)))
        yield from _ratios(own, medians)
    for method, choices in trials.choices.items():
        row = replace(shared, method=method, target=RECOMMENDED)
        yield from _of_choices(row, choices, sample.of_draws)
    for method, why in trials.left_out.items():
        yield replace(shared, method=method, note=why)


def _quantile(values: Numbers, share: float) -> float:
    """Return the same of values that count alike."""
    return float(np.quantile(values, share, method="inverted_cdf"))


def _ratios(shared: ScoreRow, medians: Mapping[str, tuple[float, Numbers]]) -> Iterator[ScoreRow]:
    """Yield how many times another method's median each one is: the paper's, and the best one's."""
    if not medians:
        return
    best = min(medians, key=lambda name: medians[name][0])
    for statistic, other in ((TO_PAPER, REFERENCE), (TO_BEST, best)):
        if other not in medians:
            continue
        value, some = medians[other]
        for method, (median, some_medians) in medians.items():
            if method != other:
                ratio, ratios = median / max(value, 1e-12), some_medians / np.maximum(some, 1e-12)
                row = replace(shared, method=method, note=f"over {other}")
                yield _row(row, statistic, ratio, ratios)


def _of_choices(
    row: ScoreRow, choices: pd.DataFrame, of_draws: Numbers | None
) -> Iterator[ScoreRow]:
    """Yield regret and broken budgets of all answers, over draws and budgets alike."""
    regret, over_w, limit_w, power_w = (
        choices[name].to_numpy().reshape(-1, len(BUDGETS))
        for name in ("penalty_pct", "over_w", "limit_w", "power_w")
    )
    over = power_w / limit_w - 1
    answered = ~np.isnan(regret)

    def share(statistic: str, is_so: NDArray[np.bool_], of: NDArray[np.bool_]) -> ScoreRow:
        value = 100 * float(is_so.sum() / of.sum())
        if of_draws is None:
            return _row(row, statistic, value, None)
        some = of_draws @ is_so.sum(1) / _positive(of_draws @ of.sum(1))
        return _row(row, statistic, value, 100 * np.asarray(some))

    yield share(NO_ANSWER, ~answered, np.ones_like(answered))
    if not answered.any():
        return
    some: Sequence[Numbers | None] = (None, None)
    if of_draws is not None:
        weights = np.repeat(of_draws, answered.sum(1), axis=1)
        some = list(quantiles(regret[answered], weights, (0.5, 0.9)))
    yield _row(row, REGRET, _quantile(regret[answered], 0.5), some[0])
    yield _row(row, REGRET_P90, _quantile(regret[answered], 0.9), some[1])
    yield share(BROKEN, (over > ROUNDING_W) & answered, answered)
    yield share(BROKEN_W, (over_w > OVER_W) & answered, answered)
    yield share(BROKEN_SHARE, (over > OVER_SHARE) & answered, answered)


def _positive(counts: Numbers) -> Numbers:
    return np.where(counts > 0, counts, np.nan)


def _row(row: ScoreRow, statistic: str, value: float, some: Numbers | None) -> ScoreRow:
    """Return the row of a number, with the bounds of its resamples where there are any."""
    row = replace(row, statistic=statistic, value=value)
    if some is None or np.isnan(some).all():
        return row
    low, high = np.nanquantile(some, SURE).tolist()
    return replace(row, low=low, high=high)
