"""`results/claims.csv`: one row per claim and backend, or per claim, backend and board."""

import csv
from collections.abc import Iterable
from typing import NamedTuple

from epochwatt.records import files

HOLDS, FAILS = "holds", "does_not_hold"  # status of a claim that could be evaluated
PAPER, GENERAL = "paper", "general"  # forms of a claim
NOT_HELD_OUT = "not_held_out"  # status of a claim of which no fitted number can be left out


class ClaimRow(NamedTuple):
    """One row of claims.csv: what one backend says about one claim; cells as they are written.

    Attributes
    ----------
    form : paper: about the papers' runs; general: on a board of one's own
    board : of a general form: setup, device, instance
    comparison : those that decide, with both sides
    in_words : of one that does not hold: each comparison that fails and our tolerance, for people
    status_held_out : simulated only: on the twin that has not seen the take-away, or, where this
        prints no number, those of the runs that its claims read; not_held_out: there are none
    rests_on : simulated only: mechanism, fitted or assumed
    fragile : simulated only: it turns within the spread of the fitted parameters
    draws_holding_pct : share of the draws of fitted parameters in which it holds
    draws_turning_pct : share of the draws of assumed parameters that turn it
    mechanisms : simulated only: what carries it
    why : of a simulated one that does not hold, what is missing or contradicts it; of one that
        cannot be held out, that it cannot
    """

    claim: str
    takeaway: str
    paper: str
    role: str
    claim_text: str
    backend: str
    form: str
    board: str
    status: str
    comparison: str
    missing: str
    margin_pct: str
    status_held_out: str = ""
    rests_on: str = ""
    fragile: str = ""
    draws_holding_pct: str = ""
    draws_turning_pct: str = ""
    mechanisms: str = ""
    why: str = ""
    threshold_source: str = ""
    n_cases: str = ""
    runs: str = ""
    in_words: str = ""


def write_claims_table(path: str, findings: Iterable[ClaimRow]) -> None:
    """Write claims.csv."""
    with files.writing("the claims", path), open(path, "w", newline="", encoding="utf-8") as handle:
        writer = csv.writer(handle, lineterminator="\n")
        writer.writerow(ClaimRow._fields)
        writer.writerows(findings)


def read_claims_table(path: str) -> list[ClaimRow]:
    """Return the rows of claims.csv; none where the path is empty, since it was not made."""
    if not path:
        return []
    with open(path, newline="", encoding="utf-8") as handle:
        return [ClaimRow(**row) for row in csv.DictReader(handle)]
