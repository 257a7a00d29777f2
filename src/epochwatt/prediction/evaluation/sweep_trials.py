"""Methods fitted to a few modes of a mode table and asked for all the others, draw by draw."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from epochwatt.prediction.data.modes import Numbers, PredictionError
from epochwatt.prediction.data.observations import Observations
from epochwatt.prediction.evaluation.cross_validation import absolute_errors_pct, predictors
from epochwatt.prediction.evaluation.sweep_names import PROFILED
from epochwatt.prediction.evaluation.sweep_units import Draw, Unit
from epochwatt.prediction.names import ENERGY, POWER, TARGETS, TIME
from epochwatt.prediction.predictor import Method, Predictor
from epochwatt.prediction.recommend.recommend import place_of_best

Places = NDArray[np.intp]

BUDGETS = tuple(round(0.1 * n, 1) for n in range(1, 10))  # quantiles of the observed power
LEAST = 1e-3  # of the least observed value: a prediction below says no more by it


@dataclass
class Answers:
    """What a method answered about one target, one number for each mode of each draw."""

    errors_pct: list[Numbers] = field(default_factory=list)  # absolute, of the observed value
    # held, width_pct: whether its interval holds the observed value, and how wide it is in % of the
    # prediction; none without intervals
    held: list[Numbers] = field(default_factory=list)
    width_pct: list[Numbers] = field(default_factory=list)


@dataclass
class Choices:
    """The fastest mode by prediction within each budget of power, an array (b,) for each draw."""

    # observed time over that of the best mode that keeps the budget, less one; NaN: no mode is
    # expected to keep it
    regret_pct: list[Numbers] = field(default_factory=list)
    # observed power less the budget; NaN likewise
    over_w: list[Numbers] = field(default_factory=list)
    over_share: list[Numbers] = field(default_factory=list)  # the same over the budget


@dataclass(frozen=True)
class Trials:
    """All methods on one unit, from the same modes."""

    # table, draw, mode: (n,), of each predicted mode: place of its table, number of the draw, place
    # of the mode in the table
    table: Places
    draw: Places
    mode: Places
    answers: Mapping[str, Mapping[str, Answers]]  # method -> target -> answers
    # method -> choices, where it predicts time and power; `PROFILED` among them
    choices: Mapping[str, Choices]
    choice_table: Places  # (d,), the table of each draw
    left_out: Mapping[str, str]  # method -> why it has no answer


def run_trials(unit: Unit, draws: Sequence[Draw], methods: Iterable[Method]) -> Trials:
    """Return what each method answers.

    A method that does not understand a part of the mode that varies is left out, and so is one that
    cannot be fitted to some of the draws: all rows of a comparison rest on the same modes.
    """
    answers: dict[str, dict[str, Answers]] = {}
    choices: dict[str, Choices] = {}
    left_out: dict[str, str] = {}
    for method in methods:
        if unknown := [part for part in unit.knobs if part not in method.parts]:
            left_out[method.name] = f"it does not know what {', '.join(unknown)} does"
            continue
        if method.needs_reference and unit.no_reference:
            left_out[method.name] = unit.no_reference
            continue
        try:
            answers[method.name], choice = _of_method(unit, draws, method)
        except PredictionError as error:
            left_out[method.name] = str(error).partition("\n")[0]
            continue
        if choice.regret_pct:
            choices[method.name] = choice
    if has_power(unit):
        choices[PROFILED] = _of_profiled(unit, draws)
    rests = [_rest(unit, draw) for draw in draws]
    sizes = [len(rest) for rest in rests]
    return Trials(
        table=np.repeat([draw.table for draw in draws], sizes),
        draw=np.repeat([draw.number for draw in draws], sizes),
        mode=np.concatenate(rests),
        answers=answers,
        choices=choices,
        choice_table=np.array([draw.table for draw in draws]),
        left_out=left_out,
    )


def has_power(unit: Unit) -> bool:
    """Whether power is known of every mode of every workload."""
    return not any(np.isnan(table.power_w).any() for table in unit.tables)


def _rest(unit: Unit, draw: Draw) -> Places:
    """Return the places of the modes that are predicted."""
    profiled = set(draw.modes.train)
    return np.flatnonzero([m not in profiled for m in unit.tables[draw.table].mode_of_row])


def _of_method(
    unit: Unit, draws: Sequence[Draw], method: Method
) -> tuple[dict[str, Answers], Choices]:
    with_power = has_power(unit)
    targets = [target for target in TARGETS if target in method.predicts]
    answers = {target: Answers() for target in targets if with_power or target == TIME}
    choices = Choices()
    for draw in draws:
        table = unit.tables[draw.table]
        train = table.only(draw.modes.train)
        reference = unit.reference_of(table)
        fitted = predictors(
            method, train, [train], intervals=True, reference=reference, cache=unit.cache
        )
        rest = table.rows(np.isin(np.arange(len(table.modes)), _rest(unit, draw)))
        for target, one in answers.items():
            _judge(fitted[target], rest, one)
        if with_power and (expected := _expected(fitted, table, train)):
            _choose(table, train.modes, expected, choices)
    return answers, choices


def _judge(predictor: Predictor, rest: Observations, answers: Answers) -> None:
    observed = getattr(rest, predictor.target)
    predicted = predictor.predict(rest.modes)
    answers.errors_pct.append(absolute_errors_pct(predicted, observed))
    if (interval := predictor.interval(rest.modes)) is not None:
        low, high = interval
        answers.held.append(((low <= observed) & (observed <= high)).astype(float))
        answers.width_pct.append(100 * (high - low) / np.abs(predicted))


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


def _choose(
    table: Observations, profiled: Numbers, expected: Mapping[str, Numbers], choices: Choices
) -> None:
    budgets_w = np.quantile(table.power_w, BUDGETS)
    places = [_place(table, profiled, expected, float(budget_w)) for budget_w in budgets_w]
    _note(table, budgets_w, places, choices)


def _place(
    table: Observations, profiled: Numbers, expected: Mapping[str, Numbers], budget_w: float
) -> int | None:
    try:
        return place_of_best(table.modes, expected, profiled, "time", {"power_w": budget_w})[0]
    except PredictionError:  # no mode is expected to keep it
        return None


def _of_profiled(unit: Unit, draws: Sequence[Draw]) -> Choices:
    """Return the fastest of the profiled modes, by what was observed: the least one could do."""
    choices = Choices()
    for draw in draws:
        table = unit.tables[draw.table]
        budgets_w = np.quantile(table.power_w, BUDGETS)
        is_profiled = np.array([mode in draw.modes.train for mode in table.mode_of_row])
        places = []
        for budget_w in budgets_w:
            within = np.flatnonzero(is_profiled & (table.power_w <= budget_w))
            best = int(within[table.time_s[within].argmin()]) if len(within) else None
            places.append(best)
        _note(table, budgets_w, places, choices)
    return choices


def _note(
    table: Observations, budgets_w: Numbers, places: Sequence[int | None], choices: Choices
) -> None:
    """Judge chosen places (b,) by what was observed."""
    chosen = np.array([np.nan if place is None else place for place in places])
    answered = ~np.isnan(chosen)
    time_s, power_w = np.full(len(places), np.nan), np.full(len(places), np.nan)
    time_s[answered] = table.time_s[chosen[answered].astype(int)]
    power_w[answered] = table.power_w[chosen[answered].astype(int)]
    best_s = np.array([table.time_s[table.power_w <= budget_w].min() for budget_w in budgets_w])
    choices.regret_pct.append(100 * (time_s / best_s - 1))
    choices.over_w.append(power_w - budgets_w)
    choices.over_share.append(power_w / budgets_w - 1)
