"""The harness that judges predictors: draws, errors of new modes, choices under power limits."""

from dataclasses import replace
from math import comb

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import measured
from epochwatt.prediction.data.modes import Mode, PredictionError
from epochwatt.prediction.data.observations import observations_from_rows
from epochwatt.prediction.harness import (
    NONE,
    best_profiled,
    cross_validate,
    fastest_within,
    judge,
    leave_one_mode_out,
    mape_pct,
    random_subsets,
    score,
    split,
)
from epochwatt.prediction.models.features import POWER
from epochwatt.prediction.models.paper import fit_paper_time
from epochwatt.prediction.models.physical import fit_physical_time, fit_power
from epochwatt.prediction.predictor import Method
from epochwatt.prediction.registry import load_methods

SCORED = {name: method for name, method in load_methods().items() if method.is_scored}
PLAIN = {name: method for name, method in SCORED.items() if not method.needs_prior}
MODES = [Mode(n, 1000.0, 900.0, 1600.0) for n in range(1, 9)]


# -- draws ---------------------------------------------------------------------------------------


@given(st.integers(1, 7), st.integers(1, 100), st.integers(0, 99))
def test_each_mode_trains_or_tests_and_no_subset_comes_twice(size, n_splits, seed):
    splits = random_subsets(MODES, size, n_splits, seed)
    assert len(splits) == min(n_splits, comb(len(MODES), size))
    assert len({frozenset(of.train) for of in splits}) == len(splits)
    assert splits == random_subsets(MODES, size, n_splits, seed)
    for of in splits:
        assert len(of.train) == size
        assert sorted(of.train + of.test) == MODES


def test_splits_that_cannot_be_are_refused():
    for train in ([], MODES):
        with pytest.raises(PredictionError, match="one or more, and not all of them"):
            split(MODES, train)
    with pytest.raises(PredictionError, match="nothing was observed under 9 cores"):
        split(MODES, [Mode(9, 1000.0, 900.0, 1600.0)])


# -- errors --------------------------------------------------------------------------------------


@pytest.fixture
def epochs(plant, modes):
    """Three epochs of each mode; the first takes twice the time of the others. With power."""
    times = plant((0.5, 0.25, 0.15, 0.1, 0.0)).time_s
    watts = plant((0.1, 0.3, 0.1, 0.1, 0.1, 0.3), terms=POWER, whole=25).power_w
    n = len(modes)
    return observations_from_rows(
        "resnet",
        modes * 3,
        [*(2 * times), *times, *times],
        [*watts, *watts, *watts],
        [0] * n + [1] * n + [2] * n,
    )


def test_errors_equal_those_worked_out_by_hand():
    """90 for 100 is 10 %, 30 for 20 is 50 %, 40 for 40 is none: 20 % on average."""
    assert mape_pct([90, 30, 40], [100, 20, 40]) == pytest.approx(20)
    assert score(range(11)) == (11, 5.0, 9.0, 10.0)
    with pytest.raises(PredictionError, match="no prediction"):
        score([])


def test_method_sees_the_later_epochs_of_the_training_modes_only(epochs, modes, efij):
    contexts = []

    def fit(observations, context):
        contexts.append((observations, context))
        return fit_paper_time(observations)

    answers = cross_validate(
        [Method("spy", ("time_s",), fit, None)], [epochs], [split(modes, efij)]
    )
    ((seen, context),) = contexts
    for observations in (seen, *context.networks):
        assert set(observations.distinct()) == set(efij)
        assert observations.epoch.min() == 1
    assert set(answers["target"]) == {"time_s"}
    assert set(answers["table"]) == {"resnet"}
    test = epochs.only(set(modes) - set(efij)).after_first().per_mode()
    predicted = fit_paper_time(seen).predict(test.modes)
    assert answers["error_pct"].to_numpy() == pytest.approx(100 * abs(predicted / test.time_s - 1))
    assert [modes[place] for place in answers["mode"]] == list(test.mode_of_row)


def test_methods_without_energy_of_their_own_predict_it_as_time_x_power(epochs, modes, efij):
    answers = cross_validate(PLAIN.values(), [epochs], [split(modes, efij)])
    targets = answers.groupby("method")["target"].unique()
    assert list(targets["physical"]) == ["time_s", "power_w", "energy_wh"]
    assert list(targets["log"]) == ["time_s"]
    without = replace(epochs, power_w=np.full(len(epochs.power_w), np.nan))
    answers = cross_validate([PLAIN["paper"]], [without], [split(modes, efij)])
    assert set(answers["target"]) == {"time_s"}


def test_real_modes_of_agx_xavier_left_out_one_by_one(yolo, coverage):
    """Inference, not training: YOLOv3 on AGX Xavier in its seven stock modes."""
    for table in (measured.without_gated_mode(yolo) | measured.with_gpu_share(yolo)).values():
        splits = leave_one_mode_out(table.distinct())
        answers = cross_validate(PLAIN.values(), [table], splits)
        errors = answers.groupby(["target", "method"])["error_pct"].median()
        assert errors["time_s", "physical"] < min(errors["time_s", "paper"] / 2, 5)
        assert errors["energy_wh", "physical"] < errors["energy_wh", "paper"]
        for fit in (fit_physical_time, fit_power):
            n_held, n_modes = coverage(fit, table, splits)
            assert n_held >= 0.6 * n_modes


# -- choices under power limits ------------------------------------------------------------------

TIME = [10.0, 8.0, 8.0, 5.0, 9.0]
WATTS = [10.0, 20.0, 18.0, 30.0, 25.0]
NAN = np.nan


@pytest.fixture
def table():
    return observations_from_rows("t", MODES[:5], TIME, WATTS)


def test_fastest_within_a_limit_is_the_one_of_least_power_among_equals(table):
    limits = np.array([9.9, 10.0, 17.0, 18.0, 29.0, 30.0])
    places = fastest_within(np.array(TIME), np.array(WATTS), limits)
    assert places.tolist() == [NONE, 0, 0, 2, 2, 3]
    profiled = best_profiled(table, np.array([0, 1, 4]), np.array([9.0, 19.0, 20.0, 40.0]))
    assert profiled.tolist() == [NONE, 0, 1, 1]


def chosen(limits_w, time_s, power_w, best_s):
    frame = pd.DataFrame({"limit_w": limits_w, "time_s": time_s, "power_w": power_w})
    frame["penalty_pct"] = 100 * (frame["time_s"] / best_s - 1)
    return frame.assign(over_w=frame["power_w"] - frame["limit_w"])


def test_shares_are_of_the_answers_and_the_area_of_all_limits():
    judged = judge(
        chosen([10.0, 20, 30, 40], [NAN, 9, 6, 5], [NAN, 20.5, 34, 40], np.array([NAN, 10, 8, 4]))
    )
    assert (judged.n_limits, judged.n_answered) == (4, 3)
    assert judged.penalty_pct == pytest.approx(-10)  # of -10, -25 and +25 %
    assert judged.over_pct == pytest.approx(200 / 3)  # 20.5 W and 34 W
    assert judged.over_1w_pct == pytest.approx(100 / 3)  # 34 W alone
    # excess 0, 0.5, 4, 0 W in steps of 10 W: 45 W x W, below the limits lie 750
    assert judged.excess_area_pct == pytest.approx(100 * 45 / 750)

    for limits in ([10.0], [20.0, 10.0]):
        with pytest.raises(PredictionError, match="do not ascend"):
            judge(chosen(limits, 1.0, 1.0, 1.0))
