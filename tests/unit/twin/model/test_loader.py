"""The input pipeline: torch's rule of prefetching, played event by event in two ways."""

import heapq
from collections import deque

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochwatt.twin.model.loader import Stages, steady_wait_s, waits_s


class Loader:
    """A data loader's processes and queues as torch has them, one event after another.

    Indices go to the workers in turn: `prefetch_factor` to each at the start, and one whenever the
    loop has taken a mini-batch. A worker prepares what is in its own queue, one by one. The loop
    takes mini-batches in order, and waits where the next one is not there.
    """

    def __init__(self, prepare_s, take_s, rest_s, workers, prefetch_factor, first_s):
        self.prepare_s, self.take_s, self.rest_s = prepare_s, take_s, rest_s
        self.workers = [deque() for _ in range(workers)]
        self.idle = [False] * workers
        self.sent, self.there = 0, set()
        self.next, self.asked_s, self.waiting = 0, 0.0, False
        self.waits, self.events, self.n_events = [], [], 0
        for worker in range(workers):
            self.at(first_s, "free", worker)
        for _ in range(prefetch_factor * workers):
            self.send(first_s)
        self.at(0.0, "ask", None)

    def at(self, time_s, kind, what):
        self.n_events += 1
        heapq.heappush(self.events, (time_s, self.n_events, kind, what))

    def play(self):
        while self.events:
            now_s, _, kind, what = heapq.heappop(self.events)
            getattr(self, kind)(now_s, what)
        return self.waits

    def send(self, now_s):
        if self.sent < len(self.prepare_s):
            worker = self.sent % len(self.workers)
            self.workers[worker].append(self.sent)
            self.sent += 1
            self.work(now_s, worker)

    def work(self, now_s, worker):
        if self.idle[worker] and self.workers[worker]:
            self.idle[worker] = False
            number = self.workers[worker].popleft()
            self.at(now_s + self.prepare_s[number], "done", (number, worker))

    def done(self, now_s, what):
        number, worker = what
        self.there.add(number)
        self.take(now_s)
        self.free(now_s, worker)

    def free(self, now_s, worker):
        self.idle[worker] = True
        self.work(now_s, worker)

    def ask(self, now_s, _):
        self.asked_s, self.waiting = now_s, True
        self.take(now_s)

    def take(self, now_s):
        if self.waiting and self.next in self.there:
            self.waiting = False
            self.at(now_s + self.take_s[self.next], "taken", self.next)

    def taken(self, now_s, number):
        self.waits.append(now_s - self.asked_s)
        self.next += 1
        self.send(now_s)
        if self.next < len(self.prepare_s):
            self.at(now_s + self.rest_s[number], "ask", None)


def stages(fetch_s, preprocess_s, handover_s, rest_s):
    """Return stages whose compute is all of the loop's own time."""
    arrays = [np.asarray(s, dtype=float) for s in (fetch_s, preprocess_s, handover_s, rest_s)]
    none = np.zeros_like(arrays[0])
    return Stages(arrays[0], arrays[1], arrays[2], none, arrays[3], none)


TICKS = st.integers(0, 20)  # whole numbers: sums of them are exact


@given(
    times=st.lists(st.tuples(TICKS, TICKS, TICKS, TICKS), min_size=1, max_size=40),
    workers=st.integers(1, 9),
    prefetch_factor=st.integers(1, 4),
    first_s=TICKS,
)
def test_waits_are_those_of_processes_with_queues(times, workers, prefetch_factor, first_s):
    fetch_s, preprocess_s, take_s, rest_s = map(list, zip(*times, strict=True))
    prepare_s = [f + p for f, p in zip(fetch_s, preprocess_s, strict=True)]
    played = Loader(prepare_s, take_s, rest_s, workers, prefetch_factor, first_s).play()
    told = stages(fetch_s, preprocess_s, take_s, rest_s)
    assert waits_s(told, workers, prefetch_factor, float(first_s)).tolist() == played


def test_a_worker_prepares_no_further_ahead_than_it_may():
    # one worker, two ahead: the third is begun when the first has been taken
    told = stages([1.0] * 3, [0.0] * 3, [0.0] * 3, [10.0, 0.0, 0.0])
    assert waits_s(told, 1, 2, 0.0).tolist() == [1.0, 0.0, 0.0]
    eager = stages([1.0] * 3, [0.0] * 3, [0.0] * 3, [1.5, 0.0, 0.0])
    assert waits_s(eager, 1, 1, 0.0).tolist() == [1.0, 0.0, 1.0]


@pytest.mark.parametrize("workers", [0, 1, 2, 4, 8])
@pytest.mark.parametrize("rest_s", [0.01, 0.5, 2.0])
def test_the_long_run_is_the_closed_form(workers, rest_s):
    n = 2000
    one = stages(0.6, 0.5, 0.02, rest_s)
    told = Stages(*(np.full(n, stage) for stage in one))
    played = waits_s(told, workers, 2, 0.0)[-n // 2 :].mean()
    own_s = rest_s + (0.02 if workers else 0.0)
    assert played == pytest.approx(float(steady_wait_s(one, workers)), abs=1e-3 * own_s)


@given(
    times=st.lists(st.tuples(TICKS, TICKS, TICKS, TICKS), min_size=1, max_size=30),
    workers=st.integers(0, 6),
    place=st.integers(0, 29),
    stage=st.sampled_from(["fetch_s", "preprocess_s", "handover_s", "compute_s"]),
)
def test_no_stage_that_gets_shorter_makes_an_epoch_longer(times, workers, place, stage):
    told = stages(*zip(*times, strict=True))
    less = getattr(told, stage).copy()
    less[place % len(times)] /= 2
    shorter = told._replace(**{stage: less})

    def e2e_s(each):
        return waits_s(each, workers, 2, 1.0).sum() + each.compute_s.sum()

    assert e2e_s(shorter) <= e2e_s(told) + 1e-9
