"""What failed, what is not there because of it, and what a start does without it."""

import json
import logging

import pytest
from snakemake_interface_logger_plugins.common import LogEvent

from epochwatt.study import not_made
from epochwatt.study.not_made import Failure, NotMade, Watch, affected, last_error

RUN = "results/runs/r/epochs.csv"
FIGURE, MODEL, SCORES = "results/figures/a.svg", "results/model.json", "results/scores.html"


def job(inputs, *outputs):
    return {"input": inputs, "output": list(outputs)}


def failure(*outputs):
    return Failure("rule", list(outputs), "results/logs/rule.log", "why")


def test_what_is_made_of_what_failed_is_not_there_but_for_the_page():
    jobs = [
        job([SCORES, FIGURE], "results/index.html"),
        job([FIGURE], "results/summary.txt", "results/other.txt"),
        job([MODEL], SCORES),  # listed before what it waits for
        job([FIGURE], MODEL),
        job(["config/a.yaml"], "results/other.csv"),
    ]
    assert affected(jobs, [failure(FIGURE)]) == {FIGURE: 0, MODEL: 0, SCORES: 0}


def test_what_gathers_runs_is_made_of_the_others():
    receipt = "results/runs/r/part-0-0.json"
    energy = "results/runs/r/energy.csv"
    jobs = [job([receipt], RUN, energy), job([RUN, energy, "results/runs/s/epochs.csv"], FIGURE)]
    there = affected(jobs, [failure(MODEL), failure(receipt)])
    assert there == {MODEL: 0, receipt: 1, RUN: 1, energy: 1}


def test_a_run_without_epochs_counts_as_excluded(checkout):
    table = checkout.settings().table
    first, *others = table.runs.values()
    because = Failure("train_epoch", [], "a.log", "out of memory\n  do: a smaller batch")
    NotMade([because], {first.epochs_csv: 0}).leave_out(table)
    assert list(table.runs.values()) == others
    assert table.excluded == [(first, "this time it failed: out of memory")]


@pytest.mark.parametrize(
    ("log", "said"),
    [
        ("Traceback\n  File x\nerror: it is full\n  do: empty it\n", "it is full\n  do: empty it"),
        ("error: the first\nerror: the last\nand more\n", "the last"),
        ("Traceback\n  File x\nValueError: NaN\n\n", "ValueError: NaN"),
        ("", "its log is empty"),
    ],
)
def test_the_reason_is_the_sentence_of_the_error(tmp_path, log, said):
    (tmp_path / "a.log").write_text(log)
    assert last_error(str(tmp_path / "a.log")) == said
    assert last_error(str(tmp_path / "none.log")) == "it left no log"


def record(message, **extra):
    made = logging.LogRecord("snakemake", logging.INFO, "", 0, message, (), None)
    vars(made).update(extra)
    return made


def test_failed_jobs_and_a_stop_are_noted(tmp_path, monkeypatch):
    listed = tmp_path / "jobs.jsonl"
    monkeypatch.setenv(not_made.LIST, str(listed))
    watch = Watch()
    about = {"rule_name": "plot", "input": [MODEL], "output": [FIGURE]}
    watch.emit(record("", event=LogEvent.JOB_INFO, log=[], **about))
    watch.emit(record("", event=LogEvent.JOB_ERROR, log=[str(tmp_path / "no.log")], **about))
    assert json.loads(listed.read_text()) == {"input": [MODEL], "output": [FIGURE]}
    assert [(f.rule, f.outputs) for f in watch.failures] == [("plot", [FIGURE])]
    assert not watch.is_stopped
    watch.emit(record("Terminating processes on user request, this might take some time."))
    assert watch.is_stopped
