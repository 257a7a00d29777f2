"""One random instant per stratum, for ever on the same grid."""

from hypothesis import given
from hypothesis import strategies as st

from epochwatt.board.telemetry.channel import Schedule

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
