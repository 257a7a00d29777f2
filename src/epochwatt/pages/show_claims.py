"""Page of the claims, by take-away: what holds on which runs, what does not, what is missing."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from epochwatt.claims.claims_table import PAPER, ClaimRow, read_claims_table
from epochwatt.claims.summary import in_short
from epochwatt.pages.papers import statements
from epochwatt.published.numbers import TITLES
from epochwatt.study.runs import TWIN
from epochwatt.templates import Rows, render
from epochwatt.text import label


def write_claims(claims: str, published: str, path: str) -> None:
    """Write the page.

    Parameters
    ----------
    claims : claims.csv
    published : folder of the published numbers
    path : where to write
    """
    findings = read_claims_table(claims)
    page = render(
        "claims.html",
        lines=in_short(findings),
        papers=_by_takeaway(findings),
        says=statements(Path(published)),
        titles=TITLES,
        statuses=list(dict.fromkeys(f.status for f in findings if not _is_unmeasured(f))),
        wanted=_by_board([f for f in findings if _is_unmeasured(f)]),
    )
    Path(path).write_text(page, "utf-8")


def _is_unmeasured(finding: ClaimRow) -> bool:
    """Return whether a finding is only that measured runs are missing."""
    return finding.backend != TWIN and finding.status == "not_evaluable"


def _by_takeaway(findings: Sequence[ClaimRow]) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """Return paper -> take-away -> rows of its claims; what has no row is left out."""
    order = dict.fromkeys((finding.paper, finding.takeaway) for finding in findings)
    rows: dict[tuple[str, str], list[dict[str, Any]]] = {place: [] for place in order}
    linked: set[str] = set()  # claims that have the row which links lead to
    for finding in findings:
        if not _is_unmeasured(finding):
            is_first = finding.form == PAPER and finding.claim not in linked
            linked |= {finding.claim} if is_first else set()
            rows[finding.paper, finding.takeaway].append(_row(finding) | {"is_first": is_first})
    papers = {
        paper: {
            name: rows[origin, name]
            for origin, name in order
            if origin == paper and rows[origin, name]
        }
        for paper in TITLES
    }
    return {paper: takeaways for paper, takeaways in papers.items() if takeaways}


def _row(finding: ClaimRow) -> dict[str, Any]:
    """Return a claim for its table; only a simulated one has `evidence`."""
    source = label(finding.backend)
    fragile = ", fragile" if finding.fragile == "yes" else ""
    evidence = {"held_out": finding.status_held_out, "rests_on": finding.rests_on + fragile}
    return {
        "claim": finding.claim,
        "role": finding.role,
        "says": finding.claim_text,
        "on": f"{finding.board}; {source}" if finding.board else source,
        "status": finding.status,
        "evidence": evidence if finding.backend == TWIN else None,
        "in_words": _parts(finding.in_words),
        "sides": _parts(finding.comparison),
        "reasons": [*_parts(finding.missing), *_parts(finding.why)],
    }


def _parts(cell: str) -> list[str]:
    return [part for part in cell.split("; ") if part]


def _by_board(findings: Iterable[ClaimRow]) -> dict[str, Rows]:
    """Return what is missing for which claim, by kind of runs."""
    groups: dict[tuple[str, str], list[dict[str, str]]] = {}
    for f in findings:
        row = {"claim": f.claim, "says": f.claim_text, "missing": f.missing}
        groups.setdefault((f.backend, f.board), []).append(row)
    return {
        f"{label(backend)}; "
        + (f"claims about any board, on {board}" if board else "the papers' own runs")
        + ": what cannot be evaluated": rows
        for (backend, board), rows in groups.items()
    }
