"""Intervals that hold, from few modes: many fits that agree with the observations about as well.

Distribution-free intervals (jackknife+, conformal) of 90 % need nine or more modes: with four, the
bound they can promise is infinite. So the intervals here rest on what was observed and on a belief
(`beliefs`) about the size of deviations and about the coefficients. Each draw takes a size of
deviation from its posterior, lets observations and belief deviate by their own sizes, and fits
again (randomised maximum likelihood: Oliver, He and Reynolds, 1996; exact for a linear model of
Gaussian deviations). Where few modes leave a coefficient open, the draws differ and the interval is
wide. In a mode unlike all profiled ones, the model's error is as wide as the belief says
(`deviations`). `coverage` counts how many observations the intervals hold.
"""

from collections.abc import Callable

import numpy as np

from epochwatt.prediction.data.modes import Numbers
from epochwatt.prediction.models.priors import DEVIATION, DEVIATION_WEIGHT, LESS_BELIEVED, OWNS
from epochwatt.prediction.models.residual_gp import Deviations

N_DRAWS = 400


def draw_spread(
    residuals: Numbers, n_free: float, n_draws: int, rng: np.random.Generator
) -> Numbers:
    """Return draws of the relative standard deviation, shape (n_draws,).

    Parameters
    ----------
    residuals : (n,), relative and white
    """
    total = DEVIATION_WEIGHT * DEVIATION**2 + float(residuals @ residuals)
    return np.sqrt(total / rng.chisquare(DEVIATION_WEIGHT + max(n_free, 0.0), n_draws))


def fit_nonnegative(
    rows: Numbers, target: Numbers, mean: Numbers, sd: Numbers, deviation: float
) -> Numbers:
    """Return the non-negative coefficients nearest to target and belief, shape (k,).

    Minimises |rows c - target|^2 / deviation^2 + |(c - mean) / sd|^2 over c >= 0.
    """
    from scipy.optimize import nnls  # slow to import, and who predicts needs none of it

    system = np.vstack([rows / deviation, np.diag(1 / sd)])
    return nnls(system, np.concatenate([target / deviation, mean / sd]))[0]


def fit_free(
    rows: Numbers, target: Numbers, mean: Numbers, sd: Numbers, deviation: float
) -> Numbers:
    """Return the same without a bound."""
    system = np.vstack([rows / deviation, np.diag(1 / sd)])
    return np.linalg.lstsq(system, np.concatenate([target / deviation, mean / sd]), rcond=None)[0]


Solver = Callable[[Numbers, Numbers, Numbers, Numbers, float], Numbers]


def likeliest(
    fit: Solver,
    rows: Numbers,
    target: Numbers,
    mean: Numbers,
    sd: Numbers,
    profiled: Numbers,
    tilt: float = 0.0,
) -> Deviations:
    """Return the deviations whose own part (`OWNS`) makes the observations likeliest.

    What is each mode's own must not be followed: where modes that are close to each other differ
    by more than they should, following both would bend the prediction around them.

    Parameters
    ----------
    profiled : (n, 6), the distinct modes of the rows
    """
    whitenings = Deviations(profiled, tilt).whitenings(OWNS)

    def log_evidence(place: int) -> float:
        white = whitenings[place]
        coefficients = fit(white @ rows, white @ target, mean, sd, DEVIATION)
        off = white @ (rows @ coefficients - target)
        # the size of deviations is integrated out, the coefficients are the best ones
        size = (DEVIATION_WEIGHT + len(off)) / 2
        fits = -size * np.log(DEVIATION_WEIGHT * DEVIATION**2 + off @ off)
        believed = -0.5 * (((coefficients - mean) / sd) ** 2).sum() - LESS_BELIEVED * place
        return float(fits + believed + np.log(np.diag(white)).sum())

    best = max(range(len(OWNS)), key=log_evidence)
    return Deviations(profiled, tilt, OWNS[best])


def fit_and_draw(
    fit: Solver,
    rows: Numbers,
    target: Numbers,
    mean: Numbers,
    sd: Numbers,
    n_draws: int = N_DRAWS,
) -> tuple[Numbers, Numbers, Numbers]:
    """Return coefficients (k,), draws of them (d, k) and of the deviation (d,).

    Parameters
    ----------
    rows, target : (n, k) and (n,), in units in which a deviation is relative, and whitened
    mean, sd : (k,), belief about the coefficients
    n_draws : d; 0 where no interval is wanted
    """
    coefficients = fit(rows, target, mean, sd, DEVIATION)
    if not n_draws:
        return coefficients, np.empty((0, len(mean))), np.empty(0)
    rng = np.random.default_rng(0)
    information = rows.T @ rows / DEVIATION**2
    n_taken = np.trace(np.linalg.solve(information + np.diag(sd**-2.0), information))
    spread = draw_spread(rows @ coefficients - target, len(target) - n_taken, n_draws, rng)
    noise = rng.standard_normal((n_draws, len(target)))
    belief = mean + sd * rng.standard_normal((n_draws, len(mean)))
    draws = [
        fit(rows, target + s * e, b, sd, s) for s, e, b in zip(spread, noise, belief, strict=True)
    ]
    return coefficients, np.array(draws), spread
