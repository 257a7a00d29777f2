"""Constants over clocks: what was planted is found, and more clock is never slower."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epochwatt.errors import EpochwattError
from epochwatt.roofline.laws import (
    CeilingLaws,
    Clocks,
    fit_ceiling_laws,
    fit_energy_laws,
    lesser_limit,
)
from epochwatt.roofline.model import Ceilings

GRID = np.array(
    list(itertools.product((300.0, 700.0, 1300.0), (4.0, 12.0), (700.0, 2200.0), (660.0, 3200.0)))
).T
CLOCKS = Clocks(*GRID)
LAWS = CeilingLaws(2000.0, 60.0, 110.0, 30_000.0)
MHZ = st.floats(100, 3500)


def test_planted_laws_are_recovered_with_a_memory_that_waits_for_the_gpu_at_low_clocks():
    random = np.random.default_rng(1)
    noise = 1 + 0.01 * random.standard_normal((3, GRID.shape[1]))
    rates = LAWS.flops_per_s(CLOCKS), LAWS.bytes_per_s(CLOCKS), LAWS.launch_s(CLOCKS)
    ceilings = [Ceilings(*map(float, three)) for three in (np.array(rates) * noise).T]
    fitted = fit_ceiling_laws(CLOCKS, ceilings)
    for name, value in vars(LAWS).items():
        assert getattr(fitted, name) == pytest.approx(value, rel=0.03), name


@given(first=st.floats(1, 1e3), second=st.floats(1, 1e3), seed=st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_the_lesser_limit_is_found_exactly_without_noise(first, second, seed):
    clocks = np.random.default_rng(seed).uniform(100, 3000, (2, 12))
    rates = np.minimum(first * clocks[0], second * clocks[1])
    found = lesser_limit(rates, *clocks)
    again = np.minimum(found[0] * clocks[0], found[1] * clocks[1])
    assert again == pytest.approx(rates, rel=1e-6)


def test_a_limit_that_never_holds_is_infinite():
    emc, core = np.array([700.0, 2100.0, 3200.0]), np.array([1300.0, 1300.0, 1300.0])
    assert lesser_limit(60 * emc, emc, core) == pytest.approx((60.0, np.inf))


@given(low=st.tuples(*[MHZ] * 4), more=st.tuples(*[st.floats(1, 4)] * 4))
def test_more_clock_is_never_slower(low, more):
    slow = LAWS.at(Clocks(*map(np.asarray, low)))
    fast = LAWS.at(Clocks(*(np.asarray(a * b) for a, b in zip(low, more, strict=True))))
    flops, moved = np.logspace(3, 12, 7), np.logspace(9, 5, 7)
    assert (fast.roof_s(flops, moved) <= slow.roof_s(flops, moved) * (1 + 1e-12)).all()
    assert fast.launch_s <= slow.launch_s


def test_energies_over_clocks_are_recovered():
    random = np.random.default_rng(2)
    n = GRID.shape[1]
    flops, moved = random.uniform(1e8, 1e11, n), random.uniform(1e7, 1e9, n)
    time_s = random.uniform(1e-3, 1e-1, n)
    ghz = CLOCKS.core_mhz / 1e3
    energy = flops * (2e-12 + 3e-12 * ghz**2) + 6e-11 * moved
    energy += time_s * (4 + 2 * ghz**3 + CLOCKS.cores * CLOCKS.cpu_mhz / 1e4)
    laws = fit_energy_laws(flops, moved, time_s, energy, CLOCKS)
    assert laws.energy_j(flops, moved, time_s, CLOCKS) == pytest.approx(energy, rel=1e-3)
    one = Clocks(*(np.asarray(v) for v in (1300.0, 12.0, 2200.0, 3200.0)))
    costs = laws.at(one)
    assert costs.j_per_flop == pytest.approx(2e-12 + 3e-12 * 1.69, rel=0.03)
    assert costs.constant_w == pytest.approx(4 + 2 * 1.3**3 + 2.64, rel=0.03)


def test_one_mode_is_no_law():
    with pytest.raises(EpochwattError, match="two modes"):
        fit_ceiling_laws(Clocks(*GRID[:, :1]), [Ceilings(1e12, 1e11)])
