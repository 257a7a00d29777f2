"""Rooflines of one mode: limits meet at the ridge, energy is a sum of three."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from epochwatt.roofline.model import Ceilings, EnergyCosts, EnergyRoofline

RATES = st.floats(1e6, 1e15)
ROOFLINES = st.builds(
    lambda flops, moved, e_flop, e_byte, watts: EnergyRoofline(
        Ceilings(flops, moved), EnergyCosts(e_flop, e_byte, watts)
    ),
    st.floats(1e9, 1e14),
    st.floats(1e9, 1e12),
    st.floats(1e-13, 1e-10),
    st.floats(0, 1e-9),
    st.floats(0, 60),
)


@given(flops_per_s=RATES, bytes_per_s=RATES, moved=st.floats(1, 1e12))
def test_both_limits_meet_at_the_ridge(flops_per_s, bytes_per_s, moved):
    ceilings = Ceilings(flops_per_s, bytes_per_s)
    at_ridge = ceilings.ridge_flop_per_byte * moved
    assert at_ridge / flops_per_s == pytest.approx(moved / bytes_per_s)
    assert ceilings.roof_s(2 * at_ridge, moved) == pytest.approx(2 * moved / bytes_per_s)
    assert ceilings.roof_s(at_ridge / 2, moved) == pytest.approx(moved / bytes_per_s)


@given(
    moved=st.lists(st.floats(1, 1e12), min_size=2, max_size=9),
    cache=st.floats(0, 1e9),
    faster=st.floats(1, 100),
)
def test_more_data_take_longer_and_a_cache_never_slows(moved, cache, faster):
    ceilings = Ceilings(5e12, 2e11, cache_bytes=cache, cached_bytes_per_s=faster * 2e11)
    roofs = ceilings.roof_s(0.0, np.sort(moved))
    assert (np.diff(roofs) >= 0).all()
    assert (roofs <= Ceilings(5e12, 2e11).roof_s(0.0, np.sort(moved)) * (1 + 1e-12)).all()


@given(roofline=ROOFLINES)
def test_at_the_balance_memory_costs_as_much_as_arithmetic(roofline):
    balance = roofline.balance_flop_per_byte
    assume(balance > 0)
    assert roofline.effective_balance(balance) == pytest.approx(balance, rel=1e-6, abs=1e-9)
    twice = 2 * roofline.busy_j_per_flop  # as much again as an operation that waits for nothing
    assert roofline.j_per_flop(balance) == pytest.approx(twice, rel=1e-6)
