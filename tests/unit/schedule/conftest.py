"""Made-up workloads on a small grid of modes."""

import itertools

import numpy as np
import pytest

from epochwatt.schedule.problem import Problems, Workload

STEPS = ((4, 8, 12), (400, 1000, 2200), (100, 500, 900, 1300), (700, 3200))


@pytest.fixture
def modes():
    rows = np.array(list(itertools.product(*STEPS)), float)
    return np.hstack([rows, np.ones((len(rows), 1)), np.zeros((len(rows), 1))])


@pytest.fixture
def workload(modes):
    """Return a function that makes a workload; `is_monotone`: more never slows or saves power."""

    def make(seed, sizes, is_monotone=True):
        rng = np.random.default_rng(seed)
        gpu, emc, cpu = rng.uniform(0.2, 1, 3)
        work = 0.02 * (2 + np.array(sizes, float)) / 18
        time_s = gpu / modes[:, 2:3] + emc / modes[:, 3:4] + 0.3 * cpu / modes[:, 1:2]
        power_w = 5 + 20 * (modes[:, 2:3] / 1300) ** 2 + modes[:, 1:2] / 1100 + modes[:, 3:4] / 1e3
        power_w = power_w + 0.2 * modes[:, :1] + 0 * work
        if not is_monotone:
            time_s = time_s * rng.uniform(0.7, 1.4, time_s.shape)
            power_w = power_w * rng.uniform(0.7, 1.4, power_w.shape)
        return Workload("made-up", modes, np.array(sizes), 1e3 * time_s * work, power_w)

    return make


@pytest.fixture
def problems():
    """Return 200 problems of one stream: some too tight for any choice, some loose."""
    rng = np.random.default_rng(5)
    n = 200
    rates, latencies = np.exp(rng.uniform(np.log([[1, 0.01]]), np.log([[300, 1]]), (n, 2))).T
    return Problems(rng.uniform(6, 35, n), rates[:, None], latencies[:, None])
