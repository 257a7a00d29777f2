"""Each part of the bounds of energy is there: what is lost where one of them is left out."""

import numpy as np
import pytest

from epochwatt.epochs.energy import trapezoid
from epochwatt.epochs.sensor import INSTANT, MEAN, Sensor
from epochwatt.epochs.stalls import BEYOND, stall_energy

IDEAL = Sensor(INSTANT, averaging_s=0.0, rounding_w=0.0)
AVERAGING = Sensor(MEAN, averaging_s=0.3, rounding_w=0.0)  # reaches 0.6 s back
LOW_W, HIGH_W, PERIOD_S, STALL_S = 8.0, 22.0, 2.0, 1.0


def stalling(n, noise_w=0.0, low_w=LOW_W, high_w=HIGH_W):
    """Return readings, window, stalls: one reading late in each of n stalls, three in each rest."""
    rng = np.random.default_rng(11)
    starts = PERIOD_S * np.arange(n)
    t = starts[:, None] + np.array([0.8, 1.2, 1.5, 1.8]) + rng.uniform(-0.1, 0.1, (n, 4))
    power = np.where(t - starts[:, None] < STALL_S, low_w, high_w) + rng.normal(0, noise_w, t.shape)
    return t.ravel(), power.ravel(), (0.0, PERIOD_S * n), (starts, starts + STALL_S)


def test_what_a_filter_keeps_from_before_its_reach_is_in_the_bound():
    """2 % of the swing between stall and rest: the readings are the same for both sensors."""
    bounds_w = []
    for sensor in (IDEAL, AVERAGING):
        t, power, window, stalls = stalling(40)
        found = stall_energy(t, power, window, stalls, sensor)
        assert found.energy_j == pytest.approx(LOW_W * STALL_S * 40)
        bounds_w.append(found.error_pct / 100 * LOW_W)
    assert bounds_w[1] - bounds_w[0] == pytest.approx(BEYOND * (HIGH_W - LOW_W), rel=1e-6)
    assert BEYOND == 0.02


def test_a_few_readings_far_above_all_others_are_in_the_bound():
    """A sensor at fault, or a burst: without it the energy is that of the others."""
    rng = np.random.default_rng(12)
    t = (np.arange(402) + rng.uniform(size=402)) * 0.1 - 0.1
    power = 20.0 + rng.normal(0, 0.01, t.size)
    sound = trapezoid(t, power, 0.0, 40.0, IDEAL, minibatch_starts_s=np.empty(0))
    power[200:207] = 2000.0 + rng.normal(0, 1.0, 7)
    found = trapezoid(t, power, 0.0, 40.0, IDEAL, minibatch_starts_s=np.empty(0))
    excess_j = found.energy_j - sound.energy_j
    assert excess_j > 1000
    assert found.error_pct / 100 * found.energy_j > excess_j
    assert sound.error_pct < 2
