"""Rules of studies in pairs: from the epochs of ten runs to verdicts, figure and page."""

import csv
from pathlib import Path

import pytest

PAIRS = {"factor": "container", "values": ["none", "again"], "margin_pct": 3}
RESULTS = Path("results/small")
RULES = "compare_pairs draw_pairs show_pairs"


@pytest.fixture
def measured_pairs(checkout, measure, write_epochs):
    """Return a function that measures five pairs, `again` slower by some %."""

    def make(slower_pct):
        checkout.sweep({"seed": list(range(5))}, pairs=PAIRS)
        for run in checkout.runs:
            for epoch in range(3):
                measure(run, epoch)
            is_b = run.factors["container"] == "again"
            factor = (1 + run.factors["seed"] / 1000) * (1 + is_b * slower_pct / 100)
            epochs = [{"e2e_s": 4.0 * factor, "compute_s": 2.25 * factor} for _ in range(3)]
            write_epochs(run.id, run.factors, *epochs)

    return make


def verdicts():
    with open(RESULTS / "verdicts.csv", newline="", encoding="utf-8") as handle:
        return {row["metric"]: row["verdict"] for row in csv.DictReader(handle)}


def test_pairs_become_verdicts_a_figure_and_a_page(measured_pairs, run_rule):
    measured_pairs(5.0)
    run_rule(RULES, str(RESULTS / "index.html"))
    assert (verdicts()["e2e"], verdicts()["energy"]) == ("different", "undecided")
    assert "different" in (RESULTS / "index.html").read_text("utf-8")
    assert Path("results/figures/small/differences.png").stat().st_size > 0


def test_other_versions_inside_are_named_on_the_page(measured_pairs, run_rule, checkout, measure):
    measured_pairs(5.0)
    last = checkout.runs[-1]
    for epoch in range(3):
        measure(last, epoch, root="other", software={"torch": "1.8.0"})
    Path("measured", last.id).rename("replaced")
    Path("other", last.id).rename(Path("measured", last.id))
    run_rule(RULES, str(RESULTS / "index.html"))
    assert verdicts()["e2e"] == "undecided"  # four pairs are too few
    assert "torch 2.9.1 / 1.8.0" in (RESULTS / "index.html").read_text("utf-8")
