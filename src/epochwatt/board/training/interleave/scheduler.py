"""Decide when to serve, train and refuse (board side: Python 3.6 grammar; no torch).

Whole mini-batches of one job at a time, as in Fulcrum (arXiv 2509.20205). A mini-batch of requests
is served as soon as it is complete and nothing runs. Until the next one is expected to be complete,
mini-batches of training follow; none is begun that would not end before that.

What is expected is what a scheduler can know: the latest arrival, and then the missing requests at
the plan's rate. Of constant arrivals that is exact. Where requests are late by that, it waits.

A mini-batch of training is taken to last as long as the longest of the latest `LATEST`. Where that
leaves no room in a whole period the longest is forgotten: one that was slow by accident must not
end the training for ever.
"""

import time
from collections import deque
from typing import Any, Callable, Deque, List, NamedTuple, Optional, Sequence

LATEST = 16
SLACK = 1e-9  # relative: times that fit to the last digit fit
SLICE_S = 0.1  # longest sleep without a look at whether to stop

Plan = NamedTuple(
    "Plan",
    [
        ("rate_per_s", float),  # of requests, as expected
        ("batch_size", int),  # requests that are served together
        ("n_train", Optional[int]),  # most mini-batches of training between two; None: no limit
        ("queue", int),  # most requests that wait; more are refused
    ],
)


class HostClock:
    """The clock of this process: monotonic, s."""

    now = staticmethod(time.perf_counter)

    @staticmethod
    def sleep_until(t_s: float) -> None:
        """Sleep until `now` is `t_s`; handlers of signals run meanwhile."""
        time.sleep(max(0.0, t_s - time.perf_counter()))


class Log:
    """The times at which things happened, s of the clock.

    `arrival_s`: of each request that came
    `start_s`, `end_s`: of the mini-batch in which it was served; NaN: it was not
    `refused`: whether it found the queue full
    `train_start_s`, `train_end_s`: of each mini-batch of training
    `t_start_s`, `t_end_s`: of the whole
    """

    def __init__(self, t_start_s: float) -> None:
        self.arrival_s: List[float] = []
        self.start_s: List[float] = []
        self.end_s: List[float] = []
        self.refused: List[bool] = []
        self.train_start_s: List[float] = []
        self.train_end_s: List[float] = []
        self.t_start_s = self.t_end_s = t_start_s


class Interleaver:
    """Serves and trains by a plan, in the thread that calls `run`.

    `plan`: what to do
    `serve`, `train`: run one mini-batch and return when it is done
    `train_s`: times of mini-batches of training that were measured before, s
    `clock`: `now()` and `sleep_until(t_s)`
    `stopped`: asked between any two mini-batches and while it waits: whether to end early
    """

    def __init__(
        self,
        plan: Plan,
        serve: Callable[[], Any],
        train: Callable[[], Any],
        train_s: Sequence[float],
        clock: Any = HostClock,
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        self.plan = plan
        self._serve, self._train, self._clock, self._stopped = serve, train, clock, stopped
        self._train_s: Deque[float] = deque(train_s, LATEST)
        self._waiting: Deque[int] = deque()  # requests, by their index in the log
        self._n_trained = 0  # mini-batches of training since the last of requests
        self._held_back = False  # one was not begun since: it would not have ended in time
        self._latest_s = 0.0  # arrival of the latest request
        self.log = Log(0.0)

    def run(self, arrivals_s: Sequence[float], seconds: float) -> Log:
        """Serve the requests that arrive within `seconds` and train between them; return the log.

        It ends when the time is over and no whole mini-batch of requests waits, or when `stopped`
        says so; start and end of requests that are not served are NaN.

        `arrivals_s`: ascending, s after the beginning
        """
        clock, batch_size = self._clock, self.plan.batch_size
        log = self.log = Log(clock.now())
        self._latest_s, end_s = log.t_start_s, log.t_start_s + seconds
        due = deque(log.t_start_s + arrival_s for arrival_s in arrivals_s)
        now_s = log.t_start_s
        while not self._stopped():
            self._admit(due, now_s)
            if len(self._waiting) >= batch_size:
                self._serve_minibatch()
            elif now_s >= end_s and not due:
                break
            elif self._may_train(now_s):
                self._train_minibatch()
            else:
                next_s = due[0] if due else end_s
                clock.sleep_until(min(next_s, now_s + SLICE_S))
            now_s = clock.now()
        log.t_end_s = now_s = clock.now()
        self._admit(due, min(now_s, end_s))
        return log

    def _admit(self, due: Deque[float], now_s: float) -> None:
        """Move the requests that are due by now into queue and log; a full queue refuses them."""
        log = self.log
        while due and due[0] <= now_s:
            self._latest_s = due.popleft()
            is_refused = len(self._waiting) >= self.plan.queue
            if not is_refused:
                self._waiting.append(len(log.arrival_s))
            log.arrival_s.append(self._latest_s)
            log.start_s.append(float("nan"))
            log.end_s.append(float("nan"))
            log.refused.append(is_refused)

    def _serve_minibatch(self) -> None:
        """Serve the oldest requests and log it; forget a training time that left no room at all."""
        start_s = self._clock.now()
        self._serve()
        end_s = self._clock.now()
        for _ in range(self.plan.batch_size):
            index = self._waiting.popleft()
            self.log.start_s[index], self.log.end_s[index] = start_s, end_s
        if self._held_back and self._n_trained == 0 and len(self._train_s) > 1:
            self._train_s.remove(max(self._train_s))
        self._n_trained, self._held_back = 0, False

    def _may_train(self, now_s: float) -> bool:
        """Return whether training ends before the next requests are complete; note if it does not.

        They are expected at the latest arrival plus the missing requests at the plan's rate.
        """
        plan = self.plan
        if plan.n_train is not None and self._n_trained >= plan.n_train:
            return False
        missing_s = (plan.batch_size - len(self._waiting)) / plan.rate_per_s
        slack_s = SLACK * plan.batch_size / plan.rate_per_s
        ends_in_time = now_s + max(self._train_s) <= self._latest_s + missing_s + slack_s
        self._held_back = self._held_back or not ends_in_time
        return ends_in_time

    def _train_minibatch(self) -> None:
        """Train a mini-batch and log its times."""
        start_s = self._clock.now()
        self._train()
        end_s = self._clock.now()
        self._train_s.append(end_s - start_s)
        self.log.train_start_s.append(start_s)
        self.log.train_end_s.append(end_s)
        self._n_trained += 1
