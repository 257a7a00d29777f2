"""Methods judged on planted mode tables, whose truth is known: units, draws, answers, scores."""

from dataclasses import dataclass

import numpy as np
import pytest

from epochwatt.prediction.data.modes import PredictionError
from epochwatt.prediction.evaluation.score_sweeps import (
    BUDGETS,
    draws_of,
    quantiles,
    run_trials,
    score_tables,
    units_of,
    with_reference,
)
from epochwatt.prediction.evaluation.sweep_scores import (
    DESIGNED,
    MEDIAN,
    PROFILED,
    RANDOM,
)
from epochwatt.prediction.names import ENERGY, POWER, TIME
from epochwatt.prediction.predictor import Method, Predictor
from epochwatt.prediction.registry import load_method
from tests.unit.prediction.sweeps import GRID, limited, planted, seconds, watts

# -- units and draws -------------------------------------------------------------------------------


def test_a_large_table_stands_alone_small_ones_are_pooled_and_others_have_a_reason():
    small = [limited(workload="net", batch_size=n) for n in (8, 16, 32)]
    wrong, gated = planted(GRID[:8], workload="wrong"), planted(GRID[:1], gpu_share=0.5)
    wrong = type(wrong)(wrong.key, (*wrong.rows, *gated.rows))
    units, left_out = units_of([planted(), *small, planted(GRID[:4], workload="few"), wrong])
    assert [(u.sweep, u.workload, u.n_modes) for u in units] == [
        ("planted", "planted", 48),
        ("limits", "3 workloads", 7),
    ]
    assert [u.sizes() for u in units] == [[4, 10], [4]]
    assert left_out[0] == "planted: few: 4 modes, 6 or more are needed"
    assert "gpu_share is known of 1 of 9 valid rows" in left_out[1]
    assert [u.knobs for u in units] == [("cpu_mhz", "gpu_mhz", "emc_mhz"), ("power_limit_w",)]


@pytest.mark.parametrize(("how", "n_draws"), [(RANDOM, 10), (DESIGNED, 1)])
def test_no_mode_trains_and_tests_at_once(how, n_draws):
    (unit,), _ = units_of([planted(repeats=3)])
    trials = draws_of(unit, 4, how)
    assert len({trial.train.distinct() for trial in trials}) == len(trials) == n_draws
    for trial in trials:
        assert len(trial.train.distinct()) == 4
        assert sorted([*trial.profiled, *trial.places]) == list(range(48))


def test_reference_is_another_workload_first_of_the_same_device():
    (unit,), _ = units_of([planted()])
    elsewhere = planted(workload="elsewhere", device="other board")
    few, same = planted(GRID[:5], workload="few"), planted(workload="same")
    no_power = planted(workload="no power", power_w=None)
    tables = [planted(), elsewhere, few, no_power, same]
    chosen = with_reference(unit, tables).references[0]
    assert chosen.rows.workload == "planted: same"
    assert not chosen.is_other_board
    assert with_reference(unit, tables[:2]).references[0].is_other_board
    assert with_reference(unit, [planted(), few, no_power]).references == ()
    many = [planted(workload=f"net {n}") for n in range(12)]
    (pooled,), _ = units_of(many)
    among = with_reference(pooled, many)
    assert all(among.reference_of(t).rows.workload != t.workload for t in among.tables)
    outside = with_reference(pooled, [planted(workload="outside"), *many])
    assert {outside.reference_of(t).rows.workload for t in pooled.tables} == {"planted: outside"}


# -- answers ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Truth(Predictor):
    """Knows the planted law up to a factor; its bounds are 10 % below and 5 % above."""

    target: str
    trained_on: np.ndarray
    factor: float = 1.0

    def predict(self, modes):
        law = seconds if self.target == TIME else watts
        return self.factor * np.array([law(mode) for mode in modes])

    def interval(self, modes, level=0.9):
        value = self.predict(modes)
        return 0.9 * value, 1.05 * value


def truth(name, **factors):
    """Return a method that is off by a factor of each target."""

    def fit(rows, context):
        return Truth(context.target, rows.modes, factors[context.target])

    return Method(name, (TIME, POWER), fit, Truth.from_json, name=name)


@pytest.fixture(scope="module")
def unit():
    return units_of([planted(repeats=2)])[0][0]


@pytest.fixture(scope="module")
def trials(unit):
    return draws_of(unit, 4, RANDOM, 3)


def test_errors_and_intervals_of_a_known_truth(unit, trials):
    found = run_trials(unit, trials, [truth("off", time_s=1.1, power_w=1.1)]).answers
    asked = found.groupby(["draw", "target"])["mode"].apply(list)
    assert all(asked[n, t] == trials[n].places.tolist() for n, t in asked.index)
    off, energy = (found[found["target"] == target] for target in (TIME, ENERGY))
    assert off["error_pct"].to_numpy() == pytest.approx(10)
    assert energy["error_pct"].to_numpy() == pytest.approx(21)
    assert off["truth"].between(off["low"], off["high"]).all()  # from 0.99 to 1.155 of the truth
    wrong = run_trials(unit, trials, [truth("wrong", time_s=1.2, power_w=1.2)]).answers
    wrong = wrong[wrong["target"] == TIME]
    assert not wrong["truth"].between(wrong["low"], wrong["high"]).any()


def brute_force(table, time_s, power_w):
    """Return regret and power over the budget, worked out mode by mode."""
    found = []
    for share in BUDGETS:
        budget = np.quantile(table.power_w, share)
        within = [n for n in range(len(time_s)) if power_w[n] <= budget]
        if not within:
            found.append((np.nan, np.nan))
            continue
        chosen = min(within, key=lambda n: time_s[n])
        best = min(t for t, w in zip(table.time_s, table.power_w, strict=True) if w <= budget)
        found.append((100 * (table.time_s[chosen] / best - 1), table.power_w[chosen] - budget))
    return np.array(found)


def test_regret_and_broken_budgets_are_those_of_brute_force(unit, trials):
    """A method that expects a tenth less power than there is takes modes that draw too much."""
    hopeful = truth("hopeful", time_s=1.0, power_w=0.9)
    choices = run_trials(unit, trials, [hopeful]).choices
    table, columns = unit.tables[0], ["penalty_pct", "over_w"]
    law_s, law_w = (np.array([law(mode) for mode in table.modes]) for law in (seconds, watts))
    expected = brute_force(table, law_s, 0.9 * law_w)
    assert (expected[:, 1] > 0).sum() >= 6
    of_draws = choices["hopeful"][columns].to_numpy().reshape(len(trials), -1, 2)
    profiled = choices[PROFILED][columns].to_numpy().reshape(len(trials), -1, 2)
    for trial, hoped, best in zip(trials, of_draws, profiled, strict=True):
        assert hoped == pytest.approx(expected, nan_ok=True)
        is_known = np.isin(np.arange(48), trial.profiled)
        known = brute_force(table, table.time_s, np.where(is_known, table.power_w, np.inf))
        assert best == pytest.approx(known, nan_ok=True)
        assert (np.nan_to_num(best[:, 1]) <= 0).all()


def test_methods_that_do_not_know_a_part_or_cannot_be_fitted_are_left_out(unit, trials):
    (cards,), _ = units_of([limited()])
    names = ("paper", "physical", "log", "gaussian_process", "gradient_boosting")
    found = run_trials(cards, draws_of(cards, 4, RANDOM), [load_method(name) for name in names])
    reason = "it does not know what power_limit_w does"
    assert found.left_out == dict.fromkeys(("paper", "physical"), reason)
    of_time = found.answers[found.answers["target"] == TIME]
    medians = of_time.groupby("method")["error_pct"].median()
    assert max(medians["log"], medians["gaussian_process"]) < 1  # the power law was planted
    assert medians["gradient_boosting"] < 15

    def fit(rows, context):
        raise PredictionError("it needs a thousand modes")

    found = run_trials(unit, trials, [Method("needy", (TIME,), fit, None, name="needy")])
    assert found.left_out == {"needy": "it needs a thousand modes"}
    assert found.answers.empty


# -- scores ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def exact():
    return score_tables([planted()], ["log", "physical"]).rows


def one(rows, **wanted):
    (found,) = rows[np.logical_and.reduce([rows[k] == v for k, v in wanted.items()])].itertuples()
    return found


def test_who_has_the_law_that_was_planted_is_right(exact):
    """From ten modes; the belief still pulls a little."""
    for target in (TIME, POWER, ENERGY):
        row = one(exact, method="physical", target=target, n_profiled=10, statistic=MEDIAN)
        assert row.low <= row.value <= row.high < 1.0
        assert row.n_draws == 10


def test_scores_do_not_hang_on_the_number_of_processes():
    lines = []
    alone = score_tables([planted()], ["paper"], n_draws=2, say=lines.append).rows
    assert score_tables([planted()], ["paper"], n_draws=2, processes=2).rows.equals(alone)
    assert lines[0] == "planted, planted: 4 designed modes (1 of 3)"


def test_weighted_quantiles_are_those_of_repeated_values():
    rng = np.random.default_rng(0)
    values, weights = rng.random(40), rng.integers(0, 4, (5, 40)).astype(float)
    found = quantiles(values, weights, (0.5, 0.9))
    for column, row in enumerate(weights):
        repeated = np.repeat(values, row.astype(int))
        wanted = np.quantile(repeated, [0.5, 0.9], method="inverted_cdf")
        assert found[:, column] == pytest.approx(wanted)
    assert np.isnan(quantiles(values, np.zeros((1, 40)), (0.5,))).all()
