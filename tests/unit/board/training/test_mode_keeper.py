"""A mode that a process of its own holds: it goes back whatever ends the one that trains."""

import os
import signal
import subprocess
import sys
import tempfile
import time

import pytest
from fake_board import make_board

from epochwatt.board.training.mode_keeper import HeldMode

MODE = {"cores": 4, "cpu_mhz": 1190.4}
MACHINE = "fake_board:board_of_environment"
HOLDER = f"""
import os, sys, time
sys.path[:0] = {sys.path!r}
from epochwatt.board.training.mode_keeper import HeldMode
HeldMode({MODE!r}, machine={MACHINE!r})
worker = os.fork()  # as a loader's: it has the pipe to the keeper, too
if worker:
    print(worker, flush=True)
time.sleep(60)
"""


@pytest.fixture
def board(tmp_path, monkeypatch):
    fake = make_board(tmp_path / "agx", "agx_xavier")
    monkeypatch.setenv("FAKE_BOARD", str(fake.root))
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # where the lock of the machine is
    monkeypatch.setattr(tempfile, "tempdir", None)
    return fake


def wait_for(condition):
    until_s = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < until_s
        time.sleep(0.05)


def test_a_mode_is_set_for_one_process_at_a_time_and_put_back(board):
    before = board.snapshot()
    first = HeldMode(MODE, machine=MACHINE)
    during = board.snapshot()
    second = HeldMode({"cores": 2}, machine=MACHINE)
    assert (first.is_set, first.is_alone, first.flags) == (True, True, [])
    assert (second.is_set, second.is_alone, second.flags) == (False, False, ["mode_not_met"])
    second.close()
    assert board.snapshot() == during != before
    first.close()
    assert board.snapshot() == before
    assert first.flags == []


@pytest.mark.parametrize("mode", [{"cores": 9}, {"cpu_mhz": 1000.0}, {}])
def test_a_mode_that_the_board_lacks_is_told_and_the_fit_goes_on(board, mode):
    before = board.snapshot()
    held = HeldMode(mode, machine=MACHINE)
    assert held.is_alone
    assert (held.is_set, held.flags) == ((False, ["mode_not_met"]) if mode else (True, []))
    assert board.snapshot() == before
    held.close()


def test_a_killed_process_gets_its_mode_put_back(board):
    before = board.snapshot()
    holder = subprocess.Popen([sys.executable, "-c", HOLDER], stdout=subprocess.PIPE, text=True)
    worker = int(holder.stdout.readline())
    assert board.snapshot() != before
    holder.kill()
    holder.wait()
    holder.stdout.close()
    try:
        wait_for(lambda: board.snapshot() == before)
    finally:
        os.kill(worker, signal.SIGKILL)


def test_what_a_killed_keeper_has_left_is_put_back_by_the_next(board):
    before = board.snapshot()
    killed = HeldMode(MODE, machine=MACHINE)
    killed._process.kill()
    killed.close()
    assert board.snapshot() != before
    following = HeldMode({}, machine=MACHINE)
    assert board.snapshot() == before
    following.close()
