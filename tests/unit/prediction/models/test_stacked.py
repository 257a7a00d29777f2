"""Averages of methods: weights follow left-out errors, and what is stated holds."""

from pathlib import Path

import numpy as np
import pytest
from scipy.special import stdtr

from epochwatt.prediction.data.mode_tables import observations_of
from epochwatt.prediction.models.stacked import BELIEVED, METHOD, SCALE, likeliest_scale, stack
from epochwatt.prediction.predictor import Context
from epochwatt.sweeps.find import find_tables
from tests.unit.prediction.models.test_utilisation import SEEDS, world


def test_weights_are_believed_after_four_modes_and_those_of_left_out_errors_after_fifty():
    rng = np.random.default_rng(0)
    right, wrong = 0.01 * rng.standard_normal(50), 0.1 * rng.standard_normal(50)
    off = np.array([wrong, wrong + 0.2, right])
    assert stack(off[:, :4]) == pytest.approx(BELIEVED)
    assert stack(off)[2] >= 0.9
    # errors that cancel make the average of two better than either
    both = stack(np.array([wrong + right, wrong + 0.5, right - wrong]))
    assert both == pytest.approx([0.5, 0, 0.5], abs=0.11)


def test_a_scale_is_that_of_most_values_and_believed_where_there_are_few():
    rng = np.random.default_rng(1)
    is_open, noise = rng.uniform(0.01, 0.1, 4000), 0.02
    off = np.hypot(0.5 * is_open, noise) * rng.standard_t(4, 4000)
    scale, off_scale = likeliest_scale(off, is_open, noise, believed=1.0)
    assert scale == pytest.approx(0.5, rel=0.1)
    assert off_scale == pytest.approx(np.hypot(scale * is_open, noise))
    off[0] = 50.0
    assert likeliest_scale(off, is_open, noise, believed=1.0)[0] == pytest.approx(0.5, rel=0.1)
    assert likeliest_scale(off[1:3], is_open[1:3], noise, 1.0)[0] == pytest.approx(1.0, rel=0.2)


def test_observations_lie_where_the_average_says_they_do(agx):
    """Over planted worlds with noise: the median error, and how often each level is held."""
    held, errors = [], []
    for seed in SEEDS:
        whole = world(agx, seed, noise=0.01)
        known = np.arange(len(whole.modes)) < 15
        fitted = METHOD.fit(whole.rows(known), Context("power_w"))
        rest = whole.rows(~known)
        centre, scale = fitted.log_t(rest.modes)
        errors.append(np.median(np.abs(np.exp(centre) / rest.power_w - 1)))
        held.append(stdtr(fitted.free, (np.log(rest.power_w) - centre) / scale))
        off, off_scale = fitted.left_out()
        assert off.shape == off_scale.shape == (15,)
        assert fitted.scale < 2 * SCALE
    below = np.concatenate(held)
    assert np.median(errors) < 0.04
    for level in (0.5, 0.8, 0.9):
        inside = np.mean(np.abs(below - 0.5) < level / 2)
        assert level - 0.12 <= inside <= level + 0.12


def test_power_above_all_profiled_clocks_is_left_as_open_as_it_is_on_an_a100():
    """Its voltage rises from some 1200 MHz on, which four lower clocks do not tell."""
    held = []
    for table in find_tables("ali-a100", Path(__file__).parents[4])[::4]:
        rows = observations_of(table)
        gpu_mhz = rows.modes[:, 2]
        known = np.isin(gpu_mhz, (825, 1005, 1095, 1170))
        assert known.sum() == 4
        above = rows.rows(gpu_mhz > 1170)
        low, high = METHOD.fit(rows.rows(known), Context("power_w")).interval(above.modes)
        held.append(np.mean((low <= above.power_w) & (above.power_w <= high)))
    assert np.mean(held) > 0.85


def test_four_modes_without_intervals_give_the_same_values_and_say_nothing_of_how_sure(agx):
    whole = world(agx, SEEDS[0], noise=0.01)
    four = whole.rows(np.arange(len(whole.modes)) < 4)
    sure, plain = (METHOD.fit(four, Context("time_s", intervals=i)) for i in (True, False))
    assert plain.predict(whole.modes).tolist() == sure.predict(whole.modes).tolist()
    assert plain.interval(whole.modes) is None
    assert sure.interval(whole.modes) is not None
    five = whole.rows(np.arange(len(whole.modes)) < 5)  # whose left-out errors count
    weights = [METHOD.fit(five, Context("time_s", intervals=i)).weights for i in (True, False)]
    assert weights[0].tolist() == weights[1].tolist()
