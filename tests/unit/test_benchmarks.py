"""The benchmarks: their statistics, and that they run. No time is judged here."""

import json
import random
from concurrent.futures import ThreadPoolExecutor

import pandas as pd
import pytest

from benchmarks import __main__ as command
from benchmarks import fleet, instrument, planted, results, workflow
from benchmarks.results import Result, Row, at_most, near
from benchmarks.turns import MINIBATCHES, take_turns
from benchmarks.workflow import Workplace
from epochwatt.errors import EpochwattError


def test_budgets_hold_at_their_bounds_and_not_beyond():
    assert at_most(1.005).met(1.005)
    assert not at_most(1.005).met(1.0051)
    assert near(24.0, 1.0).met(23.0)
    assert near(24.0, 1.0).met(25.0)
    assert not near(24.0, 1.0).met(22.9)
    assert near(24.0, 1.0).text == "24 ± 1"


# Source: tables of the sign test at 5 % (two-sided): ranks of the bounds by sample size.
@pytest.mark.parametrize(("n", "rank"), [(6, 1), (8, 1), (9, 2), (20, 6), (40, 14), (100, 40)])
def test_interval_of_the_median_by_its_tabulated_ranks(n, rank):
    values = random.Random(0).sample(range(1, n + 1), n)
    assert results.median_interval(values) == (rank, n + 1 - rank)


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


def noted(name, n_minibatches, order):
    """A loop over mini-batches that notes when each of them is done."""

    def loop(turns):
        keep = turns.keeper(order.append)
        for _ in range(n_minibatches):
            keep(name)

    return loop


def test_loops_take_turns_until_both_have_ended():
    order = []
    with ThreadPoolExecutor(2) as pool:
        turns = take_turns(pool, noted("a", 2 * MINIBATCHES, order), noted("b", 1, order))
    assert order == ["a"] * MINIBATCHES + ["b"] + ["a"] * MINIBATCHES
    assert all(t.wall_s > 0 for t in turns)


def test_loop_that_fails_lets_the_other_end_and_is_an_error():
    order = []

    def fail(turns):
        raise EpochwattError("no such thing")

    with ThreadPoolExecutor(2) as pool, pytest.raises(EpochwattError, match="no such thing"):
        take_turns(pool, noted("a", 3 * MINIBATCHES, order), fail)
    assert len(order) == 3 * MINIBATCHES


def test_cost_of_a_job_is_all_but_its_epoch_and_warm_up():
    jobs = pd.DataFrame(
        {"start_s": [100.0, 105.5], "end_s": [105.0, 111.0], "e2e_s": 3.0, "warmup_s": [0.0, 1.0]}
    )
    costs = workflow.job_costs(jobs).to_dict("records")
    assert costs == [{"cost_s": 2.0, "between_s": 0.5, "inside_s": 1.5}]


def test_start_and_end_of_jobs_come_from_snakemakes_notes(tmp_path):
    metadata = tmp_path / ".snakemake/metadata"
    (metadata / "a").mkdir(parents=True)
    job = {"rule": "train_epoch", "log": ["part-0-0.log"], "starttime": 1.5, "endtime": 4.5}
    (metadata / "a/b").write_text(json.dumps(job))
    (metadata / "c").write_text(json.dumps({**job, "rule": "make_dataset"}))
    assert workflow.snakemake_times(tmp_path) == {"part-0-0.log": (1.5, 4.5)}


def test_instrumented_and_bare_epoch_train_alike():
    result = instrument.run(quick=True)  # raises when their losses differ in one bit
    assert [row.budget for row in result.rows if row.budget] == [at_most(1.005)] * 2
    assert all(row.median > 0 for row in result.rows)


@pytest.mark.workflow
def test_workflow_that_fails_is_an_error_with_its_output(tmp_path):
    workplace = Workplace(tmp_path, {"batch_size": 0}, 1)
    with pytest.raises(EpochwattError, match=r"batch_size is 0\s+allowed: a number >= 1"):
        workplace.snakemake("-n", "--quiet", "all")


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


def test_a_board_waits_from_one_job_of_a_chain_to_the_next():
    done = {"0-0": 10.0, "1-0": 11.0, "0-2": 16.0, "0-1": 12.0, "1-1": 12.5}
    assert sorted(fleet.gaps_s(done)) == [1.5, 2.0, 4.0]
