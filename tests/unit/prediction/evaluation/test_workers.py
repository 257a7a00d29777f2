"""Processes beside each other: what ends them."""

import time
from concurrent.futures import ProcessPoolExecutor

import pytest

from epochwatt.prediction.evaluation.workers import workers


def interrupted(prepare):
    """Open a pool, prepare something with it, and interrupt it."""
    with workers(2) as pool:
        prepare(pool)
        raise KeyboardInterrupt


def test_after_an_interruption_nothing_is_waited_for():
    jobs = []
    with pytest.raises(KeyboardInterrupt):
        interrupted(lambda pool: jobs.extend(pool.submit(time.sleep, 300) for _ in range(9)))
    assert all(job.cancelled() or job.exception(60) is not None for job in jobs)


def test_an_interruption_while_the_pool_is_started_is_no_other_error(monkeypatch):
    def not_started(pool, **words):
        raise RuntimeError("cannot join thread before it is started")

    with pytest.raises(KeyboardInterrupt):
        interrupted(lambda pool: monkeypatch.setattr(ProcessPoolExecutor, "shutdown", not_started))
