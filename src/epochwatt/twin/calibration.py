"""Fit the parameters of the simulated boards to published numbers, those that enough speak of.

**Objective**: the sum over the numbers of loss((difference / tolerance)^2), plus for each parameter
(ln(value / prior) / ln(factor))^2: a parameter that no number speaks of stays where the prior is.
The difference is, by what a number is:

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

**Evidence**: a number speaks of a parameter, and the parameter serves it, when moving the parameter
by its prior's width, up or down from its fitted value, moves the number's misfit by more than half
of the number's tolerance. A bound that is met on the way speaks of nothing. A parameter is fitted
only if it serves two numbers of different take-aways, of which neither gives the other away
(`config/twin/overlapping_numbers.csv`), and no number alone has more than `PRIVATE` of what it does
to all, as the sum of squares. Any other stays at its prior: one number can always be met by a
parameter that serves it alone. Each fit decides on the numbers that it sees, first at the priors,
then at the values that it has found.
"""

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import NamedTuple

import numpy as np

from epochwatt.published.folds import Leak
from epochwatt.published.numbers import Fact
from epochwatt.twin.parameters import Parameters, rounded
from epochwatt.twin.predicted import Batch
from epochwatt.twin.twin import Twin

# of a logarithm; rails of one log are off together
RATIO_TOLERANCE = {"exact": 0.05, "approx": 0.10, "rail": 0.25}
POINTS_TOLERANCE = 5.0  # points of a per cent
COARSE, FINE = 1e-2, 1e-4  # relative change of the objective at which the two passes end
MAX_STEPS = 60
MOST = 3.0  # widths of its prior that a parameter may leave it
N_RANDOM, SEED = 1, 0  # starts beside the priors
START_WIDTHS = 0.25  # standard deviation of a random start
STEP = 1e-5  # of a derivative, widths
MOVED = 0.5  # tolerances by which a parameter moves a number that it serves
PRIVATE = 0.9  # most of a parameter's effect that one number may have

POWER = "power"  # group of parameters that no time hangs on
WATTS = ("_w", "_wh")  # of a metric that power is in

Say = Callable[[str], None]  # takes a line on how the fit goes


class Calibration(NamedTuple):
    """The outcome of a calibration."""

    parameters: Parameters  # with the fitted values
    cost: float  # the objective at its end, halved
    n_facts: int  # how many numbers it saw
    costs: tuple[float, ...] = ()  # the objective at the end of each start, the priors first


def be_silent(line: str) -> None:
    """Print nothing."""


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
        """Return the misfits of numbers, then of priors, for one step (parameters,)."""
        return np.concatenate([self.misfits(x[None])[0], x])

    def jacobian(self, x: np.ndarray) -> np.ndarray:
        """Return one-sided derivatives of the residuals, (numbers + parameters, parameters)."""
        steps = np.where(x > MOST - 2 * STEP, -STEP, STEP)
        at_x, *moved = self.misfits(np.vstack([x, x + np.diag(steps)]))
        of_numbers = ((np.array(moved) - at_x) / steps[:, None]).T
        return np.vstack([of_numbers, np.eye(len(x))])

    def descend(self, x: np.ndarray, say: Say) -> tuple[np.ndarray, float]:
        """Minimise the objective from a start in two passes; return the end and its objective."""
        from scipy.optimize import least_squares  # a second, which what-if questions do not need

        begun_s, cost = time.monotonic(), math.inf
        for loss, tolerance in (("linear", COARSE), ("soft_l1", FINE)):
            end = least_squares(
                self.residuals,
                x,
                self.jacobian,
                bounds=(-MOST, MOST),
                method="trf",
                loss=loss,
                ftol=tolerance,
                max_nfev=MAX_STEPS,
            )
            x, cost = end.x, float(end.cost)
            after_s = time.monotonic() - begun_s
            say(f"{loss:8s} objective {cost:8.2f}  {end.nfev:3d} steps  {after_s:5.1f} s")
        return x, cost


def calibrate(
    facts: Sequence[Fact], twin: Twin, say: Say = be_silent, n_random: int = N_RANDOM
) -> Calibration:
    """Fit a twin's parameters to published numbers: the minimum that is reached from the priors.

    Random starts tell how low other minima are, in `Calibration.costs`. Their parameters are not
    taken even where they end lower (the module's docstring says why).

    `twin`: its `parameters` say which are fitted, from where, and how far they may go; `n_random`:
    how many random starts, the same each time
    """
    p = twin.parameters
    if not p.fitted or not facts:
        return Calibration(p.lacking(p.fitted), 0.0, len(facts), (0.0,))
    problem, rng = Problem(facts, twin), np.random.default_rng(SEED)
    n = len(problem.names)
    # in widths from the priors
    starts = [np.zeros(n), *np.clip(rng.normal(0.0, START_WIDTHS, (n_random, n)), -MOST, MOST)]
    ends = [problem.descend(x, say) for x in starts]
    x, cost = ends[0]  # from the priors
    fitted = {name: rounded(float(value)) for name, value in problem.values(x).items()}
    return Calibration(p.moved(fitted), cost, len(facts), tuple(end_cost for _, end_cost in ends))


def misfits(facts: Iterable[Fact], predictions: Mapping[str, tuple[float, ...]]) -> np.ndarray:
    """Return each number's difference in units of its tolerance; 0 for those not predicted."""

    def misfit(fact: Fact, predicted: tuple[float, ...]) -> float:
        if fact.is_bound:
            return _bound_misfit(fact, predicted)
        if fact.unit == "pct" and fact.b_over_a is None:  # a share, or a spread
            return (predicted[0] - fact.value) / POINTS_TOLERANCE
        return log_error(fact, predicted[0]) / RATIO_TOLERANCE[fact.qualifier]

    return np.array([misfit(f, predictions[f.id]) if f.id in predictions else 0.0 for f in facts])


def misfits_of_sets(
    facts: Sequence[Fact], predictions: Mapping[str, tuple[np.ndarray, ...]], n: int
) -> np.ndarray:
    """Return the misfits, (sets, numbers), of predictions with n sets of parameters (`Batch`)."""
    rows = []
    for i in range(n):
        predicted = {name: tuple(v[i] for v in values) for name, values in predictions.items()}
        rows.append(misfits(facts, predicted))
    return np.array(rows)


def log_error(fact: Fact, predicted: float) -> float:
    """Return ln(predicted / published), for a change on the ratio of its two sides."""
    if "(B-A)" in fact.formula:
        return math.log(max(1.0 + predicted / 100.0, 1e-3) / (1.0 + fact.value / 100.0))
    return math.log(max(predicted, 1e-12) / fact.value)


def _bound_misfit(fact: Fact, predicted: tuple[float, ...]) -> float:
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


def fit_with_evidence(
    facts: Sequence[Fact],
    leaks: Sequence[Leak],
    twin: Twin,
    say: Say = be_silent,
    n_random: int = N_RANDOM,
    group: str = "",
) -> Calibration:
    """Fit the parameters that enough numbers speak of; the others stay at their priors.

    Decides which ones at the priors, then at the fitted values; repeats until none lacks evidence.
    `twin`: all of its parameters that have a prior are candidates, or those of a group; of that,
    the others that are fitted stay at their values.
    """
    p, own = twin.parameters.candidates(group), twin.parameters
    kept = [name for name in own.fitted if group and own.described[name].group != group]
    n_facts = len(facts)
    if group == POWER:
        facts = [f for f in facts if any(m.endswith(WATTS) for m in f.metric.split("/"))]
        n_random = 0  # from the priors and from anywhere near them the same end is reached
    while True:
        twin = replace(twin, parameters=p)
        lacking = find_lacking(facts, leaks, moves(facts, twin))
        if not lacking:
            fit = calibrate(facts, twin, say, n_random)
            moved = moves(facts, replace(twin, parameters=fit.parameters))
            lacking = find_lacking(facts, leaks, moved)
        if not lacking:
            p = fit.parameters.changed({name: {"source": "fitted"} for name in kept})
            p = with_evidence(facts, replace(twin, parameters=p))
            return fit._replace(parameters=p, n_facts=n_facts)
        for name, why in lacking.items():
            say(f"{name} stays at its prior: {why}")
        p = p.lacking(lacking)


def with_evidence(facts: Sequence[Fact], twin: Twin) -> Parameters:
    """Return the parameters with the numbers that each fitted one serves."""
    evidence = {}
    for name, moved_by in moves(facts, twin).items():
        served = serves(facts, moved_by)
        runs = [run for fact in served for run in fact.runs]
        board_networks = {f"{run['device']} {run.get('model', 'idle')}" for run in runs}
        evidence[name] = {
            "serves": tuple(fact.id for fact in served),
            "private_to": board_networks.pop() if len(board_networks) == 1 else "",
        }
    return twin.parameters.changed(evidence)


def find_lacking(
    facts: Sequence[Fact], leaks: Sequence[Leak], moves_of: Mapping[str, np.ndarray]
) -> dict[str, str]:
    """Return parameter -> what it lacks, for those without enough evidence to be fitted.

    `moves_of`: parameter -> how far it moves each number's misfit, as of `moves`.
    """
    lacking = {}
    for name, moved in moves_of.items():
        served = serves(facts, moved)
        shares = moved**2 / max(float((moved**2).sum()), np.finfo(float).tiny)
        if not any(
            a.takeaway != b.takeaway and not any({a.id, b.id} <= leak.ids for leak in leaks)
            for a, b in combinations(served, 2)
        ):
            lacking[name] = f"it serves {', '.join(f.id for f in served) or 'no number'}"
        elif shares.max() > PRIVATE:
            only = facts[int(shares.argmax())].id
            lacking[name] = f"{100 * PRIVATE:g} % and more of what it does is to {only}"
    return lacking


def moves(facts: Sequence[Fact], twin: Twin) -> dict[str, np.ndarray]:
    """Return parameter -> how far it moves each number's misfit, (numbers,), in tolerances.

    Each fitted parameter goes from its value in `twin` by its prior's width, up or down, whichever
    moves the number further.
    """
    p, names = twin.parameters, twin.parameters.fitted
    values = np.array([p[name] for name in names])
    factors = np.diag(np.log([p.described[name].factor for name in names]))
    sets = values * np.exp(np.vstack([np.zeros(len(names)), factors, -factors]))
    columns = {name: sets[:, i] for i, name in enumerate(names)}
    predictions = Batch(facts, twin).predict({**p, **columns})
    off = misfits_of_sets(facts, predictions, len(sets))
    up, down = np.abs(off[1:] - off[0]).reshape(2, len(names), len(facts))
    return dict(zip(names, np.maximum(up, down), strict=True))


def serves(facts: Iterable[Fact], moved: np.ndarray) -> list[Fact]:
    """Return the numbers that a parameter moves by more than `MOVED`, given its row of `moves`."""
    return [fact for fact, tolerances in zip(facts, moved, strict=True) if tolerances > MOVED]
