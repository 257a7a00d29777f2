"""The study of rates that change: its rows."""

import numpy as np
import pytest

from epochwatt.schedule.dynamic.rates import at_rates
from epochwatt.schedule.dynamic.study import CASE, ORACLE, POLICIES, SCORES, SLOTS, by_slot, judge
from epochwatt.schedule.dynamic.study import scores as scores_of


def test_rows_fill_their_columns_and_tell_of_every_way(options):
    arrivals = at_rates(np.array([2.0, 8.0, 2.0]), 30.0, None)
    judged = judge(options(arrivals.rates_per_s), arrivals, 1.0)
    scores, slots = list(scores_of(judged)), list(by_slot(judged))
    case = set(CASE) - {"policy"}
    assert {frozenset(row) | case for row in scores} == {frozenset(SCORES)}
    assert {frozenset(row) | case for row in slots} == {frozenset(SLOTS)}
    assert [row["policy"] for row in scores] == [ORACLE, *POLICIES]
    assert {row["n_requests"] for row in scores} == {360}
    oracle = [row for row in slots if row["policy"] == ORACLE]
    assert [row["t_s"] for row in oracle] == [0, 30, 60]
    assert [row["gpu_mhz"] for row in oracle] == [100, 200, 100]
    trained_per_s = sum(row["trained_per_s"] for row in oracle) / 3
    assert trained_per_s == pytest.approx(scores[0]["trained_per_s"])
