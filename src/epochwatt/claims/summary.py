"""The claims in a few lines: what holds, what cannot be evaluated, which core claims fail, why."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from epochwatt.claims.claims_table import GENERAL, NOT_HELD_OUT, ClaimRow
from epochwatt.claims.mechanisms import RESTS_ON
from epochwatt.published.numbers import TITLES
from epochwatt.study.runs import TWIN
from epochwatt.text import counted, origin

RESTING = {
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


def headline(findings: Sequence[ClaimRow]) -> list[str]:
    """Return the summary of claims.csv for people, line by line.

    Of simulated claims those count first that hold on the twin that has not seen their take-away
    and that rest on a mechanism.
    """
    lines: list[str] = []
    for backend in dict.fromkeys(row.backend for row in findings):
        rows = [row for row in findings if row.backend == backend]
        lines += _simulated(rows) if backend == TWIN else _measured(backend, rows)
    return lines[:-1] if lines else ["No runs, so no claim can be evaluated."]


def in_short(findings: Iterable[ClaimRow]) -> list[str]:
    """Return two lines per paper of simulated claims, and one per board of measured ones.

    A board of which no claim can be evaluated has none.
    """
    groups: dict[tuple[str, str], list[ClaimRow]] = defaultdict(list)
    for row in findings:
        groups[row.backend, row.board or TITLES[row.paper]].append(row)
    lines = []
    for (backend, name), rows in groups.items():
        core = [row for row in rows if row.role == "core"]
        if backend == TWIN:
            lines.append(f"{name}. {_as_simulated(core)}")
            lines.append(f"{name}. {_held_out(core, RESTS_ON[0]).strip()}")
        elif _is_evaluable(rows):
            subject = "" if rows[0].form != GENERAL else " about any board"
            lines.append(f"{name}: of {counted(len(rows), 'claims')}{subject} {_counts(rows)}.")
    return lines or ["No claim can be evaluated on these runs."]


def _simulated(rows: Sequence[ClaimRow]) -> list[str]:
    lines = []
    for paper, title in TITLES.items():
        of_paper = [row for row in rows if row.paper == paper]
        core = [row for row in of_paper if row.role == "core"]
        lines.append(f"Simulated, not measured: {title}")
        lines += [_held_out(core, rests_on) for rests_on in RESTS_ON]
        lines.append(f"  {_as_simulated(core)}")
        lines.append(f"  Of all {counted(len(of_paper), 'claims')} {_counts(of_paper)}.")
        lines += [*_not_evaluable(of_paper), *_fragile(core), *_failures(core), ""]
    return lines


def _as_simulated(core: Sequence[ClaimRow]) -> str:
    return f"As simulated, of {counted(len(core), 'core claims')} {_counts(core)}."


def _held_out(core: Iterable[ClaimRow], rests_on: str) -> str:
    """Return how many core claims hold held out, of those with one kind of evidence."""
    statuses = [row.status_held_out for row in core if row.rests_on == rests_on]
    judged = [status for status in statuses if status not in ("not_evaluable", NOT_HELD_OUT)]
    unjudged, whole = statuses.count("not_evaluable"), statuses.count(NOT_HELD_OUT)
    hold = judged.count("holds")
    others = [f"{unjudged} more cannot be judged"] * bool(unjudged)
    others += [f"{whole} more without a number to leave out"] * bool(whole)
    return (
        f"  Held out (the fit has not seen their numbers), {hold} of {len(judged)} core claims "
        f"{RESTING[rests_on]} hold{''.join(f'; {other}' for other in others)}."
    )


def _is_evaluable(measured: Iterable[ClaimRow]) -> bool:
    """Say whether any claim of a group can be evaluated."""
    return any(row.status != "not_evaluable" for row in measured)


def _counts(rows: Sequence[ClaimRow]) -> str:
    counts = Counter(row.status for row in rows)
    hold, fail = counts["holds"], counts["does_not_hold"]
    return (
        f"{hold} {'holds' if hold == 1 else 'hold'}, {fail} {'does' if fail == 1 else 'do'} not, "
        f"{counts['not_evaluable']} cannot be evaluated"
    )


def _not_evaluable(rows: Iterable[ClaimRow]) -> list[str]:
    """Return what is missing, in groups, with how many claims want it."""
    groups: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        if row.status == "not_evaluable":
            groups[_lacked(row.missing)].append(row.claim)
    return [f"  Missing {what}: {_named(ids)}." for what, ids in groups.items()]


def _lacked(missing: str) -> str:
    return next((what for start, what in LACKED.items() if missing.startswith(start)), missing)


def _fragile(core: Iterable[ClaimRow]) -> list[str]:
    ids = [row.claim for row in core if row.fragile == "yes"]
    return [f"  Fragile, within the spread of the fit: {_named(ids)}."] if ids else []


def _failures(core: Iterable[ClaimRow]) -> list[str]:
    """Return each core claim that fails, or fails held out, with both sides and why."""
    lines = []
    for row in core:
        if row.status == "does_not_hold":
            lines += [f"  {row.claim} does not hold: {row.claim_text}", f"    {row.comparison}"]
        elif row.status_held_out == "does_not_hold":
            lines.append(f"  {row.claim} does not hold held out: {row.claim_text}")
        else:
            continue
        lines += [f"    {row.why}"] if row.why else []
    return lines


def _named(ids: Sequence[str]) -> str:
    return f"{len(ids)} ({', '.join(ids)})"


def _measured(backend: str, rows: Sequence[ClaimRow]) -> list[str]:
    """Return what measured runs say: on the papers' claims, and on each board."""
    paper = [row for row in rows if row.form != GENERAL]
    lines = [
        f"{origin([backend]).capitalize()} {backend}",
        f"  Of {counted(len(paper), 'claims')} about the papers' own runs {_counts(paper)}.",
        *_failures([row for row in paper if row.role == "core"]),
    ]
    boards: dict[str, list[ClaimRow]] = defaultdict(list)
    for row in rows:
        if row.form == GENERAL:
            boards[row.board].append(row)
    for board, of_board in boards.items():
        if _is_evaluable(of_board):
            n_claims = counted(len(of_board), "claims")
            lines.append(f"  {board}: of {n_claims} about any board {_counts(of_board)}.")
            lines += _failures(of_board)
    return [*lines, ""]
