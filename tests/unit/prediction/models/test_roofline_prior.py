"""The roofline over clocks: a planted maximum is found, profiled modes are met, JSON keeps it."""

import itertools

import numpy as np
import pytest

from epochwatt.prediction.data.modes import NO_LIMIT, PredictionError
from epochwatt.prediction.data.observations import Observations
from epochwatt.prediction.models.physical import fit_physical_time
from epochwatt.prediction.models.roofline_prior import METHOD, Roofline, fit_roofline_time, roof

CLOCKS = itertools.product((4.0, 8.0), (700.0, 2200.0), (115.0, 500.0, 1300.0), (665.0, 3200.0))
MODES = np.array([[*clocks, 1.0, NO_LIMIT] for clocks in CLOCKS])
TRUTH = np.array([0.02, 0.05, 0.01, 0.0, 0.003])  # s GHz; s
PROFILED = np.array([0, 5, 7, 10, 12, 16, 18, 23])


def observed(modes, processes=5):
    """Return what a board takes whose parts overlap completely."""
    time_s = roof(TRUTH, modes, processes)
    none = np.full(len(modes), np.nan)
    epochs = np.ones(len(modes), np.int64)
    return Observations("planted", modes, time_s, none, epochs, processes)


def test_a_planted_roofline_is_found_from_a_few_modes():
    fitted = fit_roofline_time(observed(MODES[PROFILED]))
    errors = fitted.predict(MODES) / roof(TRUTH, MODES, 5) - 1
    assert np.abs(errors).max() < 0.05
    summed = fit_physical_time(observed(MODES[PROFILED]), n_draws=0)
    worse = np.abs(summed.predict(MODES) / roof(TRUTH, MODES, 5) - 1)
    assert np.abs(errors).mean() < worse.mean()  # which adds what overlaps here


def test_profiled_modes_are_about_met_and_json_keeps_all_digits():
    fitted = fit_roofline_time(observed(MODES[PROFILED]))
    assert fitted.predict(MODES[PROFILED]) == pytest.approx(fitted.observed, rel=0.02)
    again = METHOD.load(fitted.to_json())
    assert isinstance(again, Roofline)
    assert (again.predict(MODES) == fitted.predict(MODES)).all()
    assert (
        fit_roofline_time(observed(MODES[PROFILED])).predict(MODES) == again.predict(MODES)
    ).all()


def test_more_clock_is_never_expected_to_be_slower_without_deviations():
    fitted = fit_roofline_time(observed(MODES[PROFILED]))
    faster = MODES.copy()
    faster[:, 1:4] *= 1.3
    slow = roof(fitted.coefficients, MODES, fitted.processes)
    assert (roof(fitted.coefficients, faster, fitted.processes) <= slow).all()


def test_one_mode_is_too_few():
    with pytest.raises(PredictionError):
        fit_roofline_time(observed(MODES[:1]))
