"""The signal with the known integral, and its faults."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.synthetic import TRAINING, SyntheticSource

times = st.floats(0, 1e6)


@given(times, st.floats(0, 100), st.floats(0, 1))
def test_energy_is_the_integral_of_power(t0_s, span_s, phase_s):
    source = SyntheticSource(TRAINING, phase_s=phase_s)
    n = 1000
    t_s = t0_s + (np.arange(n) + 0.5) * span_s / n
    sum_j = sum(map(source.power_w, t_s.tolist())) * span_s / n
    n_steps = 2 + 2 * span_s / 0.35  # each level's end is off by at most half a step of the sum
    worst_j = 14.0 * n_steps * span_s / n / 2 + 1e-6
    assert source.energy_j(t0_s, t0_s + span_s) == pytest.approx(sum_j, abs=worst_j)


def reads(clock, n=4, **faults):
    source = SyntheticSource(faults=faults, clock=clock, sleep=clock.sleep)
    values = []
    for _ in range(n):
        clock.sleep(0.12)
        try:
            values += source.read()
        except OSError:
            values.append("error")
    return values


def test_faults_spoil_what_is_read(clock):
    assert reads(clock, die_after=2)[2:] == ["error", "error"]
    assert reads(clock, error_every=2)[1::2] == ["error", "error"]
    assert len(set(reads(clock, n=9, stuck_after=2)[2:])) == 1
    assert all(math.isnan(v) for v in reads(clock, nan_after=1)[1:])
    assert [v > 0 for v in reads(clock, negative_after=2)] == [True, True, False, False]
    before_s = clock.t_s
    reads(clock, hang_at=2, hang_s=50.0)
    assert clock.t_s - before_s == pytest.approx(50.48, abs=0.01)
