"""The claims on the landing page, by take-away."""

import re

import pytest

from epochwatt.claims.claims_table import ClaimRow
from epochwatt.pages.papers import CLAIM_COLUMNS, claims_table, statements

TWIN = {"backend": "twin", "status_held_out": "holds", "rests_on": "mechanism", "fragile": "no"}
HOST = {"backend": "host", "status_held_out": "", "rests_on": "", "fragile": ""}
GENERAL = HOST | {"form": "general", "board": "own host local"}
GONE = {"status": "not_evaluable", "comparison": "", "missing": "run sigmetrics2023 agx"}


def claim(**cells):
    told = dict.fromkeys(ClaimRow._fields, "") | {"claim": "T1a", "takeaway": "1"}
    told |= {"paper": "sigmetrics2023", "role": "core", "claim_text": "a < b", "form": "paper"}
    return ClaimRow(**told | {"status": "holds", "comparison": "a < b: 1 < 2"} | cells)


@pytest.fixture
def lines(pytestconfig):
    """Return a function that gives the lines of claims, each what differs from one that holds."""
    says = statements(pytestconfig.rootpath / "config/published")

    def call(*findings):
        return claims_table("sigmetrics2023", [claim(**f) for f in findings], says).lines

    return call


def texts(line):
    """Return the texts of a line, without markup."""
    cells = (str(line.cells[column.name]) for column in CLAIM_COLUMNS)
    return [" ".join(re.sub("<.*?>", " ", cell).split()) for cell in cells]


def test_a_take_away_stands_once_with_the_papers_sentence_and_its_numbers(lines):
    quote = "Enabling DVFS has negligible effect on the E2E time or the energy consumed per epoch."
    about = {"takeaway": "5.5.1", "claim": "T5.5.1b"}
    first, second = lines(TWIN | about, TWIN | about | {"claim": "T5.5.1c"})
    assert f"“{quote}”" in texts(first)[0]
    assert "at most 2 % in time and 3 % in energy" in texts(first)[0]
    assert texts(second)[0] == "5.5.1"
    assert 'id="takeaway-5.5.1"' in first.cells["takeaway"]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            TWIN | {"status_held_out": "does_not_hold", "fragile": "yes"},
            ["simulated, twin", "holds", "does not hold", "mechanism, fragile",
             "as computed a &lt; b: 1 &lt; 2"],
        ),
        (
            TWIN | GONE,
            ["simulated, twin", "not evaluable", "holds", "mechanism", "run sigmetrics2023 agx"],
        ),
        (
            GENERAL,
            ["own host local; measured, host", "holds", "", "", "as computed a &lt; b: 1 &lt; 2"],
        ),
        (
            GENERAL | {"backend": "fake"},
            ["own host local; not measured, fake board", "holds", "", "",
             "as computed a &lt; b: 1 &lt; 2"],
        ),
    ],
)  # fmt: skip
def test_a_claim_says_where_its_data_are_from_how_it_was_judged_and_on_what_it_rests(
    lines, changes, expected
):
    (line,) = lines(changes)
    assert texts(line)[3:] == expected
