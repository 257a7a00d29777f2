"""Linear regression of many sets at once equals scikit-learn's, one at a time."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from epochwatt.prediction.data.modes import as_rows
from epochwatt.prediction.models.min_norm import least_norm


def test_equals_scikit_learn_where_modes_leave_coefficients_open(modes):
    rows = as_rows(modes)
    sets = np.array([[0, 4, 5, 8], [6, 7, 8, 9], [0, 1, 2, 3]])  # four, two and four are fixed
    target = np.random.default_rng(0).uniform(100, 900, sets.shape)
    coefficients, intercepts = least_norm(rows[sets], target, np.ones(sets.shape))
    for n, places in enumerate(sets):
        fit = LinearRegression().fit(rows[places], target[n])
        assert coefficients[n] == pytest.approx(fit.coef_, rel=1e-6, abs=1e-12)
        assert intercepts[n] == pytest.approx(fit.intercept_)


def test_a_weight_is_a_number_of_epochs(modes):
    rows, target = as_rows(modes), np.linspace(100, 200, len(modes))
    n_epochs = np.array([1, 2, 3, 1, 2, 3, 1, 2, 3, 1])
    once = least_norm(rows[None], target[None], n_epochs[None].astype(float))
    repeated = [np.repeat(of, n_epochs, axis=0)[None] for of in (rows, target)]
    each = least_norm(*repeated, np.ones((1, n_epochs.sum())))
    assert once[0] == pytest.approx(each[0])
    assert once[1] == pytest.approx(each[1])


def test_worked_out_by_hand():
    """Times 10 and 30 s at 1 and 2 GHz: slope 20; what does not differ gets nothing."""
    rows = np.array([[[8.0, 1.0], [8.0, 2.0]]])
    for standardise in (False, True):
        coefficients, intercepts = least_norm(
            rows, np.array([[10.0, 30.0]]), np.ones((1, 2)), standardise
        )
        assert coefficients[0] == pytest.approx([0, 20])
        assert intercepts[0] == pytest.approx(-10)
