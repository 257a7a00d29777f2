"""Cross-validate methods: predict modes that they have not seen, at the same profiling cost."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from epochwatt.prediction.data.modes import Mode, Numbers, PredictionError
from epochwatt.prediction.data.observations import Observations
from epochwatt.prediction.evaluation.splits import Split
from epochwatt.prediction.models.times_power import times_power
from epochwatt.prediction.names import ENERGY, POWER, TIME
from epochwatt.prediction.predictor import Context, Method, Predictor, Prior, Reference
from epochwatt.prediction.selection.paper_subset_search import N_EPOCHS

Priors = Mapping[str, Prior]  # target -> what is expected before any run


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


def cross_validate(
    methods: Iterable[Method],
    observations: Sequence[Observations],
    splits: Iterable[Split],
    priors: Mapping[str, Priors] | None = None,
) -> dict[str, dict[str, list[Trial]]]:
    """Fit to the training modes of each split and predict its test modes, of every workload.

    Returns
    -------
    name of the method -> target -> trials; the mean over a mode's later epochs is predicted. There
    are none of power and energy for workloads without power, and none of workloads without the
    priors that a method needs.
    """
    methods = list(methods)
    trials: dict[str, dict[str, list[Trial]]] = {m.name: defaultdict(list) for m in methods}
    profiled = [rows.after_first(N_EPOCHS) for rows in observations]
    means = [rows.after_first().per_mode() for rows in observations]
    minutes = [
        {mode: board_minutes(rows, [mode]) for mode in rows.distinct()} for rows in observations
    ]
    for split in splits:
        training = [rows.only(split.train) for rows in profiled]
        for rows, mean, cost in zip(training, means, minutes, strict=True):
            test = mean.only(split.test)
            total = sum(cost[mode] for mode in split.train)
            expected = (priors or {}).get(rows.workload, {})
            for method in methods:
                if method.needs_prior and not expected:
                    continue
                for target, predictor in predictors(method, rows, training, expected).items():
                    predicted, observed = predictor.predict(test.modes), getattr(test, target)
                    trial = Trial(
                        workload=rows.workload,
                        train=split.train,
                        board_minutes=total,
                        errors_pct=absolute_errors_pct(predicted, observed),
                    )
                    trials[method.name][target].append(trial)
    return trials


def predictors(
    method: Method,
    observations: Observations,
    networks: Sequence[Observations] = (),
    priors: Priors | None = None,
    intervals: bool = False,
    reference: Reference | None = None,
    cache: Path | None = None,
) -> dict[str, Predictor]:
    """Return target -> predictor of one workload: energy from time and power where it follows.

    Targets that need power are left out where it was not measured. Parameters as of
    `predictor.Context`.
    """
    has_power = not np.isnan(observations.power_w).any()
    fitted = {}
    for target in method.targets:
        if target == TIME or has_power:
            usable = [
                rows for rows in networks if target == TIME or not np.isnan(rows.power_w).any()
            ]
            prior = (priors or {}).get(target)
            context = Context(target, usable, prior, intervals, reference, cache)
            fitted[target] = method.fit(observations, context)
    if ENERGY not in fitted and {TIME, POWER} <= fitted.keys():
        fitted[ENERGY] = times_power(fitted)
    return fitted
