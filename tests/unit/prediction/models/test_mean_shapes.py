"""Shapes meet the worlds that they are made of, and say what they leave open."""

import numpy as np
import pytest

from epochwatt.prediction.data.modes import as_rows
from epochwatt.prediction.models.features import LOGS, POWER, TIME, design
from epochwatt.prediction.models.mean_shapes import (
    OPEN_RESIDUAL,
    Shares,
    SumOfTerms,
    fit_sum,
    on_reference,
    power_law,
    under_limit,
    with_residual,
)


@pytest.fixture
def drawn(agx):
    every = agx.all_modes()
    return every[np.random.default_rng(0).permutation(len(every))[:40]]


@pytest.mark.parametrize("norm", [1.0, 2.0])
def test_a_sum_meets_parts_that_add_up_or_overlap(drawn, norm):
    parts = design(TIME, drawn, 5) * [40, 30, 20, 5, 3]
    times = (parts**norm).sum(1) ** (1 / norm)
    fitted = fit_sum(drawn, times, 5, norm)
    expected, open_by = fitted(drawn)
    assert np.exp(expected) == pytest.approx(times, rel=0.05)  # the belief pulls a little
    assert open_by.shape == (40, 2 * len(TIME))  # each: as far as it was seen, and beyond
    assert fitted.shares(drawn).sum(1) == pytest.approx(1)


def test_what_is_open_is_the_slope_of_the_logarithm(drawn):
    """A column is what a change of its coefficient by a deviation does."""
    fitted = fit_sum(drawn, design(TIME, drawn, 5) @ [40, 30, 20, 5, 3.0], 5, norm=2.0)
    expected, open_by = fitted(drawn)
    step = 1e-6 / fitted.sizes[0]
    moved = np.array([fitted.coefficients[0] + step, *fitted.coefficients[1:]])
    again = SumOfTerms(fitted.terms, 5, moved, fitted.sizes, fitted.norm)
    slope = (again(drawn)[0] - expected) / 1e-6
    assert open_by[:, 0] == pytest.approx(0.4 * slope, rel=1e-3)


def test_power_is_what_busy_and_idle_parts_draw(drawn):
    times = fit_sum(drawn, design(TIME, drawn, 5) @ [40, 30, 20, 5, 3.0], 5)
    busy = Shares((times,), np.ones(1))
    shares = busy(drawn)
    assert (shares >= 0).all()
    assert (shares.sum(1) <= 1 + 1e-9).all()  # the rest is what no clock changes
    watts = 3 + 8 * shares[:, 0] * design(POWER, drawn, 5)[:, 0]
    fitted = fit_sum(drawn, watts, 5, times=busy)
    assert np.exp(fitted(drawn)[0]) == pytest.approx(watts, rel=0.05)


def test_a_power_limit_lowers_the_clock_below_the_knee_only():
    modes = as_rows([(4, 1000, 800, 1600, 1, limit) for limit in (50, 100, 200, 0)])
    assert under_limit(modes, 100)[:, 2] == pytest.approx([800 * 0.5**0.5, 800, 800, 800])
    assert under_limit(modes, 0)[:, 2] == pytest.approx([800] * 4)
    assert modes[0, 2] == 800


def test_a_reference_gives_its_curve_and_its_residual(drawn):
    """Both workloads bend away from the terms alike; the curve alone has another exponent."""

    class Known:
        """Predicts the reference's own values."""

        def predict(self, modes):
            return design(TIME, modes, 5) @ [40, 30, 20, 5, 3.0] * bend(modes)

    def bend(modes):
        return np.exp(0.3 * np.sin(4 * np.log(modes[:, 2])))

    sums = [
        fit_sum(drawn, design(TIME, drawn, 5) @ shares, 5)
        for shares in ([10, 50, 5, 1, 1.0], [40, 30, 20, 5, 3.0])
    ]
    expected, open_by = with_residual(sums[0], sums[1], Known())(drawn)
    left = (expected - sums[0](drawn)[0]) * 2
    assert left == pytest.approx(np.log(bend(drawn)), abs=0.05)
    assert open_by[:, -1] == pytest.approx(OPEN_RESIDUAL * left)
    scaled = on_reference(drawn, 7 * Known().predict(drawn), LOGS, Known())
    assert np.exp(scaled(drawn)[0]) == pytest.approx(7 * Known().predict(drawn))


def test_a_law_is_open_about_the_middle_of_its_modes(drawn):
    law = power_law(drawn, np.full(40, 7.0), LOGS)
    expected, open_by = law(drawn)
    assert np.exp(expected) == pytest.approx(7)
    assert open_by[:, 1:].mean(0) == pytest.approx(0, abs=1e-12)
