"""A sample of processes: its answers without one mode are those of a fit without it."""

import numpy as np
import pytest

from epochwatt.prediction.models.kernel_sample import (
    Kernels,
    Observed,
    among,
    left_out,
    sample_kernels,
)


@pytest.fixture
def seen():
    """Return thirty modes of two parts; values follow the first, each off by 1 %."""
    rng = np.random.default_rng(1)
    rows = rng.uniform(-1, 1, (30, 2))
    off = 0.3 * np.sin(3 * rows[:, 0]) + 0.01 * rng.standard_normal(30)
    return Observed(rows, np.ones((2, 30, 30)), np.array([off, off + 5 * rows[:, 1]]))


def test_one_left_out_is_what_a_fit_without_it_misses_by(seen):
    kernels = Kernels(np.log([[0.7, 2.0, 0.3, 0.05]]), np.array([0]))
    whole = among(kernels, seen)
    told = left_out(np.linalg.inv(whole), seen.off[:1])
    others = np.arange(1, 30)
    weights = np.linalg.solve(whole[0][np.ix_(others, others)], whole[0][0, others])
    miss = seen.off[0, 0] - weights @ seen.off[0, others]
    sd = np.sqrt(whole[0][0, 0] - weights @ whole[0][0, others])
    assert told[0] == pytest.approx(miss / sd)


def test_the_sample_finds_shape_noise_and_the_part_that_matters(seen):
    kernels = sample_kernels(seen)
    assert (kernels.shape == 0).all()  # the other one leaves a slope of five over
    assert np.median(kernels.noises) == pytest.approx(0.01, rel=0.5)
    assert np.median(kernels.lengths[:, 1] / kernels.lengths[:, 0]) > 2


def test_covariance_is_matern(seen):
    kernels = Kernels(np.log([[0.7, 2.0, 0.3, 0.05]]), np.array([0]))
    apart = np.sqrt((((seen.rows[0] - seen.rows[1]) / [0.7, 2.0]) ** 2).sum() * 5)
    expected = 0.09 * (1 + apart + apart**2 / 3) * np.exp(-apart)
    assert kernels.covariance(seen.rows[:1], seen.rows[1:2])[0, 0, 0] == pytest.approx(expected)
