"""Fit the parameters of the simulated boards to published numbers.

Objective: the sum over the numbers of loss((difference / tolerance)^2), plus for each parameter
(ln(value / prior) / ln(factor))^2: a parameter that no number speaks of stays where the prior is.
The difference is, by what a number is (`difference`):

* a time, an energy, a power, a ratio: ln(predicted / published);
* a change of two sides: ln of the ratio of the predicted to the published ratio of its sides;
* a share, in points; of a range, of its nearer end;
* a bound: nothing where it is met.

The loss, of numbers and priors alike, is linear far out (soft l1), so that a number which the paper
itself contradicts does not pull; no parameter leaves three widths of its prior. A first pass with
the plain square leads away from minima that give up whole groups of numbers.
"""

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from epochwatt.study.folds import Judged
from epochwatt.study.published import Published, Relation
from epochwatt.twin.compare import Fact, predict
from epochwatt.twin.load import Twin
from epochwatt.twin.observe import Modes
from epochwatt.twin.parameters import Parameters, rounded
from epochwatt.twin.seen import seen_by_fit

RATIO_TOLERANCE = {"exact": 0.05, "approx": 0.10}  # of a logarithm
POINTS_TOLERANCE = 5.0  # points of a per cent
COARSE, FINE = 1e-2, 1e-4  # relative change of the objective at which the two passes end
MAX_STEPS = 60


class Fit(NamedTuple):
    """The outcome of a calibration.

    Attributes
    ----------
    parameters : with the fitted values
    cost : the objective at its end, halved
    n_facts : how many numbers it saw
    """

    parameters: Parameters
    cost: float
    n_facts: int


def visible(
    published: Published, rows: Mapping[str, Judged], twin: Twin, modes: Modes
) -> list[Fact]:
    """Return the published numbers that a fit may see and that the simulation says something to.

    Parameters
    ----------
    rows : how each published number is judged
    """
    facts = seen_by_fit(published, rows)
    told = predict(facts, twin, modes, twin.parameters)
    return [fact for fact in facts if fact.id in told]


def calibrate(
    facts: Sequence[Fact], twin: Twin, modes: Modes, say: Callable[[str], None] = lambda line: None
) -> Fit:
    """Return the parameters that fit some published numbers best, from their priors.

    Parameters
    ----------
    facts : published numbers that the fit may see
    twin : its `parameters` say which are fitted, from where, and how far they may go
    say : is told of each pass
    """
    start = twin.parameters
    names = start.fitted
    priors = np.log([start.described[name].prior for name in names])
    widths = np.log([start.described[name].factor for name in names])

    def values(x: np.ndarray) -> dict[str, float]:
        return dict(zip(names, np.exp(priors + widths * x), strict=True))

    def residuals(x: np.ndarray) -> np.ndarray:
        told = predict(facts, twin, modes, start.moved(values(x)))
        return np.concatenate([misfits(facts, told), x])

    from scipy.optimize import least_squares  # a second, which what-if questions do not need

    x, begun_s = np.zeros(len(names)), time.monotonic()
    for loss, stop in (("linear", COARSE), ("soft_l1", FINE)):
        found = least_squares(
            residuals, x, loss=loss, ftol=stop, max_nfev=MAX_STEPS, bounds=(-3, 3)
        )
        x, cost = found.x, float(found.cost)
        after_s = time.monotonic() - begun_s
        say(f"{loss:8s} objective {cost:8.2f}  {found.nfev:3d} steps  {after_s:5.1f} s")
    fitted = {name: rounded(value) for name, value in values(x).items()}
    return Fit(start.moved(fitted), cost, len(facts))


def misfits(facts: Iterable[Fact], told: Mapping[str, tuple[float, ...]]) -> np.ndarray:
    """Return each number's difference in units of its tolerance; 0 for those not predicted."""
    rows = [_misfit(fact, told[fact.id]) if fact.id in told else 0.0 for fact in facts]
    return np.array(rows)


def _misfit(fact: Fact, told: tuple[float, ...]) -> float:
    if fact.is_bound:
        return _outside(fact, told)
    if is_share(fact):
        return (told[0] - fact.value) / POINTS_TOLERANCE
    return log_error(fact, told[0]) / RATIO_TOLERANCE[fact.qualifier]


def is_share(fact: Fact) -> bool:
    """Say whether a number is judged in points: a share, or a spread, in per cent."""
    if isinstance(fact, Relation):
        return fact.unit == "pct" and fact.b_over_a is None
    return fact.unit == "pct"


def log_error(fact: Fact, told: float) -> float:
    """Return ln(predicted / published), for a change on the ratio of its two sides."""
    if isinstance(fact, Relation) and "(B-A)" in fact.formula:
        return math.log(max(1.0 + told / 100.0, 1e-3) / (1.0 + fact.value / 100.0))
    return math.log(max(told, 1e-12) / fact.value)


def _outside(fact: Fact, told: tuple[float, ...]) -> float:
    """Return how far a bound or a range is missed, in tolerances; 0 where it is met."""
    low, high = limits(fact)
    if len(told) > 1 and math.isfinite(high - low):  # a range against a range: both ends count
        return math.hypot(told[0] - low, told[1] - high) / POINTS_TOLERANCE
    worst = max(told, key=lambda value: abs(value - min(max(value, low), high)))
    nearest = min(max(worst, low), high)
    if nearest == worst:
        return 0.0
    if fact.unit == "pct":
        return (worst - nearest) / POINTS_TOLERANCE
    return math.log(max(worst, 1e-12) / max(nearest, 1e-12)) / RATIO_TOLERANCE["exact"]


def limits(fact: Fact) -> tuple[float, float]:
    """Return the lower and upper end that a bound or a range sets; infinite where it sets none."""
    if isinstance(fact, Relation) and fact.value_hi is not None:
        return fact.value, fact.value_hi
    if fact.qualifier in ("less_than", "at_most"):
        return -math.inf, fact.value
    return fact.value, math.inf
