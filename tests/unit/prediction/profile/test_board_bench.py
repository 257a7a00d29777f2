"""The machine at hand as a bench: records of goes, what they took, a workflow that fails or stays.

A program that stands in for Snakemake puts records in place that were made before.
"""

import json
import os
import shutil
import time
from pathlib import Path

import pytest

from epochwatt.errors import EpochwattError
from epochwatt.prediction.data.mode_tables import UNKNOWN
from epochwatt.prediction.data.modes import Mode
from epochwatt.prediction.profile.board_bench import Board
from epochwatt.study.validation import validated
from epochwatt.sweeps.config import SweepEntry
from epochwatt.sweeps.mode_table import read_mode_tables
from epochwatt.sweeps.table import load_sweep

ENTRY = {
    "title": "LeNet in modes that a profile chose",
    "backend": "host",
    "device": "host",
    "workload": {"model": "lenet", "num_workers": 0},
    "grid": {"modes": [{"cores": 1}, {"cores": 2}, {"cores": 3}]},
}
CONFIG = {"studies": ["small"]}
ONE, TWO, THREE = (Mode(float(cores), *UNKNOWN[1:]) for cores in (1, 2, 3))
WORKFLOW = """\
import pathlib, shutil, sys, time
for folder in sorted(pathlib.Path("prepared").glob("*/*")):
    target = pathlib.Path("measured", *folder.parts[1:])
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(folder, target)
{end}
"""


@pytest.fixture
def sweep(checkout, monkeypatch):
    """The sweep of all modes of a machine with four CPUs."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(4)))
    return load_sweep("profile-lenet", validated(SweepEntry, ENTRY, "a test"), checkout.path)[0]


@pytest.fixture
def board(sweep):
    """Return a function that makes the bench, as each start of the program does."""
    return lambda: Board(sweep, ENTRY, CONFIG)


@pytest.fixture
def workflow(sweep, measure_mode, checkout):
    """Return a function that prepares a workflow: the modes it measures, then how it ends."""

    def prepare(*cores, end=""):
        for n in cores:
            measure_mode(sweep, {"cores": n}, root="prepared")
        (checkout.path / "snakemake.py").write_text(WORKFLOW.format(end=end), "utf-8")

    return prepare


def test_each_mode_comes_as_its_record_says(board, workflow):
    workflow(1, 2)
    bench = board()
    first, second = bench.measure([ONE, TWO])
    assert {first.mode, second.mode} == {ONE, TWO}
    # five mini-batches in 4 s; the mode took 6 s
    assert (first.time_s, first.counted_s, first.took_s) == (0.8, 4.0, 6.0)
    assert first.time_sd_s > 0
    assert first.power_w != first.power_w  # this machine has no sensor
    assert first.valid
    (table,) = read_mode_tables(Path(bench.write_table()))
    assert sorted(row.cores for row in table.rows) == [1, 2]


def test_a_go_counts_with_its_wall_time_also_after_another_start(board, workflow):
    workflow(1)
    bench = board()
    before_s = bench.expected_s(0.8)
    assert bench.spent_s() == 0
    list(bench.measure([ONE]))
    spent_s = bench.spent_s()
    assert 0 < spent_s < 30
    assert board().spent_s() == spent_s
    # now it knows that a mode takes 2 s besides its mini-batches, and what a start takes
    rest_s = json.loads(Path("results/profile/profile-lenet/rounds.json").read_text())[0]["rest_s"]
    n_minibatches = 40
    assert bench.expected_s(0.8, 3) == pytest.approx(rest_s + 3 * (2.0 + n_minibatches * 0.8))
    assert bench.expected_s(0.8) != before_s


def test_what_was_measured_for_any_question_is_there_and_damaged_records_are_not(
    board, sweep, measure_mode
):
    for cores in (1, 2, 5):  # the last is none of this question's modes
        folder = measure_mode(sweep, {"cores": cores})
    path = Path(folder.path_of({"cores": 2}))
    largest = max(path.iterdir(), key=lambda file: file.stat().st_size)
    largest.write_bytes(largest.read_bytes()[:-1])
    assert [one.mode for one in board().earlier()] == [ONE]


def test_flags_that_invalidate_are_told_and_what_ran_beside_others_may_run_again(
    board, sweep, measure_mode
):
    measure_mode(sweep, {"cores": 3}, flags=["throttled", "cold_process"])
    folder = measure_mode(sweep, {"cores": 2}, flags=["machine_busy", "throttled"])
    (run,) = board().earlier()
    assert (run.mode, run.valid, run.flags) == (THREE, False, "throttled")
    assert not folder.has({"cores": 2})
    assert list(Path("measured/.trash").rglob("mode.json"))


def test_a_workflow_that_fails_says_why_and_keeps_what_it_finished(board, workflow):
    workflow(2, end="sys.exit('error: the disk is full')")
    bench, came = board(), []
    with pytest.raises(EpochwattError, match="could not measure") as caught:
        came.extend(bench.measure([TWO, THREE]))
    assert caught.value.found == "error: the disk is full"
    assert [one.mode for one in board().earlier()] == [TWO]
    (go,) = json.loads(Path("results/profile/profile-lenet/rounds.json").read_text())
    assert go["wall_s"] > 0
    assert go["rest_s"] is None  # nothing is learnt of what a go takes besides its modes


def test_whoever_stops_asking_ends_the_workflow(board, workflow):
    workflow(
        1, end="pathlib.Path('pid').write_text(str(__import__('os').getpid())); time.sleep(99)"
    )
    bench = board()
    asked = bench.measure([ONE, TWO])
    assert next(asked).mode == ONE
    while not (Path("pid").exists() and Path("pid").read_text()):
        time.sleep(0.01)
    asked.close()
    with pytest.raises(ProcessLookupError):
        os.kill(int(Path("pid").read_text()), 0)


def test_a_go_that_was_killed_counts_with_the_modes_it_left(board, workflow):
    workflow(1)
    list(board().measure([ONE]))
    path = Path("results/profile/profile-lenet/rounds.json")
    killed = {"modes": [{"cores": 1}, {"cores": 2}], "wall_s": None, "is_open": True}
    path.write_text(json.dumps([killed]), "utf-8")
    spent_s = board().spent_s()
    shutil.rmtree("measured")
    assert spent_s == board().spent_s() + 6.0  # its one mode, and the start


def test_another_run_of_a_mode_is_the_sweep_with_the_next_seed(
    board, sweep, workflow, measure_mode
):
    workflow(1)
    bench = board()
    list(bench.measure([ONE]))
    again = bench._repeat(1)
    assert again.id != sweep.id
    assert again.run.factors["seed"] == sweep.run.factors["seed"] + 1
    measure_mode(again, {"cores": 1}, root="prepared")
    (run,) = bench.measure([ONE])
    assert run.mode == ONE
    assert [run.mode for run in board().earlier()] == [ONE, ONE]
    (table,) = read_mode_tables(Path(bench.write_table()))
    assert [(row.cores, row.repeat) for row in table.rows] == [(1, 0), (1, 1)]
    assert bench.spent_s() == board().spent_s()
