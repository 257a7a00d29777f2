"""Solvers in short: means and spread over sets of jobs, and what random arrivals leave late."""

import pytest

from epochwatt.schedule.summary import summarised

HEAD = (
    *("provenance", "jobs", "solver", "answered_pct", "kept_pct", "loss_mean_pct", "n_profiles"),
    "board_minutes",
)
SCORES = (
    ("simulated", "train", "gmd", "80", "100", "2", "15", "10"),
    ("simulated", "train", "gmd", "100", "100", "4", "13", "6"),
    ("simulated", "train", "physical_10", "50", "40", "", "10", ""),
    ("simulated", "infer", "own_method_10", "100", "90", "1", "50", "20"),
    ("simulated", "infer", "exhaustive", "", "", "", "", ""),  # nothing to solve
    ("public", "train", "gmd", "100", "100", "1", "4", "3"),
)
PLAYED = ("provenance", "jobs", "solver", "arrivals", "late_pct", "kept_p99_pct")
ARRIVALS = (
    ("simulated", "infer", "own_method_10", "constant", "0", "100"),
    ("simulated", "infer", "own_method_10", "poisson", "3", "50"),
    ("simulated", "infer", "own_method_10", "poisson", "5", "70"),
)


def test_answers_within_budgets_are_shares_of_all_solvable_problems():
    scores = (dict(zip(HEAD, row, strict=True)) for row in SCORES)
    arrivals = (dict(zip(PLAYED, row, strict=True)) for row in ARRIVALS)
    gmd, physical, own, of_others = summarised(scores, arrivals)
    assert (gmd["kept_pct"], gmd["loss_pct"], gmd["n_profiles"]) == (90, 3, 14)
    assert (gmd["board_minutes"], physical["board_minutes"]) == (8, "")
    assert (gmd["kept_least_pct"], gmd["kept_most_pct"]) == (80, 100)
    assert (gmd["loss_least_pct"], gmd["loss_most_pct"], gmd["late_pct"]) == (2, 4, "")
    assert (physical["kept_pct"], physical["loss_pct"]) == (pytest.approx(20), "")
    assert (own["solver"], own["late_pct"], own["kept_p99_pct"]) == ("own_method_10", 4, 60)
    assert (of_others["provenance"], of_others["loss_pct"]) == ("public", 1)
