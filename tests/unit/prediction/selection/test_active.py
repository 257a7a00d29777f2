"""The next mode is the one that promises most: in worlds where one can say which that is."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.integrate import quad

from epochwatt.prediction.data.modes import Mode, Numbers, PredictionError, as_rows
from epochwatt.prediction.data.observations import observations_from_rows
from epochwatt.prediction.models.times_power import TIME_WITH_POWER
from epochwatt.prediction.predictor import Predictor
from epochwatt.prediction.selection.active import gains

MODES = as_rows([(4, 1000, gpu, 1600) for gpu in (200, 400, 600, 800)])
PROFILED = observations_from_rows("net", [Mode(*MODES[0])], [100.0], [10.0])
BOUND = 1.6448536


@dataclass(frozen=True, eq=False)
class Normal(Predictor):
    """Log-normal values by the place of a mode among `MODES`."""

    target: str
    trained_on: Numbers
    middle: Numbers
    sd: Numbers

    def predict(self, modes):
        return self.middle[self._places(modes)]

    def interval(self, modes, level=0.9):
        places = self._places(modes)
        far = np.exp(BOUND * self.sd[places])
        return self.middle[places] / far, self.middle[places] * far

    def _places(self, modes):
        return (as_rows(modes)[:, 2] / 200).astype(int) - 1


@dataclass(frozen=True, eq=False)
class Blind(Normal):
    """States no interval."""

    def interval(self, modes, level=0.9):
        return None


def normal(middle, sd, kind=Normal, target="time_s"):
    return kind(target, MODES[:1], np.array(middle, float), np.array(sd, float))


SECONDS = normal([100, 90, 60, 50], [0.01, 0.1, 0.1, 0.1])
WATTS = normal([10, 12, 20, 40], [0.01, 0.1, 0.1, 0.1], target="power_w")


def test_the_gain_is_the_mean_of_what_is_saved():
    told = gains(SECONDS, None, MODES, PROFILED)
    for place in (1, 2, 3):
        middle, sd = np.log(SECONDS.middle[place]), SECONDS.sd[place]

        def saved(z, middle=middle, sd=sd):
            density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
            return max(1 - np.exp(middle + sd * z) / 100, 0) * density

        assert told.gain[place] == pytest.approx(quad(saved, -8, 8, limit=200)[0], rel=1e-4)
    assert told.gain[0] == 0  # it is profiled
    assert (told.keeps == 1).all()
    assert told.gain.argmax() == 3


def test_a_mode_that_surely_breaks_the_limit_promises_nothing():
    told = gains(SECONDS, WATTS, MODES, PROFILED, max_power_w=25)
    assert told.gain.argmax() == 2
    assert 0.9 < told.keeps[2] < 1
    assert 0.3 < told.gain[2] < 0.4
    assert told.gain[3] < 1e-4


def test_without_an_answer_every_new_mode_is_worth_it_and_the_surest_is_known():
    told = gains(SECONDS, WATTS, MODES, PROFILED, max_power_w=9)
    assert np.isinf(told.gain[1:]).all()
    assert told.keeps[1:].argmax() == 0


def test_energy_is_time_times_power():
    """50 s x 40 W is more than 100 s x 10 W; 60 s x 12 W is less."""
    watts = normal([10, 12, 12, 40], [0.01, 0.1, 0.1, 0.1], target="power_w")
    gain = gains(SECONDS, watts, MODES, PROFILED, objective="energy").gain
    assert gain.argmax() == 2
    assert gain[2] == pytest.approx(1 - 720 / 1000, abs=0.02)
    assert gain[3] < 1e-6


def test_time_and_power_of_a_mode_deviate_together_in_its_energy():
    """Whatever takes longer than expected draws less: that is in the width of the energy."""
    told = gains(SECONDS, WATTS, MODES, PROFILED, objective="energy")
    sd = np.sqrt(0.1**2 + 0.1**2 + 2 * TIME_WITH_POWER * 0.1 * 0.1)

    def saved(z):
        density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
        return max(1 - 90 * 12 * np.exp(sd * z) / 1000, 0) * density

    assert told.gain[1] == pytest.approx(quad(saved, -8, 8, limit=200)[0], rel=1e-4)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"time": normal([1] * 4, [1] * 4, Blind)}, "does not know how sure"),
        ({"max_power_w": 10}, "power is not known"),
        ({"objective": "energy"}, "power is not known"),
        ({"objective": "beauty"}, "the objective beauty"),
    ],
)
def test_what_cannot_be_judged_is_refused(arguments, problem):
    wanted = {"time": SECONDS, "power": None, "candidates": MODES, "profiled": PROFILED}
    with pytest.raises(PredictionError, match=problem):
        gains(**(wanted | arguments))
