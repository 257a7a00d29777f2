"""Constants over clocks: what was planted is found, and more clock is never slower."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochwatt.roofline.laws import CeilingLaws, Clocks, fit_ceiling_laws
from epochwatt.roofline.model import Ceilings

GRID = np.array(list(itertools.product((300.0, 700.0, 1300.0), (700.0, 2200.0), (660.0, 3200.0)))).T
CLOCKS = Clocks(*GRID)
LAWS = CeilingLaws(2000.0, 60.0, 110.0, 30_000.0)
MHZ = st.floats(100, 3500)


def test_planted_laws_are_recovered_with_a_memory_that_waits_for_the_gpu_at_low_clocks():
    random = np.random.default_rng(1)
    noise = 1 + 0.01 * random.standard_normal((3, GRID.shape[1]))
    modes = [LAWS.at(Clocks(*mode)) for mode in GRID.T]
    ceilings = [
        Ceilings(*np.array([c.flops_per_s, c.bytes_per_s, c.launch_s]) * factors)
        for c, factors in zip(modes, noise.T, strict=True)
    ]
    fitted = fit_ceiling_laws(CLOCKS, ceilings)
    for name, value in vars(LAWS).items():
        assert getattr(fitted, name) == pytest.approx(value, rel=0.03), name


@given(low=st.tuples(*[MHZ] * 3), more=st.tuples(*[st.floats(1, 4)] * 3))
def test_more_clock_is_never_slower(low, more):
    slow = LAWS.at(Clocks(*map(np.asarray, low)))
    fast = LAWS.at(Clocks(*(np.asarray(a * b) for a, b in zip(low, more, strict=True))))
    flops, moved = np.logspace(3, 12, 7), np.logspace(9, 5, 7)
    assert (fast.roof_s(flops, moved) <= slow.roof_s(flops, moved) * (1 + 1e-12)).all()
    assert fast.launch_s <= slow.launch_s
