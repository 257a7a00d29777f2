"""The claims in a few lines."""

import pytest

from epochwatt.claims.claims_table import NOT_HELD_OUT, ClaimRow
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


def test_held_out_claims_that_rest_on_a_mechanism_come_first(finding, golden):
    none = {"status": "not_evaluable", "status_held_out": "not_evaluable"}
    rows = [
        finding(),
        finding(claim="T2", status_held_out="does_not_hold"),
        finding(claim="T3", status_held_out="not_evaluable"),
        finding(claim="T4", rests_on="assumed"),
        finding(claim="T5", role="quant", takeaway="T4", status="does_not_hold"),
        finding(claim="T6", status_held_out=NOT_HELD_OUT),
        finding(claim="T7", missing="prediction: best_mode_set agx", **none),
        finding(claim="T8", missing="run sigmetrics2023 agx; run b", **none),
    ]
    golden("claims", "claims of simulated boards", "\n".join(headline(rows)))
    apart = [finding(), *rows[3:5], finding(claim="T9", takeaway="T1", status="does_not_hold")]
    golden("claims", "claims of simulated boards, in short", "\n".join(in_short(apart)))


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
