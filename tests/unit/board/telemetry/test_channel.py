"""The instants of a source's readings, one in each stratum, and what is counted of them."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochwatt.board.telemetry.channel import Schedule, Tally

seeds = st.integers(0, 2**32)
periods = st.floats(0.01, 10.0)


def first(schedule, n):
    """Take each of the first n instants on time."""
    return [schedule.take(schedule.instant_s) for _ in range(n)]


@given(seeds, periods, st.floats(0, 1e6))
def test_each_stratum_has_one_instant(seed, period_s, start_s):
    instants = first(Schedule(period_s, seed, start_s), 50)
    assert instants == sorted(instants)
    places = [(instant_s - start_s) / period_s for instant_s in instants]
    assert all(k - 1e-3 <= place <= k + 1 + 1e-3 for k, place in enumerate(places))  # rounding


@given(seeds, st.floats(0, 30))
def test_late_instants_are_skipped_and_counted_never_bunched(seed, now_s):
    planned = first(Schedule(1.0, seed, 0.0), 40)
    schedule = Schedule(1.0, seed, 0.0)
    passed = [instant_s for instant_s in planned if instant_s <= now_s] or planned[:1]
    assert schedule.take(max(now_s, planned[0])) == passed[-1]
    assert schedule.n_late == len(passed) - 1
    assert schedule.instant_s == planned[len(passed)]


@given(seeds)
def test_slower_schedule_goes_on_where_the_faster_ended(seed):
    schedule = Schedule(1.0, seed, 100.0)
    first(schedule, 7)
    schedule.slow_down(10)
    places = [(instant_s - 107.0) / 10 for instant_s in first(schedule, 20)]
    assert [int(place) for place in places] == list(range(20))


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
