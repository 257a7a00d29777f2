"""The claims in a few lines."""

import pytest

from epochwatt.claims.claims_table import (
    NOT_HELD_OUT,
    ClaimRow,
    read_claims_table,
    write_claims_table,
)
from epochwatt.claims.summary import headline, in_short


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
        finding(claim="T5", role="quant"),
        finding(claim="T6", status_held_out=NOT_HELD_OUT),
    ]
    lines = headline(rows)
    assert lines[:4] == [
        "Simulated, not measured: SIGMETRICS 2023",
        "  Held out (the fit has not seen their numbers), 1 of 2 core claims that rest on a "
        "mechanism hold; 1 more cannot be judged; 1 more without a number to leave out.",
        "  Held out (the fit has not seen their numbers), 0 of 0 core claims that rest on fitted "
        "numbers hold.",
        "  Held out (the fit has not seen their numbers), 1 of 1 core claims that rest on assumed "
        "numbers hold.",
    ]
    assert "  As simulated, of 5 core claims 5 hold, 0 do not, 0 cannot be evaluated." in lines


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
    rows = [
        finding(**fails, why="missing: x"),
        finding(claim="T2", status_held_out="does_not_hold", claim_text="b", why="missing: y"),
        finding(claim="T3", role="quant", status="does_not_hold"),
    ]
    lines = headline(rows)
    start = lines.index("  T1 does not hold: a is less")
    assert lines[start : start + 5] == [
        *("  T1 does not hold: a is less", "    a < b: 2 < 1", "    missing: x"),
        *("  T2 does not hold held out: b", "    missing: y"),
    ]
    assert not any("T3" in line for line in lines)


def test_each_measured_board_is_told_of_apart(finding):
    none = {"backend": "jetson", "status": "not_evaluable"}
    general = {"backend": "jetson", "form": "general"}
    rows = [
        finding(**none, missing="run a"),
        finding(**general, board="own orin d1"),
        finding(
            **general, board="own orin d2", claim="T2", status="does_not_hold", comparison="2 < 1"
        ),
        finding(**general | none, board="own nano d1"),
    ]
    assert headline(rows) == [
        "Measured on jetson",
        "  Of 1 claim about the papers' own runs 0 hold, 0 do not, 1 cannot be evaluated.",
        "  own orin d1: of 1 claim about any board 1 holds, 0 do not, 0 cannot be evaluated.",
        "  own orin d2: of 1 claim about any board 0 hold, 1 does not, 0 cannot be evaluated.",
        "  T2 does not hold: ",
        "    2 < 1",
    ]


@pytest.mark.parametrize("told", [headline, in_short])
def test_a_board_counts_also_what_cannot_be_evaluated_of_it(finding, told):
    general = {"backend": "jetson", "form": "general", "board": "own orin d1"}
    rows = [
        *(finding(**general), finding(**general, claim="T2", status="does_not_hold")),
        *[finding(**general, claim="T3", status="not_evaluable")] * 3,
    ]
    counts = "own orin d1: of 5 claims about any board 1 holds, 1 does not, 3 cannot be evaluated."
    assert counts in [line.strip() for line in told(rows)]


def test_without_runs_there_is_nothing_to_say():
    assert headline([]) == ["No runs, so no claim can be evaluated."]


def test_in_short_a_simulated_paper_has_two_lines(finding):
    assert in_short([finding(), finding(claim="T2", status="does_not_hold")]) == [
        "SIGMETRICS 2023. As simulated, of 2 core claims 1 holds, 1 does not, "
        "0 cannot be evaluated.",
        "SIGMETRICS 2023. Held out (the fit has not seen their numbers), 2 of 2 core claims that "
        "rest on a mechanism hold.",
    ]


def test_in_short_a_board_tells_what_could_be_evaluated(finding):
    none = finding(backend="jetson", status="not_evaluable")
    board = finding(backend="jetson", form="general", board="own orin d1")
    assert in_short([none, board]) == [
        "own orin d1: of 1 claim about any board 1 holds, 0 do not, 0 cannot be evaluated."
    ]
    assert in_short([none]) == ["No claim can be evaluated on these runs."]
