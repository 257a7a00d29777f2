"""Rates that change: arrivals are counted, slots as by hand, and nothing beats the oracle."""

from itertools import product

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from epochwatt.errors import ConfigError
from epochwatt.schedule.changing import (
    arrivals_at_rates,
    build_arrivals,
    on_path,
    options_for,
    oracle,
    play_slots,
    policy_rows,
)
from epochwatt.schedule.config import Rates
from epochwatt.schedule.problem import Space, Workload

SLOT_S = 30.0
MODES = np.array([[4, 400, 100, 700, 1, 0], [8, 400, 200, 700, 1, 0]], float)
ONE = np.ones((2, 1))


@pytest.fixture
def options():
    """Return a function that gives both modes for rates; within 1 s and 30 W.

    Requests are served one by one. At 2/s the first trains 30 mini-batches/s, the second 12; above
    5/s only the second serves them all.
    """
    train = Workload("t", MODES, np.array([16]), np.array([[0.02], [0.07]]), 20 * ONE)
    infer = Workload("i", MODES, np.array([1]), np.array([[0.2], [0.05]]), 25 * ONE)
    space = Space(train, (infer,))
    return lambda rates: options_for(space, 30.0, 1.0, np.asarray(rates, float))


def test_steady_arrivals_are_as_many_as_the_rates_say():
    arrivals = build_arrivals(Rates(steps=[(20, 0.25), (10, 1)]), 4.0, 10.0, None)
    assert arrivals.n_slots == 3
    assert arrivals.times_s[:3] == pytest.approx([1, 2, 3])
    assert np.diff(arrivals.times_s)[-5:] == pytest.approx(0.25)
    assert arrivals.rates_per_s == pytest.approx([1, 1, 4], abs=0.11)  # one at a border
    assert len(arrivals.times_s) == 60


def test_random_arrivals_are_so_on_average_and_always_the_same():
    rates = np.repeat([5.0, 50.0], 50)
    one, again, other = (arrivals_at_rates(rates, 10.0, seed) for seed in (1, 1, 2))
    assert np.array_equal(one.times_s, again.times_s)
    assert len(one.times_s) != len(other.times_s)
    assert one.rates_per_s[:50].mean() == pytest.approx(5, rel=0.1)
    assert one.rates_per_s[50:].mean() == pytest.approx(50, rel=0.05)
    gaps_s = np.diff(one.times_s[one.times_s > 500])
    assert gaps_s.std() == pytest.approx(gaps_s.mean(), rel=0.05)  # exponential


def test_a_recorded_trace_is_taken_as_it_is(tmp_path):
    (tmp_path / "trace").write_text("# s\n0.5\n3\n9\n21\n", "utf-8")
    arrivals = build_arrivals(Rates(file="trace"), 1.0, 10.0, 0, tmp_path)
    assert arrivals.times_s.tolist() == [0.5, 3, 9, 21]
    assert arrivals.rates_per_s == pytest.approx([0.3, 0.1, 0.1])  # without any: as with one
    with pytest.raises(ConfigError, match="two slots"):
        build_arrivals(Rates(file="trace"), 1.0, 30.0, 0, tmp_path)
    (tmp_path / "trace").write_text("3\n1\n", "utf-8")
    with pytest.raises(ConfigError, match="trace"):
        build_arrivals(Rates(file="trace"), 1.0, 10.0, 0, tmp_path)


@pytest.mark.parametrize(
    "words", [{}, {"steps": [(9, 2)]}, {"day": [1]}, {"day": (1, 60), "file": "x"}]
)
def test_rates_that_cannot_be_are_refused(words):
    with pytest.raises(ValueError, match=r"one of: steps|at most 1|two numbers"):
        Rates(**words)


def test_steady_slots_train_as_the_formula_says_and_nobody_is_late(options):
    slots = play_slots(options([2.0, 8.0]), arrivals_at_rates(np.array([2.0] * 3), 30.0, None), 3.0)
    stay = np.diagonal(slots.n_trained, axis1=1, axis2=2) / 30
    assert stay[1] == pytest.approx([30, 12], rel=0.02)
    # clocks settle for 3 of 30 s: nothing is trained in them
    assert slots.n_trained[1, 0, 1] == pytest.approx(0.9 * slots.n_trained[1, 1, 1], rel=0.03)
    assert slots.n_late.sum() == slots.over_s.sum() == 0
    assert slots.worst_s[1] == pytest.approx(np.array([[0.2, 0.2], [0.2, 0.05]]))


def test_an_overload_refuses_some_and_answers_others_late(options):
    slots = play_slots(options([2.0, 8.0]), arrivals_at_rates(np.array([8.0] * 2), 30.0, None), 3.0)
    # 5 of 8 a second are served in the first mode, after a queue of ten: 2 s; all are late but the
    # first few
    assert slots.n_late[:, 0, 0] == pytest.approx([225, 225], rel=0.05)
    assert slots.worst_s[:, 0, 0] == pytest.approx(2.2, abs=0.2)
    assert slots.n_late[:, 1, 1].tolist() == [0, 0]


def scored(options, rates, switch_s, seed=None):
    arrivals = arrivals_at_rates(np.array(rates, float), SLOT_S, seed)
    return policy_rows(options(arrivals.rates_per_s), arrivals, switch_s)[0].set_index("policy")


@given(arrays(float, (4, 3, 3), elements=st.floats(-100, 100)))
def test_the_oracle_s_path_is_the_best_of_all(value):
    best = max(on_path(value, np.array(path)).sum() for path in product(range(3), repeat=4))
    assert on_path(value, oracle(value)).sum() == pytest.approx(best, abs=1e-9)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.floats(1.0, 15.0), min_size=2, max_size=8),
    st.floats(0.01, SLOT_S),
    st.one_of(st.none(), st.integers(0, 9)),
)
def test_no_way_of_planning_beats_the_oracle(options, rates, switch_s, seed):
    assert scored(options, rates, switch_s, seed)["regret_pct"].min() >= -1e-9
