"""What a measured mode may be the next time, and how likely it then breaks the limit."""

from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
import pytest

from epochwatt.prediction.data.modes import Mode
from epochwatt.prediction.profile.bench import Measured
from epochwatt.prediction.profile.search import REPEAT_SD, outlook

MODE = Mode(4.0, 1000.0, 500.0, 2000.0)
ONE = Measured(MODE, time_s=0.5, power_w=20.0, took_s=30.0, counted_s=20.0)
FAR = NormalDist().inv_cdf(0.95)  # of a 90 % interval


@dataclass(frozen=True)
class Spread:
    """A fitted model that is so sure of a mode; None: it states no interval."""

    sd: float | None

    def interval(self, modes):
        """Return the 90 % interval of a log-normal."""
        if self.sd is None:
            return None
        one = np.ones(len(modes))
        return one * np.exp(-FAR * self.sd), one * np.exp(FAR * self.sd)


def test_the_interval_is_the_models_own_but_never_less_than_a_repeat():
    wide = outlook(ONE, Spread(0.05), Spread(0.1), None)
    time = wide.estimates["time_s"]
    assert (time.value, time.low, time.high) == pytest.approx(
        (0.5, 0.5 * np.exp(-FAR * 0.05), 0.5 * np.exp(FAR * 0.05))
    )
    for sure in (Spread(1e-6), Spread(None)):
        power = outlook(ONE, sure, sure, None).estimates["power_w"]
        assert power.high == pytest.approx(20.0 * np.exp(FAR * REPEAT_SD))


def test_time_and_power_deviate_independently_in_the_energy():
    energy = outlook(ONE, Spread(0.03), Spread(0.04), None).estimates["energy_j"]
    assert energy.value == 10.0
    assert energy.high == pytest.approx(10.0 * np.exp(FAR * 0.05))


def test_few_mini_batches_widen_the_time():
    noisy = ONE._replace(time_sd_s=0.02)  # 4 %
    time = outlook(noisy, Spread(0.03), None, None).estimates["time_s"]
    assert time.high == pytest.approx(0.5 * np.exp(FAR * 0.05))


def test_the_risk_is_how_often_the_next_epoch_breaks_the_limit():
    random = np.random.default_rng(0)
    for limit_w in (19.0, 20.0, 21.0):
        risk = outlook(ONE, Spread(0.02), Spread(0.05), limit_w).risk
        again_w = 20.0 * np.exp(0.05 * random.standard_normal(100_000))
        assert risk == pytest.approx((again_w > limit_w).mean(), abs=0.01)


def test_without_a_limit_or_a_sensor_there_is_no_risk():
    assert outlook(ONE, Spread(0.02), Spread(0.05), None).risk is None
    blind = outlook(ONE._replace(power_w=float("nan")), Spread(0.02), None, 20.0)
    assert blind.risk is None
    assert set(blind.estimates) == {"time_s"}
