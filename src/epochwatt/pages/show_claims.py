"""Page of the claims, by take-away: what holds on which runs, what does not, what is missing."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from epochwatt.claims.claims_table import ClaimRow, read_claims_table
from epochwatt.claims.summary import in_short
from epochwatt.published.numbers import TITLES
from epochwatt.study.runs import TWIN
from epochwatt.templates import Rows, render
from epochwatt.text import counted, label


def write_claims(claims: str, path: str) -> None:
    """Write the page.

    Parameters
    ----------
    claims : claims.csv
    path : where to write
    """
    findings = read_claims_table(claims)
    backends = dict.fromkeys(finding.backend for finding in findings)
    page = render(
        "claims.html",
        title="Claims",
        backends={
            label(backend).capitalize(): in_short([f for f in findings if f.backend == backend])
            for backend in backends
        },
        papers=_by_takeaway(findings),
        statuses=list(dict.fromkeys(f.status for f in findings if not _is_unmeasured(f))),
        wanted=_by_board([f for f in findings if _is_unmeasured(f)]),
    )
    Path(path).write_text(page, "utf-8")


def _is_unmeasured(finding: ClaimRow) -> bool:
    """Return whether a finding is only that measured runs are missing."""
    return finding.backend != TWIN and finding.status == "not_evaluable"


def _by_takeaway(findings: Sequence[ClaimRow]) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """Return title of the paper -> take-away -> rows of its claims; what has no row is left out."""
    order = dict.fromkeys((finding.paper, finding.takeaway) for finding in findings)
    rows: dict[tuple[str, str], list[dict[str, Any]]] = {place: [] for place in order}
    for finding in findings:
        if not _is_unmeasured(finding):
            rows[finding.paper, finding.takeaway].append(_row(finding))
    papers = {
        title: {
            name: rows[origin, name]
            for origin, name in order
            if origin == paper and rows[origin, name]
        }
        for paper, title in TITLES.items()
    }
    return {title: takeaways for title, takeaways in papers.items() if takeaways}


def _row(finding: ClaimRow) -> dict[str, Any]:
    """Return a claim for its table; only a simulated one has `evidence`."""
    source = label(finding.backend)
    fragile = ", fragile" if finding.fragile == "yes" else ""
    evidence = {"held_out": finding.status_held_out, "rests_on": finding.rests_on + fragile}
    return {
        "claim": f"{finding.claim} ({finding.role})",
        "says": finding.claim_text,
        "on": f"{finding.board}; {source}" if finding.board else source,
        "status": finding.status,
        "evidence": evidence if finding.backend == TWIN else None,
        "sides": [side for side in finding.comparison.split("; ") if side],
        "reasons": [s for cell in (finding.missing, finding.why) for s in cell.split("; ") if s],
    }


def _by_board(findings: Iterable[ClaimRow]) -> dict[str, Rows]:
    """Return what is missing for which claim, by kind of runs; the title counts the claims."""
    groups: dict[tuple[str, str], list[dict[str, str]]] = {}
    for f in findings:
        row = {"claim": f.claim, "says": f.claim_text, "missing": f.missing}
        groups.setdefault((f.backend, f.board), []).append(row)
    return {
        f"{label(backend)}; "
        + (f"claims about any board, on {board}" if board else "the papers' own runs")
        + f": {counted(len(rows), 'claims')} cannot be evaluated": rows
        for (backend, board), rows in groups.items()
    }
