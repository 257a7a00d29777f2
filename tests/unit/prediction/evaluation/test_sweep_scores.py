"""Scores of planted tables, whose truth is known, and their bootstrap."""

import numpy as np
import pytest

from epochwatt.errors import ConfigError
from epochwatt.prediction.data.modes import PredictionError
from epochwatt.prediction.evaluation import sweep_scores
from epochwatt.prediction.evaluation.score_sweeps import judged_methods, score_tables
from epochwatt.prediction.evaluation.sweep_files import as_text, read_scores, write_scores
from epochwatt.prediction.evaluation.sweep_names import (
    BROKEN,
    BY_WORKLOAD,
    COLUMNS,
    DESIGNED,
    HELD,
    LEFT_OUT,
    MEDIAN,
    PROFILED,
    RANDOM,
    REGRET,
    TO_BEST,
    TO_PAPER,
)
from epochwatt.prediction.evaluation.sweep_scores import quantiles
from epochwatt.prediction.models.powertrain import recipe
from epochwatt.prediction.names import ENERGY, POWER, TIME
from tests.unit.prediction.sweeps import limited, planted, seconds

LINEAR = ("paper", "physical")


@pytest.fixture(scope="module")
def exact():
    return score_tables([planted()], judged_methods()).rows


def one(rows, **wanted):
    (row,) = [row for row in rows if wanted.items() <= row.items()]
    return row


@pytest.mark.parametrize("target", [TIME, POWER, ENERGY])
def test_who_has_the_law_that_was_planted_is_right(exact, target):
    """From ten modes; the belief still pulls a little."""
    wanted = {"method": "physical", "target": target, "n_profiled": 10, "statistic": MEDIAN}
    row = one(exact, **wanted)
    assert row["low"] <= row["value"] <= row["high"] < 1.0
    assert row["n_draws"] == 10


def test_intervals_hold_about_what_they_state():
    """Repeats of real boards differ by about 2 %."""
    rows = score_tables([planted(noise=0.02)], ["physical"]).rows
    for target in (TIME, POWER):
        held = one(rows, target=target, n_profiled=10, statistic=HELD)
        assert 82 <= held["value"] <= 99
        assert held["low"] <= held["value"] <= held["high"]


def test_a_better_method_beats_the_plain_regression_beyond_doubt(exact):
    ratio = one(exact, method="physical", target=TIME, n_profiled=10, statistic=TO_PAPER)
    assert ratio["high"] < 1
    best = one(exact, method="paper", target=TIME, n_profiled=10, statistic=TO_BEST)
    assert best["low"] > 1


def test_a_method_beside_itself_is_as_good(exact):
    """On observed times the paper's model of energy learns the same where it sees one mode once."""
    place = {"target": ENERGY, "n_profiled": 4, "learned_from": RANDOM}
    same = one(exact, method="paper_observed_time", statistic=TO_PAPER, **place)
    assert same["low"] <= 1 <= same["high"]


def test_rows_say_what_they_rest_on(exact):
    row = one(exact, method="log", target=TIME, learned_from=DESIGNED, statistic=MEDIAN)
    assert (row["sweep"], row["provenance"], row["device"]) == ("planted", "public", "board")
    assert (row["n_modes"], row["n_profiled"], row["n_draws"]) == (48, 4, 1)
    assert row["knobs"] == "cpu_mhz gpu_mhz emc_mhz"
    assert {row["n_profiled"] for row in exact} == {4, 10}
    assert not [row for row in exact if row["method"] == "twin_prior"]


def test_a_single_draw_has_no_interval_of_its_budgets(exact):
    about = {"method": PROFILED, "statistic": REGRET}
    assert "low" not in one(exact, learned_from=DESIGNED, **about)
    assert "low" in one(exact, learned_from=RANDOM, n_profiled=4, **about)
    assert one(exact, learned_from=DESIGNED, method=PROFILED, statistic=BROKEN)["value"] == 0


def test_pooled_workloads_have_their_spread():
    tables = [limited(batch_size=n) for n in (8, 16, 32)]
    rows = score_tables(tables, [*LINEAR, "gaussian_process"]).rows
    spread = one(rows, target=TIME, learned_from=RANDOM, statistic=BY_WORKLOAD)
    assert spread["low"] <= spread["value"] <= spread["high"]
    assert (spread["n_workloads"], spread["workload"]) == (3, "3 workloads")
    left_out = [row for row in rows if row["statistic"] == LEFT_OUT]
    assert {row["method"] for row in left_out} == set(LINEAR)
    assert {row["note"] for row in left_out} == {"it does not know what power_limit_w does"}


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
    monkeypatch.setattr(sweep_scores, "N_BOOTSTRAP", 200)
    rng, n_held, n_worlds = np.random.default_rng(1), 0, 60
    for _ in range(n_worlds):
        of_draw, of_mode = rng.normal(0, 0.3, (12, 1)), rng.normal(0, 0.3, 40)
        errors = np.exp(of_draw + of_mode + rng.normal(0, 0.5, (12, 40)))
        draw, mode = np.divmod(np.arange(errors.size), 40)
        counts = [sweep_scores._counts(np.random.default_rng(2), n) for n in (12, 40)]
        weights = counts[0][:, draw] * counts[1][:, mode]
        low, high = np.quantile(quantiles(errors.ravel(), weights, (0.5,))[0], [0.025, 0.975])
        n_held += low <= 1.0 <= high  # the median of the log-normal
    assert n_held / n_worlds >= 0.88


def test_methods_that_transfer_say_from_what_or_why_not(monkeypatch, tmp_path):
    monkeypatch.setattr(recipe, "ROWS_PER_MODE", 4)
    target = planted(time_s=lambda mode: 1.5 * seconds(mode) + 0.01, workload="target")
    methods = ["physical", "powertrain"]
    alone = score_tables([target], methods, tmp_path, n_draws=2).rows
    (why,) = {row["note"] for row in alone if row["statistic"] == LEFT_OUT}
    assert "no reference" in why
    rows = score_tables([target], methods, tmp_path, n_draws=2, references=[planted()]).rows
    for method, note in (("powertrain", "reference: planted: planted"), ("physical", "")):
        row = one(rows, method=method, target="time_s", statistic=MEDIAN, n_profiled=10)
        assert row.get("note", "") == note
    assert list((tmp_path / ".cache").glob("powertrain-*.npz"))
    beside = score_tables([target, planted()], ["powertrain"], tmp_path, n_draws=2).rows
    places = {"workload": "target", "target": "time_s", "statistic": MEDIAN, "n_profiled": 10}
    assert one(beside, **places)["value"] == one(rows, method="powertrain", **places)["value"]
