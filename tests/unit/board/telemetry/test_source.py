"""The samples of a service on their way from its thread to the sampler."""

import threading

from hypothesis import given
from hypothesis import strategies as st

from epochwatt.board.telemetry.source import Arrivals


@given(st.lists(st.lists(st.floats(0, 100), max_size=5), max_size=8))
def test_each_sample_is_taken_once_and_in_order(batches):
    arrivals, added, taken = Arrivals(), [], []
    for batch in batches:
        for t_s in batch:
            arrivals.add(t_s, len(added))
            added.append(len(added))
        taken += arrivals.take()
    assert [value for _, value in taken] == added
    stamps_s = [t_s for t_s, _ in taken]
    assert stamps_s == sorted(stamps_s)  # a file of samples may not run backward
    assert arrivals.newest == (taken[-1] if taken else None)


@given(st.lists(st.floats(0, 100), max_size=6), st.booleans(), st.floats(0, 100))
def test_restart_leaves_the_newest_where_it_is_not_old(stamps_s, taken_before, oldest_s):
    arrivals = Arrivals()
    for t_s in sorted(stamps_s):
        arrivals.add(t_s, None)
    if taken_before:
        arrivals.take()
    arrivals.restart(oldest_s)
    newest_s = max(stamps_s, default=-1.0)
    assert [t_s for t_s, _ in arrivals.take()] == ([newest_s] if newest_s >= oldest_s else [])


def test_nothing_that_comes_while_a_window_begins_is_lost():
    arrivals, n = Arrivals(), 2000
    thread = threading.Thread(
        target=lambda: [arrivals.add(float(t_s), t_s) for t_s in range(n)], name="client"
    )
    thread.start()
    taken = []
    while thread.is_alive() or arrivals._waiting:
        before = arrivals.newest
        arrivals.restart(-1.0)
        some = [value for _, value in arrivals.take()]
        if before is not None and some:
            assert some[0] >= before[1]  # what is left out is older than the newest
            assert some == list(range(some[0], some[0] + len(some)))
        taken += some
    thread.join()
    assert arrivals.newest == (float(n - 1), n - 1)
