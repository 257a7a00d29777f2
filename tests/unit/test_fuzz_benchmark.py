"""The fuzzers: a short run of all readers, and that a failure of each kind would be seen."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import fuzz
from benchmarks.fuzz import Target, feed
from epochwatt.errors import RecordError

ROOT = Path(__file__).resolve().parents[2]
GOOD = b'{"epochs": [1, 2, {"e2e_s": 3.5}], "flags": []}\n'


def fed(read, count=20, **changes):
    """Feed a reader that takes the good input."""

    def reader(content):
        return None if content == GOOD else read(content)

    return feed(Target("made up", "json", [GOOD], reader, **changes), 1, count)


def raising(error):
    def read(content):
        raise error

    return read


@pytest.mark.thorough
def test_all_readers_take_damaged_inputs():
    command = [sys.executable, "-m", "benchmarks.fuzz", "--seed", "20261122", "--count", "300"]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_reader_may_return_or_name_its_file_or_raise_what_its_docstring_names():
    def read(content):
        if len(content) % 2:
            raise RecordError("a-file cannot be read")
        raise ValueError

    assert fed(read, place="a-file", allowed=(ValueError,)) is None


@pytest.mark.parametrize(
    ("read", "what"),
    [
        (raising(RecordError("something is wrong")), "names no place"),
        (raising(KeyError("flags")), "KeyError"),
        (raising(SystemExit(3)), "SystemExit"),
        (lambda content: signal.pause(), "TimeoutError"),
        (lambda content: bytearray(2**35), "MemoryError"),
    ],
)
def test_other_outcomes_are_failures(read, what, monkeypatch):
    monkeypatch.setattr(fuzz, "LIMIT_S", 0.1)
    assert fed(read, place="a-file").startswith(what)
