"""The process that simulates runs for others: same files, same errors, and no longer than they."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from epochwatt.served import ask
from epochwatt.served.serve import start_servers, stop_servers

WAIT_S = 120.0  # at most, on a machine that is busy


@pytest.fixture
def server(monkeypatch):
    """Servers of which that of runs is ready, and the folder of their sockets."""
    monkeypatch.setenv(ask.SOCKETS, "")  # put back afterwards
    processes = start_servers()
    folder = Path(ask.os.environ[ask.SOCKETS])
    until_s = time.monotonic() + WAIT_S
    while len(list(folder.glob("*/socket"))) < len(ask.MODULES) and time.monotonic() < until_s:
        time.sleep(0.05)
    yield folder
    stop_servers(processes)


def asked(words):
    """Ask in the way of rule simulate_run."""
    command = [sys.executable, "-I", "-S", ask.__file__, "runs", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def files_of(folder):
    return {p.name: p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_a_run_has_the_same_files_with_a_server_and_without(words, tmp_path, server, monkeypatch):
    assert asked(words()).returncode == 0
    served = files_of(tmp_path)
    assert "record.json" in served
    monkeypatch.setenv(ask.SOCKETS, str(tmp_path / "nobody"))
    assert asked(words()).returncode == 0
    assert files_of(tmp_path) == served


def test_errors_are_those_of_the_simulation(words, server):
    command = [word.replace('"device":"agx"', '"device":"tx2"') for word in words()]
    outcome = asked(command)
    assert outcome.returncode == 1
    assert "tx2" in outcome.stderr
    assert asked(words()).returncode == 0  # it serves on
