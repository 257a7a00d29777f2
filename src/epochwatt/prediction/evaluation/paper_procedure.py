"""The paper's whole procedure on one board group: search four modes, fit, predict every mode.

The same numbers as in power_modes.json and predictions.csv, without the files.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from epochwatt.prediction.data.modes import Mode, PredictionError, as_rows
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
    """Search four modes in a board group, fit the paper's models to them, and predict all modes.

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
        if chosen - {*training.distinct()}:
            continue
        observed = workload.observed.after_first(MEANT_EPOCHS)
        for target, predictor in predictors(PAPER, training, networks).items():
            if target == TIME or has_energy:
                for mode, predicted in by_named_mode(predictor, workload.modes, observed):
                    errors_pct[target, name, mode] = predicted.mape_pct
    return Outcome(tuple(best), errors_pct)


class Predicted(NamedTuple):
    """One predicted mode; low and high are None where the method has no interval."""

    mode: Mode
    observed: float  # mean over the epochs
    predicted: float
    low: float | None
    high: float | None
    mape_pct: float


def by_named_mode(
    predictor: Predictor, modes: Mapping[str, Mode], observed: Observations
) -> Iterator[tuple[str, Predicted]]:
    """Yield the name and the prediction of each named mode that was observed."""
    with_epochs = set(observed.distinct())
    named = {name: mode for name, mode in modes.items() if mode in with_epochs}
    if not named:
        return
    rows = as_rows(list(named.values()))
    predicted, interval = predictor.predict(rows).tolist(), predictor.interval(rows)
    for number, (name, mode) in enumerate(named.items()):
        low, high = (None, None) if interval is None else (interval[0][number], interval[1][number])
        values = observed.only([mode]).values(predictor.target)
        mape = mape_pct(predicted[number], values)
        yield name, Predicted(mode, float(values.mean()), predicted[number], low, high, mape)
