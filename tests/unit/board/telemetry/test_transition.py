"""When power has followed a load: steps up and down, lags, drifts, noise, and no step at all."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epochwatt.board.telemetry.transition import LEVEL_S, find_transition

LOAD_S = 1000.0
BEFORE_W = 8.0
IDLE_S, LOADED_S = 3.0, 20.0


def power_of(
    hz=10.0, step_w=10.0, delay_s=0.0, tau_s=0.0, drift=0.0, noise=0.0, loop_s=0.0, seed=0
):
    """Return stamps and readings of a sensor, as the sampler takes them: one in each period."""
    random = np.random.default_rng(seed)
    t_s = np.arange(-IDLE_S, LOADED_S, 1 / hz)
    t_s = t_s + random.uniform(0, 1 / hz, t_s.size)
    late_s = t_s - delay_s
    share = np.where(late_s > 0, 1 - np.exp(-late_s / tau_s) if tau_s else 1.0, 0.0)
    if loop_s:
        share *= 2.0 * (late_s % loop_s > loop_s / 2)
    power_w = BEFORE_W * (1 + drift * (t_s + IDLE_S)) + step_w * share
    return LOAD_S + t_s, power_w * (1 + noise * random.standard_normal(t_s.size))


def after_s(**signal):
    """Return how long after the load power had followed; None: it never had."""
    found = find_transition(*power_of(**signal), LOAD_S)
    return None if found is None else found.followed_s - LOAD_S


@pytest.mark.parametrize("step_w", [20.0, 2.0, -3.0])
@pytest.mark.parametrize("hz", [1.0, 10.0])
def test_a_step_is_followed_at_its_next_reading(hz, step_w):
    found = find_transition(*power_of(hz=hz, step_w=step_w), LOAD_S)
    assert 0 < found.lag_s <= 2 / hz
    assert found.followed_s == LOAD_S + found.lag_s
    assert found.before_w == pytest.approx(BEFORE_W)
    assert found.level_w == pytest.approx(BEFORE_W + step_w)
    assert LEVEL_S - 1 / hz < found.seen_s - found.followed_s < max(2.0, 5 / hz)


@given(
    hz=st.sampled_from([1.0, 2.0, 10.0]),
    step_w=st.floats(6.0, 40.0) | st.floats(-7.0, -5.0),
    drift=st.floats(-0.005, 0.005),
    noise=st.floats(0.0, 0.02),
    seed=st.integers(0, 10_000),
)
def test_a_large_step_is_found_whatever_drift_and_noise_there_are(hz, step_w, drift, noise, seed):
    signal = power_of(hz=hz, step_w=step_w, drift=drift, noise=noise, seed=seed)
    found = find_transition(*signal, LOAD_S)
    assert found is not None
    t_s, _ = signal
    assert found.followed_s in t_s
    assert LOAD_S < found.followed_s < found.seen_s <= t_s[-1]
    assert found.level_w - found.before_w == pytest.approx(step_w, rel=0.3)


@given(
    hz=st.sampled_from([1.0, 2.0, 10.0]),
    drift=st.floats(-0.005, 0.005),
    noise=st.floats(0.0, 0.002),
    seed=st.integers(0, 10_000),
)
def test_without_a_step_nothing_is_found_however_power_drifts(hz, drift, noise, seed):
    assert after_s(hz=hz, step_w=0.0, drift=drift, noise=noise, seed=seed) is None


@pytest.mark.parametrize("hz", [1.0, pytest.param(10.0, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("noise", [0.02, 0.05])
@pytest.mark.parametrize("drift", [0.0, 0.01])
def test_noise_is_seldom_taken_for_a_step(hz, noise, drift):
    runs = range(100)
    found = [after_s(hz=hz, step_w=0.0, noise=noise, drift=drift, seed=n) for n in runs]
    assert sum(lag is not None for lag in found) <= 4


@settings(max_examples=3)  # each is a hundred searches
@given(seed=st.integers(0, 10_000), step_w=st.floats(-3.0, 20.0), tau_s=st.floats(0.1, 3.0))
def test_later_readings_never_change_an_answer(seed, step_w, tau_s):
    t_s, power_w = power_of(step_w=step_w, tau_s=tau_s, noise=0.02, seed=seed)
    whole = find_transition(t_s, power_w, LOAD_S)
    for n in range(30, len(t_s), 7):
        part = find_transition(t_s[:n], power_w[:n], LOAD_S)
        assert part == (whole if whole is not None and whole.seen_s <= t_s[n - 1] else None)
        if part is None:  # so what was examined need not be again
            assert find_transition(t_s, power_w, LOAD_S, examined=n) == whole
