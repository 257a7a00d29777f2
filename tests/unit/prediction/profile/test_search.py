"""Modes run one after the other: what is answered, what it takes, when it ends, and the risk."""

import math
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epochwatt.errors import ConfigError, EpochwattError
from epochwatt.prediction.data.modes import Mode, PredictionError, as_rows
from epochwatt.prediction.profile.bench import Measured, Played
from epochwatt.prediction.profile.command import Request, profile_of
from epochwatt.prediction.profile.search import REPEAT_SD, Goal, Profile, outlook, search
from epochwatt.prediction.registry import load_method

MODES = as_rows(
    [
        Mode(cores, cpu_mhz, gpu_mhz, 2133.0)
        for cores in (2, 4, 8)
        for cpu_mhz in (700.0, 1400.0, 2200.0)
        for gpu_mhz in (300.0, 600.0, 900.0, 1300.0)
    ]
)
TIME_S = 100 / MODES[:, 2] + 60 / MODES[:, 1] + 0.1 / MODES[:, 0]
POWER_W = 5 + MODES[:, 2] / 60 + MODES[:, 0] * MODES[:, 1] / 2000


@pytest.fixture(scope="module")
def method():
    return load_method("gaussian_process")


def bench(time_s=TIME_S, power_w=POWER_W, modes=MODES, kind=Played):
    """Return a board of 36 modes."""
    board = kind(modes, np.asarray(time_s), np.asarray(power_w), per_mode=40)
    board.title, board.kind = "a network on a board", "b"
    board.provenance, board.processes = "public", 5
    return board


def asked(board, method, limit_w=None, minutes=30.0, objective="time"):
    """Return a profile that has ended."""
    profile = Profile(board, Goal(objective, limit_w, 60 * minutes), method)
    search(profile)
    return profile


def test_the_answer_is_near_the_best_mode_after_a_few_and_known_modes_cost_nothing(method):
    for limit_w in (12.0, 18.0, 24.0):
        profile = asked(bench(), method, limit_w)
        assert profile.best.power_w <= limit_w
        assert profile.best.time_s <= 1.02 * TIME_S[limit_w >= POWER_W].min()
        assert len(profile.ran) < 20
        assert profile.n_first == 8
        assert profile.stop
    again = bench()
    again.earlier = lambda: profile.ran
    second = asked(again, method, 24.0)
    assert second.best.time_s <= profile.best.time_s
    assert second.n_first == 0
    assert len(second.ran) < len(profile.ran)


@settings(max_examples=8, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    rough=st.sampled_from([0.0, 0.05, 0.5]),
    share=st.floats(0.0, 1.0),
    minutes=st.floats(5.0, 15.0),
    objective=st.sampled_from(["time", "energy"]),
)
def test_no_answer_breaks_the_limit_and_no_profile_the_time(seed, rough, share, minutes, objective):
    """On monotone tables, rough ones, and ones of noise; the limit may lie below every mode."""
    noise = np.random.default_rng(seed).standard_normal((2, len(MODES)))
    power_w = POWER_W * np.exp(rough * noise[0])
    board = bench(TIME_S * np.exp(rough * noise[1]), power_w)
    limit_w = float(0.9 * power_w.min() + share * (power_w.max() - 0.9 * power_w.min()))
    profile = asked(board, load_method("gaussian_process"), limit_w, minutes, objective)
    # the last mode may take longer than expected
    assert profile.spent_s - profile.ran[-1].took_s <= 60 * minutes
    assert len({run.mode for run in profile.ran}) == len(profile.ran) <= len(MODES)
    kept = [run for run in profile.ran if run.power_w <= limit_w]
    if profile.best is None:
        assert not kept
    else:
        assert profile.best.power_w <= limit_w
        assert profile.goal.aim(profile.best) == min(map(profile.goal.aim, kept))


def test_a_limit_below_every_mode_has_no_answer(method):
    profile = asked(bench(), method, 1.0)
    assert profile.best is None
    assert profile.stop == "no mode is expected to keep the limit"
    assert len(profile.ran) < 12


def test_too_few_minutes_for_the_first_modes_are_refused_before_any_runs(method):
    board = bench()
    with pytest.raises(EpochwattError, match="too few for the first 4 modes") as error:
        asked(board, method, 20.0, minutes=0.5)
    assert (error.value.where, error.value.do) == ("--max-minutes", "allow 4 or more")
    assert board.spent_s() == 0


def test_without_power_a_limit_is_refused_after_one_mode_and_time_is_answered(method):
    dark = np.full(len(MODES), np.nan)
    with pytest.raises(EpochwattError, match="--max-power-w needs it"):
        asked(bench(power_w=dark), method, 20.0)
    fastest = asked(bench(power_w=dark), method)
    assert fastest.best.time_s <= 1.02 * TIME_S.min()
    assert fastest.outlook(fastest.best).estimates.keys() == {"time_s"}


@pytest.mark.parametrize("name", ["powertrain", "twin_prior"])
def test_methods_that_cannot_choose_are_refused(name):
    with pytest.raises(PredictionError, match=f"{name} cannot choose modes"):
        asked(bench(), load_method(name), 20.0)
    limits = np.column_stack([MODES[:, :5], np.linspace(10, 30, len(MODES))])
    with pytest.raises(PredictionError, match="does not know what power_limit_w does"):
        asked(bench(modes=limits), load_method("physical"), 20.0)


def test_a_board_that_is_not_simulated_is_refused_with_those_that_are():
    with pytest.raises(ConfigError, match="has no backend twin, only jetson") as error:
        profile_of(
            Request("orin.nano", "mobilenet", 10.0, backend="twin"), Path(__file__).parents[4]
        )
    assert "agx, nano, nx, orin" in error.value.found


def test_ctrl_c_keeps_what_was_measured_and_ends_the_bench(method):
    ended = []

    class Interrupted(Played):
        def measure(self, modes):
            try:
                for number, run in enumerate(super().measure(modes)):
                    if number == 3:
                        raise KeyboardInterrupt
                    yield run
            finally:
                ended.append(True)

    profile = Profile(bench(kind=Interrupted), Goal("time", 40.0, 1800.0), method)
    with pytest.raises(KeyboardInterrupt):
        search(profile)
    assert ended
    assert len(profile.ran) == 3
    assert profile.best in profile.ran
    assert not profile.stop


@pytest.mark.parametrize(("busy", "n_ran"), [({0}, 1), ({3, 4}, 5), ({3, 5, 7}, None)])
def test_a_machine_that_others_keep_busy_ends_the_search_at_once(method, busy, n_ran):
    class Shared(Played):
        n = -1

        def measure(self, modes):
            for run in super().measure(modes):
                self.n += 1
                busy_now = self.n in busy
                yield run._replace(valid=not busy_now, flags="machine_busy" if busy_now else "")

    profile = asked(bench(kind=Shared), method, 20.0)
    if n_ran is None:
        assert len(profile.ran) > 8
        assert profile.best.valid
    else:
        assert len(profile.ran) == n_ran
        assert "busy" in profile.stop
    assert all(run.valid for run in profile.kept())


# -- what the next epoch may differ by -------------------------------------------------------------

RUN = Measured(Mode(4.0, 1000.0, 500.0, 2000.0), 0.5, 20.0, took_s=30.0, counted_s=20.0)
FAR = NormalDist().inv_cdf(0.95)  # of a 90 % interval


@dataclass(frozen=True)
class Spread:
    """A fitted model that is so sure of a mode; None: it states no interval."""

    sd: float | None

    def interval(self, modes):
        """Return the 90 % interval of a log-normal."""
        if self.sd is None:
            return None
        ones = np.ones(len(modes))
        return ones * np.exp(-FAR * self.sd), ones * np.exp(FAR * self.sd)


def test_intervals_are_the_models_own_but_never_less_than_a_repeat_and_energy_has_both():
    wide = outlook(RUN, Spread(0.05), Spread(0.1), None)
    assert wide.estimates["time_s"] == pytest.approx(
        (0.5, 0.5 * np.exp(-FAR * 0.05), 0.5 * np.exp(FAR * 0.05))
    )
    for sure in (Spread(1e-6), Spread(None)):
        power = outlook(RUN, sure, sure, None).estimates["power_w"]
        assert power.high == pytest.approx(20.0 * np.exp(FAR * REPEAT_SD))
    energy = outlook(RUN, Spread(0.03), Spread(0.04), None).estimates["energy_j"]
    assert (energy.value, energy.high) == pytest.approx((10.0, 10.0 * np.exp(FAR * 0.05)))
    noisy = RUN._replace(time_sd_s=0.02)  # 4 %
    time = outlook(noisy, Spread(0.03), None, None).estimates["time_s"]
    assert time.high == pytest.approx(0.5 * np.exp(FAR * 0.05))


def test_the_risk_is_how_often_the_next_epoch_breaks_the_limit():
    random = np.random.default_rng(0)
    for limit_w in (19.0, 20.0, 21.0):
        risk = outlook(RUN, Spread(0.02), Spread(0.05), limit_w).risk
        again_w = 20.0 * np.exp(0.05 * random.standard_normal(100_000))
        assert risk == pytest.approx((again_w > limit_w).mean(), abs=0.01)
    assert outlook(RUN, Spread(0.02), Spread(0.05), None).risk is None
    blind = outlook(RUN._replace(power_w=math.nan), Spread(0.02), None, 20.0)
    assert (blind.risk, set(blind.estimates)) == (None, {"time_s"})
