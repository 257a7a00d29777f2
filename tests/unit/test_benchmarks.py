"""The benchmarks: their statistics, and that they run. No time is judged here."""

import json

from benchmarks import __main__ as command
from benchmarks import instrument, planted, results, workflow
from benchmarks.results import Result, Row, at_most
from epochwatt.errors import EpochwattError


def test_saving_one_result_keeps_those_of_others(tmp_path):
    path = tmp_path / "results/benchmarks.json"
    first = Result([Row("a", [1.0, 3.0], "s", 1, at_most(4))], {"raw": [1]})
    results.save(path, "one", first)
    before = json.loads(path.read_text("utf-8"))["one"]
    results.save(path, "two", Result([Row("b", [2.0], "", 1)]))
    saved = json.loads(path.read_text("utf-8"))
    assert saved["one"] == before
    assert {"time", "commit", "machine", "software", "details"} <= before.keys()
    assert before["rows"][0]["values"] == [1.0, 3.0]
    assert before["rows"][0]["met"] is True
    assert saved["two"]["rows"][0]["budget"] is None


def test_instrumented_and_bare_epoch_train_alike():
    result = instrument.run(quick=True)  # raises when their losses differ in one bit
    assert [row.budget for row in result.rows if row.budget] == [at_most(1.005)] * 2
    assert all(row.median > 0 for row in result.rows)


def test_error_in_one_benchmark_is_said_others_still_run(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(command, "OUT", tmp_path / "benchmarks.json")

    def fail(quick):
        raise EpochwattError("no such thing")

    monkeypatch.setattr(planted, "run", fail)
    monkeypatch.setattr(workflow, "dry_run", lambda quick: Result([Row("a thing", [1.0], "s", 1)]))
    assert command.main(["planted", "dry_run"]) == 1
    told = capsys.readouterr()
    assert "error: planted: no such thing" in told.err
    assert "a thing" in told.out
