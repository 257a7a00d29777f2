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
<<<<<<< HEAD
    findings = read_claims_table(claims)
    parts = [paragraphs(INTRODUCTION)]
    for backend in dict.fromkeys(each.backend for each in findings):
        own = [each for each in findings if each.backend == backend]
        parts += [element("h2", label(backend).capitalize()), paragraphs(in_short(own))]
    order = dict.fromkeys((each.paper, each.takeaway) for each in findings)
    for paper, title in TITLES.items():
        tables = [
            element("h3", f"Take-away {takeaway}") + takeaway_table(rows)
            for of, takeaway in order
            if of == paper and (rows := _shown(findings, paper, takeaway))
        ]
        parts += [element("h2", title), *map(Markup, tables)] if tables else []
    untold = [each for each in findings if _is_untold(each)]
    Path(path).write_text(page("Claims", *parts, *_not_evaluable(untold)), "utf-8")


def takeaway_table(findings: Sequence[ClaimRow]) -> Markup:
    """Return a row per claim and kind of runs."""
    is_held_out = any(each.backend == TWIN for each in findings)
    return table(
        [
            {
                "claim": f"{each.claim} ({each.role})",
                "says": each.claim_text,
                "on": f"{each.board}; {label(each.backend)}" if each.board else label(each.backend),
                "status": _status(each.status),
                **(_evidence(each) if is_held_out else {}),
                "values": _values(each),
            }
            for each in findings
        ]
=======
    findings = read_findings(claims)
    backends = dict.fromkeys(finding.backend for finding in findings)
    page = render(
        "claims.html",
        title="Claims",
        backends={
            label(backend).capitalize(): in_short([f for f in findings if f.backend == backend])
            for backend in backends
        },
        papers=_by_take_away(findings),
        wanted=_by_board([f for f in findings if _is_unmeasured(f)]),
>>>>>>> figures
    )
    Path(path).write_text(page, "utf-8")


<<<<<<< HEAD
def _shown(findings: Iterable[ClaimRow], paper: str, takeaway: str) -> list[ClaimRow]:
    own = [each for each in findings if (each.paper, each.takeaway) == (paper, takeaway)]
    return [each for each in own if not _is_untold(each)]


def _evidence(each: ClaimRow) -> dict[str, str]:
    """Return what a simulated claim is worth; empty of a measured one."""
    fragile = ", fragile" if each.fragile == "yes" else ""
    return {"held out": _status(each.status_held_out), "rests on": each.rests_on + fragile}
=======
def _is_unmeasured(finding: Finding) -> bool:
    """Return whether a finding is only that measured runs are missing."""
    return finding.backend != TWIN and finding.status == "not_evaluable"


def _by_take_away(findings: Sequence[Finding]) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """Return title of the paper -> take-away -> rows of its claims; what has no row is left out."""
    order = dict.fromkeys((finding.paper, finding.take_away) for finding in findings)
    rows: dict[tuple[str, str], list[dict[str, Any]]] = {place: [] for place in order}
    for finding in findings:
        if not _is_unmeasured(finding):
            rows[finding.paper, finding.take_away].append(_row(finding))
    papers = {
        title: {name: rows[of, name] for of, name in order if of == paper and rows[of, name]}
        for paper, title in TITLES.items()
    }
    return {title: take_aways for title, take_aways in papers.items() if take_aways}
>>>>>>> figures


def _row(finding: Finding) -> dict[str, Any]:
    """Return a claim for its table; only a simulated one has `evidence`."""
    source = label(finding.backend)
    fragile = ", fragile" if finding.fragile == "yes" else ""
    evidence = {"held_out": finding.status_held_out, "rests_on": finding.rests_on + fragile}
    return {
        "claim": f"{finding.claim} ({finding.role})",
        "says": finding.wording,
        "on": f"{finding.board}; {source}" if finding.board else source,
        "status": finding.status,
        "evidence": evidence if finding.backend == TWIN else None,
        "sides": [side for side in finding.sides.split("; ") if side],
        "reasons": [s for cell in (finding.missing, finding.why) for s in cell.split("; ") if s],
    }


<<<<<<< HEAD
def _values(each: ClaimRow) -> Markup:
    """Return both sides, in view where the claim fails, and what is missing or why it fails."""
    sides = [element("div", side) for side in each.comparison.split("; ") if side]
    if sides and each.status == "holds":
        sides = [folded("both sides", *sides)]
    others = [text for told in (each.missing, each.why) for text in told.split("; ") if text]
    return Markup("".join([*sides, *(element("div", text, css="grey") for text in others)]))


def _is_untold(each: ClaimRow) -> bool:
    """Say whether a finding is only that measured runs are missing."""
    return each.backend != TWIN and each.status == "not_evaluable"


def _not_evaluable(findings: Sequence[ClaimRow]) -> list[Markup]:
    """Return what measured runs are missing for which claim, folded."""
    parts = [element("h2", "What further measurements would tell")] if findings else []
    for about in dict.fromkeys((each.backend, each.board) for each in findings):
        own = [each for each in findings if (each.backend, each.board) == about]
        forms = f"claims about any board, on {about[1]}" if about[1] else "the papers' own runs"
        title = f"{label(about[0])}; {forms}: {counted(len(own), 'claims')} cannot be evaluated"
        rows = [{"claim": f.claim, "says": f.claim_text, "missing": f.missing} for f in own]
        parts.append(folded(title, table(rows)))
    return parts
=======
def _by_board(findings: Iterable[Finding]) -> dict[str, Rows]:
    """Return what is missing for which claim, by kind of runs; the title counts the claims."""
    groups: dict[tuple[str, str], list[dict[str, str]]] = {}
    for f in findings:
        row = {"claim": f.claim, "says": f.wording, "missing": f.missing}
        groups.setdefault((f.backend, f.board), []).append(row)
    return {
        f"{label(backend)}; "
        + (f"claims about any board, on {board}" if board else "the papers' own runs")
        + f": {counted(len(rows), 'claims')} cannot be evaluated": rows
        for (backend, board), rows in groups.items()
    }
>>>>>>> figures
