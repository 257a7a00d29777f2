"""Requests wait as counted by hand; plans that hold with steady arrivals hold when played."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochwatt.schedule.plans import serve_and_train
from epochwatt.schedule.simulation import Interleaved, play, poisson_share


def test_a_request_waits_for_the_rest_of_its_mini_batch_and_for_training_that_runs():
    arrivals = np.array([[0.0, 1.0, 2.0, 3.5, 3.6, 3.7]])
    # 1.0 to 1.4 inference; training 1.4 to 2.9, 2.9 to 4.4, late by 0.9; at 4.8 one waits already
    plan = Interleaved(batch_size=2, infer_s=0.4, n_train=3, train_s=1.5)
    waited = play(arrivals, plan).latency_s[0]
    assert waited == pytest.approx([1.4, 0.4, 2.8, 1.3, 1.6, 1.5])


def test_without_training_only_other_requests_are_waited_for():
    waited = play(np.array([[0.0, 0.1, 5.0]]), Interleaved(batch_size=1, infer_s=1.0)).latency_s
    assert waited[0] == pytest.approx([1.0, 1.9, 1.0])


@given(st.floats(0.1, 100), st.integers(1, 64), st.floats(0.01, 1), st.floats(0.01, 3))
def test_steady_arrivals_wait_as_the_formula_says(rate, batch, busy, train):
    infer_s, train_s = busy * batch / rate, train * batch / rate
    outcome = serve_and_train(rate, batch, (infer_s, 1.0), (train_s, 1.0))
    arrivals = np.arange(20 * batch)[None] / rate
    plan = Interleaved(batch, infer_s, int(outcome.n_train), train_s)
    assert play(arrivals, plan).latency_s.max() == pytest.approx(float(outcome.latency_s), rel=1e-6)


def test_share_of_requests_alone_is_that_of_the_queue_with_constant_service():
    """M/D/1 with half the load: a request finds nobody with probability 1 - load."""
    share = poisson_share(0.5, 1.0, Interleaved(batch_size=1, infer_s=1.0))
    assert share == pytest.approx(0.5, abs=0.02)
