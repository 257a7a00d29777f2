"""The machine made ready: what is set, in which order, and that it is always put back."""

import multiprocessing
import os
import signal
import time

import pytest
from cpufreq_tree import BEFORE, limits, make_cpufreq
from fake_board import make_board, settings_of

from epochwatt.board.device.cpu_clocks import CpuClocks
from epochwatt.board.device.machine import open_machine
from epochwatt.board.training import preparation
from epochwatt.board.training.preparation import BUSY_LOOKS, CALM_PCT, ENDING, prepared, put_back
from epochwatt.errors import BoardError, RebootNeeded

MODE = {"cores": 2, "cpu_mhz": 1200.0}
LIMITS = {"max_s": 5.0, "window_s": 2.0, "temp_c": 1.0, "power_w": 0.5}
FACTORS = {"power_mode_settings": MODE, "dvfs": "off"}


def settling(board):
    """Give a board limits within which it has to settle."""
    board.settings["settle"] = LIMITS
    return board


@pytest.fixture
def settled(monkeypatch, board):
    """Settling at once; it is written down where."""

    def settle(root, limits):
        board.say("settle")
        return {"steady": True, "root": root, "limits": limits}

    monkeypatch.setattr(preparation, "settle", settle)


@pytest.mark.usefixtures("settled")
class TestOrder:
    """What happens when."""

    def test_the_load_is_looked_at_before_anything_is_set_and_put_back_comes_last(self, board):
        with prepared(settling(board), FACTORS, 0):
            board.say("measuring")
        assert board.calls == ["check", "busy", "apply", "settle", "measuring", "restore"]

    def test_what_a_killed_job_left_behind_is_put_back_first(self, board, caplog):
        board.left = True
        with prepared(board, FACTORS, 0):
            pass
        assert board.calls == ["check", "restore", "busy", "apply", "restore"]
        assert "a job before this one was killed" in caplog.text

    def test_nothing_is_touched_on_another_board(self, board):
        board.left = True
        board.fails["check"] = BoardError("another unit")
        with pytest.raises(BoardError, match="another unit"), prepared(board, FACTORS, 0):
            pass
        assert board.calls == ["check"]


class TestBusy:
    """The load of other programs before the start; the workflow itself is one for a moment."""

    @pytest.mark.parametrize(
        ("looks", "least", "n_looks"),
        [
            ([CALM_PCT - 0.1, 90.0], CALM_PCT - 0.1, 1),
            ([60.0, CALM_PCT, 3.0, 90.0], 3.0, 3),
            ([60.0, 20.0, 40.0], 20.0, BUSY_LOOKS),
            ([None], None, 1),
        ],
    )
    def test_is_the_least_of_a_few_looks(self, looks, least, n_looks, board):
        board.busy = looks
        with prepared(board, FACTORS, 0) as conditions:
            pass
        assert conditions["busy_pct"] == least
        assert board.calls.count("busy") == n_looks


class TestPutBack:
    """However it ends."""

    @pytest.mark.parametrize("error", [BoardError("not met"), RebootNeeded("restart it")])
    def test_after_a_mode_that_could_not_be_set(self, error, board):
        board.fails["apply"] = error
        with pytest.raises(type(error), match=str(error)), prepared(board, FACTORS, 0):
            board.say("measuring")
        assert board.calls == ["check", "busy", "apply", "restore"]

    @pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
    def test_after_a_measurement_that_failed(self, error, board):
        with pytest.raises(error), prepared(board, FACTORS, 0):
            raise error
        assert board.calls == ["check", "busy", "apply", "restore"]


# -- signals: each in a process of its own, which a wrong handler may end -------------------------


def exitcode_of(function, *arguments):
    """Call a function in a forked process; return its exit status, or the signal, below 0."""
    process = multiprocessing.get_context("fork").Process(target=function, args=arguments)
    process.start()
    process.join(30)
    assert process.exitcode is not None, "it did not end"
    return process.exitcode


def send_ourselves(number):
    os.kill(os.getpid(), number)
    time.sleep(10)  # it is on its way


def prepare_and_send(machine, number, where):
    """Prepare the machine and send ourselves a signal at a place of that."""

    def say_and_send(word, say=machine.say):
        say(word)
        if word == where:
            send_ourselves(number)

    machine.say = say_and_send
    with prepared(machine, FACTORS, 0):
        machine.say("measuring")


@pytest.mark.parametrize("where", ["apply", "measuring"])
@pytest.mark.parametrize("number", ENDING, ids=lambda number: number.name)
def test_a_signal_ends_it_with_the_board_put_back(number, where, board):
    assert exitcode_of(prepare_and_send, board, number, where) == 128 + number
    measured = ["measuring"] if where == "measuring" else []
    assert board.calls == ["check", "busy", "apply", *measured, "restore"]


def prepare_in_child_of_worker(machine, number):
    """Fork the way a loader does: the child's frames are those of the prepared machine."""
    with prepared(machine, FACTORS, 0):
        pid = os.fork()
        if pid == 0:
            send_ourselves(number)
        _, status = os.waitpid(pid, 0)
        machine.say(f"ended-by-{status}")


def test_a_forked_child_never_leaves_through_the_frames_of_its_parent(board):
    assert exitcode_of(prepare_in_child_of_worker, board, signal.SIGTERM) == 0
    assert board.calls == ["check", "busy", "apply", "ended-by-15", "restore"]


def hang_up_on_nohup(machine):
    """Lose the connection of a job that was started with `nohup`."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with prepared(machine, FACTORS, 0):
        os.kill(os.getpid(), signal.SIGHUP)
        machine.say("measuring")
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


def test_a_signal_that_is_ignored_stays_ignored(board):
    assert exitcode_of(hang_up_on_nohup, board) == 0
    assert board.calls == ["check", "busy", "apply", "measuring", "restore"]


# -- a board of files ----------------------------------------------------------------------------


@pytest.fixture
def agx(tmp_path):
    return make_board(tmp_path / "agx", "agx_xavier")


@pytest.fixture
def open_agx(agx, monkeypatch):
    """Return a function that opens the board as a new process would."""
    monkeypatch.setattr(preparation, "BUSY_S", 0.01)

    return lambda: open_machine(settings_of(agx.root))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_board_whose_job_was_ended_has_its_own_mode_again(number, agx, open_agx):
    before = agx.snapshot()

    def ended():
        with prepared(open_agx(), FACTORS, 0):
            assert len(agx.files.online()) == 2
            send_ourselves(number)

    assert exitcode_of(ended) == (1 if number == signal.SIGINT else 128 + number)
    assert agx.snapshot() == before
    assert not open_agx().left_over()


def test_a_board_whose_job_was_killed_is_put_back_before_the_next_mode(agx, open_agx):
    before = agx.snapshot()

    def killed():
        with prepared(open_agx(), FACTORS, 0):
            send_ourselves(signal.SIGKILL)

    assert exitcode_of(killed) == -signal.SIGKILL
    assert agx.snapshot() != before
    assert open_agx().left_over()
    with prepared(open_agx(), {"power_mode_settings": {"cores": 4}, "dvfs": "on"}, 0):
        assert len(agx.files.online()) == 4
    assert agx.snapshot() == before
    assert not open_agx().left_over()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_host_whose_job_was_ended_has_its_clocks_again(number, machine, tmp_path):
    machine.cpu_clocks = CpuClocks(make_cpufreq(tmp_path / "root"))

    def ended():
        with put_back(machine):
            assert not machine.change({"cpu_mhz": 1800}, "on")["unmet"]
            assert limits(tmp_path / "root")[0] == (1800000, 1800000)
            send_ourselves(number)

    assert exitcode_of(ended) == (1 if number == signal.SIGINT else 128 + number)
    assert limits(tmp_path / "root") == [BEFORE, BEFORE]
    assert not machine.left_over()
