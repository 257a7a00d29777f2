"""Fits recover the constants of planted devices, and say what they cannot see."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from planted import Planted

from epochwatt.errors import EpochwattError
from epochwatt.roofline.fit import Kernels, fit_ceilings, fit_kernels
from epochwatt.roofline.model import Ceilings, EnergyCosts

CONSTANTS = {
    "ceilings": ("flops_per_s", "bytes_per_s", "launch_s"),
    "costs": ("j_per_flop", "j_per_byte", "constant_w"),
}
TRUTHS = st.builds(
    lambda flops, ridge, launch, e_flop, traffic, constant: Planted(
        Ceilings(flops, flops / ridge, launch),
        # powers of traffic, and of nothing, are a share of that of arithmetic: each can be seen
        EnergyCosts(e_flop, traffic * e_flop * ridge, constant * e_flop * flops),
    ),
    st.floats(1e11, 1e13),
    st.floats(3, 60),
    st.floats(1e-8, 2e-5),
    st.floats(1e-12, 5e-11),
    st.floats(0.6, 2),
    st.floats(0.6, 1.5),
)


@given(truth=TRUTHS)
def test_planted_constants_are_recovered(truth):
    measured = [Kernels.of_mode(truth.rows(seed)) for seed in range(5)]
    fits = [fit_kernels(kernels, n_draws=0) for kernels in measured]
    for part in ("ceilings", "costs"):
        for name in CONSTANTS[part]:
            found = np.median([getattr(getattr(fit, part), name) for fit in fits])
            assert found == pytest.approx(getattr(getattr(truth, part), name), rel=0.03), name


TRUTH = Planted(Ceilings(2e12, 1e11, 1e-5), EnergyCosts(5e-12, 6e-11, 9.0))


def test_intervals_hold_the_truth_and_the_fit():
    ranges = fit_kernels(Kernels.of_mode(TRUTH.rows())).ranges
    for name in ("flops_per_s", "bytes_per_s", "j_per_flop", "j_per_byte", "constant_w"):
        value, low, high = ranges[name]
        assert low <= value <= high
        true = getattr(TRUTH.ceilings, name, None) or getattr(TRUTH.costs, name)
        assert low * 0.985 <= true <= high * 1.015  # a bootstrap of few kernels is a little narrow
    assert fit_kernels(Kernels.of_mode(TRUTH.rows())).ranges == ranges


def test_a_cache_is_seen_and_bounds_what_fits_into_it():
    cached = replace(TRUTH, noise=0.0)
    cached = replace(
        cached,
        ceilings=replace(TRUTH.ceilings, cache_bytes=4e6, cached_bytes_per_s=8e11, launch_s=1e-7),
    )
    fitted = fit_ceilings(Kernels.of_mode(cached.rows()))
    assert fitted.bytes_per_s == pytest.approx(1e11, rel=0.05)
    assert fitted.cached_bytes_per_s == pytest.approx(8e11, rel=0.03)
    assert fitted.cache_bytes >= 4e6
    for row in cached.rows():  # no roof above what was measured
        assert fitted.roof_s(row.flops, row.bytes) <= row.time_s * 1.05


@pytest.mark.parametrize("launch_s", [5e-4, 1e-3, 2e-3, 3e-3])
def test_streams_count_where_launches_are_long(launch_s):
    """The largest stream takes two to nine launches; products of matrices take longer."""
    slow = replace(TRUTH, ceilings=replace(TRUTH.ceilings, launch_s=launch_s))
    for seed in range(3):
        fitted = fit_ceilings(Kernels.of_mode(slow.rows(seed)))
        assert fitted.bytes_per_s == pytest.approx(1e11, rel=0.03)
        assert fitted.flops_per_s == pytest.approx(2e12, rel=0.03)


def test_a_memory_that_only_launches_hide_is_not_guessed():
    slow = replace(TRUTH, ceilings=replace(TRUTH.ceilings, launch_s=2e-2))
    with pytest.raises(EpochwattError, match="no ceiling"):
        fit_ceilings(Kernels.of_mode(slow.rows()))
