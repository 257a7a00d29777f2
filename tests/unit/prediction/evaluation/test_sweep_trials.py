"""Methods on planted mode tables: none sees what it predicts; budgets by brute force."""

from dataclasses import dataclass

import numpy as np
import pytest

from epochwatt.prediction.data.modes import Mode, PredictionError
from epochwatt.prediction.evaluation.sweep_names import PROFILED, RANDOM
from epochwatt.prediction.evaluation.sweep_trials import BUDGETS, run_trials
from epochwatt.prediction.evaluation.sweep_units import draws_of, units_of
from epochwatt.prediction.names import ENERGY, POWER, TIME
from epochwatt.prediction.predictor import Method, Predictor
from epochwatt.prediction.registry import load_method
from tests.unit.prediction.sweeps import limited, planted, seconds, watts


@dataclass(frozen=True, eq=False)
class Memory(Predictor):
    """Knows what it has seen by heart, and says one thing of all else."""

    target: str
    trained_on: np.ndarray
    values: np.ndarray

    def predict(self, modes):
        seen = dict(zip(map(tuple, self.trained_on.tolist()), self.values, strict=True))
        return np.array([seen.get(tuple(mode), 1e6) for mode in modes.tolist()])


@dataclass(frozen=True, eq=False)
class Truth(Predictor):
    target: str
    trained_on: np.ndarray
    factor: float = 1.0

    def predict(self, modes):
        law = seconds if self.target == TIME else watts
        return self.factor * np.array([law(mode) for mode in modes])

    def interval(self, modes, level=0.9):
        value = self.predict(modes)
        return 0.9 * value, 1.05 * value


def memory(rows, context):
    return Memory(context.target, rows.modes, getattr(rows, context.target))


def truth(factor):
    return lambda rows, context: Truth(context.target, rows.modes, factor)


def method(fit, name, **fields):
    return Method(name, (TIME, POWER), fit, Memory.from_json, name=name, **fields)


@pytest.fixture(scope="module")
def unit():
    return units_of([planted(repeats=2)])[0][0]


@pytest.fixture(scope="module")
def draws(unit):
    return draws_of(unit, 10, RANDOM)


def test_who_learns_by_heart_knows_nothing_of_what_is_asked(unit, draws):
    """Repeats of a mode are one row, so no method can meet a test mode while it learns."""
    trials = run_trials(unit, draws, [method(memory, "memory")])
    observed = unit.tables[0].time_s[trials.mode]
    errors = np.concatenate(trials.answers["memory"][TIME].errors_pct)
    assert errors == pytest.approx(100 * (1e6 / observed - 1))


def test_all_methods_learn_from_the_same_modes(unit, draws):
    seen = {"a": [], "b": []}

    def spy(name):
        def fit(rows, context):
            seen[name].append(rows.modes.tolist())
            return memory(rows, context)

        return fit

    run_trials(unit, draws, [method(spy(name), name) for name in seen])
    assert seen["a"] == seen["b"]
    assert len(seen["a"]) == 2 * len(draws)  # time and power


def test_errors_and_intervals_of_a_known_truth(unit, draws):
    answers = run_trials(unit, draws, [method(truth(1.1), "off")]).answers["off"]
    assert np.concatenate(answers[TIME].errors_pct) == pytest.approx(10)
    assert np.concatenate(answers[ENERGY].errors_pct) == pytest.approx(21)
    # from 0.99 to 1.155 of the truth; energy has an interval of its own
    assert np.concatenate(answers[TIME].held).all()
    assert np.concatenate(answers[TIME].width_pct) == pytest.approx(15)
    wrong = run_trials(unit, draws, [method(truth(1.2), "off")]).answers["off"]
    assert not np.concatenate(wrong[TIME].held).any()


def brute_force(table, time_s, power_w):
    """Return regret and power over the budget, worked out mode by mode."""
    regrets, over = [], []
    for share in BUDGETS:
        budget = np.quantile(table.power_w, share)
        within = [n for n in range(len(time_s)) if power_w[n] <= budget]
        if not within:
            regrets.append(np.nan)
            over.append(np.nan)
            continue
        chosen = min(within, key=lambda n: time_s[n])
        best = min(t for t, w in zip(table.time_s, table.power_w, strict=True) if w <= budget)
        regrets.append(100 * (table.time_s[chosen] / best - 1))
        over.append(table.power_w[chosen] - budget)
    return regrets, over


def test_regret_and_broken_budgets_are_those_of_brute_force(unit, draws):
    """A method that expects a tenth less power than there is takes modes that draw too much."""

    def fit(rows, context):
        return Truth(context.target, rows.modes, 0.9 if context.target == POWER else 1.0)

    choices = run_trials(unit, draws, [method(fit, "hopeful")]).choices
    table = unit.tables[0]
    time_s, power_w = ([law(mode) for mode in table.modes] for law in (seconds, watts))
    regrets, over = brute_force(table, time_s, 0.9 * np.array(power_w))
    assert (np.array(over) > 0).sum() >= 6
    for number in range(len(draws)):
        assert choices["hopeful"].regret_pct[number] == pytest.approx(regrets, nan_ok=True)
        assert choices["hopeful"].over_w[number] == pytest.approx(over, nan_ok=True)


def test_the_best_profiled_mode_is_that_of_brute_force(unit, draws):
    choices = run_trials(unit, draws, []).choices[PROFILED]
    table = unit.tables[0]
    for number, draw in enumerate(draws):
        is_known = np.array([mode in draw.modes.train for mode in table.mode_of_row])
        regrets, over = brute_force(table, table.time_s, np.where(is_known, table.power_w, np.inf))
        assert choices.regret_pct[number] == pytest.approx(regrets, nan_ok=True)
        assert choices.over_w[number] == pytest.approx(over, nan_ok=True)
        assert (np.nan_to_num(choices.over_w[number]) <= 0).all()


def test_who_expects_no_mode_within_the_budget_has_no_answer(unit, draws):
    def fit(rows, context):
        return Truth(context.target, rows.modes, 100.0 if context.target == POWER else 1.0)

    choices = run_trials(unit, draws, [method(fit, "fearful")]).choices["fearful"]
    assert np.isnan(choices.regret_pct).all()


def test_a_part_that_a_method_does_not_know_leaves_it_out():
    (unit,), _ = units_of([limited()])
    names = ("paper", "physical", "log", "gaussian_process", "gradient_boosting")
    trials = run_trials(unit, draws_of(unit, 4, RANDOM), [load_method(name) for name in names])
    assert trials.left_out == dict.fromkeys(
        ("paper", "physical"), "it does not know what power_limit_w does"
    )
    medians = {
        name: float(np.median(np.concatenate(answers[TIME].errors_pct)))
        for name, answers in trials.answers.items()
    }
    assert medians["log"] < 1  # it is the power law that was planted
    assert medians["gaussian_process"] < 1
    assert medians["gradient_boosting"] < 15


def test_a_method_that_cannot_be_fitted_is_left_out_with_the_reason(unit, draws):
    def fit(rows, context):
        raise PredictionError("it needs a thousand modes")

    trials = run_trials(unit, draws, [method(fit, "needy")])
    assert trials.left_out == {"needy": "it needs a thousand modes"}
    assert "needy" not in trials.answers


def test_a_table_without_power_is_judged_in_time_alone():
    (unit,), _ = units_of([planted(power_w=None)])
    trials = run_trials(unit, draws_of(unit, 4, RANDOM, 2), [load_method("physical")])
    assert list(trials.answers["physical"]) == [TIME]
    assert trials.choices == {}


def test_modes_of_the_unit_stay_as_they_are(unit):
    assert all(mode.power_limit_w == 0 for mode in unit.tables[0].distinct())
    assert isinstance(unit.tables[0].distinct()[0], Mode)
