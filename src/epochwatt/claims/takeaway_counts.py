"""The claims in a few lines: which take-aways hold, what cannot be evaluated, what fails and why.

Take-aways are what is counted, everywhere: one holds if all its core claims do.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Literal

from epochwatt.claims.claims_table import FAILS, HOLDS, NOT_HELD_OUT, PAPER, ClaimRow
from epochwatt.published.numbers import TITLES
from epochwatt.study.runs import TWIN
from epochwatt.text import counted, origin

RESTING = {  # each weaker evidence than the one before
    "mechanism": "that rest on a mechanism",
    "fitted": "that rest on fitted numbers",
    "assumed": "that rest on assumed numbers",
}
# what a claim lacks begins so -> what the group of such claims lacks
LACKED = {
    "run ": "runs that were not made",
    "idle power": "idle powers",
    "prediction": "the prediction models",
    "software stacks": "software stacks",
    "runs with other software": "software stacks",
}


def weakest(*rests_on: str) -> str:
    """Return the weakest of several kinds of evidence."""
    return max(rests_on, key=list(RESTING).index)


def takeaways(rows: Iterable[ClaimRow]) -> dict[tuple[str, str], list[ClaimRow]]:
    """Group claims by (paper, take-away), and keep of each its core claims; all where none is."""
    claims: dict[tuple[str, str], list[ClaimRow]] = defaultdict(list)
    for row in rows:
        claims[row.paper, row.takeaway].append(row)
    return {name: [r for r in own if r.role == "core"] or own for name, own in claims.items()}


def status_of(statuses: Iterable[str]) -> str:
    """Combine the statuses of a take-away's claims into its own.

    It fails if one claim fails, and holds if all do that can be judged; empty: none can.
    """
    judged = [status for status in statuses if status in (HOLDS, FAILS)]
    return FAILS if FAILS in judged else HOLDS if judged else ""


def takeaway_counts(
    rows: Iterable[ClaimRow], column: Literal["status", "status_held_out"] = "status"
) -> str:
    """Return in words how many take-aways hold of those that can be judged; empty: none can."""
    statuses = [status_of(getattr(r, column) for r in own) for own in takeaways(rows).values()]
    judged = [*filter(None, statuses)]
    n_hold = judged.count(HOLDS)
    total = counted(len(judged), "take-aways")
    return f"{n_hold} of {total} {'holds' if n_hold == 1 else 'hold'}" if judged else ""


def in_short(findings: Iterable[ClaimRow]) -> list[str]:
    """Write a line for each backend and paper: how many take-aways hold.

    What the papers say of any board is judged on one's own, too, but not counted.
    """
    groups: dict[tuple[str, str], list[ClaimRow]] = defaultdict(list)
    for row in findings:
        if row.form == PAPER:
            groups[row.backend, row.paper].append(row)
    lines = []
    for (backend, paper), rows in groups.items():
        if counts := takeaway_counts(rows):
            how = " as simulated" if backend == TWIN else f", {origin([backend])} {backend}"
            again = takeaway_counts(rows, "status_held_out")
            if again:
                how += f", and {again} on boards that were fitted without their numbers"
            lines.append(f"{TITLES[paper]}: {counts}{how}.")
    return lines


def headline(findings: Sequence[ClaimRow]) -> list[str]:
    """Write the summary of claims.csv as lines: counts, what is missing, what fails and why.

    Of simulated take-aways those stand first that rest on a mechanism. What is about any board and
    was judged on one's own is left to claims.csv.
    """
    lines: list[str] = []
    for backend in dict.fromkeys(row.backend for row in findings):
        for paper, title in TITLES.items():
            rows = [r for r in findings if (r.backend, r.form, r.paper) == (backend, PAPER, paper)]
            counts = in_short(rows)
            if not rows or not (counts or backend == TWIN):
                continue
            board = "" if backend == TWIN else f"{backend}: "
            lines.append(f"{origin([backend]).capitalize()} {board}{title}")
            lines += [f"  {line.removeprefix(f'{title}: ')}" for line in counts]
            if backend == TWIN:
                lines += [_held_out(rows, rests_on) for rests_on in RESTING]
            lines += [*_not_evaluable(rows), *_failures(rows), ""]
    return lines[:-1] if lines else ["No run of the papers, so no take-away can be judged."]


def _held_out(rows: Iterable[ClaimRow], rests_on: str) -> str:
    """Write the line on how many take-aways hold held out, of those with one kind of evidence."""
    statuses = [
        [row.status_held_out for row in own]
        for own in takeaways(rows).values()
        if weakest(*(row.rests_on for row in own)) == rests_on
    ]
    judged = [status for own in statuses if (status := status_of(own))]
    n_not_held_out = sum(set(own) == {NOT_HELD_OUT} for own in statuses)
    n_unjudged = len(statuses) - len(judged) - n_not_held_out
    others = f"; {n_unjudged} more cannot be judged" if n_unjudged else ""
    if n_not_held_out:
        others += f"; {n_not_held_out} more without a number to leave out"
    return (
        f"  Held out (the fit has not seen their numbers), {judged.count(HOLDS)} of {len(judged)} "
        f"take-aways {RESTING[rests_on]} hold{others}."
    )


def _not_evaluable(rows: Iterable[ClaimRow]) -> list[str]:
    """Write a line for each kind of missing input, with the claims that need it."""
    groups: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        if row.status == "not_evaluable":
            kinds = (kind for start, kind in LACKED.items() if row.missing.startswith(start))
            groups[next(kinds, row.missing)].append(row.claim)
    return [f"  Missing {what}: {_named(ids)}." for what, ids in groups.items()]


def _failures(rows: Iterable[ClaimRow]) -> list[str]:
    """Write lines: the fragile core claims, then each that fails, also held out, with why."""
    core = [row for row in rows if row.role == "core"]
    ids = [row.claim for row in core if row.fragile == "yes"]
    lines = [f"  Fragile, within the spread of the fit: {_named(ids)}."] if ids else []
    for row in core:
        if FAILS in (row.status, row.status_held_out):
            held_out = "" if row.status == FAILS else " held out"
            lines.append(f"  {row.claim} does not hold{held_out}: {row.claim_text}")
            lines += [f"    {row.in_words}"] if row.status == FAILS else []
            lines += [f"    {row.why}"] if row.why else []
    return lines


def _named(ids: Sequence[str]) -> str:
    return f"{len(ids)} ({', '.join(ids)})"
