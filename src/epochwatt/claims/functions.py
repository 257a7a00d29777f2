"""Functions that predicates may call: statistics of numbers, tolerances, the Pareto front.

Percentages are `Percentage`, so that their margins are in percentage points.
"""

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from epochwatt.claims.tolerances import margin
from epochwatt.claims.verdict import (
    Change,
    Judgement,
    NotEvaluable,
    Percentage,
    all_of,
    any_of,
    judged,
    margin_pct,
)


def pct(a: float, b: float) -> Change:
    """Return the change from a to b in % of a."""
    return Change(100.0 * (b - a) / a)


def share(part: float, whole: float) -> Percentage:
    """Return a part in % of the whole."""
    return Percentage(100.0 * part / whole)


def spread(values: Sequence[float]) -> Percentage:
    """Return the range of values in % of their median; the papers define none."""
    span = max(values) - min(values)
    middle = statistics.median(values)
    return Percentage(100.0 * span / middle if span else 0.0)


def maxdev(values: Sequence[float]) -> Percentage:
    """Return the largest distance from the median in % of it."""
    middle = statistics.median(values)
    return Percentage(100.0 * max(abs(value - middle) for value in values) / middle)


def mean(values: Sequence[float]) -> float:
    """Return the mean; of percentages it is one."""
    return _kind(values)(statistics.fmean(values))


def median(values: Sequence[float]) -> float:
    """Return the median; of percentages it is one."""
    return _kind(values)(statistics.median(values))


def _kind(values: Sequence[float]) -> type[float]:
    """Return the type of a mean of values: a change or a percentage if any of them is one."""
    kinds = (Change, Percentage)
    return next((k for k in kinds if any(isinstance(value, k) for value in values)), float)


def spearman(x: Sequence[float], y: Sequence[float]) -> float:
    """Return Spearman's correlation: Pearson's of the ranks; equal values share their mean rank."""
    return statistics.correlation(_ranks(x), _ranks(y))


def _ranks(values: Sequence[float]) -> list[float]:
    ordered = sorted(values)
    return [ordered.index(value) + (ordered.count(value) - 1) / 2 for value in values]


def steps(values: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Return each value with the one after it."""
    return list(pairwise(values))


def every(parts: Sequence[Judgement]) -> Judgement:
    """Return whether all parts hold; over nothing, nothing can be said."""
    return all_of(_judgements(parts))


def some(parts: Sequence[Judgement]) -> Judgement:
    """Return whether any part holds; over nothing, nothing can be said."""
    return any_of(_judgements(parts))


def _judgements(parts: Sequence[Any]) -> Sequence[Judgement]:
    """Return the parts; NotEvaluable where there are none, TypeError where one is no judgement."""
    if not parts:
        raise NotEvaluable("two things to compare")
    if not all(isinstance(part, Judgement) for part in parts):
        raise TypeError("all and any take comparisons")
    return parts


# Functions that need no data.
PLAIN: dict[str, Callable[..., Any]] = {
    **{f.__name__: f for f in (pct, share, spread, maxdev, mean, median, spearman, steps)},
    **{"all": every, "any": some, "abs": abs, "min": min, "max": max, "sum": sum},
    **{"len": len, "count": len, "distinct": lambda values: len(set(values))},
}


def tolerant(tolerances: Mapping[str, float]) -> dict[str, Callable[..., Judgement]]:
    """Return `near`, `near_pp` and `similar` with the tolerances of config/claims.yaml."""

    def near(value: float, published: float) -> Judgement:
        """Whether a value lies within NEAR % of another."""
        inside = margin(value, published, tolerances, is_percentage=False)
        return judged(value, "near", published, inside >= 0, inside)

    def near_pp(value: float, published: float) -> Judgement:
        """Whether a percentage lies within NEAR_PP points of another."""
        inside = margin(float(value), published, tolerances, is_percentage=True)
        return judged(value, "near", Percentage(published), inside >= 0, inside)

    def similar(*values: Any) -> Judgement:
        """Whether the range of values is at most SIMILAR % of their median."""
        compared = list(values[0]) if len(values) == 1 else list(values)  # a list, or arguments
        limit = Percentage(tolerances["SIMILAR"])
        inside = limit - spread(compared)
        return judged(compared, "similar within", limit, inside >= 0, inside)

    return {"near": near, "near_pp": near_pp, "similar": similar}


class Front:
    """The Pareto front of modes in energy and time, by the rule of SIGMETRICS 2023, Fig. 8.

    From the mode of least energy to that of most, a mode is on the front when its epoch is shorter
    than that of the last mode put there.
    """

    def __init__(self, energy_wh: Mapping[str, float], e2e_s: Mapping[str, float]) -> None:
        import numpy as np  # here: what predicates ask for is known without it

        from epochwatt.analysis.pareto import pareto_front

        self._costs = {mode: (energy_wh[mode], e2e_s[mode]) for mode in energy_wh}
        names, costs = list(energy_wh), np.array([*self._costs.values()]).reshape(-1, 2)
        self.modes = [names[index] for index in pareto_front(costs[:, 0], costs[:, 1])]

    def __contains__(self, mode: object) -> bool:
        return mode in self.modes

    def __len__(self) -> int:
        return len(self.modes)

    def __str__(self) -> str:
        return "front " + " ".join(self.modes)

    def margin_pct(self, mode: str) -> float | None:
        """Return how far a mode is from joining or leaving the front, %; None: it is the only mode.

        The lead over another mode is the larger of those in energy and in time, negative where the
        other beats it in both. The margin is the least lead over all others.
        """
        costs = self._costs[mode]
        leads = [
            max(margin_pct(mine, theirs) or 0.0 for mine, theirs in zip(costs, other, strict=True))
            for name, other in self._costs.items()
            if name != mode
        ]
        return min(leads) if leads else None


def front(modes: Iterable[str], number: Callable[[str, str], float]) -> Front:
    """Build the front of modes from a function (metric, mode) -> number.

    Raises NotEvaluable: the energy of modes is missing, all of which it names; or a time is.
    """
    energy_wh: dict[str, float] = {}
    missing: list[str] = []
    for mode in modes:
        try:
            energy_wh[mode] = number("energy_wh", mode)
        except NotEvaluable as error:
            missing += error.needed
    if missing:
        raise NotEvaluable(*missing)
    return Front(energy_wh, {mode: number("e2e_s", mode) for mode in energy_wh})
