"""Study of schedules, small: its rules, from a network's counts to scores of solvers."""

import csv
import shutil
from pathlib import Path

import pytest

from epochwatt.schedule.study import SCORE_COLUMNS
from epochwatt.sweeps.mode_table import read_mode_tables

REPOSITORY = Path(__file__).resolve().parents[2]
STUDY = {
    **{
        "device": "orin",
        "grid": "fulcrum-orin",
        "train": {"lenet": 16},
        "infer": {"lenet": [1, 4]},
    },
    **{"together": [["lenet", "lenet"]], "methods": ["physical"], "n_profiled": [10], "draws": 2},
}
SCORES, MEAN, SUMMARY = (
    f"results/fulcrum/{name}.csv" for name in ("scores", "scores-mean", "summary")
)


@pytest.fixture
def study(checkout):
    """A checkout with a simulated board and a study of it."""
    for name in ("devices/orin.yaml", *(f"twin/{n}.yaml" for n in ("boards", "parameters"))):
        shutil.copy(REPOSITORY / "config" / name, checkout.path / "config" / name)
    shutil.copy(REPOSITORY / "config/twin/samples.yaml", checkout.path / "config/twin")
    checkout.write("schedule.yaml", STUDY)
    return checkout


def read(path):
    with open(path, newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


def test_scores_of_a_small_study(study, run_rule):
    rules = "count_workload count_work simulate_schedules score_schedules"
    output = run_rule(rules, SCORES)
    tables = read_mode_tables(Path("results/fulcrum/tables.csv"))
    keys = {(table.key.workload, table.key.task, table.key.batch_size) for table in tables}
    assert keys == {("lenet", "train", 16), ("lenet", "infer", 1), ("lenet", "infer", 4)}
    assert {len(table.rows) for table in tables} == {441}
    rows, mean = read(SCORES), read(MEAN)
    assert list(rows[0]) == list(SCORE_COLUMNS)
    assert {row["provenance"] for row in rows} == {"simulated"}
    drawn = {"random_10": 2, "physical_10": 2, "physical_10_verified": 2}
    single = dict.fromkeys(("exhaustive", "gmd", "gain", "maxn", "presets"), 1)
    for jobs, rule, some in (
        *((jobs, "highest", rows) for jobs in ("train", "infer", "train_and_infer")),
        ("train_and_infer", "mean", mean),
    ):
        solvers = [r["solver"] for r in some if (r["jobs"], r["power_rule"]) == (jobs, rule)]
        assert {name: solvers.count(name) for name in solvers} == drawn | single
    assert {row["jobs"] for row in mean} == {"train_and_infer"}
    assert "39 problems (1 of 4 sets" in output
    run_rule("play_schedules summarise_schedules", SUMMARY)
    summary = {row["solver"]: row for row in read(SUMMARY)}
    assert set(summary) == drawn.keys() | single.keys()
    assert summary["exhaustive"]["loss_pct"] == "0.0"


def test_rates_that_change_are_played_and_drawn(study, run_rule):
    jobs = {"train": "lenet", "infer": "lenet", "max_power_w": 30, "max_latency_s": 1}
    changing = {
        **{"slot_s": 10, "switch_s": [1], "jobs": [{**jobs, "peak_per_s": 20}]},
        "rates": {"steps": {"steps": [[20, 0.5], [20, 1]]}, "trace": {"file": "trace.txt"}},
    }
    study.write("schedule.yaml", {**STUDY, "together": [], "changing": changing})
    (study.path / "trace.txt").write_text("\n".join(str(n / 10) for n in range(250)), "utf-8")
    figure = "results/figures/twin/fulcrum_replanning.svg"
    rules = "count_workload count_work simulate_schedules replan_schedules draw_replanning"
    run_rule(rules, figure)
    with open("results/fulcrum/changing.csv", newline="", encoding="utf-8") as handle:
        rows = list(csv.DictReader(handle))
    kinds = [("steps", "steady"), ("steps", "poisson"), ("trace", "trace")]
    assert list(dict.fromkeys((row["rates"], row["arrivals"]) for row in rows)) == kinds
    assert {row["policy"] for row in rows} == {"oracle", "never", "always", "hysteresis"}
    assert min(float(row["regret_pct"]) for row in rows) >= 0
    assert Path(figure).exists()


def test_a_pair_of_networks_that_the_study_lacks_ends_in_a_few_lines(study, run_rule):
    study.write("schedule.yaml", {**STUDY, "together": [["lenet", "resnet"]]})
    output = run_rule("score_schedules", SCORES, status=1)
    assert "config/schedule.yaml" in output
    assert "together names lenet and resnet" in output
    assert "Traceback" not in output
