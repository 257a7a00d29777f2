"""Pairs of runs: differences, the test of equivalence, its error rates, software that differs."""

import csv
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from epochwatt import columns
from epochwatt.analysis.pairs import (
    DIFFERENT,
    EQUIVALENT,
    LEAST_PAIRS,
    UNDECIDED,
    compare_pairs,
    judged,
    pairs_needed,
    software_difference,
)
from epochwatt.board.records.run_folder import RunFolder

MARGIN_PCT = 3.0
STUDIES = 300  # simulated studies of each kind
FACTORS = {
    **{"backend": "host", "device": "host", "instance": "local", "model": "lenet"},
    **{"dataset": "mnist", "dataset_source": "digits", "storage": "disk", "power_mode": "asis"},
}


def rates(true_pct, n, sd_pct=2.0):
    """Return how often each verdict is said in studies of n pairs with this true difference."""
    draw = np.random.default_rng(7)
    said = [judged(draw.normal(true_pct, sd_pct, n), MARGIN_PCT).verdict for _ in range(STUDIES)]
    return {verdict: said.count(verdict) / STUDIES for verdict in (EQUIVALENT, DIFFERENT)}


# over many studies with planted differences; bounds are 4 standard errors wider
SLACK = 4 * np.sqrt(0.05 * 0.95 / STUDIES)


@pytest.mark.parametrize(
    ("true_pct", "n", "sd_pct", "least", "most"),  # of equivalent and of different
    [
        (0.0, 12, 2.0, (0.95, 0.0), (1.0, 0.0)),
        (5.0, 12, 2.0, (0.0, 0.9), (0.0, 1.0)),  # caught, never called equivalent
        *(
            (at, n, 2.0, (0, 0), (0.05 + SLACK,) * 2)
            for at in (-3.0, 3.0)
            for n in (LEAST_PAIRS, 12)
        ),
        (0.0, pairs_needed(2.0, MARGIN_PCT), 2.0, (0.9 - SLACK, 0), (1.0, 1.0)),
        (0.0, 6, 20.0, (0, 0), (0.05, 0.10 + SLACK)),  # noise that hides the margin
    ],
)
def test_verdicts_are_wrong_as_seldom_as_they_say(true_pct, n, sd_pct, least, most):
    said = rates(true_pct, n, sd_pct)
    for verdict, low, high in zip((EQUIVALENT, DIFFERENT), least, most, strict=True):
        assert low <= said[verdict] <= high


class TestOneStudy:
    """Interval, p and verdict agree with each other and with scipy's own."""

    @pytest.mark.parametrize("shift", [-6.0, -2.6, 0.0, 1.9, 2.6, 6.0])
    def test_interval_p_and_verdict_are_those_of_two_one_sided_t_tests(self, shift):
        differences = shift + np.array([0.5, -1.0, 1.0, 1.5, 0.0, -0.5])
        test = judged(differences, MARGIN_PCT)
        asked = stats.ttest_1samp(differences, 0.0).confidence_interval(0.90)
        assert (test.low_pct, test.high_pct) == pytest.approx((asked.low, asked.high))
        above = stats.ttest_1samp(differences, -MARGIN_PCT, alternative="greater").pvalue
        below = stats.ttest_1samp(differences, MARGIN_PCT, alternative="less").pvalue
        assert test.p_equivalent == pytest.approx(max(above, below))
        inside = test.low_pct > -MARGIN_PCT and test.high_pct < MARGIN_PCT
        outside = test.low_pct > MARGIN_PCT or test.high_pct < -MARGIN_PCT
        assert (test.verdict == EQUIVALENT) == inside == (test.p_equivalent < 0.05)
        assert (test.verdict == DIFFERENT) == outside
        assert ("such pairs would decide" in test.reason) == (test.verdict == UNDECIDED)

    @pytest.mark.parametrize(("value", "verdict"), [(0.0, EQUIVALENT), (5.0, DIFFERENT)])
    def test_differences_without_spread_need_no_test(self, value, verdict):
        assert judged(np.full(6, value), MARGIN_PCT).verdict == verdict

    def test_what_was_not_measured_is_said_so(self):
        test = judged(np.array([]), MARGIN_PCT)
        assert (test.verdict, test.reason, test.difference_pct) == (UNDECIDED, "not measured", None)


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ({}, ""),
        ({"environment": {"OMP_NUM_THREADS": "1"}, "builds": {}}, ""),  # of an older record
        (
            {"software": {"python": "3.8.10", "PIL": "9"}, "builds": {"python": "gcc 12"}},
            "PIL none / 9; torch 2.1 / none; build of python",
        ),
    ],
)
def test_software_that_makes_a_pair_no_pair(other, told):
    one = {"software": {"python": "3.8.10", "torch": "2.1"}, "builds": {"python": "gcc 9"}}
    assert software_difference(one, {**one, **other}) == told


@pytest.fixture
def study(tmp_path, monkeypatch, write_epochs, add_epoch):
    """Return a function that makes pairs, B slower by some %, and returns pairs and verdicts."""
    monkeypatch.chdir(tmp_path)
    draw = np.random.default_rng(3)

    quiet_s = 0.008

    def make(n, slower_pct, sd_pct=0.5, software=None, disturbed_s=0.0):
        pairs = []
        for seed in range(n):
            for side in ("none", "box"):
                factor = 1 + (side == "box") * slower_pct / 100
                e2e_s = 10 * factor * (1 + draw.normal(0, sd_pct / 100))
                about = {**FACTORS, "seed": seed, "container": side}
                epochs = [
                    {"e2e_s": e2e_s * k, "compute_s": 0.9 * e2e_s, "wait_s": 0.02, "copy_s": 0.0}
                    for k in (3.0, 1.0, 1.0)
                ]
                write_epochs(f"{side}-{seed}", columns.with_defaults(about), *epochs, root=".")
                told = {"software": software} if software and side == "box" else {}
                for epoch, k in enumerate((3.0, 1.0, 1.0)):
                    parts_s = quiet_s * factor * k * np.array([[0.5, 0.1, 0.9]] * 9)
                    parts_s[3:] += draw.exponential(disturbed_s, (6, 3))
                    add_epoch(RunFolder("measured", f"{side}-{seed}"), epoch, parts_s, **told)
            pairs.append((f"none-{seed}", f"box-{seed}"))
        epochs = [f"results/runs/{run}/epochs.csv" for pair in pairs for run in pair]
        compare_pairs(epochs, pairs, "container", MARGIN_PCT, "measured", "p.csv", "v.csv")
        texts = [Path(path).read_text("utf-8") for path in ("p.csv", "v.csv")]
        rows = [list(csv.DictReader(text.splitlines())) for text in texts]
        return rows[0], {row["metric"]: row for row in rows[1]}

    return make


def test_a_study_of_equal_sides_is_equivalent(study):
    pairs, verdicts = study(8, slower_pct=0.0)
    assert {row["metric"] for row in pairs} >= {"minibatch", "e2e", "wait"}
    assert verdicts["e2e"]["verdict"] == verdicts["minibatch"]["verdict"] == EQUIVALENT
    assert verdicts["e2e"]["is_equivalent"] == "1"
    assert (verdicts["e2e"]["a"], verdicts["e2e"]["b"]) == ("none", "box")
    assert verdicts["e2e"]["n_pairs"] == "8"
    assert verdicts["energy"]["verdict"] == UNDECIDED
    assert verdicts["energy"]["reason"] == "not measured"


def test_what_others_add_to_most_mini_batches_hides_no_slowdown(study):
    pairs, verdicts = study(8, slower_pct=5.0, sd_pct=20.0, disturbed_s=1.0)
    assert verdicts["minibatch"]["verdict"] == UNDECIDED
    assert verdicts["undisturbed"]["verdict"] == DIFFERENT
    assert float(verdicts["undisturbed"]["difference_pct"]) == pytest.approx(5.0, abs=0.1)
    first = next(row for row in pairs if row["metric"] == "undisturbed")
    assert float(first["a"]) == pytest.approx(0.008)  # copy and compute of epochs 1 and 2


def test_other_software_in_the_container_is_no_effect_of_the_container(study):
    pairs, verdicts = study(6, slower_pct=5.0, software={"python": "3.6.9", "torch": "1.8"})
    assert all("torch" in row["differs"] for row in pairs)
    assert verdicts["e2e"]["verdict"] == UNDECIDED
    assert verdicts["e2e"]["n_left_out"] == "6"
    assert "torch" in verdicts["e2e"]["reason"]
