"""`results/claims.csv`, a row per claim, backend and board, and its comparisons one by one."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from epochwatt.tables import read_cells, write_entries

HOLDS, FAILS = "holds", "does_not_hold"  # status of a claim that could be evaluated
PAPER, GENERAL = "paper", "general"  # forms of a claim
NOT_HELD_OUT = "not_held_out"  # status of a claim of which no fitted number can be left out


class ClaimRow(NamedTuple):
    """One row of claims.csv: what one backend says about one claim; cells as they are written."""

    claim: str
    takeaway: str
    paper: str
    role: str
    claim_text: str
    backend: str
    form: str  # paper: about the papers' runs; general: on a board of one's own
    board: str  # of a general form: setup, device, instance
    status: str
    comparison: str  # those that decide, with both sides
    missing: str
    margin_pct: str
    # simulated only: on the twin that has not seen the take-away, or, where this prints no number,
    # those of the runs that its claims read; not_held_out: there are none
    status_held_out: str = ""
    rests_on: str = ""  # simulated only: mechanism, fitted or assumed
    fragile: str = ""  # simulated only: it turns within the spread of the fitted parameters
    draws_holding_pct: str = ""  # share of the draws of fitted parameters in which it holds
    draws_turning_pct: str = ""  # share of the draws of assumed parameters that turn it
    mechanisms: str = ""  # simulated only: what carries it
    # of a simulated one that does not hold, what is missing or contradicts it; of one that cannot
    # be held out, that it cannot
    why: str = ""
    threshold_source: str = ""
    n_cases: str = ""
    runs: str = ""
    # of one that does not hold: each comparison that fails and our tolerance, for people
    in_words: str = ""


@dataclass(frozen=True)
class ComparisonRow:
    """One comparison of a claim; where nothing can be compared, one row says so."""

    claim: str
    takeaway: str
    paper: str
    role: str
    claim_text: str
    backend: str
    form: str
    board: str  # of a general form: setup, device, instance
    status: str  # of the whole claim
    comparison: str = ""
    # what tells it from other comparisons of the claim: board, network, mode, metric
    subject: str = ""
    device: str = ""  # that it reads; empty: several
    model: str = ""
    metric: str = ""
    # of rows in config/published/; empty: no printed number is of exactly these runs
    published_id: str = ""
    operator: str = ""  # near, similar, in, not in, or the sign between observed and limit
    # number of the paper, without our tolerance; empty: an order of numbers is claimed
    printed: str = ""
    observed: str = ""  # both sides here; several numbers are separated by spaces
    limit: str = ""
    unit: str = ""  # of them; of ratios and counts none
    tolerance: str = ""  # of ours that it rests on, with its unit
    verdict: str = ""  # holds, does_not_hold, not_evaluable
    margin_pct: str = ""
    published: str = ""  # for people: what is published
    here: str = ""  # and what is here
    in_words: str = ""  # both in one sentence

    @property
    def fails(self) -> bool:
        """Whether it is a reason why its claim does not hold."""
        return self.verdict == FAILS and self.status != HOLDS


def write_claims_table(path: str, findings: Iterable[ClaimRow]) -> None:
    """Write claims.csv."""
    write_entries(path, "the claims", ClaimRow, findings)


def read_claims_table(path: str) -> list[ClaimRow]:
    """Return the rows of claims.csv; none where the path is empty, since it was not made."""
    return [ClaimRow(**row) for row in read_cells(path)] if path else []


def write_comparisons(path: str, rows: Iterable[ComparisonRow]) -> None:
    """Write comparisons.csv."""
    write_entries(path, "the comparisons of claims", ComparisonRow, rows)


def read_comparisons(path: str) -> list[ComparisonRow]:
    """Return the rows of comparisons.csv; none where the path is empty, since it was not made."""
    return [ComparisonRow(**row) for row in read_cells(path)] if path else []
