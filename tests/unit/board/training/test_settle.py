"""Waiting for a steady board: when it ends, what it tells, and that it reads a board's sensors."""

import math
import os
import types

import pytest
from fake_board import make_board

from epochwatt.board.training import preparation as module
from epochwatt.board.training.preparation import settle, wait_until_steady

LIMITS = {"max_s": 100.0, "window_s": 20.0, "temp_c": 1.0, "power_w": 0.5}
NAN = math.nan


class Clock:
    """A monotonic clock that moves when somebody sleeps, and a little with each look at it."""

    t_s = 1000.0

    def __call__(self):
        self.t_s += 1e-6
        return self.t_s

    def sleep(self, seconds):
        self.t_s += seconds


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def wait(clock):
    """Return a function that waits for a board whose readings are functions of the seconds."""
    start_s = clock.t_s

    def call(temp_c=lambda s: 40.0, power_w=lambda s: 5.0, **changes):
        def read():
            s = clock.t_s - start_s
            return temp_c(s), power_w(s)

        return wait_until_steady(read, {**LIMITS, **changes}, clock, clock.sleep)

    return call


def test_a_steady_board_waits_for_one_window(wait):
    told = wait()
    assert told["steady"]
    assert told["waited_s"] == pytest.approx(LIMITS["window_s"], abs=1.5)


@pytest.mark.parametrize("what", ["temp_c", "power_w"])
def test_a_board_that_drifts_waits_until_it_has_stopped(what, wait):
    told = wait(**{what: lambda s: 40.0 - 0.2 * min(s, 45.0)})
    assert told["steady"]
    # the last change that the limit allows is inside the window
    allowed_s = LIMITS[what] / 0.2
    assert told["waited_s"] == pytest.approx(45.0 + LIMITS["window_s"] - allowed_s, abs=2.0)
    assert told[what] == pytest.approx(31.0)


@pytest.mark.parametrize("what", ["temp_c", "power_w"])
def test_a_restless_board_ends_at_the_limit(what, wait):
    told = wait(**{what: lambda s: 3.0 * (int(s) % 2)})
    assert not told["steady"]
    assert 100.0 <= told["waited_s"] <= 102.0


def test_a_slow_drift_is_no_rest_though_each_step_is_small(wait):
    assert not wait(temp_c=lambda s: 40.0 + 0.1 * s)["steady"]


def test_readings_that_are_not_there_count_as_steady_and_are_told_so(wait):
    told = wait(temp_c=lambda s: NAN, power_w=lambda s: NAN)
    assert told["steady"]
    assert told["waited_s"] == pytest.approx(LIMITS["window_s"], abs=1.5)
    assert (told["temp_c"], told["power_w"]) == (None, None)


# -- the sensors of a board ----------------------------------------------------------------------


@pytest.fixture
def at_once(clock, monkeypatch):
    """No waiting: the module's clock is the test's."""
    named = types.SimpleNamespace(monotonic=clock, sleep=clock.sleep)
    monkeypatch.setattr(module, "time", named)


def open_files():
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("kind", ["nano", "agx_orin-jp5"])
def test_a_board_tells_its_hottest_sensor_and_its_modules_power(kind, tmp_path):
    board = make_board(tmp_path / "board", kind)
    zone = sorted(board.root.glob("sys/class/thermal/thermal_zone*/temp"))[1]
    zone.write_text("71500\n", "ascii")
    before = open_files()
    told = settle(str(board.root), LIMITS)
    assert told["steady"]
    assert told["temp_c"] == 71.5
    assert told["power_w"] == pytest.approx(total_w(board), rel=1e-3)
    assert open_files() == before


def total_w(board):
    """Return the module's power as somebody reads it who knows the layout."""
    number, total = board.files.number, 0.0
    for rail in board.files.facts["rails"]:
        if rail["label"] in board.kind.total:
            milliwatts = (
                number(rail["power"])
                if "power" in rail
                else number(rail["volt"]) * number(rail["curr"]) / 1e3
            )
            total += milliwatts / 1e3
    return total


@pytest.mark.usefixtures("at_once")
def test_a_sensor_that_fails_on_the_way_does_not_end_the_waiting(tmp_path, monkeypatch):
    board = make_board(tmp_path / "board", "agx_xavier")

    def fails(self):
        raise OSError("Input/output error")

    monkeypatch.setattr(module.Ina3221Source, "read", fails)
    told = settle(str(board.root), LIMITS)
    assert told["power_w"] is None
    assert told["temp_c"] > 0
