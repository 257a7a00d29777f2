"""The next mode is the one that promises most: in worlds where one can say which that is."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from scipy.integrate import quad

from epochwatt.prediction.data.modes import Mode, Numbers, as_rows
from epochwatt.prediction.models.times_power import TIME_WITH_POWER
from epochwatt.prediction.predictor import Predictor
from epochwatt.prediction.profile.bench import Measured
from epochwatt.prediction.profile.search import Fits, Goal, Profile, gains

MODES = as_rows([(4, 1000, gpu, 1600) for gpu in (200, 400, 600, 800)])
RAN = Measured(Mode(*MODES[0]), 100.0, 10.0, took_s=30.0, counted_s=20.0)
BOUND = 1.6448536


@dataclass(frozen=True, eq=False)
class Normal(Predictor):
    """Log-normal values by the place of a mode among `MODES`; without `sd` no interval."""

    target: str
    middle: tuple[float, ...]
    sd: tuple[float, ...] | None = (0.01, 0.1, 0.1, 0.1)
    trained_on: Numbers = field(default_factory=lambda: MODES[:1])

    def predict(self, modes):
        return np.array(self.middle)[(as_rows(modes)[:, 2] / 200).astype(int) - 1]

    def interval(self, modes, level=0.9):
        if self.sd is None:
            return None
        far = np.exp(BOUND * np.array(self.sd)[(as_rows(modes)[:, 2] / 200).astype(int) - 1])
        return self.predict(modes) / far, self.predict(modes) * far


SECONDS = Normal("time_s", (100, 90, 60, 50))
WATTS = Normal("power_w", (10, 12, 20, 40))


def promise(power=None, limit_w=None, objective="time", time=SECONDS):
    profile = Profile(None, Goal(objective, limit_w, 60.0), None, ran=[RAN])
    return gains(Fits(time, power), MODES[1:], profile)


def saved(middle, sd, best):
    """Return the mean of what a log-normal value lies below the best one, by quadrature."""

    def part(z):
        density = np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)
        return max(1 - middle * np.exp(sd * z) / best, 0) * density

    return quad(part, -8, 8, limit=200)[0]


def test_the_gain_is_the_mean_of_what_is_saved():
    answer = promise()
    expected = [saved(SECONDS.middle[n], 0.1, 100) for n in (1, 2, 3)]
    assert answer.gain == pytest.approx(expected, rel=1e-4)
    assert (answer.keeps == 1).all()


def test_a_mode_that_surely_breaks_the_limit_promises_nothing():
    answer = promise(WATTS, limit_w=25)
    assert answer.gain.argmax() == 1
    assert 0.9 < answer.keeps[1] < 1
    assert 0.3 < answer.gain[1] < 0.4
    assert answer.gain[2] < 1e-4
    none = promise(WATTS, limit_w=9)  # without an answer every new mode is worth it
    assert np.isinf(none.gain).all()
    assert none.keeps.argmax() == 0


def test_energy_is_time_times_power_and_both_deviate_together():
    """50 s x 40 W is more than 100 s x 10 W; 60 s x 12 W is less."""
    gain = promise(Normal("power_w", (10, 12, 12, 40)), objective="energy").gain
    assert gain.argmax() == 1
    assert gain[1] == pytest.approx(1 - 720 / 1000, abs=0.02)
    assert gain[2] < 1e-6
    # whatever takes longer than expected draws less: that is in the width of the energy
    sd = np.sqrt(0.1**2 + 0.1**2 + 2 * TIME_WITH_POWER * 0.1 * 0.1)
    gain = promise(WATTS, objective="energy").gain
    assert gain[0] == pytest.approx(saved(90 * 12, sd, 1000), rel=1e-4)
