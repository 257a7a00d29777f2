"""The process that simulates runs for others: same files, same errors, and no longer than they."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from epochwatt.twin import ask
from epochwatt.twin.start_server import start_server

WAIT_S = 120.0  # at most, on a machine that is busy


@pytest.fixture
def server(monkeypatch):
    """A server that is ready, and the folder of its socket."""
    monkeypatch.setenv(ask.SERVER, "")  # put back afterwards
    process = start_server()
    socket = Path(ask.os.environ[ask.SERVER])
    until_s = time.monotonic() + WAIT_S
    while not socket.exists() and time.monotonic() < until_s:
        time.sleep(0.05)
    yield socket.parent
    process.communicate()


def asked(words):
    """Ask in the way of rule simulate_run."""
    command = [sys.executable, "-I", "-S", ask.__file__, *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def files_of(folder):
    return {p.name: p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_a_run_has_the_same_files_with_a_server_and_without(words, tmp_path, server, monkeypatch):
    assert asked(words()).returncode == 0
    served = files_of(tmp_path)
    assert "record.json" in served
    monkeypatch.setenv(ask.SERVER, str(tmp_path / "nobody"))
    assert asked(words()).returncode == 0
    assert files_of(tmp_path) == served


def test_errors_are_those_of_the_simulation(words, server):
    command = [word.replace('"device":"agx"', '"device":"tx2"') for word in words()]
    outcome = asked(command)
    assert outcome.returncode == 1
    assert "tx2" in outcome.stderr
    assert asked(words()).returncode == 0  # it serves on


def test_it_ends_with_whoever_started_it(server, monkeypatch):
    process = start_server()
    folder = Path(ask.os.environ[ask.SERVER]).parent
    process.communicate()
    assert process.returncode == 0
    assert not folder.exists()
