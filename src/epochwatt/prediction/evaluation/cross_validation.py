"""How well models predict modes that they have not seen, at the same profiling cost."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from epochwatt.prediction.data.modes import Mode, Numbers, PredictionError, as_rows
from epochwatt.prediction.data.observations import Observations
from epochwatt.prediction.evaluation.splits import Split
from epochwatt.prediction.models.linear_model import FittedModel, Prior
from epochwatt.prediction.models.paper_energy import fit_paper_energy
from epochwatt.prediction.models.paper_time import fit_paper_time
from epochwatt.prediction.models.physical import (
    fit_log_time,
    fit_physical_time,
    fit_power,
    fit_power_on_prior,
    fit_time_on_prior,
)
from epochwatt.prediction.selection.paper_subset_search import N_EPOCHS

Predictor = Callable[[Numbers], Numbers]  # modes (n, 5) -> predicted values (n,)
# observations of each workload, training modes only -> a predictor for each
Fit = Callable[[Sequence[Observations]], Sequence[Predictor]]


PRIOR = "twin"  # what a prior of a simulated board is called where a model is stored


class Priors(NamedTuple):
    """What is expected of a workload before any run; None: nothing can be said."""

    time: Prior | None  # modes (n, 5) -> s (n,)
    power: Prior  # modes (n, 5) -> W (n,)


def known_at(of: Priors, rows: Numbers) -> Priors:
    """Return priors that were worked out once, for all modes (n, 5) that they will be asked for.

    Those that models learn from are among them. They raise PredictionError for any other.
    """

    def known(prior: Prior) -> Prior:
        values = dict(zip(map(tuple, rows.tolist()), prior(rows).tolist(), strict=True))

        def of(modes: Numbers) -> Numbers:
            asked = list(map(tuple, as_rows(modes).tolist()))
            if unknown := [row for row in asked if row not in values]:
                raise PredictionError(f"the prior was not worked out for {Mode(*unknown[0])}")
            return np.array([values[row] for row in asked])

        return of

    return Priors(of.time and known(of.time), known(of.power))


class Score(NamedTuple):
    """Absolute errors of predictions, % of the observed value."""

    n: int
    median_pct: float
    p90_pct: float
    worst_pct: float


class Trial(NamedTuple):
    """One workload predicted from one set of modes."""

    workload: str
    train: tuple[Mode, ...]
    board_minutes: float  # what the training modes cost, their first epochs included
    errors_pct: Numbers  # (m,), of each test mode


def absolute_errors_pct(predicted: ArrayLike, observed: ArrayLike) -> Numbers:
    """Return 100 |predicted - observed| / observed."""
    truth = np.asarray(observed, float)
    return 100 * np.abs(np.asarray(predicted, float) - truth) / truth


def mape_pct(predicted: ArrayLike, observed: ArrayLike) -> float:
    """Return the mean absolute percentage error."""
    return float(absolute_errors_pct(predicted, observed).mean())


def score(errors_pct: ArrayLike) -> Score:
    """Return the median, the 90th percentile and the worst of absolute errors."""
    errors = np.asarray(errors_pct, float)
    if not errors.size:
        raise PredictionError("no prediction to score")
    median, p90 = np.quantile(errors, [0.5, 0.9])
    return Score(errors.size, float(median), float(p90), float(errors.max()))


def board_minutes(observations: Observations, modes: Iterable[Mode]) -> float:
    """Return how long a board works for a model: epochs 0 to 2 of each mode, minutes."""
    rows = observations.only(set(modes))
    return float(rows.time_s[rows.epoch <= N_EPOCHS].sum() / 60)


def try_splits(
    fit: Fit, observations: Sequence[Observations], splits: Iterable[Split], target: str
) -> list[Trial]:
    """Fit to the training modes of each split and predict its test modes, of every workload.

    Parameters
    ----------
    fit : a model; it sees epochs 1 and 2 of the training modes and nothing else
    observations : of each workload, with first epochs where there are any
    splits : of modes that each workload was observed under
    target : `time_s`, `power_w` or `energy_wh`; the mean over a mode's later epochs is predicted
    """
    trials = []
    profiled = [of.after_first(N_EPOCHS) for of in observations]
    means = [of.after_first().per_mode() for of in observations]
    minutes = [{mode: board_minutes(of, [mode]) for mode in of.distinct()} for of in observations]
    for split in splits:
        predictors = fit([of.only(split.train) for of in profiled])
        for of, cost, predict in zip(means, minutes, predictors, strict=True):
            test = of.only(split.test)
            errors_pct = absolute_errors_pct(predict(test.modes), getattr(test, target))
            total = sum(cost[mode] for mode in split.train)
            trials.append(Trial(of.workload, split.train, total, errors_pct))
    return trials


def each(fit: Callable[[Observations], FittedModel]) -> Fit:
    """Return a fit of several workloads from a fit of one."""
    return lambda observations: [fit(of).predict for of in observations]


def energy_of(
    fit_time: Callable[[Observations], FittedModel],
    fit_watts: Callable[[Observations], FittedModel],
) -> Fit:
    """Return energy, Wh, as time x power, each from its own model."""

    def one(of: Observations) -> Predictor:
        time, power = fit_time(of), fit_watts(of)
        return lambda modes: time.predict(modes) * power.predict(modes) / 3600

    return lambda observations: [one(of) for of in observations]


def paper_energy(train_on_predicted: bool) -> Fit:
    """Return the paper's universal model of energy, fed with the paper's predicted times.

    Parameters
    ----------
    train_on_predicted : whether predicted times train it too, or the observed ones
    """

    def fit(observations: Sequence[Observations]) -> Sequence[Predictor]:
        times = [fit_paper_time(of) for of in observations]
        energy = fit_paper_energy(observations, times if train_on_predicted else None)

        def one(time: FittedModel) -> Predictor:
            return lambda modes: energy.predict(modes, time.predict(modes))

        return [one(time) for time in times]

    return fit


# those that need nothing but observations; one on a prior is added by who has the prior
TIME_FITS: dict[str, Fit] = {
    "paper": each(fit_paper_time),
    "log": each(lambda of: fit_log_time(of, n_draws=0)),
    "physical": each(lambda of: fit_physical_time(of, n_draws=0)),
}
POWER_FITS: dict[str, Fit] = {"physical": each(lambda of: fit_power(of, n_draws=0))}
ENERGY_FITS: dict[str, Fit] = {
    "paper, trained on observed time": paper_energy(train_on_predicted=False),
    "paper, trained on predicted time": paper_energy(train_on_predicted=True),
    "physical time x power": energy_of(
        lambda of: fit_physical_time(of, n_draws=0), lambda of: fit_power(of, n_draws=0)
    ),
}


def fits_with_priors(priors: Mapping[str, Priors], simulated: bool) -> dict[str, dict[str, Fit]]:
    """Return the fits of time, power and energy by target, with those on a prior added.

    Parameters
    ----------
    priors : workload -> what is expected of it
    simulated : the observations are simulated too: what a prior gains is then by construction, and
        the names of the fits on it say so
    """
    says = "on the twin's prior" + (", by construction" if simulated else "")

    def watts(of: Observations) -> FittedModel:
        return fit_power_on_prior(of, PRIOR, priors[of.workload].power, n_draws=0)

    def time(of: Observations) -> FittedModel:
        prior = priors[of.workload].time
        if prior is None:
            return fit_physical_time(of, n_draws=0)
        return fit_time_on_prior(of, PRIOR, prior, n_draws=0)

    found = {
        "time_s": dict(TIME_FITS),
        "power_w": POWER_FITS | {says: each(watts)},
        "energy_wh": ENERGY_FITS | {f"time x power {says}": energy_of(time, watts)},
    }
    if all(of.time is not None for of in priors.values()):
        found["time_s"][says] = each(time)
    return found
