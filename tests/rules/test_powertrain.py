"""Study `powertrain` on two small tables: its rules, from config/ to the tables of all jobs."""

import csv
from itertools import product

import pytest

from epochwatt.prediction.transfer.names import TABLES
from epochwatt.sweeps.mode_table import write_mode_tables
from tests.unit.prediction.sweeps import planted

MODES = [(4, *clocks) for clocks in product((400, 1500), (150, 400, 1300), (600, 1600))]
OUT = "results/powertrain"
STUDY = {
    "example": {"workload": "new", "limit_w": 5, "minibatches": 100},
    "groups": {
        "all-modes": {"title": "t", "workloads": ["old"], "methods": ["powertrain_all", "maxn"]},
        "curve": {
            **{"title": "t", "references": ["old"], "workloads": ["new"], "n_profiled": [5]},
            **{"methods": ["powertrain", "physical", "random_front"], "draws": 2},
            "limits_w": [3, 9],
        },
    },
}


def rows(path):
    with open(path, newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


@pytest.fixture
def study(checkout, monkeypatch):
    """A checkout with two public sweeps of twelve modes and a study of them."""
    folder = checkout.path / "config/sweeps"
    folder.mkdir()
    tables = {
        "old": planted(MODES, sweep="old", workload="old"),
        "new": planted(MODES, lambda mode: 50 / mode[2] + 0.02, sweep="new", workload="new"),
    }
    for name, table in tables.items():
        write_mode_tables(folder / f"{name}.csv.gz", [table])
    checkout.write("powertrain.yaml", STUDY)
    monkeypatch.chdir(checkout.path)
    return checkout


def test_jobs_and_tables_of_a_small_study(study, run_rule):
    old, new = f"{OUT}/jobs/all-modes/none/old", f"{OUT}/jobs/curve/old/new"
    run_rule("judge_transfer", f"{new}/errors.csv")  # and first the networks of its reference
    assert len(list((study.path / ".cache").glob("powertrain-*.npz"))) == 2
    assert len(rows(f"{old}/errors.csv")) == 2
    run_rule("collect_powertrain", f"{OUT}/transfer.csv")

    tables = {name: rows(f"{OUT}/{name}.csv") for name in TABLES}
    for name, columns in TABLES.items():
        assert all(tuple(row) == columns for row in tables[name])
    errors = [(row["method"], row["reference"]) for row in tables["errors"]]
    assert sorted(set(errors)) == [("physical", ""), ("powertrain", "old"), ("powertrain_all", "")]
    assert {row["n_judged"] for row in tables["errors"] if row["method"] == "physical"} == {"7"}
    assert len(tables["choices"]) == 2 * 34 + 3 * 2 * 7  # limits of the two groups
    assert len(tables["penalties"]) == 2 + 3 * 2
    maxn = next(row for row in tables["penalties"] if row["method"] == "maxn")
    assert (maxn["n_limits"], maxn["n_answered"]) == ("34", "34")
    assert float(maxn["over_pct"]) == pytest.approx(100 * 33 / 34)  # all but the highest power
    diagonal = {(row["reference"], row["workload"]) for row in tables["transfer"]}
    assert diagonal == {("old", "old")}
    assert tables["example"][0]["method"] == "observed"


def test_a_sweep_that_is_not_there_ends_in_three_lines(study, run_rule):
    wrong = {**STUDY, "groups": {"g": {**STUDY["groups"]["curve"], "workloads": ["newer", "new"]}}}
    study.write("powertrain.yaml", wrong)
    said = run_rule("judge_transfer", f"{OUT}/jobs/g/old/newer/errors.csv", status=1)
    assert "config/powertrain.yaml: groups.g: no sweep 'newer'" in said
    assert "do: add it to config/sweeps.yaml, or its table to config/sweeps/" in said
    assert "Traceback" not in said
