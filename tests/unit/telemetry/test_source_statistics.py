"""What is counted of a source."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochwatt.telemetry.source_statistics import Tally, quantile


def tally_of(values, step_s=0.5, total="power_w"):
    tally = Tally(["power_w", "gpu_mhz"], total)
    for n, value in enumerate(values):
        tally.add(10.0 + n * step_s, 10.0 + n * step_s - 0.001 * n, 0.0001, 5.0, [value, 1.0])
    return tally.summary()


def test_steps_deviations_and_reading_times():
    found = tally_of([1.0] * 5)
    assert found["step_mean_s"] == pytest.approx(0.5)
    assert found["step_sd_s"] == pytest.approx(0.0, abs=1e-9)
    assert found["step_max_s"] == pytest.approx(0.5)
    assert found["deviation_p50_s"] == pytest.approx(0.002)
    assert found["deviation_max_s"] == pytest.approx(0.004)
    assert found["read_mean_s"] == pytest.approx(0.0001)


def test_lies_of_the_total_are_counted():
    found = tally_of([1.0, -2.0, -2.0, math.nan, 3.0, 3.0, 3.0, 4.0])
    assert found["n_negative"] == 2
    assert found["n_nan"] == 1
    assert found["nan_cells"] == {"power_w": 1}
    assert found["stuck_s"] == pytest.approx(1.0)


def test_total_that_is_not_there_is_not_stuck():
    assert tally_of([math.nan] * 9)["stuck_s"] == 0.0
    found = tally_of([1.0] * 9, total=None)
    assert (found["stuck_s"], found["n_nan"], found["n_negative"]) == (0.0, 0, 0)


def test_bounds_stand_for_no_instant():
    tally = Tally(["power_w"], "power_w")
    tally.add(1.0, None, 0.0, 0.0, [1.0])
    assert tally.summary()["deviation_p99_s"] is None
    assert tally.summary()["step_mean_s"] is None


def test_nothing_read_gives_nothing_to_say():
    found = Tally(["power_w"], "power_w").summary()
    assert {key for key, value in found.items() if value is None} >= {"read_mean_s", "step_p99_s"}


def test_jump_of_the_wall_clock_is_counted_and_a_slow_change_is_not():
    tally = Tally(["power_w"], None)
    for n, ahead_s in enumerate([0.0, 0.9, 1.8, 7.0, 7.0, -1.0]):
        tally.add(float(n), None, 0.0, ahead_s, [1.0])
    assert tally.summary()["clock_jumps"] == 2


@given(st.lists(st.floats(0, 1), min_size=1), st.floats(0.01, 1))
def test_quantile_is_not_exceeded_by_its_share(values, share):
    value = quantile(sorted(values), share)
    assert sum(v <= value for v in values) >= share * len(values) - 1e-9
    assert sum(v < value for v in values) < share * len(values)
