"""Judgements: whether a comparison holds, its two sides, and how far it is from turning.

A margin is positive where the comparison holds and negative where it does not. Between two numbers
it is their distance in % of the larger one; where one of them is a percentage (`Percentage`) it is
their difference in percentage points. A conjunction is as near to turning as its nearest part, a
disjunction as its farthest. Comparisons of counts and of words have no margin.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple


class NotEvaluable(Exception):  # noqa: N818
    """Something that a predicate asks for is not there.

    Parameters
    ----------
    needed : what is missing, in words: runs, or a column of theirs
    """

    def __init__(self, *needed: str) -> None:
        super().__init__("; ".join(needed))
        self.needed = needed


class Percentage(float):
    """A percentage; two of them differ in percentage points."""

    __slots__ = ()

    def __abs__(self) -> "Percentage":
        return Percentage(math.fabs(self))

    def __neg__(self) -> "Percentage":
        return Percentage(-float(self))


class Change(Percentage):
    """A change in per cent, whose sign counts."""

    __slots__ = ()


class Tolerated(float):
    """A number that one of our tolerances is part of; keeps the printed number without it."""

    printed: float | None  # None where nothing is printed: the limit is ours
    tolerance: str  # its name in config/claims.yaml

    def __new__(cls, value: float, printed: float | None, tolerance: str) -> "Tolerated":
        """Return the number."""
        number = super().__new__(cls, value)
        number.printed, number.tolerance = printed, tolerance
        return number

    def with_operation(self, operation: Callable[..., float], *sides: Any) -> "Tolerated":
        """Return what an operation gives, on the printed numbers too."""
        printed = [side.printed if isinstance(side, Tolerated) else side for side in sides]
        without = None if None in printed else operation(*printed)
        return Tolerated(operation(*map(float, sides)), without, self.tolerance)


class Ratio(float):
    """A quotient, which has no unit."""

    __slots__ = ()


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
    # metric and factors of the numbers that it rests on
    reads: tuple[tuple[str, Mapping[str, Any]], ...] = ()

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


def compared(
    left: Any,
    sign: str,
    holds_for: Callable[..., bool],
    right: Any,
    computed: tuple[bool, bool] = (True, False),
) -> Judgement:
    """Return what one comparison says of its two sides; who knows its text and place adds them."""
    if isinstance(left, Judgement) or isinstance(right, Judgement):
        raise TypeError("a comparison is compared")
    holds, margin = holds_for(left, right), None
    if sign[0] in "<>" and isinstance(left, int | float) and isinstance(right, int | float):
        margin = margin_pct(left, right) if sign[0] == "<" else margin_pct(right, left)
    elif sign.endswith("in") and hasattr(right, "margin_pct"):
        margin = right.margin_pct(left)
    if margin is not None and sign == "not in":
        margin = -margin
    comparison = Comparison("", "", left, sign, right, holds, margin, computed)
    return Judgement(holds, margin, (comparison,), (comparison,))


def all_of(parts: Sequence[Judgement]) -> Judgement:
    """Return whether all parts hold; decided by those that fail, else by the nearest to failing."""
    failing = [part for part in parts if not part.holds]
    deciding = failing or [part for part in [_at(min, parts)] if part]
    return Judgement(not failing, _margin(min, parts), _comparisons(deciding))


def any_of(parts: Sequence[Judgement]) -> Judgement:
    """Return whether any part holds; decided by the one that holds best, else by all."""
    holding = [part for part in parts if part.holds]
    deciding = [part for part in [_at(max, holding)] if part] if holding else parts
    return Judgement(bool(holding), _margin(max, parts), _comparisons(deciding))


def negated(part: Judgement) -> Judgement:
    """Return the opposite, decided by the same comparisons."""
    margin = None if part.margin_pct is None else -part.margin_pct
    return Judgement(not part.holds, margin, part.comparisons)


def _at(choose: Any, parts: Sequence[Judgement]) -> Judgement | None:
    with_margin = [part for part in parts if part.margin_pct is not None]
    if with_margin:
        return choose(with_margin, key=lambda part: part.margin_pct)
    return parts[0] if parts else None


def _margin(choose: Any, parts: Iterable[Judgement]) -> float | None:
    margins = [part.margin_pct for part in parts if part.margin_pct is not None]
    return choose(margins) if margins else None


def _comparisons(parts: Iterable[Judgement]) -> tuple[Comparison, ...]:
    return tuple(comparison for part in parts for comparison in part.comparisons)
