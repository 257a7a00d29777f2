"""Which published changes of a panel its claims do not bear out: they are drawn in red."""

import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from epochwatt.claims import predicates
from epochwatt.claims.evaluate import load_claims
from epochwatt.claims.number_sources import Source
from epochwatt.figures.common.brackets import Bracket
from epochwatt.figures.common.job import Job
from epochwatt.figures.common.relations import Related
from epochwatt.figures.common.verdicts import failing_verdicts
from epochwatt.published.numbers import BOUNDS, Relation

SAME = 1e-9  # relative: numbers that come from one mean on two ways
LIKE = 1e-2  # relative: over more epochs
MEMBERSHIP = ("in", "not in")  # operators of comparisons
LABEL = "red: does not hold"


def failing(job: Job, panel: str, shown: Sequence[Related], source: Source) -> list[Related]:
    """Return the changes that are a side of a comparison which a claim of the panel fails by.

    Parameters
    ----------
    source : what the claims are judged on
    """
    wrong = failing_sides(job, panel, source)
    return [one for one in shown if any(_is_of(one, sides) for sides in wrong)]


def failing_sides(job: Job, panel: str, source: Source) -> list[tuple[Any, Any]]:
    """Return both sides of each comparison that a claim of the panel fails by.

    Parameters
    ----------
    source : what the claims are judged on
    """
    root = Path(job.published).parents[1]
    ids = job.panels[panel].get("claims", [])
    return [
        (comparison.left, comparison.right)
        for verdict in failing_verdicts(ids, source, root)
        for comparison in verdict.comparisons
        if not comparison.holds
    ]


def misplaced(job: Job, panel: str, source: Source) -> set[str]:
    """Return the networks of which a claim of the panel says that something is on a front, or not.

    Only those of comparisons that fail.

    Parameters
    ----------
    source : what the claims are judged on
    """
    root = Path(job.published).parents[1]
    ids = job.panels[panel].get("claims", [])
    texts = [
        f"{comparison.where} {comparison.text}"
        for verdict in failing_verdicts(ids, source, root)
        for comparison in verdict.comparisons
        if not comparison.holds and comparison.operator in MEMBERSHIP
    ]
    models = {run.factors["model"] for run in job.runs}
    return {model for model in models if any(re.search(rf"\b{model}\b", text) for text in texts)}


def is_side(number: float, sides: tuple[Any, Any]) -> bool:
    """Say whether a number is one of the sides of a comparison."""
    return any(math.isclose(number, side, rel_tol=SAME) for side in _numbers(sides))


def unsized(job: Job, panel: str, shown: Sequence[Related]) -> set[str]:
    """Return ids of changes whose printed size no claim of the panel asks for.

    A claim may ask for their direction, or for the printed number or more of it.

    Parameters
    ----------
    panel : whose claims are looked at
    """
    ids = job.panels[panel].get("claims", [])
    claims = [claim for claim in load_claims(Path(job.published).parents[1]) if claim.id in ids]
    return {
        one.relation.id
        for one in shown
        if not any(_asks_for_size(claim.predicate, one.relation) for claim in claims)
    }


def _asks_for_size(predicate: str, r: Relation) -> bool:
    is_one_sided = predicates.bound(predicate, r.metric, r.value) and r.qualifier not in BOUNDS
    return not is_one_sided and predicates.names(predicate, r.metric, r.value)


def _is_of(one: Related, sides: tuple[Any, Any]) -> bool:
    """Say whether a comparison has a change as a side; loosely where its published number is too.

    A claim reads no more epochs than the paper had, so that the two can differ a little.
    """
    numbers = _numbers(sides)
    tolerance = LIKE if one.relation.value in numbers else SAME
    return any(math.isclose(h, n, rel_tol=tolerance) for h in one.here for n in numbers)


def _numbers(sides: tuple[Any, Any]) -> list[float]:
    return [float(side) for side in sides if isinstance(side, float | int)]


def redden(axes: Axes, brackets: Sequence[Bracket], wrong: Sequence[Related], colour: str) -> None:
    """Give the brackets that have one of some changes another colour, with their text."""
    readings = {one.reading(a_is_left=left) for one in wrong for left in (True, False)}
    paint(
        axes, [b for b in brackets if any(_ends_with(b, reading) for reading in readings)], colour
    )


def _ends_with(bracket: Bracket, reading: str) -> bool:
    return any(line.endswith(reading) for line in bracket.lines)


def paint(axes: Axes, brackets: Sequence[Bracket], colour: str) -> None:
    """Give brackets that are drawn another colour, with their text."""
    for bracket in brackets:
        ends = [bracket.left, bracket.left, bracket.right, bracket.right]
        words = " ".join(bracket.lines)
        for line in axes.lines:
            if np.array_equal(line.get_xdata(), ends):
                line.set_color(colour)
        for text in axes.texts:
            if " ".join(text.get_text().split()) == words:
                text.set_color(colour)


def red_of(job: Job) -> str:
    """Return the colour of what does not hold."""
    return job.colours("warning")["warning"]


def entries(job: Job, wrong: Sequence[Any]) -> list[Patch]:
    """Return the legend's entry of what is red; nothing where nothing is wrong."""
    return [handle(red_of(job))] if wrong else []


def handle(colour: str) -> Patch:
    """Return the legend's entry of what is red."""
    return Patch(facecolor=colour, label=LABEL)
