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
the plain square leads away from minima that give up whole groups of numbers. There are several
minima all the same. The one reached from the priors counts; `Calibration.costs` also says where
random starts around them end. A lower cost does not mean a better board: the lowest of six found
put the cores of AGX Xavier at half the power that their rail shows, which no fit has seen
(docs/explanation/calibration.md). For the same reason steps are those of a trust region that bends
at the bounds (`trf`): they go from the priors to the nearest minimum.
"""

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from epochwatt.published.folds import Judged
from epochwatt.published.numbers import Fact, Published
from epochwatt.twin.calibration.fit_numbers import seen_by_fit
from epochwatt.twin.calibration.predicted import Batch, predict
from epochwatt.twin.inputs.parameters import Parameters, rounded
from epochwatt.twin.inputs.twin import Twin

RATIO_TOLERANCE = {"exact": 0.05, "approx": 0.10}  # of a logarithm
POINTS_TOLERANCE = 5.0  # points of a per cent
COARSE, FINE = 1e-2, 1e-4  # relative change of the objective at which the two passes end
MAX_STEPS = 60
MOST = 3.0  # widths of its prior that a parameter may leave it
N_RANDOM, SEED = 1, 0  # starts beside the priors
START_WIDTHS = 0.25  # standard deviation of a random start
STEP = 1e-5  # of a derivative, widths


class Calibration(NamedTuple):
    """The outcome of a calibration."""

    parameters: Parameters  # with the fitted values
    cost: float  # the objective at its end, halved
    n_facts: int  # how many numbers it saw
    costs: tuple[float, ...] = ()  # the objective at the end of each start, the priors first


def visible(published: Published, rows: Mapping[str, Judged], twin: Twin) -> list[Fact]:
    """Return the published numbers that a fit may see and that the simulation says something to."""
    facts = seen_by_fit(published, rows)
    predictions = predict(facts, twin, twin.parameters)
    return [fact for fact in facts if fact.id in predictions]


class Problem:
    """Residuals of a fit, and how they change, over steps in widths from the priors."""

    def __init__(self, facts: Sequence[Fact], twin: Twin) -> None:
        self._facts, self._start = facts, twin.parameters
        self.names = self._start.fitted
        described = [self._start.described[name] for name in self.names]
        self._priors = np.log([parameter.prior for parameter in described])
        self._widths = np.log([parameter.factor for parameter in described])
        self._batch = Batch(facts, twin)

    def values(self, x: np.ndarray) -> dict[str, np.ndarray]:
        """Return the parameters by name. x of shape (parameters,) or (sets, parameters)."""
        return dict(zip(self.names, np.exp(self._priors + self._widths * x).T, strict=True))

    def misfits(self, xs: np.ndarray) -> np.ndarray:
        """Return the numbers' misfits, shape (sets, numbers), of steps (sets, parameters)."""
        predictions = self._batch.predict({**self._start, **self.values(xs)})
        return misfits_of_sets(self._facts, predictions, len(xs))

    def residuals(self, x: np.ndarray) -> np.ndarray:
        """Return the misfits of numbers and priors."""
        return np.concatenate([self.misfits(x[None])[0], x])

    def jacobian(self, x: np.ndarray) -> np.ndarray:
        """Return the derivatives of the residuals, one-sided, all parameters at once."""
        steps = np.where(x > MOST - 2 * STEP, -STEP, STEP)
        here, *moved = self.misfits(np.vstack([x, x + np.diag(steps)]))
        return np.vstack([((np.array(moved) - here) / steps[:, None]).T, np.eye(len(x))])


def calibrate(
    facts: Sequence[Fact],
    twin: Twin,
    say: Callable[[str], None] = lambda line: None,
    n_random: int = N_RANDOM,
) -> Calibration:
    """Return the parameters that fit some published numbers best.

    Parameters
    ----------
    twin : its `parameters` say which are fitted, from where, and how far they may go
    n_random : random starts besides the priors, only reported; the same each time
    """
    p = twin.parameters
    if not p.fitted or not facts:
        return Calibration(p.lacking(p.fitted), 0.0, len(facts), (0.0,))
    problem, rng = Problem(facts, twin), np.random.default_rng(SEED)
    n = len(problem.names)
    starts = [np.zeros(n), *np.clip(rng.normal(0.0, START_WIDTHS, (n_random, n)), -MOST, MOST)]
    ends = [_descend(problem, x, say) for x in starts]
    x, cost = ends[0]
    fitted = {name: rounded(float(value)) for name, value in problem.values(x).items()}
    return Calibration(p.moved(fitted), cost, len(facts), tuple(end[1] for end in ends))


def _descend(
    problem: Problem, x: np.ndarray, say: Callable[[str], None]
) -> tuple[np.ndarray, float]:
    """Return where the two passes end from one start, and the objective there."""
    from scipy.optimize import least_squares  # a second, which what-if questions do not need

    begun_s, cost = time.monotonic(), math.inf
    for loss, stop in (("linear", COARSE), ("soft_l1", FINE)):
        end = least_squares(
            problem.residuals, x, problem.jacobian, bounds=(-MOST, MOST), method="trf",
            loss=loss, ftol=stop, max_nfev=MAX_STEPS,
        )  # fmt: skip
        x, cost = end.x, float(end.cost)
        after_s = time.monotonic() - begun_s
        say(f"{loss:8s} objective {cost:8.2f}  {end.nfev:3d} steps  {after_s:5.1f} s")
    return x, cost


def misfits(facts: Iterable[Fact], predictions: Mapping[str, tuple[float, ...]]) -> np.ndarray:
    """Return each number's difference in units of its tolerance; 0 for those not predicted."""
    rows = [
        _misfit(fact, predictions[fact.id]) if fact.id in predictions else 0.0 for fact in facts
    ]
    return np.array(rows)


def misfits_of_sets(
    facts: Sequence[Fact], predictions: Mapping[str, tuple[np.ndarray, ...]], n: int
) -> np.ndarray:
    """Return the misfits, shape (sets, numbers), of what n sets of parameters say (`Batch`)."""
    sets = ({k: tuple(v[i] for v in values) for k, values in predictions.items()} for i in range(n))
    return np.array([misfits(facts, one) for one in sets])


def _misfit(fact: Fact, predicted: tuple[float, ...]) -> float:
    if fact.is_bound:
        return _outside(fact, predicted)
    if is_share(fact):
        return (predicted[0] - fact.value) / POINTS_TOLERANCE
    return log_error(fact, predicted[0]) / RATIO_TOLERANCE[fact.qualifier]


def is_share(fact: Fact) -> bool:
    """Say whether a number is judged in points: a share, or a spread, in per cent."""
    return fact.unit == "pct" and fact.b_over_a is None


def log_error(fact: Fact, predicted: float) -> float:
    """Return ln(predicted / published), for a change on the ratio of its two sides."""
    if "(B-A)" in fact.formula:
        return math.log(max(1.0 + predicted / 100.0, 1e-3) / (1.0 + fact.value / 100.0))
    return math.log(max(predicted, 1e-12) / fact.value)


def _outside(fact: Fact, predicted: tuple[float, ...]) -> float:
    """Return how far a bound or a range is missed, in tolerances; 0 where it is met."""
    low, high = limits(fact)
    if len(predicted) > 1 and math.isfinite(high - low):  # a range against a range: both ends count
        return math.hypot(predicted[0] - low, predicted[1] - high) / POINTS_TOLERANCE
    worst = max(predicted, key=lambda value: abs(value - min(max(value, low), high)))
    nearest = min(max(worst, low), high)
    if nearest == worst:
        return 0.0
    if fact.unit == "pct":
        return (worst - nearest) / POINTS_TOLERANCE
    return math.log(max(worst, 1e-12) / max(nearest, 1e-12)) / RATIO_TOLERANCE["exact"]


def limits(fact: Fact) -> tuple[float, float]:
    """Return the lower and upper end that a bound or a range sets; infinite where it sets none."""
    if fact.value_hi is not None:
        return fact.value, fact.value_hi
    if fact.qualifier in ("less_than", "at_most"):
        return -math.inf, fact.value
    return fact.value, math.inf
