"""The fuzzers: a short run of all readers, and that a failure of each kind would be seen."""

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.fuzz import batch
from benchmarks.fuzz.__main__ import shared, told
from benchmarks.fuzz.batch import content_of, run_batch
from benchmarks.fuzz.mutations import MAX_BYTES, damaged
from benchmarks.fuzz.target import Target
from epochwatt.errors import RecordError

ROOT = Path(__file__).resolve().parents[2]
GOOD = b'{"epochs": [1, 2, {"e2e_s": 3.5}], "flags": []}\n'


def target(read, **changes):
    return Target(**{"name": "made up", "kind": "json", "goods": [GOOD], "read": read, **changes})


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


def test_a_reader_may_return_or_name_its_file():
    def read(content):
        if len(content) % 2:
            raise RecordError("a-file cannot be read")

    assert run_batch(target(read, place="a-file"), 1, 0, 40) == []


@pytest.mark.parametrize(
    ("error", "what"),
    [
        (RecordError("something is wrong"), "names no place"),
        (KeyError("flags"), "KeyError"),
        (SystemExit(3), "SystemExit"),
    ],
)
def test_other_outcomes_are_failures(error, what):
    failures = run_batch(target(raising(error), place="a-file"), 1, 5, 8)
    assert [(f.n, f.what.partition(":")[0]) for f in failures] == [(n, what) for n in (5, 6, 7)]


def test_an_error_that_the_docstring_names_is_none():
    assert run_batch(target(raising(ValueError()), allowed=(ValueError,)), 1, 0, 3) == []


def test_a_death_and_a_hang_are_told_of_their_input_and_the_others_go_on(monkeypatch):
    monkeypatch.setattr(batch, "LIMIT_S", 0.3)
    made_up = target(lambda content: None)
    contents = [content_of(made_up, 1, n) for n in range(6)]

    def read(content):
        if content == contents[1]:
            os.kill(os.getpid(), signal.SIGKILL)
        if content == contents[3]:
            signal.pause()
        if content == contents[5]:
            raise KeyError

    failures = run_batch(made_up._replace(read=read), 1, 0, 6)
    assert [failure.n for failure in failures] == [1, 3, 5]
    assert [failure.what[:4] for failure in failures] == ["died", "hung", "KeyE"]


def test_memory_is_bounded():
    (failure,) = run_batch(target(lambda content: bytearray(2**35)), 1, 0, 1)
    assert failure.what.startswith("MemoryError")


@pytest.mark.parametrize("kind", ["json", "yaml", "table", "text", "binary"])
def test_damage_is_that_of_its_seed_and_mostly_changes_something(kind):
    first, again = ([damaged(GOOD, kind, random.Random(n)) for n in range(200)] for _ in range(2))
    assert first == again
    assert len(set(first)) > 100
    assert sum(content == GOOD for content in first) < 40
    assert max(map(len, first)) <= MAX_BYTES


def test_shares_add_up():
    targets = [target(None, name=str(n), share=share) for n, share in enumerate((1, 0.1, 7))]
    counts = shared(targets, 1000)
    assert sum(counts.values()) == 1000
    assert counts["2"] > 6 * counts["0"] > 6 * counts["1"] > 0


def test_a_failure_is_said_with_what_repeats_it():
    failures = run_batch(target(raising(KeyError("flags"))), 9, 4, 6)
    lines = told(failures, 9)
    assert "2 x made up: KeyError" in lines[0]
    assert "--seed 9 --only 'made up' --first 4 --count 1" in lines[1]
