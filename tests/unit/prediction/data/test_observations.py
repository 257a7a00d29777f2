"""Rows of epochs under power modes, and tables of them."""

import pytest

from epochwatt.prediction.data.modes import PredictionError
from epochwatt.prediction.data.observations import observations_from_rows


def test_power_of_a_mode_is_that_of_its_mean_energy(named):
    """Epochs of 100 s at 36 W and 300 s at 12 W: 1 Wh each, so 1 Wh in 200 s, which is 18 W."""
    of = observations_from_rows("w", [named["g"]] * 2, [100, 300], [36, 12])
    assert of.energy_wh.tolist() == [1, 1]
    mean = of.per_mode()
    assert (mean.time_s[0], mean.power_w[0]) == (200, pytest.approx(18))


def test_later_epochs_leave_out_the_first(named):
    of = observations_from_rows("w", [named["g"]] * 4, [9, 1, 2, 3], epoch=[0, 1, 2, 3])
    assert of.after_first(2).time_s.tolist() == [1, 2]
    assert of.after_first().time_s.tolist() == [1, 2, 3]


def test_rows_of_some_modes(named):
    of = observations_from_rows("w", [named[n] for n in "gagb"], [1, 2, 3, 4])
    assert of.only({named["g"], named["b"]}).time_s.tolist() == [1, 3, 4]
    assert of.distinct() == (named["g"], named["a"], named["b"])


def test_missing_energy_is_named(named):
    of = observations_from_rows("lenet", [named["g"], named["a"]], [1, 2], [20, float("nan")])
    with pytest.raises(PredictionError, match=r"lenet: no energy.*in 1 of 2 modes.*4 cores"):
        of.need_energy()


@pytest.mark.parametrize(("time_s", "power_w"), [(0, 20), (-1, 20), (float("nan"), 20), (1, 0)])
def test_times_and_powers_are_above_zero(named, time_s, power_w):
    with pytest.raises(PredictionError, match="numbers above zero"):
        observations_from_rows("w", [named["g"]], [time_s], [power_w])


def test_columns_are_equally_long(named):
    with pytest.raises(PredictionError, match=r"columns of \[1, 2\] rows"):
        observations_from_rows("w", [named["g"]] * 2, [1])
