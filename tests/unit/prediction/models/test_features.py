"""The terms that models are sums of."""

import numpy as np
import pytest

from epochwatt.prediction.data.modes import Mode
from epochwatt.prediction.models.features import LOGS, POWER, TIME, design
from epochwatt.prediction.models.priors import POWER_SHARES, TIME_SHARES

MODE = Mode(2, 2000, 500, 1600)


def test_terms_of_time():
    """Five processes on two cores: 5 / 2 - 1 = 1.5 times the work of the CPU comes on top."""
    assert design(TIME, [MODE], 5)[0].tolist() == [2.0, 0.625, 0.5, 0.75, 1.0]


def test_terms_of_power():
    """At 0.5 GHz a clock of 0.5 and its cube 0.125; two busy cores at 2 GHz: 4 and 16."""
    assert design(POWER, [MODE], 5)[0].tolist() == [0.5, 0.125, 4.0, 16.0, 1.6, 1.0]


def test_enough_cores_are_no_shortage_and_idle_cores_draw_no_power():
    few, many = (design((*TIME, *POWER), [MODE._replace(cores=n)], 5)[0] for n in (5, 8))
    assert few.tolist() == many.tolist()
    assert few[TIME.index("core_shortage")] == 0


def test_half_a_gpu_does_half_and_draws_half():
    """What no part of the GPU does stays as it is."""
    half = MODE._replace(gpu_share=0.5)
    for terms, gpu in ((TIME, [0]), (POWER, [0, 1])):
        whole, gated = (design(terms, [mode], 5)[0] for mode in (MODE, half))
        times = np.ones(len(terms))
        times[gpu] = 2 if terms is TIME else 0.5
        assert gated == pytest.approx(times * whole)
    assert design(LOGS, [half], 5)[0] == pytest.approx(
        design(LOGS, [MODE._replace(gpu_mhz=MODE.gpu_mhz / 2)], 5)[0]
    )


def test_beliefs_are_shares_of_the_terms():
    assert len(TIME_SHARES) == len(TIME)
    assert len(POWER_SHARES) == len(POWER)
    assert sum(TIME_SHARES) == pytest.approx(1)
    assert sum(POWER_SHARES) == pytest.approx(1)
