"""The fastest mode within a power limit whose risk of breaking it is small enough.

The fastest of hundreds of modes that are expected to keep a limit is one about which the model is
too hopeful (the winner's curse): on real boards every second one breaks it. So a mode must keep the
limit with a probability, by intervals that hold; and the selection itself is judged. Each fit that
agrees with the observations about as well makes the choice that it alone would make, and all of
them together judge its choice. Where these choices break the limit more often than is allowed, each
mode must be safer than that.
"""

from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from epochwatt.prediction.data.modes import Numbers, PredictionError
from epochwatt.prediction.predictor import Predictor

STRICTER = tuple(0.5**n for n in range(7))  # than what is allowed, of each mode


class Safe(NamedTuple):
    """A mode that keeps a power limit as surely as was asked."""

    place: int  # of the mode among those that were given
    # probability that it breaks the limit, or that modes chosen as it was do: the larger one
    risk: float
    n_within: int  # how many modes are as safe as was asked


def fastest_within(
    time: Predictor,
    power: Predictor,
    modes: Numbers,
    max_power_w: float,
    max_risk: float,
    over_w: float = 0.0,
) -> Safe:
    """Return the mode of least expected time whose risk is at most `max_risk`.

    Raises PredictionError: no mode is safe enough, the predictor of power knows no intervals, or a
    risk that is out of bounds.

    Parameters
    ----------
    modes : (n, 6)
    over_w : by more than how much it counts as broken, W
    """
    if not 0 < max_risk <= 0.5:
        raise PredictionError(
            f"a risk of {max_risk:g}", allowed="above 0, up to 0.5; 0.05 is one answer in twenty"
        )
    mean, sd = power.need_log_normal(modes)
    limit = _Limit(float(np.log(max_power_w + over_w)), max_risk)
    risks = _above((limit.log_power - mean) / np.maximum(sd, np.finfo(float).tiny))
    most, of_choices = _allowed(_fits(time, power, modes), sd, risks, limit)
    within = np.flatnonzero(risks <= most)
    if not len(within):
        safest = int(risks.argmin())
        raise PredictionError(
            f"no mode keeps {max_power_w:g} W with a risk of {max_risk:g}",
            found=f"{risks[safest]:.2g} is the least risk of any mode",
            do="profile more modes, raise the limit, or accept a higher risk",
        )
    place = int(within[time.mean(modes)[within].argmin()])
    return Safe(place, float(max(risks[place], of_choices)), len(within))


class _Limit(NamedTuple):
    log_power: float
    max_risk: float


def _allowed(
    fits: tuple[Numbers, Numbers], sd: Numbers, risks: Numbers, limit: _Limit
) -> tuple[float, float]:
    """Return the risk that each mode may have, and that of modes chosen so by each fit.

    Parameters
    ----------
    fits : what each fit expects of time and power, (n, d) each
    sd, risks : (n,), by all fits together
    """
    seconds, log_watts = fits[0], np.log(fits[1])
    allowed, risk = limit.max_risk, 0.0
    for part in STRICTER:
        allowed = part * limit.max_risk
        far = NormalDist().inv_cdf(1 - allowed) * sd[:, None]
        safe = log_watts + far <= limit.log_power
        places = np.where(safe, seconds, np.inf).argmin(0)[safe.any(0)]
        risk = float(risks[places].mean()) if len(places) else 0.0
        if risk <= limit.max_risk:
            break
    return allowed, risk


def _fits(time: Predictor, power: Predictor, modes: Numbers) -> tuple[Numbers, Numbers]:
    """Return what fits expect of time and power, shape (n, d) each."""
    fits = time.some_fits(modes), power.some_fits(modes)
    n_fits = min((fit.shape[1] for fit in fits if fit.shape[1] > 1), default=1)
    seconds, watts = (np.broadcast_to(fit[:, :n_fits], (len(modes), n_fits)) for fit in fits)
    return seconds, watts


def _above(values: Numbers) -> Numbers:
    """Return the probability that a standard normal number is above each value."""
    from scipy.special import ndtr  # slow to import

    return np.asarray(ndtr(-values))
