"""The samples of a service on their way from its thread to the sampler."""

import threading

from epochwatt.board.telemetry.source import Arrivals


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
