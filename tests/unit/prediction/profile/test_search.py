"""Modes run one after the other: what is answered, what it takes, when it ends, and the risk."""

import math
import shutil
from pathlib import Path

import numpy as np
import pytest
from fake_board import make_board
from hypothesis import given, settings
from hypothesis import strategies as st

from epochwatt.errors import ConfigError, EpochwattError
from epochwatt.prediction.data.mode_tables import UNKNOWN
from epochwatt.prediction.data.modes import Mode, PredictionError, as_rows
from epochwatt.prediction.profile.bench import Measured, Played
from epochwatt.prediction.profile.command import Request, profile_of
from epochwatt.prediction.profile.search import (
    ENDLESS_S,
    FREE,
    Goal,
    Profile,
    scatter_of,
    search,
    star,
    student_scale,
)
from epochwatt.prediction.profile.text import answer_lines
from epochwatt.prediction.recommend.recommend import REPEAT_SD
from epochwatt.prediction.registry import load_method
from epochwatt.sweeps.other_power import OtherPower

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
    board = kind(modes, list(np.stack([time_s, power_w], axis=1)[:, None]), per_mode=40)
    board.title, board.kind = "a network on a board", "b"
    board.provenance, board.processes = "public", 5
    return board


def asked(board, method, limit_w=None, minutes=30.0, objective="time", risk=0.1):
    """Return a profile that has ended."""
    profile = Profile(board, Goal(objective, limit_w, 60 * minutes, risk), method)
    search(profile)
    return profile


def test_the_answer_is_near_the_best_mode_after_a_few_and_known_modes_cost_nothing(method):
    for limit_w in (12.0, 18.0, 24.0):
        profile = asked(bench(), method, limit_w)
        assert profile.best.power_w <= limit_w
        assert profile.best.time_s <= 1.06 * TIME_S[limit_w >= POWER_W].min()
        assert profile.best.n > 1
        assert len(profile.ran) < 25
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
    modes, risks = profile.modes(), profile.risks()
    assert len(modes) <= len(MODES)
    kept = [run for run, risk in zip(modes, risks, strict=True) if risk <= 0.1]
    if profile.best is None:
        assert not kept
    else:
        assert profile.best.power_w < limit_w
        assert profile.goal.aim(profile.best) == min(map(profile.goal.aim, kept))


def energy_goal(n_runs=10, deadline_s=None, **watts):
    """Return the goal of least energy."""
    other = OtherPower(deadline_s=deadline_s, **watts)
    return Goal("energy", None, ENDLESS_S, max_runs=n_runs, max_time_s=deadline_s, other=other)


@pytest.mark.parametrize("watts", [{}, {"rest_w": 30.0}])
def test_least_energy_is_found_in_ten_runs_with_what_draws_power_besides(method, watts):
    """The rest of a board draws power for as long as a mode takes: faster modes win."""
    profile = Profile(bench(), energy_goal(**watts), method)
    search(profile)
    energy_j = TIME_S * (POWER_W + watts.get("rest_w", 0.0))
    best = profile.bench.place(profile.best.mode)
    assert energy_j[best] <= 1.03 * energy_j.min()
    assert (len(profile.ran), profile.stop) == (10, "10 runs were allowed")
    assert TIME_S[best] <= TIME_S[(TIME_S * POWER_W).argmin()]
    text = "\n".join(answer_lines(profile, ""))
    assert f"{energy_j[best]:.4g}" in text
    assert ("all that counts" in text) == bool(watts)


def test_few_runs_begin_in_the_middle_and_with_each_part_alone_at_an_end():
    middle, *ends = star(MODES)
    assert middle[:3] == (8, 1400, 600)  # all cores
    assert [mode[:3] for mode in ends] == [(2, 1400, 600), (8, 2200, 600), (8, 1400, 1300)]


def test_until_a_deadline_idling_counts_and_racing_to_idle_is_said(method):
    for idle_w, wins in ((1.0, True), (9.0, False)):
        deadline_s = float(np.quantile(TIME_S, 0.7))
        profile = Profile(bench(), energy_goal(14, deadline_s, idle_w=idle_w), method)
        search(profile)
        total_j = TIME_S * POWER_W + (deadline_s - TIME_S) * idle_w
        total_j[deadline_s < TIME_S] = np.inf
        best = profile.bench.place(profile.best.mode)
        assert total_j[best] <= 1.03 * total_j.min()
        races = TIME_S[best] <= 0.95 * deadline_s
        assert ("racing to idle wins" in "\n".join(answer_lines(profile, ""))) == races
        assert races == wins
    hurried = Profile(bench(), energy_goal(10, 0.5 * float(TIME_S.min())), method)
    search(hurried)
    assert hurried.best is None
    assert "no mode that was run is as fast as asked" in "\n".join(answer_lines(hurried, ""))


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        ({}, "a search without an end"),
        ({"max_runs": 9, "rest_w": 2.0}, "count in an energy"),
        ({"max_runs": 9, "objective": "energy", "idle_w": 2.0}, "until a deadline"),
    ],
)
def test_powers_and_ends_that_do_not_go_together_are_refused(asked, problem):
    with pytest.raises(ConfigError, match=problem):
        _ = Request(None, None, **asked).goal
    assert Request(None, None, max_runs=9, max_time_s=1.0).goal.objective == "energy"
    assert Request(None, None, 10.0, max_power_w=1.0).goal.objective == "time"


def test_what_a_mode_has_no_further_repeat_of_is_drawn_with_the_scatter_of_the_others():
    """The last repeat is kept back; a table of single ones scatters as repeats are believed to."""
    rows = [np.array([[1.0, 10.0], [1.1, 11.0], [1.2, 12.0]]), np.array([[2.0, 20.0]])]
    board = Played(MODES[:2], rows, seed=1)
    first, second = (Mode(*row) for row in MODES[:2])
    shown = [next(board.measure([first])).power_w for _ in range(2)]
    unseen, is_there = board.unseen(first)
    assert is_there
    assert sorted([*shown, *unseen[:, 1]]) == [10.0, 11.0, 12.0]
    assert next(board.measure([first])).power_w not in shown
    assert board.unseen(first)[0][0, 1] in {10.0, 11.0, 12.0}  # it stays unseen
    assert next(board.measure([second])).power_w == 20.0
    drawn, is_there = board.unseen(second)
    assert not is_there
    assert (drawn == board.unseen(second)[0]).all()
    many = bench(modes=np.tile(MODES, (1, 1)))
    again = [many.unseen(run.mode)[0][0] for run in many.measure([Mode(*m) for m in MODES])]
    off = np.log(np.array(again) / np.stack([TIME_S, POWER_W], axis=1))
    assert off.std() == pytest.approx(np.sqrt(2) * REPEAT_SD, rel=0.3)


@pytest.mark.parametrize(
    ("sd", "slower"), [pytest.param(0.005, 1.06, marks=pytest.mark.thorough), (0.03, 1.25)]
)
def test_an_answer_breaks_the_limit_in_unseen_repeats_as_seldom_as_asked(method, sd, slower):
    """Of 30 questions; taken as it was measured once, many answers break their limit."""
    noise = np.random.default_rng(5).standard_normal((len(MODES), 8, 2))
    rows = np.stack([TIME_S, POWER_W], axis=1)[:, None] * np.exp(sd * noise)
    limits_w = np.quantile(POWER_W, np.linspace(0.1, 0.9, 15))
    for risk, least, most in ((0.1, 0.0, 0.1), (0.5, 0.1, 0.6)):
        broken, regret = [], []
        for limit_w in limits_w:
            board = Played(MODES, list(rows), per_mode=40)
            board.title, board.kind, board.provenance, board.processes = "", "b", "public", 5
            profile = asked(board, method, limit_w, risk=risk)
            unseen, _ = board.unseen(profile.best.mode)
            broken.append((unseen[:, 1] > limit_w).mean())
            best_s = TIME_S[limit_w >= POWER_W].min()
            regret.append(TIME_S[board.place(profile.best.mode)] / best_s)
        assert least <= np.mean(broken) <= most
        assert np.median(regret) <= slower


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
    assert fastest.outlook(fastest.best.mode).estimates.keys() == {"time_s"}


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


def test_memory_clock_without_known_steps_is_left_alone(tmp_path):
    board = make_board(tmp_path / "board", "agx_thor")
    shutil.copytree(Path(__file__).parents[4] / "config", tmp_path / "config")
    path = tmp_path / "config/devices/thor.yaml"
    text = path.read_text("utf-8").replace("sysroot: /", f"sysroot: {board.root}")
    path.write_text(text.replace(", block_device: nvme", ""), "utf-8")
    modes = profile_of(Request("thor", "lenet", 20.0), tmp_path).bench.modes
    assert len(modes) == 14 * 49 * 170
    assert set(modes[:, 3]) == {UNKNOWN.emc_mhz}


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


def ran(*runs, limit_w=None):
    """Return a profile of runs: (mode's number, time in s, power in W)."""
    profile = Profile(bench(), Goal("time", limit_w, 60.0), None)
    profile.ran = [
        Measured(Mode(*MODES[n]), time_s, power_w, took_s=30.0, counted_s=20.0)
        for n, time_s, power_w in runs
    ]
    return profile


def test_repeats_narrow_or_widen_what_the_next_run_may_be_and_one_outlier_does_not_for_all():
    near = np.exp([0.01, -0.01])
    assert scatter_of([np.array([5.0])]).scale == pytest.approx([REPEAT_SD])
    off = 0.3 * np.random.default_rng(1).standard_t(FREE, 4000)
    assert student_scale(np.append(off, 50.0), 1.0, 20) == pytest.approx(0.3, rel=0.1)
    calm = scatter_of([5 * np.exp([1e-4, -1e-4])] * 20).scale
    assert (calm < 0.7 * REPEAT_SD).all()
    wild = scatter_of([*[5 * near] * 9, 5 * np.exp([0.3, -0.3])]).scale
    assert wild[0] < 2 * REPEAT_SD
    assert wild[-1] > 0.15
    once, twice = (ran(*[(0, 0.5, 20.0)] * n).outlook(Mode(*MODES[0])) for n in (1, 2))
    widths = [np.ptp(look.estimates["power_w"][1:]) for look in (once, twice)]
    assert widths[1] < widths[0]
    assert once.estimates["energy_j"].value == 10.0
    assert ran((0, 0.5, math.nan)).outlook(Mode(*MODES[0])).estimates.keys() == {"time_s"}


def test_the_risk_is_how_often_the_next_run_breaks_the_limit():
    random = np.random.default_rng(0)
    for limit_w in (19.5, 20.0, 20.5):
        profile = ran((0, 0.5, 20.2), (0, 0.5, 19.8), limit_w=limit_w)
        (scale,) = profile.scatter().next()
        again_w = 20.0 * np.exp(scale * random.standard_t(FREE, 100_000))
        assert profile.risks() == pytest.approx([(again_w > limit_w).mean()], abs=0.01)
        assert profile.outlook(Mode(*MODES[0])).risk == profile.risks()[0]
    assert ran((0, 0.5, 20.0)).outlook(Mode(*MODES[0])).risk is None
