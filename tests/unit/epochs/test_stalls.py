"""Energy of the stalls: where a sensor resolves them, and nothing where it does not."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochwatt.epochs.sensor import HELD, INSTANT, MEAN, Sensor
from epochwatt.epochs.stalls import stall_energy

IDEAL = Sensor(INSTANT, averaging_s=0.0, rounding_w=0.0)
WINDOW = (0.0, 40.0)


def training(rng, sensor=IDEAL, stall_s=0.12, period_s=0.35, step_s=0.1):
    """Return stamps, readings and stalls of 8 W in stalls and 22 W in the rest."""
    k = np.arange(int(40 / step_s) + 2)
    t = (k + rng.uniform(size=k.size)) * step_s - step_s
    starts = np.arange(0.0, 40.0, period_s) - 0.1
    grid = np.arange(-10.0, 41.0, 0.001)
    power = np.where((grid + 0.1) % period_s < stall_s, 8.0, 22.0)
    joules = np.append(0.0, np.cumsum(power) * 0.001)[:-1]
    at = t
    if sensor.hold_s:
        at = np.floor(t / sensor.hold_s) * sensor.hold_s
    if sensor.mean_s:
        means = np.interp([at, at - sensor.mean_s], grid, joules)
        watts = (means[0] - means[1]) / sensor.mean_s
    else:
        watts = np.where((at + 0.1) % period_s < stall_s, 8.0, 22.0)
    starts = starts.clip(0, 40)
    ends = (np.arange(0.0, 40.0, period_s) - 0.1 + stall_s).clip(0, 40)
    return t, watts, (starts, ends), 8.0 * float((ends - starts).sum())


@pytest.mark.parametrize(
    "sensor",
    [
        IDEAL,
        Sensor(MEAN, averaging_s=0.03, rounding_w=0.0),
        Sensor(HELD, averaging_s=0.01, update_s=0.02, rounding_w=0.0),
    ],
)
def test_it_is_within_its_bound_where_the_sensor_is_fast(sensor):
    rng = np.random.default_rng(0)
    for _ in range(40):
        t, power, stalls, truth_j = training(rng, sensor)
        found = stall_energy(t, power, WINDOW, stalls, sensor)
        assert abs(found.energy_j - truth_j) <= found.error_pct / 100 * found.energy_j
        assert found.error_pct < 35
        assert found.reason == ""


@pytest.mark.parametrize(
    ("sensor", "step_s", "reason"),
    [
        (Sensor(MEAN, averaging_s=0.105, rounding_w=0.0), 0.1, "too few"),
        (
            Sensor(HELD, averaging_s=0.0, update_s=0.1, rounding_w=0.0),
            0.1,
            "half of the energy|too few",
        ),
        (Sensor(MEAN, averaging_s=1.0, rounding_w=0.0), 0.1, "too few"),
        (Sensor(HELD, averaging_s=0.054, update_s=0.054, rounding_w=0.0), 1.0, "too few"),
        (Sensor(rounding_w=0.0), 0.1, "reaches is not known"),
        (Sensor(HELD, averaging_s=None, update_s=0.02), 0.1, "reaches is not known"),
    ],
)
def test_a_sensor_that_mixes_stall_and_rest_tells_nothing(sensor, step_s, reason):
    t, power, stalls, _ = training(np.random.default_rng(1), sensor, step_s=step_s)
    found = stall_energy(t, power, WINDOW, stalls, sensor)
    assert math.isnan(found.energy_j)
    assert math.isnan(found.error_pct)
    assert any(part in found.reason for part in reason.split("|"))


@given(
    st.lists(st.floats(0, 100, allow_nan=False), min_size=30, max_size=60),
    st.lists(st.integers(0, 600), min_size=2, max_size=20, unique=True),
)
def test_it_lies_between_the_lowest_and_the_highest_power(watts, moments):
    power = np.array(watts)
    t = np.arange(power.size) + np.random.default_rng(6).uniform(0, 1, power.size)
    bounds = np.sort(moments) / 10.0
    starts, ends = bounds[:-1:2], bounds[1::2]
    found = stall_energy(t, power, (0.0, 60.0), (starts, ends), IDEAL)
    if not math.isnan(found.energy_j):
        stall_s = (ends - starts).sum()
        assert power.min() * stall_s <= found.energy_j + 1e-6
        assert found.energy_j <= power.max() * stall_s + 1e-6
        assert 0 < found.error_pct <= 50
