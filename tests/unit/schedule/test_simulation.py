"""Requests wait as counted by hand; plans that hold with steady arrivals hold when played."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochwatt.schedule.plans import serve_and_train, serve_two
from epochwatt.schedule.simulation import (
    Interleaved,
    arrivals_s,
    latencies_of_two_s,
    latencies_s,
    played_latencies_s,
)


def test_a_request_waits_for_the_rest_of_its_mini_batch_and_for_training_that_runs():
    arrivals = np.array([[0.0, 1.0, 2.0, 3.5, 3.6, 3.7]])
    # 1.0 to 1.4 inference; training 1.4 to 2.9, 2.9 to 4.4, late by 0.9; at 4.8 one waits already
    plan = Interleaved(batch_size=2, infer_s=0.4, n_train=3, train_s=1.5)
    waited = latencies_s(arrivals, plan)[0]
    assert waited == pytest.approx([1.4, 0.4, 2.8, 1.3, 1.6, 1.5])


@given(st.floats(0.1, 100), st.integers(1, 64), st.floats(0.01, 1), st.floats(0.01, 3))
def test_steady_arrivals_wait_as_the_formula_says(rate, batch, busy, train):
    infer_s, train_s = busy * batch / rate, train * batch / rate
    outcome = serve_and_train(rate, batch, (infer_s, 1.0), (train_s, 1.0))
    arrivals = np.arange(20 * batch)[None] / rate
    plan = Interleaved(batch, infer_s, int(outcome.n_train), train_s)
    assert latencies_s(arrivals, plan).max() == pytest.approx(float(outcome.latency_s), rel=1e-6)


def test_share_of_requests_alone_is_that_of_the_queue_with_constant_service():
    """M/D/1 with half the load: a request finds nobody with probability 1 - load."""
    waited = played_latencies_s(0.5, Interleaved(batch_size=1, infer_s=1.0))
    assert (waited > 1.0).mean() == pytest.approx(0.5, abs=0.02)


def test_a_mini_batch_waits_for_those_of_the_other_stream_that_were_complete_before():
    arrivals = np.array([[0.0, 1.0, 4.0, 5.0]]), np.array([[0.5, 4.5]])
    plans = Interleaved(batch_size=2, infer_s=1.0), Interleaved(batch_size=1, infer_s=2.0)
    first, second = latencies_of_two_s(arrivals, plans)
    assert second[0] == pytest.approx([2.0, 2.0])  # 0.5 to 2.5, 4.5 to 6.5
    assert first[0] == pytest.approx([3.5, 2.5, 3.5, 2.5])  # 2.5 to 3.5, 6.5 to 7.5


@given(
    st.tuples(st.floats(0.1, 100), st.floats(0.1, 100)),
    st.tuples(st.integers(1, 16), st.integers(1, 16)),
    st.floats(0.01, 1),
    st.floats(0.01, 0.99),
)
def test_two_steady_streams_never_wait_longer_than_the_formula_says(rates, sizes, busy, part):
    both_s = busy * min(size / rate for size, rate in zip(sizes, rates, strict=True))
    times = part * both_s, (1 - part) * both_s
    outcomes = serve_two(rates, sizes, (times[0], 1.0), (times[1], 1.0))
    pairs = list(zip(rates, sizes, strict=True))
    arrivals = tuple(arrivals_s("constant", rate, (5, 20 * size)) for rate, size in pairs)
    plans = tuple(Interleaved(size, time) for size, time in zip(sizes, times, strict=True))
    for waited, outcome in zip(latencies_of_two_s(arrivals, plans), outcomes, strict=True):
        assert waited.max() <= float(outcome.latency_s) * (1 + 1e-6)


@pytest.mark.parametrize("arrivals", ["constant", "poisson"])
def test_requests_arrive_at_their_rate(arrivals):
    times = arrivals_s(arrivals, 4.0, (20, 2000))
    assert (np.diff(times, axis=1) >= 0).all()
    assert np.diff(times, axis=1).mean() == pytest.approx(0.25, rel=0.02)


def test_one_request_in_ages_leaves_time_for_more_training_than_an_integer_holds():
    plan = Interleaved(batch_size=1, infer_s=1.0, n_train=10**30, train_s=1.0)
    assert played_latencies_s(1e-300, plan).max() == pytest.approx(1.0, abs=1.0)
