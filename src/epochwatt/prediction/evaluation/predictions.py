"""Rows of predictions.csv: predicted and observed values of each mode of each workload.

`in_training_set` says whether epochs of this workload in this mode went into the prediction. Bounds
are those of 90 %, where the method has intervals. Observed values, and a row's MAPE, are means
over valid epochs 1 to 5, those that the papers' runs have (`published.MEANT_EPOCHS`).
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from epochwatt.prediction.data.modes import Mode, as_rows
from epochwatt.prediction.data.observations import Observations
from epochwatt.prediction.data.workloads import ProfiledWorkload
from epochwatt.prediction.evaluation.cross_validation import mape_pct
from epochwatt.prediction.models.model_store import ENERGY_FILE, TIME_FILE, read_models
from epochwatt.prediction.models.times_power import times_power
from epochwatt.prediction.names import ALL, ENERGY, POWER, TIME
from epochwatt.prediction.predictor import Method, Predictor
from epochwatt.published.numbers import MEANT_EPOCHS

_PLACE = ("backend", "setup", "device", "instance", "model", "storage", "num_workers", "batch_size")

Row = dict[str, Any]
# runs of a workload -> (method, training set) -> target -> JSON data of a predictor
Stored = dict[tuple[str, ...], dict[tuple[str, str], dict[str, Any]]]


def load_stored(folder: str) -> Stored:
    """Read epoch_time.json and epoch_energy.json. Raises as `model_store.load_fitted`."""
    stored: Stored = {}
    for name in (TIME_FILE, ENERGY_FILE):
        for row in read_models(Path(folder) / name)["workloads"]:
            fits = stored.setdefault(tuple(row["runs"]), {})
            for fit in row["fits"]:
                key = (fit["method"], fit["learned_from"])
                fits.setdefault(key, {})[fit["target"]] = fit["model"]
    return stored


def rows_of_workload(
    workload: ProfiledWorkload, stored: Stored, methods: Mapping[str, Method]
) -> list[Row]:
    """Return the rows of a workload, in the order of target, method, training set and mode.

    Fits to all modes are left out: they have seen what they would predict.
    """
    after = workload.observed.after_first(MEANT_EPOCHS)
    observed = set(after.distinct())
    modes = {name: mode for name, mode in workload.modes.items() if mode in observed}
    fits = [
        (method, learned_from, _loaded(methods[method], models))
        for (method, learned_from), models in stored[workload.runs].items()
        if learned_from != ALL and method in methods
    ]
    targets = (TIME,) if workload.no_energy else (TIME, ENERGY)
    return [
        {**row, "target": target, "method": method, "learned_from": learned_from, **values}
        for target in targets
        for method, learned_from, predictors in fits
        if target in predictors and modes
        for row, values in _rows(workload, after, modes, predictors[target])
    ]


def _loaded(method: Method, models: Mapping[str, Any]) -> dict[str, Predictor]:
    predictors = {target: method.load(data) for target, data in models.items()}
    if ENERGY not in predictors and {TIME, POWER} <= predictors.keys():
        predictors[ENERGY] = times_power(predictors)
    return predictors


def _rows(
    workload: ProfiledWorkload,
    after: Observations,
    modes: Mapping[str, Mode],
    predictor: Predictor,
) -> Iterator[tuple[Row, Row]]:
    """Yield what a row is about, and its values."""
    place = {name: workload.factors[name] for name in _PLACE}
    runs = dict(zip(workload.modes, workload.runs, strict=True))
    rows = as_rows(list(modes.values()))
    predicted, interval = predictor.predict(rows).tolist(), predictor.interval(rows)
    bounds = (
        [[None] * len(rows)] * 2 if interval is None else [bound.tolist() for bound in interval]
    )
    trained_on = set(map(tuple, predictor.trained_on.tolist()))
    for (name, mode), value, low, high in zip(modes.items(), predicted, *bounds, strict=True):
        observed = getattr(after.only([mode]), predictor.target)
        yield (
            {**place, "run": runs[name], "power_mode": name, **mode._asdict()},
            {
                "in_training_set": tuple(mode) in trained_on,
                "observed": float(observed.mean()),
                "predicted": value,
                "low": low,
                "high": high,
                "mape_pct": mape_pct(value, observed),
            },
        )
