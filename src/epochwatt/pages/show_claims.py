"""The claims for people, by take-away: what holds on which runs, what does not, what is missing."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from epochwatt.claims.claims_table import ClaimRow, read_claims_table
from epochwatt.claims.summary import in_short
from epochwatt.markup import Markup, element, folded, page, paragraphs, table
from epochwatt.published.numbers import TITLES
from epochwatt.study.runs import TWIN
from epochwatt.text import counted, label

STATUS_CSS = {"holds": "good", "does_not_hold": "bad"}
INTRODUCTION = (
    "Every claim of both papers, judged on the runs of each backend. Simulated claims, which "
    "nothing measured, are judged again on boards fitted without the take-away (held out). What a "
    "simulated claim rests on: a mechanism of the simulated boards, whatever its numbers; fitted "
    "numbers; assumed ones. Fragile: it turns within the spread of the fitted numbers.",
    "All columns, with tolerances and the runs that were used: results/claims.csv.",
)


def write_claims(claims: str, path: str) -> None:
    """Write the page.

    Parameters
    ----------
    claims : claims.csv
    path : where to write
    """
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
    )


def _shown(findings: Iterable[ClaimRow], paper: str, takeaway: str) -> list[ClaimRow]:
    own = [each for each in findings if (each.paper, each.takeaway) == (paper, takeaway)]
    return [each for each in own if not _is_untold(each)]


def _evidence(each: ClaimRow) -> dict[str, str]:
    """Return what a simulated claim is worth; empty of a measured one."""
    fragile = ", fragile" if each.fragile == "yes" else ""
    return {"held out": _status(each.status_held_out), "rests on": each.rests_on + fragile}


def _status(status: str) -> Markup:
    return element("span", status.replace("_", " "), css=STATUS_CSS.get(status, "grey"))


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
