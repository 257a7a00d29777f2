"""What is counted of a source."""

import math

import pytest

from epochwatt.board.telemetry.channel import Tally


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


def test_jump_of_the_wall_clock_is_counted_and_a_slow_change_is_not():
    tally = Tally(["power_w"], None)
    for n, ahead_s in enumerate([0.0, 0.9, 1.8, 7.0, 7.0, -1.0]):
        tally.add(float(n), None, 0.0, ahead_s, [1.0])
    assert tally.summary()["clock_jumps"] == 2
