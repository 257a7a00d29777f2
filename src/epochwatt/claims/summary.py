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
    for backend in dict.fromkeys(each.backend for each in findings):
        own = [each for each in findings if each.backend == backend]
        lines += _simulated(own) if backend == TWIN else _measured(backend, own)
    return lines[:-1] if lines else ["No runs, so no claim can be evaluated."]


def in_short(findings: Iterable[ClaimRow]) -> list[str]:
    """Return two lines per paper of simulated claims, and one per board of measured ones.

    A board of which no claim can be evaluated has none.
    """
    groups: dict[tuple[str, str], list[ClaimRow]] = defaultdict(list)
    for each in findings:
        groups[each.backend, each.board or TITLES[each.paper]].append(each)
    lines = []
    for (backend, name), own in groups.items():
        core = [each for each in own if each.role == "core"]
        if backend == TWIN:
            lines.append(f"{name}. {_held_out(core, RESTS_ON[0]).strip()}")
            lines.append(f"{name}. {_as_simulated(core)}")
        elif _is_told(own):
            about = "" if own[0].form != GENERAL else " about any board"
            lines.append(f"{name}: of {counted(len(own), 'claims')}{about} {_counts(own)}.")
    return lines or ["No claim can be evaluated on these runs."]


def _simulated(own: Sequence[ClaimRow]) -> list[str]:
    lines = []
    for paper, title in TITLES.items():
        told = [each for each in own if each.paper == paper]
        core = [each for each in told if each.role == "core"]
        lines.append(f"Simulated, not measured: {title}")
        lines += [_held_out(core, rests_on) for rests_on in RESTS_ON]
        lines.append(f"  {_as_simulated(core)}")
        lines.append(f"  Of all {counted(len(told), 'claims')} {_counts(told)}.")
        lines += [*_not_evaluable(told), *_fragile(core), *_failures(core), ""]
    return lines


def _as_simulated(core: Sequence[ClaimRow]) -> str:
    return f"As it is simulated, of {counted(len(core), 'core claims')} {_counts(core)}."


def _held_out(core: Iterable[ClaimRow], rests_on: str) -> str:
    """Return how many core claims hold held out, of those with one kind of evidence."""
    known = [each.status_held_out for each in core if each.rests_on == rests_on]
    told = [status for status in known if status not in ("not_evaluable", NOT_HELD_OUT)]
    unjudged, whole = known.count("not_evaluable"), known.count(NOT_HELD_OUT)
    return (
        f"  Held out, {told.count('holds')} of {len(told)} core claims hold {RESTING[rests_on]} "
        f"({unjudged} more cannot be judged, {whole} without a number to leave out)."
    )


def _is_told(measured: Iterable[ClaimRow]) -> bool:
    """Say whether any claim of a group can be evaluated."""
    return any(each.status != "not_evaluable" for each in measured)


def _counts(told: Sequence[ClaimRow]) -> str:
    counts = Counter(each.status for each in told)
    hold, fail = counts["holds"], counts["does_not_hold"]
    return (
        f"{hold} {'holds' if hold == 1 else 'hold'}, {fail} {'does' if fail == 1 else 'do'} not, "
        f"{counts['not_evaluable']} cannot be evaluated"
    )


def _not_evaluable(told: Iterable[ClaimRow]) -> list[str]:
    """Return what is missing, in groups, with how many claims want it."""
    groups: dict[str, list[str]] = defaultdict(list)
    for each in told:
        if each.status == "not_evaluable":
            groups[_lacked(each.missing)].append(each.claim)
    return [f"  For want of {what}: {_named(ids)}." for what, ids in groups.items()]


def _lacked(missing: str) -> str:
    return next((what for start, what in LACKED.items() if missing.startswith(start)), missing)


def _fragile(core: Iterable[ClaimRow]) -> list[str]:
    ids = [each.claim for each in core if each.fragile == "yes"]
    return [f"  Fragile, within the spread of the fit: {_named(ids)}."] if ids else []


def _failures(core: Iterable[ClaimRow]) -> list[str]:
    """Return each core claim that fails, or fails held out, with both sides and why."""
    lines = []
    for each in core:
        if each.status == "does_not_hold":
            lines += [f"  {each.claim} does not hold: {each.claim_text}", f"    {each.comparison}"]
        elif each.status_held_out == "does_not_hold":
            lines.append(f"  {each.claim} does not hold held out: {each.claim_text}")
        else:
            continue
        lines += [f"    {each.why}"] if each.why else []
    return lines


def _named(ids: Sequence[str]) -> str:
    return f"{len(ids)} ({', '.join(ids)})"


def _measured(backend: str, own: Sequence[ClaimRow]) -> list[str]:
    """Return what measured runs say: on the papers' claims, and on each board."""
    paper = [each for each in own if each.form != GENERAL]
    lines = [
        f"{origin([backend]).capitalize()} {backend}",
        f"  Of {counted(len(paper), 'claims')} about the papers' own runs {_counts(paper)}.",
        *_failures([each for each in paper if each.role == "core"]),
    ]
    boards: dict[str, list[ClaimRow]] = defaultdict(list)
    for each in own:
        if each.form == GENERAL:
            boards[each.board].append(each)
    for board, told in boards.items():
        if _is_told(told):
            n_claims = counted(len(told), "claims")
            lines.append(f"  {board}: of {n_claims} about any board {_counts(told)}.")
            lines += _failures(told)
    return [*lines, ""]
