"""Judgements: whether a comparison holds, its two sides, and how far it is from turning.

A margin is positive where the comparison holds and negative where it does not. Between two numbers
it is their distance in % of the larger one; where one of them is a percentage (`Percentage`) it is
their difference in percentage points. A conjunction is as near to turning as its nearest part, a
disjunction as its farthest. Comparisons of counts and of words have no margin.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple


class NotEvaluable(Exception):  # noqa: N818
    """Something that a predicate asks for is not there; `needed` says what, in words."""

    def __init__(self, *needed: str) -> None:
        super().__init__("; ".join(needed))
        self.needed = needed


class Percentage(float):
    """A percentage; two of them differ in percentage points."""

    def __abs__(self) -> "Percentage":
        return Percentage(math.fabs(self))

    def __neg__(self) -> "Percentage":
        return Percentage(-float(self))


class Change(Percentage):
    """A change in per cent, whose sign counts."""


class Ratio(float):
    """A quotient, which has no unit."""


class Tolerated(float):
    """A number that one of our tolerances is part of; keeps the printed number without it."""

    printed: float | None  # None where nothing is printed: the limit is ours
    tolerance: str  # its name in config/claims.yaml

    def __new__(cls, value: float, printed: float | None, tolerance: str) -> "Tolerated":
        """Return the number."""
        number = super().__new__(cls, value)
        number.printed, number.tolerance = printed, tolerance
        return number


Keywords = Mapping[str, Any]  # keyword of a call -> its value, where that is written out


class Read(NamedTuple):
    """A number that a predicate asks for."""

    metric: str
    factors: Mapping[str, Any]  # of its run, and `epoch`, or the `state` of an idle board


class Comparison(NamedTuple):
    """One comparison and its two sides."""

    text: str  # as it is written
    where: str  # values of the loop variables: "m=lenet"
    left: Any
    operator: str
    right: Any
    holds: bool
    margin_pct: float | None
    # whether the left and the right side are computed from data
    computed: tuple[bool, bool] = (True, False)
    keywords: tuple[Keywords, Keywords] = ({}, {})  # that calls on the two sides are written with
    reads: tuple[Read, ...] = ()  # the numbers that it rests on

    def __str__(self) -> str:
        where = f" [{self.where}]" if self.where else ""
        return f"{self.text}{where}: {shown(self.left)} {self.operator} {shown(self.right)}"


class Judgement(NamedTuple):
    """A truth value with its margin and the comparisons that decide it."""

    holds: bool
    margin_pct: float | None
    comparisons: tuple[Comparison, ...] = ()
    made: tuple[Comparison, ...] = ()  # comparisons of one chain, whether they decide it or not


def shown(value: Any) -> str:
    """Return a side of a comparison for people: numbers with four digits."""
    if isinstance(value, float):
        return f"{value:.4g}" + (" %" if isinstance(value, Percentage) else "")
    if isinstance(value, list | tuple):
        return "(" + ", ".join(map(shown, value)) + ")"
    return str(value)


def margin_pct(less: float, more: float) -> float | None:
    """Return how far `less` is below `more`: % of the larger, or points between percentages."""
    if isinstance(less, int) and isinstance(more, int):
        return None
    if isinstance(less, Percentage) or isinstance(more, Percentage):
        return float(more) - float(less)
    largest = max(abs(less), abs(more))
    return 100.0 * (more - less) / largest if largest else 0.0


def judged(
    left: Any,
    sign: str,
    right: Any,
    holds: bool,
    margin: float | None,
    computed: tuple[bool, bool] = (True, False),
    keywords: tuple[Keywords, Keywords] = ({}, {}),
) -> Judgement:
    """Build the judgement of one comparison; `expression` adds its text and place."""
    comparison = Comparison("", "", left, sign, right, holds, margin, computed, keywords)
    return Judgement(holds, margin, (comparison,), (comparison,))


def compared(
    left: Any,
    sign: str,
    holds_for: Callable[..., bool],
    right: Any,
    computed: tuple[bool, bool],
    keywords: tuple[Keywords, Keywords],
) -> Judgement:
    """Compare two sides by one of Python's operators; a judgement with its margin.

    `holds_for`: the operator of `sign`; `computed`, `keywords`: as of a `Comparison`
    """
    if isinstance(left, Judgement) or isinstance(right, Judgement):
        raise TypeError("a comparison is compared")
    holds, margin = holds_for(left, right), None
    if sign[0] in "<>" and isinstance(left, int | float) and isinstance(right, int | float):
        margin = margin_pct(left, right) if sign[0] == "<" else margin_pct(right, left)
    elif sign.endswith("in") and hasattr(right, "margin_pct"):
        margin = right.margin_pct(left)
    if margin is not None and sign == "not in":
        margin = -margin
    return judged(left, sign, right, holds, margin, computed, keywords)


def all_of(parts: Sequence[Judgement]) -> Judgement:
    """Combine judgements by and; decided by all that fail, else by the nearest to failing."""
    failing = [part for part in parts if not part.holds]
    return _combined(not failing, min, parts, failing or _extreme(min, parts))


def any_of(parts: Sequence[Judgement]) -> Judgement:
    """Combine judgements by or; decided by the one that holds best, else by all."""
    holding = [part for part in parts if part.holds]
    return _combined(bool(holding), max, parts, _extreme(max, holding) or parts)


def negated(part: Judgement) -> Judgement:
    """Return the opposite, decided by the same comparisons."""
    margin = None if part.margin_pct is None else -part.margin_pct
    return Judgement(not part.holds, margin, part.comparisons)


def _extreme(choose: Any, parts: Sequence[Judgement]) -> list[Judgement]:
    """Return the part with the least or greatest margin (`choose`: min or max), else the first."""
    with_margin = [part for part in parts if part.margin_pct is not None]
    return [choose(with_margin, key=lambda p: p.margin_pct)] if with_margin else [*parts[:1]]


def _combined(
    holds: bool, choose: Any, parts: Sequence[Judgement], deciding: Sequence[Judgement]
) -> Judgement:
    """Build a judgement with the margin that `choose` takes, and the comparisons that decide."""
    margins = [part.margin_pct for part in parts if part.margin_pct is not None]
    comparisons = tuple(comparison for part in deciding for comparison in part.comparisons)
    return Judgement(holds, choose(margins) if margins else None, comparisons)
