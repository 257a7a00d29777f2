"""Models that know a little physics, at the profiling cost of the paper's: a few modes.

Each is fitted to one value per mode, the mean of its epochs, by relative error, with a weak belief
about its coefficients (`priors`): where modes cannot tell two terms apart, the belief shares out.
"""

from dataclasses import replace
from functools import lru_cache

import numpy as np

from epochwatt.prediction.data.modes import Mode, Numbers, PredictionError, as_rows
from epochwatt.prediction.data.observations import Observations
from epochwatt.prediction.models.features import (
    POWER,
    TIME,
    design,
    log_terms,
    relative,
    short_of_cores,
)
from epochwatt.prediction.models.linear_model import (
    LEAST,
    N_DRAWS,
    LinearModel,
    fit_and_draw,
    fit_free,
    fit_nonnegative,
)
from epochwatt.prediction.models.priors import (
    DEVIATION,
    EXPONENT_SD,
    LEVEL_SD,
    POWER_SHARES,
    PRIOR_TILT,
    SHARE_SD,
    TIME_SHARES,
)
from epochwatt.prediction.names import POWER as POWER_W
from epochwatt.prediction.names import SEARCHED
from epochwatt.prediction.names import TIME as TIME_S
from epochwatt.prediction.predictor import Context, Method, Prior


def fit_physical_time(observations: Observations, n_draws: int = N_DRAWS) -> LinearModel:
    """Fit time as a sum of the physical terms with non-negative coefficients.

    Raises PredictionError: fewer than two distinct modes. Without draws there are no intervals.
    """
    return _fit_shares(observations, TIME_S, TIME, TIME_SHARES, n_draws)


def fit_power(observations: Observations, n_draws: int = N_DRAWS) -> LinearModel:
    """Fit mean power, W, likewise. Raises PredictionError also where it was not measured."""
    return _fit_shares(observations, POWER_W, POWER, POWER_SHARES, n_draws)


def _fit_shares(
    observations: Observations,
    target: str,
    terms: tuple[str, ...],
    shares: tuple[float, ...],
    n_draws: int,
) -> LinearModel:
    """Fit the terms' shares of the observed value, averaged over the modes; `shares` are believed.

    It is done twice, since deviations are relative to what is expected: relative to what was
    observed they would stand in the rows too, and a fit could make them small by expecting next to
    nothing everywhere.
    """
    means = observations.means_of(target)
    modes, processes, values = means.modes, means.processes, means.values(target)
    short = design(terms, short_of_cores(modes, processes), processes)
    rows, scale = relative(design(terms, modes, processes), short, values)
    rows, mean, sd = rows / scale, np.array(shares), np.full(len(terms), SHARE_SD)
    to_observed = fit_nonnegative(rows, np.ones(len(values)), mean, sd, DEVIATION)
    ratio = np.maximum(rows @ to_observed, LEAST)  # expected over observed
    fit = fit_and_draw(fit_nonnegative, rows / ratio[:, None], 1 / ratio, mean, sd, modes, n_draws)
    return fit.model(target, terms, means, lambda shares: shares / scale)


def fit_log_time(observations: Observations, n_draws: int = N_DRAWS) -> LinearModel:
    """Fit the logarithm of time, linear in those of cores, clocks and the power limit.

    Raises PredictionError: fewer than two distinct modes.
    """
    observations.need_modes(2)
    terms = log_terms(as_rows(observations.distinct()))
    return _fit_log(observations, TIME_S, terms, n_draws)


def fit_on_prior(
    observations: Observations, target: str, prior: Prior, n_draws: int = N_DRAWS
) -> LinearModel:
    """Fit the prior times a factor common to all modes, corrected by what was observed.

    Near the profiled modes it follows them. Their distance from the prior says how far it may be
    off elsewhere.

    Raises PredictionError: no mode, power that was not measured, or a prior that is not above zero.
    """
    return _fit_log(observations, target, (), n_draws, prior)


def _fit_log(
    observations: Observations,
    target: str,
    exponents: tuple[str, ...],
    n_draws: int,
    prior: Prior | None = None,
) -> LinearModel:
    """Fit log(value / prior) as a level and a power law, about the mean of the profiled modes.

    `exponents` are the terms of the power law; without a prior it is the logarithm of the value.
    """
    means = observations.means_of(target, least=1)
    values = means.values(target)
    expected = np.ones(len(values)) if prior is None else np.asarray(prior(means.modes))
    if not (expected > 0).all():
        raise PredictionError(f"the prior expects a {target} of {expected.min():g}")
    log_ratio = np.log(values / expected)
    terms, level = ("constant", *exponents), log_ratio.mean()
    rows = design(terms, means.modes, means.processes)
    centre = rows.mean(0)
    centre[0] -= 1  # the constant stays
    sd = np.array([LEVEL_SD, *[EXPONENT_SD] * len(exponents)])
    tilt = 0.0 if prior is None else PRIOR_TILT
    mean = np.zeros(len(sd))
    fit = fit_and_draw(
        fit_free, rows - centre, log_ratio - level, mean, sd, means.modes, n_draws, tilt
    )

    def uncentred(coefficients: Numbers) -> Numbers:  # (d, k)
        constant = coefficients[:, 0] + level - coefficients @ centre
        return np.column_stack([constant, coefficients[:, 1:]])

    return fit.model(target, terms, means, uncentred, log=True, prior=prior)


def _n_draws(context: Context) -> int:
    return N_DRAWS if context.intervals else 0


def _physical(observations: Observations, context: Context) -> LinearModel:
    return _fitted(observations, context.target, _n_draws(context))


@lru_cache(maxsize=8)  # `stacked` asks for the fit to the same observations
def _fitted(observations: Observations, target: str, n_draws: int) -> LinearModel:
    fit = fit_physical_time if target == TIME_S else fit_power
    return fit(observations, n_draws)


def _on_prior(observations: Observations, context: Context) -> LinearModel:
    if context.prior is None:
        raise PredictionError(f"there is no prior of {context.target}", where=observations.workload)
    return fit_on_prior(observations, context.target, context.prior, _n_draws(context))


LOG = Method(
    "power law",
    (TIME_S,),
    lambda observations, context: fit_log_time(observations, _n_draws(context)),
    LinearModel.from_json,
    learns_from=(SEARCHED,),
    parts=Mode._fields,
)
PHYSICAL = Method("physical terms", (TIME_S, POWER_W), _physical, LinearModel.from_json)
ON_PRIOR = replace(PHYSICAL, title="factor on the simulation", fit=_on_prior, needs_prior=True)
