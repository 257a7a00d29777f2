"""Models that know a little physics, at the profiling cost of the paper's: a few modes.

Each is fitted to one value per mode, the mean of its epochs, by relative error, with a weak belief
about its coefficients (`beliefs`): where modes cannot tell two terms apart, the belief shares out.
"""

from dataclasses import replace

import numpy as np

from epochwatt.prediction.data.modes import Mode, Numbers, PredictionError, as_rows
from epochwatt.prediction.data.observations import Observations
from epochwatt.prediction.models.features import POWER, TIME, design, log_terms, short_of_cores
from epochwatt.prediction.models.intervals import (
    N_DRAWS,
    fit_and_draw,
    fit_free,
    fit_nonnegative,
    likeliest,
)
from epochwatt.prediction.models.linear_model import LEAST, LinearModel
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

LEAST_MODES = 2


def fit_physical_time(observations: Observations, n_draws: int = N_DRAWS) -> LinearModel:
    """Return time as a sum of physical shapes with non-negative coefficients.

    Raises PredictionError: fewer than two distinct modes.

    Parameters
    ----------
    n_draws : for intervals; 0 where none are wanted
    """
    return _fit_shares(observations, TIME_S, TIME, TIME_SHARES, n_draws)


def fit_power(observations: Observations, n_draws: int = N_DRAWS) -> LinearModel:
    """Return mean power, W, likewise. Raises PredictionError also where power was not measured."""
    return _fit_shares(observations, POWER_W, POWER, POWER_SHARES, n_draws)


def _fit_shares(
    observations: Observations,
    target: str,
    terms: tuple[str, ...],
    shares: tuple[float, ...],
    n_draws: int,
) -> LinearModel:
    """Fit shares of the whole: in units of the observed value, averaged over the modes."""
    if target == POWER_W:
        observations.need_energy()
    observations.need_modes(LEAST_MODES)
    means = observations.per_mode()
    values: Numbers = getattr(means, target)
    relative = design(terms, means.modes, means.processes) / values[:, None]
    seen = relative.any(0)
    # a shortage that no mode had: its size where half the cores are missing is open, from zero up
    short = short_of_cores(means.modes, means.processes)
    unseen = design(terms, short, means.processes) / values[:, None]
    scale = np.where(seen, relative.mean(0), unseen.mean(0))
    mean = np.array(shares)
    sd = np.full(len(terms), SHARE_SD)
    # deviations are relative to what is expected: relative to what was observed they would stand
    # in the rows too, and a fit could make them small by expecting next to nothing everywhere
    first = fit_nonnegative(relative / scale, np.ones(len(values)), mean, sd, DEVIATION)
    share = np.maximum(relative / scale @ first, LEAST)  # expected over observed
    rows, target_of = relative / scale / share[:, None], 1 / share
    deviations = likeliest(fit_nonnegative, rows, target_of, mean, sd, means.modes)
    white = deviations.whitening()
    coefficients, draws, spread = fit_and_draw(
        fit_nonnegative, white @ rows, white @ target_of, mean, sd, n_draws
    )
    return LinearModel(
        target=target,
        terms=terms,
        coefficients=coefficients / scale,
        processes=means.processes,
        trained_on=means.modes,
        observed=values,
        nugget=deviations.nugget,
        draws=draws / scale,
        spread=spread,
    )


def fit_log_time(observations: Observations, n_draws: int = N_DRAWS) -> LinearModel:
    """Return the logarithm of time, linear in those of cores, clocks and the power limit.

    Raises PredictionError: fewer than two distinct modes.
    """
    observations.need_modes(LEAST_MODES)
    terms = log_terms(as_rows(observations.distinct()))
    return _fit_log(observations, TIME_S, terms, n_draws)


def fit_on_prior(
    observations: Observations, target: str, prior: Prior, n_draws: int = N_DRAWS
) -> LinearModel:
    """Return the prior times a factor common to all modes, corrected by what was observed.

    Near the profiled modes it follows them. Their distance from the prior says how far it may be
    off elsewhere.

    Raises PredictionError: no mode, power that was not measured, or a prior that is not above zero.

    Parameters
    ----------
    prior : modes (n, 6) -> expected value of the target (n,)
    """
    if target == POWER_W:
        observations.need_energy()
    return _fit_log(observations, target, (), n_draws, prior)


def _fit_log(
    observations: Observations,
    target: str,
    exponents: tuple[str, ...],
    n_draws: int,
    prior: Prior | None = None,
) -> LinearModel:
    """Fit the logarithm of the value over the prior, about its mean: a level, and exponents."""
    observations.need_modes(1)
    means = observations.per_mode()
    values: Numbers = getattr(means, target)
    expected = np.ones(len(values)) if prior is None else np.asarray(prior(means.modes))
    if not (expected > 0).all():
        raise PredictionError(f"the prior expects a {target} of {expected.min():g}")
    factor = np.log(values / expected)
    terms, level = ("constant", *exponents), factor.mean()
    rows = design(terms, means.modes, means.processes)
    centre = rows.mean(0) - np.eye(len(terms))[0]  # the constant stays
    sd = np.array([LEVEL_SD, *[EXPONENT_SD] * len(exponents)])
    around, off, mean = rows - centre, factor - level, np.zeros(len(sd))
    tilt = 0.0 if prior is None else PRIOR_TILT
    deviations = likeliest(fit_free, around, off, mean, sd, means.modes, tilt)
    white = deviations.whitening()
    fitted = fit_and_draw(fit_free, white @ around, white @ off, mean, sd, n_draws)

    def plain(rows: Numbers) -> Numbers:  # without centre and level
        return np.column_stack([rows[:, 0] + level - rows @ centre, rows[:, 1:]])

    return LinearModel(
        target=target,
        terms=terms,
        coefficients=plain(fitted[0][None])[0],
        processes=means.processes,
        trained_on=means.modes,
        log=True,
        observed=values,
        nugget=deviations.nugget,
        draws=plain(fitted[1]),
        spread=fitted[2],
        prior=prior,
    )


def _n_draws(context: Context) -> int:
    return N_DRAWS if context.intervals else 0


def _physical(observations: Observations, context: Context) -> LinearModel:
    fit = fit_physical_time if context.target == TIME_S else fit_power
    return fit(observations, _n_draws(context))


def _log(observations: Observations, context: Context) -> LinearModel:
    return fit_log_time(observations, _n_draws(context))


def _on_prior(observations: Observations, context: Context) -> LinearModel:
    if context.prior is None:
        raise PredictionError(f"there is no prior of {context.target}", where=observations.workload)
    return fit_on_prior(observations, context.target, context.prior, _n_draws(context))


LOG = Method(
    "power law",
    (TIME_S,),
    _log,
    LinearModel.from_json,
    learns_from=(SEARCHED,),
    parts=Mode._fields,
)
PHYSICAL = Method("physical terms", (TIME_S, POWER_W), _physical, LinearModel.from_json)
ON_PRIOR = replace(PHYSICAL, title="factor on the simulation", fit=_on_prior, needs_prior=True)
