"""When requests are served and what is trained between, on a clock that the test moves."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochwatt.board.training.interleave.arrivals import CONSTANT, POISSON, arrivals
from epochwatt.board.training.interleave.scheduler import Interleaver, Plan
from epochwatt.schedule.problem import outcome


class Clock:
    """Stands still unless it is moved."""

    def __init__(self, t_s=1000.0):
        self.t_s = t_s

    def now(self):
        return self.t_s

    def sleep_until(self, t_s):
        assert t_s > self.t_s, "a sleep into the past would never end"
        self.t_s = t_s

    def takes(self, seconds):
        """Return a job of these seconds, or of as many as an iterator gives next."""

        def run():
            self.t_s += seconds if isinstance(seconds, float) else next(seconds)

        return run


def run(plan, times, seconds, infer_s, train_s, stopped_at_s=math.inf):
    """Run a plan on such a clock; return its log."""
    clock = Clock()
    before = [train_s] if isinstance(train_s, float) else [next(train_s)]
    end_s = clock.t_s + stopped_at_s
    runner = Interleaver(
        plan,
        clock.takes(infer_s),
        clock.takes(train_s),
        before,
        clock,
        lambda: clock.t_s >= end_s,
    )
    return runner.run(times, seconds)


def latencies(log):
    return np.array(log.end_s) - np.array(log.arrival_s)


@given(
    rate=st.floats(0.5, 200),
    batch=st.integers(1, 16),
    infer_share=st.floats(0.01, 0.99),
    train_share=st.floats(0.01, 1.5),
)
def test_constant_arrivals_wait_and_train_as_the_formulas_say(
    rate, batch, infer_share, train_share
):
    period_s = batch / rate
    infer_s, train_s = infer_share * period_s, train_share * period_s
    room = (1 - infer_share) / train_share
    if abs(room - round(room)) < 1e-6:  # where the last one just fits, digits decide
        train_s *= 1.001
    plan = Plan(rate, batch, None, 10 * batch)
    log = run(plan, arrivals(CONSTANT, rate, 20.5 * period_s, 0), 20.5 * period_s, infer_s, train_s)
    wanted = outcome([(rate, batch, infer_s, 1.0)], (train_s, 1.0))
    served = latencies(log)[: 20 * batch]
    assert served.max() == pytest.approx(float(wanted.latency_s[0]), rel=1e-6)
    trained = np.histogram(log.train_start_s, 1000 + period_s * np.arange(1, 20))[0]
    assert set(trained) == {int(wanted.n_train)}
    assert not any(log.refused)


def test_poisson_arrivals_are_all_accounted_for_and_never_served_in_part():
    plan = Plan(20.0, 4, None, 40)
    times = arrivals(POISSON, 20.0, 60.0, 7)
    assert times == arrivals(POISSON, 20.0, 60.0, 7) != arrivals(POISSON, 20.0, 60.0, 8)
    log = run(plan, times, 60.0, 0.05, 0.02)
    assert len(log.arrival_s) == len(times) == pytest.approx(1200, rel=0.1)
    served = np.isfinite(log.end_s)
    assert served.sum() == len(times) - len(times) % 4
    assert set(np.unique(np.array(log.start_s)[served], return_counts=True)[1]) == {4}
    assert (latencies(log)[served] >= 0.05 - 1e-9).all()
    last = np.array(log.arrival_s)[3 : served.sum() : 4]  # completes a mini-batch
    starts = np.array(log.start_s)[3 : served.sum() : 4]
    assert (np.diff(starts) >= 0.05 - 1e-9).all()
    assert (starts >= last).all()


def test_an_overload_refuses_what_finds_the_queue_full_and_still_serves_in_order():
    plan = Plan(100.0, 5, None, 20)
    log = run(plan, arrivals(CONSTANT, 100.0, 10.0, 0), 10.0, 0.1, 0.01)  # 50 a second at best
    served, refused = np.isfinite(log.end_s), np.array(log.refused)
    assert len(log.arrival_s) == 1000
    assert served.sum() + refused.sum() == 1000
    assert refused.sum() == pytest.approx(500, abs=25)
    assert latencies(log)[served].max() <= (20 / 5 + 1) * 0.1 + 1e-9  # the queue, and what runs
    assert (np.diff(np.array(log.start_s)[served]) >= 0).all()
    after = np.array(log.train_start_s) > 1000.2
    assert not after.any(), "nothing is trained while requests wait"
