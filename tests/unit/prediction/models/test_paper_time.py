"""The main paper's regression of epoch time."""

import numpy as np
import pytest

from epochwatt.prediction.data.modes import PredictionError, as_rows
from epochwatt.prediction.data.observations import of_rows
from epochwatt.prediction.evaluation.cross_validation import mape_pct
from epochwatt.prediction.models.paper_time import fit_paper_time

SLOPES, CONSTANT = np.array([-3.0, -0.02, -0.1, -0.05]), 500.0


@pytest.fixture
def linear(modes):
    """Two epochs of each mode in a world that is linear in cores and MHz."""
    times = as_rows(modes)[:, :4] @ SLOPES + CONSTANT
    return of_rows("linear", modes * 2, [*times, *times])


@pytest.mark.parametrize("standardise", [False, True])
def test_linear_world_gives_back_its_coefficients_and_no_error(linear, standardise):
    model = fit_paper_time(linear, standardise)
    assert model.coefficients == pytest.approx([*SLOPES, CONSTANT], rel=1e-9)
    assert mape_pct(model.predict(linear.modes), linear.time_s) < 1e-9


def test_four_modes_take_the_solution_of_least_norm_after_centring(linear, efij):
    some = linear.only(efij)
    model = fit_paper_time(some)
    features = some.modes[:, :4]
    centred = features - features.mean(0)
    least = np.linalg.pinv(centred) @ (some.time_s - some.time_s.mean())
    assert model.coefficients[:-1] == pytest.approx(least, abs=1e-9)
    assert model.predict(some.modes) == pytest.approx(some.time_s)
    assert not np.allclose(least, SLOPES, rtol=0.1)  # the modes leave one direction open


def test_unit_of_a_clock_decides_what_four_modes_leave_open(linear, efij, named):
    some = linear.only(efij)
    raw, scaled = (fit_paper_time(some, standardise) for standardise in (False, True))
    assert scaled.predict(some.modes) == pytest.approx(raw.predict(some.modes))
    other = as_rows([named["a"]])
    assert abs(scaled.predict(other)[0] - raw.predict(other)[0]) > 1


@pytest.mark.parametrize("n_epochs", [1, 5])
def test_one_mode_or_identical_modes_are_refused(named, n_epochs):
    of = of_rows("lenet", [named["g"]] * n_epochs, [30.0] * n_epochs)
    with pytest.raises(PredictionError, match=f"{n_epochs} epochs? under 1 distinct power mode "):
        fit_paper_time(of)
