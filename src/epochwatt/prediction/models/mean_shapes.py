"""Shapes that time or power may have over power modes: what a Gaussian process deviates from.

A shape answers two things about modes: the logarithm of what it expects, and how that would change
with what the shape leaves open, in columns of prior standard deviations. So what is open enters
the process as a linear kernel, and far from all profiled modes the interval widens by it.

A `SumOfTerms` adds the physical terms (`features`), or takes another norm of them: parts that
overlap add by less than their sum (norm 2). A power law is linear in logarithms. From a reference
workload come its curve times a power law, and a sum of terms times what the reference's own sum
leaves over.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from epochwatt.prediction.data.modes import NO_LIMIT, Numbers, PredictionError
from epochwatt.prediction.models.features import POWER, TIME, design, relative, short_of_cores
from epochwatt.prediction.models.linear_model import LEAST, fit_nonnegative
from epochwatt.prediction.models.priors import DEVIATION, SHARE_SD
from epochwatt.prediction.predictor import Predictor

N_PASSES = 2  # of a fit by relative error: relative to what the pass before expected
OPEN_TERM = SHARE_SD  # prior standard deviation of a term, in parts of the whole
OPEN_SLOPE = 0.5  # of an exponent of a power law, and of the reference's curve
OPEN_LEVEL = 1.0  # of the logarithm of a level
OPEN_RESIDUAL = 0.5  # of the share of the reference's residual that returns; its mean is a half
# What a clock does under a power limit: power goes with the clock below the floor of the voltage
# and with its cube above, so the clock with the limit's power of 1 to 1/3.
LIMITED = 0.5

Expected = tuple[Numbers, Numbers]  # logarithms (n,), and columns of what is open (n, q)
Shape = Callable[[Numbers], Expected]  # modes (n, 6) -> what it expects, before deviations


def under_limit(modes: Numbers, knee_w: float) -> Numbers:
    """Return a copy of modes (n, 6) with the GPU's clock lowered to what its power limit leaves.

    The workload runs at the full clock under limits of `knee_w` or more; `NO_LIMIT`: under any.
    """
    if knee_w == NO_LIMIT:
        return modes
    limit_w = modes[:, 5]
    share = np.where(limit_w == NO_LIMIT, 1.0, np.minimum(limit_w / knee_w, 1.0))
    limited = modes.copy()
    limited[:, 2] *= share**LIMITED
    return limited


@dataclass(frozen=True, eq=False)
class SumOfTerms:
    """A shape: (sum_k coefficient_k term_k^norm)^(1 / norm) of physical terms."""

    terms: tuple[str, ...]  # of `features`
    processes: int  # that want a CPU core
    coefficients: Numbers  # (k,), not negative
    sizes: Numbers  # (k,), what each term is on average, in parts of the whole
    norm: float = 1.0  # 1: the terms add up; more: they overlap
    knee_w: float = NO_LIMIT  # as of `under_limit`
    # of the same workload; its shares of time scale the terms of power. None: they do not
    times: "Shares | None" = None

    def __call__(self, modes: Numbers) -> Expected:
        """Return logarithms of the expected value (n,) and columns of what is open (n, q)."""
        parts = self._raised_terms(modes)
        total = np.maximum(parts @ self.coefficients, np.finfo(float).tiny)
        growth = OPEN_TERM * parts / (total[:, None] * self.sizes)  # relative, by one deviation
        if self.times is not None:  # of power: no part is many times what the whole was
            return np.log(total) / self.norm, growth / self.norm
        # A term that was small in all profiled modes, as a shortage of cores, may be many times the
        # rest elsewhere. There the logarithm leaves its tangent, and what was learned of the term
        # where it was small says nothing: a column of its own, which no profiled mode has.
        beyond = np.log(np.maximum(growth, 1.0))
        open_by = np.column_stack([np.minimum(growth, 1.0), beyond]) / self.norm
        return np.log(total) / self.norm, open_by

    def shares(self, modes: Numbers) -> Numbers:
        """Return the share of each term in the whole, shape (n, k)."""
        parts = self._raised_terms(modes) * self.coefficients
        return np.asarray(parts / parts.sum(1, keepdims=True))

    def _raised_terms(self, modes: Numbers) -> Numbers:
        """Return the terms that the shape adds up: to the power of the norm, shape (n, k)."""
        terms = _terms(modes, self.terms, self.processes, self.knee_w, self.times)
        return np.asarray(terms**self.norm)


@dataclass(frozen=True, eq=False)
class Shares:
    """Shares of time in which a workload keeps the parts of a board busy, by its shapes of time."""

    shapes: tuple[SumOfTerms, ...]  # sums of the terms of time
    weights: Numbers  # (s,), how far each is believed

    def __call__(self, modes: Numbers) -> Numbers:
        """Return the share of time in which GPU, CPU and memory work, shape (n, 3)."""
        shares = [shape.shares(modes).T for shape in self.shapes]
        weighted = sum(weight * share for weight, share in zip(self.weights, shares, strict=True))
        gpu, emc, cpu, core_shortage, _ = weighted  # in the order of `features.TIME`
        return np.column_stack([gpu, cpu + core_shortage, emc])


def _terms(
    modes: Numbers, terms: tuple[str, ...], processes: int, knee_w: float, times: Shares | None
) -> Numbers:
    """Return the value of each term in each mode, shape (n, k).

    With `times`, of power: dynamic terms times the share of time their part is busy, then all terms
    as they are.
    """
    parts = design(terms, under_limit(modes, knee_w), processes)
    if times is None:
        return parts
    gpu, cpu, emc = times(modes).T
    busy = np.stack([gpu, gpu, cpu, cpu, emc], axis=1)  # as `POWER`, whose last is the constant
    return np.column_stack([busy * parts[:, : len(POWER) - 1], parts])


def fit_sum(
    modes: Numbers,
    values: Numbers,
    processes: int,
    norm: float = 1.0,
    knee_w: float = NO_LIMIT,
    times: Shares | None = None,
) -> SumOfTerms:
    """Fit the sum of terms to values (m,) in modes (m, 6), by relative error.

    The values are powers where `times` is given, epoch times otherwise.
    """
    terms = TIME if times is None else POWER
    parts = _terms(modes, terms, processes, knee_w, times)
    short = _terms(short_of_cores(modes, processes), terms, processes, knee_w, times)
    rows, sizes = relative(parts, short, values, norm)
    rows, k = rows / sizes, rows.shape[1]
    # a shortage of cores that no mode had is not believed in, nor waits that no clock changes
    believed = np.where(np.isin(terms, ("core_shortage", "constant")), 0.0, 1 / 3)
    mean = coefficients = believed if times is None else np.full(k, 1 / k)
    expected = np.ones(len(values))
    for _ in range(N_PASSES):
        coefficients = fit_nonnegative(
            rows / expected[:, None], 1 / expected, mean, np.full(k, SHARE_SD), norm * DEVIATION
        )
        expected = np.maximum(rows @ coefficients, LEAST)
    return SumOfTerms(terms, processes, coefficients / sizes, sizes, norm, knee_w, times)


def power_law(modes: Numbers, values: Numbers, terms: tuple[str, ...]) -> Shape:
    """Return a law that expects the values' geometric mean; its level and exponents are open."""
    centre = design(terms, modes, processes=0).mean(0)
    level = float(np.log(values).mean())

    def shape(modes: Numbers) -> Expected:
        rows = design(terms, modes, processes=0) - centre
        open_level = np.full((len(rows), 1), OPEN_LEVEL)
        return np.full(len(rows), level), np.column_stack([open_level, OPEN_SLOPE * rows])

    return shape


def on_reference(
    modes: Numbers, values: Numbers, terms: tuple[str, ...], reference: Predictor
) -> Shape:
    """Return the predictions for a reference workload times a power law through the values (m,).

    Raises PredictionError: the reference expects nothing above zero.
    """
    profiled = reference.predict(modes)
    if not (profiled > 0).all():
        raise PredictionError(f"the reference expects {profiled.min():g}")
    law = power_law(modes, values / profiled, terms)
    middle = float(np.log(profiled).mean())

    def shape(modes: Numbers) -> Expected:
        curve = np.log(reference.predict(modes))
        level, open_by = law(modes)
        return curve + level, np.column_stack([open_by, OPEN_SLOPE * (curve - middle)])

    return shape


def with_residual(ours: SumOfTerms, theirs: SumOfTerms, reference: Predictor) -> Shape:
    """Return our sum plus, in logarithms, half of what the reference's own sum leaves over.

    `theirs` is the reference's sum, of the same terms.
    """

    def shape(modes: Numbers) -> Expected:
        expected, open_by = ours(modes)
        residual = np.log(reference.predict(modes)) - theirs(modes)[0]
        return expected + residual / 2, np.column_stack([open_by, OPEN_RESIDUAL * residual])

    return shape
