"""Choices under power limits and what they cost, by numbers worked out by hand."""

import numpy as np
import pytest

from epochwatt.prediction.data.modes import PredictionError
from epochwatt.prediction.transfer.limits import NONE, fastest_within, judge, penalties_pct

TIME = np.array([10.0, 8.0, 8.0, 5.0, 9.0])
POWER = np.array([10.0, 20.0, 18.0, 30.0, 25.0])
NAN = np.nan


def test_fastest_within_a_limit_is_the_one_of_least_power_among_equals():
    limits = np.array([9.9, 10.0, 17.0, 18.0, 29.0, 30.0])
    assert fastest_within(TIME, POWER, limits).tolist() == [NONE, 0, 0, 2, 2, 3]


def test_penalty_is_what_the_choice_takes_over_the_optimum():
    chosen, best = np.array([12.0, 9.0, NAN]), np.array([10.0, 10.0, 10.0])
    assert penalties_pct(chosen, best)[:2] == pytest.approx([20, -10])
    assert np.isnan(penalties_pct(chosen, best)[2])


def test_shares_are_of_the_answers_and_the_area_of_all_limits():
    judged = judge(
        limits_w=np.array([10.0, 20.0, 30.0, 40.0]),
        time_s=np.array([NAN, 9.0, 6.0, 5.0]),
        power_w=np.array([NAN, 20.5, 34.0, 40.0]),
        best_s=np.array([NAN, 10.0, 8.0, 4.0]),
    )
    assert (judged.n_limits, judged.n_answered) == (4, 3)
    assert judged.penalty_pct == pytest.approx(-10)  # of -10, -25 and +25 %
    assert judged.over_pct == pytest.approx(200 / 3)  # 20.5 W and 34 W
    assert judged.over_1w_pct == pytest.approx(100 / 3)  # 34 W alone
    # excess 0, 0.5, 4, 0 W in steps of 10 W: 45 W x W, below the limits lie 750
    assert judged.excess_area_pct == pytest.approx(100 * 45 / 750)


def test_one_watt_over_is_not_more_than_one():
    judged = judge(
        np.array([10.0, 20.0]), *(np.array([1.0, 1.0]), np.array([11.0, 20.0])), TIME[:2]
    )
    assert (judged.over_pct, judged.over_1w_pct) == (50, 0)


def test_no_answer_has_no_penalty_and_no_shares():
    nothing = np.array([NAN, NAN])
    judged = judge(np.array([1.0, 2.0]), nothing, nothing, np.array([NAN, 3.0]))
    assert judged.n_answered == 0
    assert np.isnan([judged.penalty_pct, judged.over_pct, judged.over_1w_pct]).all()
    assert judged.excess_area_pct == 0


def test_a_limit_that_no_mode_keeps_counts_as_broken_and_has_no_penalty():
    judged = judge(
        np.array([5.0, 10.0]), np.array([10.0, 10.0]), POWER[[0, 0]], np.array([NAN, 10.0])
    )
    assert (judged.over_pct, judged.penalty_pct) == (50, 0)


@pytest.mark.parametrize("limits", [[10.0], [20.0, 10.0], [10.0, 10.0]])
def test_limits_have_to_ascend(limits):
    some = np.ones(len(limits))
    with pytest.raises(PredictionError, match="do not ascend"):
        judge(np.array(limits), some, some, some)
