"""The chosen mode is as safe as was asked, and more careful where fits choose differently."""

from dataclasses import dataclass

import numpy as np
import pytest

from epochwatt.prediction.data.modes import Numbers, PredictionError, as_rows
from epochwatt.prediction.predictor import Context, Predictor
from epochwatt.prediction.recommend.recommend import safe_mode
from epochwatt.prediction.registry import load_method
from tests.unit.prediction.models.test_utilisation import world

MODES = as_rows([(4, 1000, gpu, 1600) for gpu in range(100, 1100, 100)])
BOUND = 1.6448536


@dataclass(frozen=True, eq=False)
class Law(Predictor):
    """A power of the GPU's clock, known to a standard deviation; fits are off by factors."""

    target: str
    trained_on: Numbers
    exponent: float
    sd: float
    factors: tuple[float, ...] = (1.0,)

    def predict(self, modes):
        return as_rows(modes)[:, 2] ** self.exponent

    def interval(self, modes, level=0.9):
        far = np.exp(BOUND * self.sd)
        return self.predict(modes) / far, self.predict(modes) * far

    def fits(self, modes):
        return self.predict(modes)[:, None] * np.array(self.factors)


class Blind(Law):
    """States no interval."""

    def interval(self, modes, level=0.9):
        return None


TIME, POWER = Law("time_s", MODES, -1.0, 0.01), Law("power_w", MODES, 1.0, 0.1)


def test_the_fastest_mode_that_is_safe_enough_is_chosen():
    """600 x exp(1.645 x 0.1) is 707; the mean alone would take 700."""
    assert safe_mode(TIME, POWER, MODES, 710, 0.05)[:2] == (5, 6)
    assert safe_mode(TIME, POWER, MODES, 701, 0.5).place == 6
    assert safe_mode(TIME, POWER, MODES, 710, 0.001).place < 5
    assert safe_mode(TIME, POWER, MODES, 700, 0.05, over_w=10).place == 5


def test_the_risk_is_stated_and_no_higher_than_asked():
    told = safe_mode(TIME, POWER, MODES, 710, 0.05)
    assert told.risks["power_w"] == pytest.approx(0.046, abs=0.002)


def test_fits_that_would_choose_differently_make_it_careful():
    """Fits that take power for a fifth lower choose what all others take for unsafe."""
    torn = Law("power_w", MODES, 1.0, 0.1, factors=(0.8, 0.9, 1.1, 1.2))
    assert safe_mode(TIME, torn, MODES, 710, 0.05).place < 5


def test_no_mode_may_be_safe_enough():
    with pytest.raises(PredictionError, match="no mode keeps 50 W") as caught:
        safe_mode(TIME, POWER, MODES, 50, 0.05)
    assert "least risk" in str(caught.value)


@pytest.mark.parametrize("risk", [0, 0.6, -0.1])
def test_a_risk_is_above_zero_and_up_to_a_half(risk):
    with pytest.raises(PredictionError, match="a risk of"):
        safe_mode(TIME, POWER, MODES, 500, risk)


def test_a_method_without_intervals_is_refused():
    with pytest.raises(PredictionError, match="does not know how sure"):
        safe_mode(TIME, Blind("power_w", MODES, 1.0, 0.1), MODES, 500, 0.05)


def test_choices_in_planted_worlds_break_as_few_limits_as_allowed(agx):
    """From 25 modes, nine limits in each of six worlds; what is expected breaks far more."""
    method, broken, by_mean = load_method("utilisation"), [], []
    for seed in range(6):
        whole = world(agx, seed, noise=0.01)
        seen = whole.rows(np.arange(len(whole.modes)) < 25)
        time, power = (method.fit(seen, Context(target)) for target in ("time_s", "power_w"))
        expected_s, expected_w = time.predict(whole.modes), power.predict(whole.modes)
        for limit_w in np.quantile(whole.power_w, np.linspace(0.1, 0.9, 9)):
            place = safe_mode(time, power, whole.modes, limit_w, 0.05).place
            broken.append(whole.power_w[place] > limit_w)
            hoped = np.where(expected_w <= limit_w, expected_s, np.inf).argmin()
            by_mean.append(whole.power_w[hoped] > limit_w)
    assert np.mean(broken) <= 0.06
    assert np.mean(by_mean) > 0.2
