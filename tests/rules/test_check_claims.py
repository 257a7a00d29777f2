"""Rule check_claims: measured runs are judged on the forms for any board."""

import csv
from pathlib import Path

TABLE, TEXT = "results/claims.csv", "results/claims.txt"


def test_measured_runs_are_judged_on_the_forms_for_any_board(checkout, write_epochs, run_rule):
    for run in checkout.runs:  # a worker saves wait; a larger mini-batch saves compute
        wait_s = 1.0 if run.factors["num_workers"] else 2.0
        times = {"wait_s": wait_s, "compute_s": 64.0 / run.factors["batch_size"]}
        write_epochs(run.id, run.factors, *[{"e2e_s": 7.0, **times}] * 3)
    run_rule("check_claims", TABLE)
    with open(TABLE, newline="", encoding="utf-8") as handle:
        rows = list(csv.DictReader(handle))
    papers = [row for row in rows if row["form"] == "paper"]
    assert len(papers) == 113
    assert {(row["status"], row["backend"]) for row in papers} == {("not_evaluable", "host")}
    compute = next(row for row in rows if (row["claim"], row["form"]) == ("T5.3.1a", "general"))
    assert (compute["status"], compute["board"]) == ("holds", "own host local")
    assert compute["runs"].split() == sorted(checkout.ids)
    assert (compute["status_held_out"], compute["rests_on"]) == ("", "")
    with open("results/tables/comparisons.csv", newline="", encoding="utf-8") as handle:
        compared = [row for row in csv.DictReader(handle) if row["board"] == "own host local"]
    assert {row["claim"] for row in compared} == {
        r["claim"] for r in rows if r["form"] == "general"
    }
    assert "No run of the papers" in Path(TEXT).read_text("utf-8")  # of others none is counted
