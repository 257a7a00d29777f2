"""The signal with the known integral, and its faults."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.synthetic import TRAINING, SyntheticSource

times = st.floats(0, 1e6)


def test_power_is_a_periodic_staircase():
    source = SyntheticSource(TRAINING)
    assert [source.power_w(t) for t in (0.0, 0.119, 0.121, 0.349, 0.351)] == [8, 8, 22, 22, 8]
    assert SyntheticSource(TRAINING, phase_s=0.2).power_w(0.0) == 22.0


@given(times, st.floats(0, 100), st.floats(0, 1))
def test_energy_is_the_integral_of_power(t0_s, span_s, phase_s):
    source = SyntheticSource(TRAINING, phase_s=phase_s)
    n = 1000
    t_s = t0_s + (np.arange(n) + 0.5) * span_s / n
    sum_j = sum(map(source.power_w, t_s.tolist())) * span_s / n
    n_steps = 2 + 2 * span_s / 0.35  # each level's end is off by at most half a step of the sum
    worst_j = 14.0 * n_steps * span_s / n / 2 + 1e-6
    assert source.energy_j(t0_s, t0_s + span_s) == pytest.approx(sum_j, abs=worst_j)


@given(times, times, times)
def test_energies_of_adjoining_windows_add_up(a, b, c):
    a, b, c = sorted((a, b, c))
    source = SyntheticSource(TRAINING)
    whole = source.energy_j(a, b) + source.energy_j(b, c)
    assert whole == pytest.approx(source.energy_j(a, c), abs=1e-6)


def test_whole_periods_have_the_mean_power():
    assert SyntheticSource(TRAINING).energy_j(5.0, 5.0 + 0.35 * 100) == pytest.approx(602.0)


def test_rails_add_up_to_the_total(clock):
    source = SyntheticSource(rails=4, clock=clock)
    assert source.columns[0] == source.total
    total, *rails = source.read()
    assert len(rails) == 3
    assert sum(rails) == pytest.approx(total)


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


def test_fault_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="no such fault: dies; there are die_after"):
        SyntheticSource(faults={"dies": 1})


def test_settings_say_that_it_is_not_measured():
    about = SyntheticSource().settings()
    assert about["synthetic"] is True
    assert about["sensor"]["reads"] == "instant"
    assert about["sensor"]["step_w"] == {"power_total_w": 1e-4}
