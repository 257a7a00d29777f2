"""Ways to plan anew: on planted rates they do what is right, and none beats the oracle."""

from itertools import product

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from epochwatt.schedule.dynamic.slots import at_rates
from epochwatt.schedule.dynamic.study import ORACLE, along, judge, oracle, scores

SLOT_S = 30.0


def judged(options, rates, switch_s, seed=None):
    arrivals = at_rates(np.array(rates, float), SLOT_S, seed)
    return judge(options(arrivals.rates_per_s), arrivals, switch_s)


def switches(result):
    return {name: int(np.count_nonzero(np.diff(path))) for name, path in result.paths.items()}


def test_at_a_constant_rate_nobody_changes_the_mode_and_all_do_alike(options):
    result = judged(options, [3.0] * 8, 1.0)
    assert set(switches(result).values()) == {0}
    rows = list(scores(result))
    assert {row.trained_per_s for row in rows} == {rows[0].trained_per_s}
    assert {row.regret_pct for row in rows} == {0}


SQUARE = [2, 8] * 5


def test_between_two_rates_the_oracle_changes_the_mode_where_that_is_cheap(options):
    assert judged(options, SQUARE, 0.5).paths[ORACLE].tolist() == [0, 1] * 5


def test_between_two_rates_the_oracle_stays_where_a_change_is_dear(options):
    """A slot of 30 s has 900 mini-batches in one mode and 360 in the other; a change costs 600."""
    path = judged(options, SQUARE, 20.0).paths[ORACLE]
    assert path[1:].tolist() == [1] * 9  # the first mode is free


@pytest.mark.parametrize("switch_s", [0.5, 20.0])
def test_around_a_border_between_modes_hysteresis_stays(options, switch_s):
    noise = [3.8] + [3.5, 4.2] * 6  # the first mode is best at 3.5, the second at 4.2
    changes = switches(judged(options, noise, switch_s))
    assert changes["hysteresis"] == 0
    assert changes["always"] >= 10


def test_hysteresis_follows_a_change_that_lasts(options):
    path = judged(options, [2] * 5 + [8] * 5 + [2] * 5, 1.0).paths["hysteresis"]
    assert path.tolist() == [0] * 6 + [1] * 5 + [0] * 4  # the rate is seen a slot later


def test_a_change_that_is_dear_waits_until_it_has_paid_for_itself(options):
    """At 2/s 18 mini-batches/s are forgone, 540 a slot; a change that takes 29 s costs 870."""
    path = judged(options, [8] * 5 + [2] * 10, 29.0).paths["hysteresis"]
    assert path.tolist() == [1] * 7 + [0] * 8


def test_whoever_keeps_the_mode_of_the_peak_is_never_late(options):
    rows = {row.policy: row for row in scores(judged(options, SQUARE, 0.5))}
    assert rows["never"].late_pct == rows["never"].over_power_pct == 0
    assert rows["never"].n_switches == 0
    assert rows["never"].trained_per_s == pytest.approx((12 + 8) / 2, rel=0.03)
    assert rows["always"].late_pct > 10, "it sees a rate a slot late"
    assert rows["oracle"].late_pct < 1


@given(arrays(float, (4, 3, 3), elements=st.floats(-100, 100)))
def test_the_oracle_s_path_is_the_best_of_all(value):
    best = max(along(value, np.array(path)).sum() for path in product(range(3), repeat=4))
    assert along(value, oracle(value)).sum() == pytest.approx(best, abs=1e-9)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.floats(1.0, 15.0), min_size=2, max_size=8),
    st.floats(0.01, SLOT_S),
    st.one_of(st.none(), st.integers(0, 9)),
)
def test_no_way_of_planning_beats_the_oracle(options, rates, switch_s, seed):
    assert min(row.regret_pct for row in scores(judged(options, rates, switch_s, seed))) >= -1e-9
