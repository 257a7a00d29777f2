"""The claims in a few lines."""

import pytest

from epochwatt.claims.claims_table import (
    NOT_HELD_OUT,
    ClaimRow,
    read_claims_table,
    write_claims_table,
)
from epochwatt.claims.takeaway_counts import headline, in_short


@pytest.fixture
def finding():
    """Return a function that makes a row of claims.csv."""

    def make(**cells):
        told = {
            **dict.fromkeys(ClaimRow._fields, ""),
            **{"claim": "T1", "paper": "sigmetrics2023", "role": "core", "backend": "twin"},
            **{"form": "paper", "status": "holds", "status_held_out": "holds"},
            "rests_on": "mechanism",
        }
        told["takeaway"] = cells.get("claim", "T1")  # each of its own, if nothing else is said
        return ClaimRow(**told | cells)

    return make


def test_a_table_is_read_as_it_was_written(finding, tmp_path):
    rows = [finding(), finding(claim="T2", comparison="a, b: 1 < 2", n_cases="1")]
    write_claims_table(str(tmp_path / "claims.csv"), rows)
    assert read_claims_table(str(tmp_path / "claims.csv")) == rows


def test_held_out_claims_that_rest_on_a_mechanism_come_first(finding):
    rows = [
        finding(),
        finding(claim="T2", status_held_out="does_not_hold"),
        finding(claim="T3", status_held_out="not_evaluable"),
        finding(claim="T4", rests_on="assumed"),
        finding(claim="T5", role="quant", takeaway="T4", status="does_not_hold"),
        finding(claim="T6", status_held_out=NOT_HELD_OUT),
    ]
    lines = headline(rows)
    assert lines[:5] == [
        "Simulated, not measured: SIGMETRICS 2023",
        "  5 of 5 take-aways hold as simulated, and 2 of 3 take-aways hold on boards that were "
        "fitted without their numbers.",
        "  Held out (the fit has not seen their numbers), 1 of 2 take-aways that rest on a "
        "mechanism hold; 1 more cannot be judged; 1 more without a number to leave out.",
        "  Held out (the fit has not seen their numbers), 0 of 0 take-aways that rest on fitted "
        "numbers hold.",
        "  Held out (the fit has not seen their numbers), 1 of 1 take-aways that rest on assumed "
        "numbers hold.",
    ]


def test_what_cannot_be_evaluated_is_grouped_by_what_is_missing(finding):
    none = {"status": "not_evaluable", "status_held_out": "not_evaluable"}
    rows = [
        finding(claim="T1", missing="prediction: best_mode_set agx", **none),
        finding(claim="T2", missing="prediction: time_mape_pct agx", role="quant", **none),
        finding(claim="T3", missing="run sigmetrics2023 agx; run b", **none),
        finding(claim="T4", missing="a meter", **none),
    ]
    lines = headline(rows)
    assert "  Missing the prediction models: 2 (T1, T2)." in lines
    assert "  Missing runs that were not made: 1 (T3)." in lines
    assert "  Missing a meter: 1 (T4)." in lines


def test_a_core_claim_that_fails_says_why(finding):
    fails = {"status": "does_not_hold", "claim_text": "a is less", "comparison": "a < b: 2 < 1"}
    fails["in_words"] = "published as less, here 2 s against 1 s"
    rows = [
        finding(**fails, why="missing: x"),
        finding(claim="T2", status_held_out="does_not_hold", claim_text="b", why="missing: y"),
        finding(claim="T3", role="quant", status="does_not_hold"),
    ]
    lines = headline(rows)
    start = lines.index("  T1 does not hold: a is less")
    assert lines[start : start + 5] == [
        "  T1 does not hold: a is less",
        *("    published as less, here 2 s against 1 s", "    missing: x"),
        *("  T2 does not hold held out: b", "    missing: y"),
    ]
    assert not any("T3" in line for line in lines)


@pytest.mark.parametrize("told", [headline, in_short])
def test_of_boards_of_ones_own_nothing_is_counted(finding, told):
    """What the papers say of any board is judged on them, which is in claims.csv."""
    general = {"backend": "jetson", "form": "general", "board": "own orin d1"}
    none = {"backend": "jetson", "status": "not_evaluable"}
    rows = [finding(**general), finding(**general, claim="T2", status="does_not_hold")]
    alone = told([*rows, finding(**none, missing="run a")])
    assert alone == (
        [] if told is in_short else ["No run of the papers, so no take-away can be judged."]
    )
    assert told([*rows, finding()]) == told([finding()])


def test_measured_runs_of_the_papers_are_counted_and_told_of(finding):
    measured = {"backend": "jetson", "status_held_out": "", "rests_on": ""}
    fails = {"status": "does_not_hold", "claim_text": "a is less", "in_words": "here 2"}
    rows = [finding(**measured), finding(**measured, claim="T2", **fails)]
    assert in_short(rows) == ["SIGMETRICS 2023: 1 of 2 take-aways holds, measured on jetson."]
    assert headline(rows) == [
        "Measured on jetson: SIGMETRICS 2023",
        "  1 of 2 take-aways holds, measured on jetson.",
        *("  T2 does not hold: a is less", "    here 2"),
    ]


def test_in_short_a_take_away_holds_if_its_core_claims_do(finding):
    rows = [finding(), finding(claim="T2", status="does_not_hold"), finding(claim="T3", status="")]
    assert in_short(rows) == [
        "SIGMETRICS 2023: 1 of 2 take-aways holds as simulated, and 3 of 3 take-aways hold on "
        "boards that were fitted without their numbers."
    ]
    apart = finding(claim="T2", takeaway="T1", role="quant", status="does_not_hold")
    core = finding(claim="T3", takeaway="T1", status="does_not_hold")
    assert in_short([finding(), apart])[0].startswith("SIGMETRICS 2023: 1 of 1 take-away holds as")
    assert in_short([finding(), core])[0].startswith("SIGMETRICS 2023: 0 of 1 take-away hold as")
