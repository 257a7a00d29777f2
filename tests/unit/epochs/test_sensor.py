"""What a reading says and of when: from the record, else from the readings."""

import numpy as np
import pytest

from epochwatt.epochs.sensor import HELD, Sensor, readings, rounding_of_sum_w, sensor_in

STEP_W = 0.008 * 19.4  # of an AGX Xavier's rails


def test_a_record_tells_how_its_sensor_reads():
    told = {"reads": "held", "averaging_s": 0.05, "update_s": 0.1, "step_w": {"power_a_w": 0.2}}
    table = {"t_mono_s": np.arange(10.0), "power_a_w": np.full(10, 3.0)}
    sensor = sensor_in({"settings": {"sensor": told}}, table, (0.0, 9.0))
    assert (sensor.reads, sensor.mean_s, sensor.hold_s) == ("held", 0.05, 0.1)
    assert sensor.rounding_w == pytest.approx(0.2)
    assert sensor.known_reach_s == pytest.approx(0.2)


@pytest.mark.parametrize("cut", [False, True])
def test_rounding_of_rails_is_within_its_limit(cut):
    """Six rails at constant power, rounded or cut off, with little noise: at worst 1 % of draws."""
    rng = np.random.default_rng(0)
    beyond = 0
    for _ in range(300):
        true_w = rng.uniform(0.3, 3.0, 6)
        steps = (true_w[:, None] + 0.03 * rng.standard_normal((6, 200))) / STEP_W
        rails = STEP_W * (np.floor(steps) if cut else np.round(steps))
        limit_w = rounding_of_sum_w(rails, [STEP_W] * 6)
        beyond += abs(rails.sum(axis=0).mean() - true_w.sum()) > limit_w
    assert beyond <= 3
    assert limit_w < 6 * STEP_W


def test_a_value_that_is_held_counts_once():
    t = np.arange(0.0, 10.0, 0.1) + 0.03
    power = 5.0 + np.floor(t)
    at, values, tried, _ = readings(t, power, Sensor(HELD, averaging_s=0.0, update_s=1.0))
    assert values.tolist() == list(range(5, 15))
    assert at.size == tried.size == 10
    assert t[0] - at[0] == pytest.approx(0.5)


def test_held_values_are_recognised_where_nothing_is_told():
    rng = np.random.default_rng(2)
    t = np.arange(0.0, 60.0, 0.1) + rng.uniform(0, 0.1, 600)
    renewed = 10 + rng.standard_normal(61)
    found = readings(t, renewed[t.astype(int)], Sensor())[3]
    assert found.reads == HELD
    assert found.estimated
    assert found.update_s == pytest.approx(1.0, rel=0.05)
    assert readings(t, np.where(t % 4 < 2, 8.0, 22.0), Sensor())[3] == Sensor()  # two levels
    assert readings(t, np.full(600, 8.0), Sensor())[3] == Sensor()


def test_a_services_sample_of_an_older_record_counts_once_and_when_it_came():
    taken = np.arange(0.0, 20.0)
    t = np.sort(np.random.default_rng(3).uniform(0.1, 19.9, 40))
    newest = t.astype(int)
    at, values, _, _ = readings(t, 5.0 + newest, Sensor(), age_s=t - taken[newest])
    assert at == pytest.approx(np.unique(newest))
    assert values == pytest.approx(5.0 + np.unique(newest))
