"""What the paper's procedure makes of a bench, from its epochs alone: best modes and errors.

The same numbers as in power_modes.json and predictions.csv (fit `paper`), without the files and
without scikit-learn, whose import takes longer than judging the claims with many parameters.
"""

from typing import NamedTuple

import numpy as np

from epochwatt.prediction.data.modes import Numbers, PredictionError
from epochwatt.prediction.data.observations import Observations
from epochwatt.prediction.data.workloads import Bench
from epochwatt.prediction.models.min_norm import least_norm
from epochwatt.prediction.models.model_store import ENERGY, TIME
from epochwatt.prediction.selection.choose_power_modes import RAW, ranked, search_of
from epochwatt.prediction.selection.paper_subset_search import N_EPOCHS
from epochwatt.published.numbers import MEANT_EPOCHS


class Outcome(NamedTuple):
    """What the procedure gives.

    Attributes
    ----------
    best : names of the modes that the models of time learn from, sorted
    mape_pct : target, network, mode -> mean absolute error over epochs 1 to 5 of the mode, %
    """

    best: tuple[str, ...]
    mape_pct: dict[tuple[str, str, str], float]


class _Linear(NamedTuple):
    coefficients: Numbers
    intercept: float

    def predict(self, features: Numbers) -> Numbers:
        return features @ self.coefficients + self.intercept


def outcome(bench: Bench) -> Outcome:
    """Return what the paper's procedure gives on a bench.

    Raises
    ------
    PredictionError : no search is possible
    """
    search = search_of(bench)
    if search.missing:
        raise PredictionError(search.missing)
    best = search.letters(ranked(bench, search)[RAW][0].modes)
    chosen, own = {search.modes[name] for name in best}, bench.workloads
    profiled = {name: of.observed.after_first(N_EPOCHS) for name, of in own.items()}
    some = {name: of.only(chosen) for name, of in profiled.items() if chosen <= {*of.distinct()}}
    times = {name: _fitted(of.modes, of.time_s) for name, of in some.items()}
    found: dict[tuple[str, str, str], float] = {}
    for name, time in times.items():
        after = own[name].observed.after_first(MEANT_EPOCHS)
        found |= _errors(TIME, bench, name, after, time.predict(after.modes), after.time_s)
    if any(own[name].no_energy for name in search.networks):
        return Outcome(tuple(best), found)
    rows = [profiled[name].only(search.modes.values()) for name in search.networks]
    features = [_with(times[of.workload], of) for of in rows]
    energy = _fitted(np.concatenate(features), np.concatenate([of.energy_wh for of in rows]))
    for name, time in times.items():
        after = own[name].observed.after_first(MEANT_EPOCHS)
        told = energy.predict(_with(time, after))
        found |= _errors(ENERGY, bench, name, after, told, after.energy_wh)
    return Outcome(tuple(best), found)


def _fitted(features: Numbers, target: Numbers) -> _Linear:
    coefficients, intercepts = least_norm(features[None], target[None], np.ones((1, len(target))))
    return _Linear(coefficients[0], float(intercepts[0]))


def _with(time: _Linear, of: Observations) -> Numbers:
    """Return the features of the model of energy: modes and predicted times."""
    return np.column_stack([of.modes, time.predict(of.modes)])


def _errors(
    target: str, bench: Bench, network: str, of: Observations, told: Numbers, seen: Numbers
) -> dict[tuple[str, str, str], float]:
    """Return the mean absolute error of each mode; none where nothing was seen."""
    errors_pct = 100 * np.abs(told - seen) / seen
    there = set(of.distinct())
    by_mode = {
        name: float(errors_pct[[one == mode for one in of.mode_of_row]].mean())
        for name, mode in bench.workloads[network].modes.items()
        if mode in there
    }
    return {(target, network, name): e for name, e in by_mode.items() if not np.isnan(e)}
