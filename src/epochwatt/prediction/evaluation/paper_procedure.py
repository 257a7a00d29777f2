"""The paper's whole procedure on one board group: search four modes, fit, predict every mode.

The same numbers as in power_modes.json and predictions.csv, without the files.
"""

from typing import NamedTuple

from epochwatt.prediction.data.modes import PredictionError
from epochwatt.prediction.data.observations import Observations
from epochwatt.prediction.data.workloads import BoardGroup
from epochwatt.prediction.harness import mape_pct
from epochwatt.prediction.models.paper import PAPER
from epochwatt.prediction.models.times_power import predictors
from epochwatt.prediction.names import SEARCHED, TIME
from epochwatt.prediction.predictor import Predictor
from epochwatt.prediction.selection.choose_power_modes import N_EPOCHS, ranked, search_of
from epochwatt.published.numbers import MEANT_EPOCHS


class Outcome(NamedTuple):
    """Result of the procedure."""

    best: tuple[str, ...]  # names of the modes that the models of time learn from, sorted
    # target, network, mode -> mean absolute error over epochs 1 to 5 of the mode, %
    mape_pct: dict[tuple[str, str, str], float]


def paper_procedure(group: BoardGroup) -> Outcome:
    """Return what the paper's procedure gives in a board group.

    Raises PredictionError: no search is possible.
    """
    search = search_of(group)
    if search.missing:
        raise PredictionError(search.missing)
    best = search.letters(ranked(group, search)[SEARCHED][0].modes)
    chosen = {search.modes[name] for name in best}
    profiled = {name: w.observed.after_first(N_EPOCHS) for name, w in group.workloads.items()}
    networks = [profiled[name].only(search.modes.values()) for name in search.networks]
    has_energy = not any(group.workloads[name].no_energy for name in search.networks)
    errors_pct: dict[tuple[str, str, str], float] = {}
    for name, workload in group.workloads.items():
        training = profiled[name].only(chosen)
        if chosen <= {*training.distinct()}:
            after = workload.observed.after_first(MEANT_EPOCHS)
            for target, predictor in predictors(PAPER, training, networks).items():
                if target == TIME or has_energy:
                    by_mode = _errors_pct(group, name, after, predictor)
                    errors_pct |= {(target, name, mode): e for mode, e in by_mode.items()}
    return Outcome(tuple(best), errors_pct)


def _errors_pct(
    group: BoardGroup, network: str, after: Observations, predictor: Predictor
) -> dict[str, float]:
    """Return the mean absolute error in each mode that has valid epochs, %."""
    observed = set(after.distinct())
    modes = {n: m for n, m in group.workloads[network].modes.items() if m in observed}
    if not modes:
        return {}
    predicted = predictor.predict(list(modes.values())).tolist()
    return {
        name: mape_pct(value, getattr(after.only([mode]), predictor.target))
        for (name, mode), value in zip(modes.items(), predicted, strict=True)
    }
