"""Methods judged on planted mode tables, whose truth is known: units, draws, answers, scores."""

from dataclasses import dataclass

import numpy as np
import pytest

from epochwatt.errors import ConfigError
from epochwatt.prediction.data.modes import PredictionError
from epochwatt.prediction.evaluation import score_sweeps
from epochwatt.prediction.evaluation.score_sweeps import (
    BUDGETS,
    draws_of,
    judged_methods,
    quantiles,
    run_trials,
    score_tables,
    units_of,
    with_reference,
)
from epochwatt.prediction.evaluation.sweep_table import (
    BY_WORKLOAD,
    COLUMNS,
    DESIGNED,
    HELD,
    LEFT_OUT,
    MEDIAN,
    PROFILED,
    RANDOM,
    as_text,
    read_scores,
    write_scores,
)
from epochwatt.prediction.models import powertrain
from epochwatt.prediction.names import ENERGY, POWER, TIME
from epochwatt.prediction.predictor import Method, Predictor
from epochwatt.prediction.registry import load_method
from tests.unit.prediction.sweeps import GRID, limited, planted, seconds, watts

# -- units and draws -------------------------------------------------------------------------------


def test_a_large_table_stands_alone_and_small_ones_are_pooled():
    small = [limited(workload="net", batch_size=n) for n in (8, 16, 32)]
    units, left_out = units_of([planted(), *small, planted(GRID[:4], workload="few")])
    assert [(u.sweep, u.workload, u.n_modes) for u in units] == [
        ("planted", "planted", 48),
        ("limits", "3 workloads", 7),
    ]
    assert [u.sizes() for u in units] == [[4, 10], [4]]
    assert left_out == ["planted: few: 4 modes, 6 or more are needed"]
    assert [u.knobs for u in units] == [("cpu_mhz", "gpu_mhz", "emc_mhz"), ("power_limit_w",)]


def test_a_table_that_cannot_be_read_is_left_out_with_its_reason():
    wrong = planted(GRID[:8])
    wrong = type(wrong)(
        wrong.key, (*wrong.rows, *planted([(8, 500, 500, 500)], gpu_share=0.5).rows)
    )
    units, left_out = units_of([wrong])
    assert units == []
    assert left_out[0].startswith("planted: planted: gpu_share is known of 1 of 9 valid rows")


@pytest.mark.parametrize(("how", "n_draws"), [(RANDOM, 10), (DESIGNED, 1)])
def test_no_mode_trains_and_tests_at_once(how, n_draws):
    (unit,), _ = units_of([planted(repeats=3)])
    draws = draws_of(unit, 4, how)
    assert len(draws) == n_draws
    for draw in draws:
        assert len(set(draw.modes.train)) == 4
        assert set(draw.modes.train) | set(draw.modes.test) == set(unit.tables[0].distinct())
        assert not set(draw.modes.train) & set(draw.modes.test)
    assert len({draw.modes.train for draw in draws}) == n_draws


def test_reference_is_another_workload_first_of_the_same_device():
    (unit,), _ = units_of([planted()])
    elsewhere = planted(workload="elsewhere", device="other board")
    few, same = planted(GRID[:8], workload="few"), planted(workload="same")
    no_power = planted(workload="no power", power_w=None)
    tables = [planted(), elsewhere, few, no_power, same]
    chosen = with_reference(unit, tables).references[0]
    assert chosen.rows.workload == "planted: same"
    assert not chosen.is_other_board
    assert with_reference(unit, tables[:2]).references[0].is_other_board
    assert with_reference(unit, [planted(), few, no_power]).references == ()


def test_workloads_that_are_judged_together_transfer_from_another_one_of_them():
    tables = [planted(workload=f"net {n}") for n in range(12)]
    (unit,), _ = units_of(tables)
    assert unit.is_pooled
    chosen = with_reference(unit, tables)
    for table in chosen.tables:
        assert chosen.reference_of(table).rows.workload != table.workload
    outside = with_reference(unit, [planted(workload="outside"), *tables])
    assert {outside.reference_of(table).rows.workload for table in unit.tables} == {
        "planted: outside"
    }


# -- answers ---------------------------------------------------------------------------------------


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
    errors = trials.answers[trials.answers["target"] == TIME]
    observed = unit.tables[0].time_s[errors["mode"]]
    assert errors["error_pct"].to_numpy() == pytest.approx(100 * (1e6 / observed - 1))


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
    def of_target(factor, target):
        answers = run_trials(unit, draws, [method(truth(factor), "off")]).answers
        return answers[answers["target"] == target]

    off = of_target(1.1, TIME)
    assert off["error_pct"].to_numpy() == pytest.approx(10)
    assert of_target(1.1, ENERGY)["error_pct"].to_numpy() == pytest.approx(21)
    assert off["truth"].between(off["low"], off["high"]).all()  # from 0.99 to 1.155 of the truth
    wrong = of_target(1.2, TIME)
    assert not wrong["truth"].between(wrong["low"], wrong["high"]).any()


def of_draw(choices, number, name):
    return choices[name].to_numpy().reshape(-1, len(BUDGETS))[number]


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
        assert of_draw(choices["hopeful"], number, "penalty_pct") == pytest.approx(
            regrets, nan_ok=True
        )
        assert of_draw(choices["hopeful"], number, "over_w") == pytest.approx(over, nan_ok=True)


def test_the_best_profiled_mode_is_that_of_brute_force(unit, draws):
    choices = run_trials(unit, draws, []).choices[PROFILED]
    table = unit.tables[0]
    for number, draw in enumerate(draws):
        is_known = np.array([mode in draw.modes.train for mode in table.mode_of_row])
        regrets, over = brute_force(table, table.time_s, np.where(is_known, table.power_w, np.inf))
        assert of_draw(choices, number, "penalty_pct") == pytest.approx(regrets, nan_ok=True)
        assert of_draw(choices, number, "over_w") == pytest.approx(over, nan_ok=True)
        assert (np.nan_to_num(of_draw(choices, number, "over_w")) <= 0).all()


def test_a_part_that_a_method_does_not_know_leaves_it_out():
    (unit,), _ = units_of([limited()])
    names = ("paper", "physical", "log", "gaussian_process", "gradient_boosting")
    trials = run_trials(unit, draws_of(unit, 4, RANDOM), [load_method(name) for name in names])
    assert trials.left_out == dict.fromkeys(
        ("paper", "physical"), "it does not know what power_limit_w does"
    )
    of_time = trials.answers[trials.answers["target"] == TIME]
    medians = of_time.groupby("method")["error_pct"].median()
    assert medians["log"] < 1  # it is the power law that was planted
    assert medians["gaussian_process"] < 1
    assert medians["gradient_boosting"] < 15


def test_a_method_that_cannot_be_fitted_is_left_out_with_the_reason(unit, draws):
    def fit(rows, context):
        raise PredictionError("it needs a thousand modes")

    trials = run_trials(unit, draws, [method(fit, "needy")])
    assert trials.left_out == {"needy": "it needs a thousand modes"}
    assert trials.answers.empty


def test_a_table_without_power_is_judged_in_time_alone():
    (unit,), _ = units_of([planted(power_w=None)])
    trials = run_trials(unit, draws_of(unit, 4, RANDOM, 2), [load_method("physical")])
    assert set(trials.answers["target"]) == {TIME}
    assert trials.choices == {}


# -- scores ----------------------------------------------------------------------------------------

LINEAR = ("paper", "physical")


@pytest.fixture(scope="module")
def exact():
    return score_tables([planted()], judged_methods()).rows


def one(rows, **wanted):
    (row,) = [row for row in rows if wanted.items() <= vars(row).items()]
    return row


@pytest.mark.parametrize("target", [TIME, POWER, ENERGY])
def test_who_has_the_law_that_was_planted_is_right(exact, target):
    """From ten modes; the belief still pulls a little."""
    wanted = {"method": "physical", "target": target, "n_profiled": 10, "statistic": MEDIAN}
    row = one(exact, **wanted)
    assert row.low <= row.value <= row.high < 1.0
    assert row.n_draws == 10


def test_intervals_hold_about_what_they_state():
    """Repeats of real boards differ by about 2 %."""
    rows = score_tables([planted(noise=0.02)], ["physical"]).rows
    for target in (TIME, POWER):
        held = one(rows, target=target, n_profiled=10, statistic=HELD)
        assert 82 <= held.value <= 99
        assert held.low <= held.value <= held.high


def test_rows_say_what_they_rest_on(exact):
    row = one(exact, method="log", target=TIME, learned_from=DESIGNED, statistic=MEDIAN)
    assert (row.sweep, row.provenance, row.device) == ("planted", "public", "board")
    assert (row.n_modes, row.n_profiled, row.n_draws) == (48, 4, 1)
    assert row.knobs == "cpu_mhz gpu_mhz emc_mhz"
    assert {row.n_profiled for row in exact} == {4, 10}
    assert not [row for row in exact if row.method == "twin_prior"]


def test_pooled_workloads_have_their_spread():
    tables = [limited(batch_size=n) for n in (8, 16, 32)]
    rows = score_tables(tables, [*LINEAR, "gaussian_process"]).rows
    spread = one(rows, target=TIME, learned_from=RANDOM, statistic=BY_WORKLOAD)
    assert spread.low <= spread.value <= spread.high
    assert (spread.n_workloads, spread.workload) == (3, "3 workloads")
    left_out = [row for row in rows if row.statistic == LEFT_OUT]
    assert {row.method for row in left_out} == set(LINEAR)
    assert {row.note for row in left_out} == {"it does not know what power_limit_w does"}


def test_scores_do_not_hang_on_the_number_of_processes():
    lines = []
    alone = score_tables([planted()], ["paper"], n_draws=2, say=lines.append).rows
    assert score_tables([planted()], ["paper"], n_draws=2, processes=2).rows == alone
    assert lines[0] == "planted, planted: 4 designed modes (1 of 3)"


def test_nothing_to_judge_is_refused():
    with pytest.raises(PredictionError, match="2 modes, 6 or more are needed"):
        score_tables([limited([100, 200])], LINEAR)
    with pytest.raises(ConfigError, match="unknown method 'magic'"):
        score_tables([planted()], ["magic"])


def test_files_of_scores_come_back(tmp_path, exact):
    path = tmp_path / "scores.csv"
    write_scores(path, exact)
    assert read_scores([str(path)]) == as_text(exact)
    assert path.read_text("utf-8").startswith(",".join(COLUMNS) + "\n")


def test_weighted_quantiles_are_those_of_repeated_values():
    rng = np.random.default_rng(0)
    values, weights = rng.random(40), rng.integers(0, 4, (5, 40)).astype(float)
    found = quantiles(values, weights, (0.5, 0.9))
    for column, row in enumerate(weights):
        repeated = np.repeat(values, row.astype(int))
        wanted = np.quantile(repeated, [0.5, 0.9], method="inverted_cdf")
        assert found[:, column] == pytest.approx(wanted)
    assert np.isnan(quantiles(values, np.zeros((1, 40)), (0.5,))).all()


def test_the_interval_of_a_median_holds_it_as_often_as_it_says(monkeypatch):
    """Over draws and modes whose effects are drawn anew: 95 %, and not much less."""
    monkeypatch.setattr(score_sweeps, "N_BOOTSTRAP", 200)
    rng, n_held, n_worlds = np.random.default_rng(1), 0, 60
    for _ in range(n_worlds):
        of_draw, of_mode = rng.normal(0, 0.3, (12, 1)), rng.normal(0, 0.3, 40)
        errors = np.exp(of_draw + of_mode + rng.normal(0, 0.5, (12, 40)))
        draw, mode = np.divmod(np.arange(errors.size), 40)
        counts = [score_sweeps.counts(np.random.default_rng(2), n) for n in (12, 40)]
        weights = counts[0][:, draw] * counts[1][:, mode]
        low, high = np.quantile(quantiles(errors.ravel(), weights, (0.5,))[0], [0.025, 0.975])
        n_held += low <= 1.0 <= high  # the median of the log-normal
    assert n_held / n_worlds >= 0.88


def test_methods_that_transfer_say_from_what_or_why_not(monkeypatch, tmp_path):
    monkeypatch.setattr(powertrain, "ROWS_PER_MODE", 4)
    target = planted(time_s=lambda mode: 1.5 * seconds(mode) + 0.01, workload="target")
    methods = ["physical", "powertrain"]
    alone = score_tables([target], methods, tmp_path, n_draws=2).rows
    (why,) = {row.note for row in alone if row.statistic == LEFT_OUT}
    assert "no reference" in why
    rows = score_tables([target], methods, tmp_path, n_draws=2, references=[planted()]).rows
    for method, note in (("powertrain", "reference: planted: planted"), ("physical", "")):
        row = one(rows, method=method, target="time_s", statistic=MEDIAN, n_profiled=10)
        assert row.note == note
    assert list((tmp_path / ".cache").glob("powertrain-*.npz"))
    beside = score_tables([target, planted()], ["powertrain"], tmp_path, n_draws=2).rows
    places = {"workload": "target", "target": "time_s", "statistic": MEDIAN, "n_profiled": 10}
    assert one(beside, **places).value == one(rows, method="powertrain", **places).value
