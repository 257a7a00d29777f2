"""Rows of predictions.csv: predicted and observed values of each mode of each workload.

`in_training_set` says whether epochs of this workload in this mode went into the prediction. Bounds
are those of 90 %, where the method has intervals. Observed values, and a row's MAPE, are means
over valid epochs 1 to 5, those that the papers' runs have (`published.MEANT_EPOCHS`).
"""

from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from epochwatt.prediction.data.modes import as_rows
from epochwatt.prediction.data.workloads import ProfiledWorkload
from epochwatt.prediction.harness import mape_pct
from epochwatt.prediction.models.model_store import ENERGY_FILE, TIME_FILE, read_models
from epochwatt.prediction.models.times_power import with_energy
from epochwatt.prediction.names import ALL, ENERGY, TIME
from epochwatt.prediction.predictor import Json, Method
from epochwatt.published.numbers import MEANT_EPOCHS

_PLACE = ("backend", "setup", "device", "instance", "model", "storage", "num_workers", "batch_size")

# runs of a workload -> (method, training set) -> target -> JSON data of a predictor
Stored = dict[tuple[str, ...], dict[tuple[str, str], Json]]


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


def predict_workload(
    workload: ProfiledWorkload, stored: Stored, methods: Mapping[str, Method]
) -> pd.DataFrame:
    """Return the rows of a workload, in the order of target, method, training set and mode.

    Fits to all modes are left out: they have seen what they would predict.
    """
    after = workload.observed.after_first(MEANT_EPOCHS)
    seen = set(after.distinct())
    modes = {name: mode for name, mode in workload.modes.items() if mode in seen}
    runs = dict(zip(workload.modes, workload.runs, strict=True))
    place = {name: workload.factors[name] for name in _PLACE}
    fits = {
        key: with_energy({t: methods[key[0]].load(data) for t, data in models.items()})
        for key, models in stored[workload.runs].items()
        if key[1] != ALL and key[0] in methods
    }
    rows = []
    for target in (TIME,) if workload.no_energy else (TIME, ENERGY):
        for (method, learned_from), predictors in fits.items():
            if target not in predictors or not modes:
                continue
            predictor, asked = predictors[target], as_rows(list(modes.values()))
            predicted, interval = predictor.predict(asked).tolist(), predictor.interval(asked)
            low, high = [[None] * len(asked)] * 2 if interval is None else interval
            trained_on = set(map(tuple, predictor.trained_on.tolist()))
            for n, (name, mode) in enumerate(modes.items()):
                observed = getattr(after.only([mode]), target)
                rows.append(
                    {
                        **{**place, "run": runs[name], "power_mode": name, **mode._asdict()},
                        **{"target": target, "method": method, "learned_from": learned_from},
                        "in_training_set": tuple(mode) in trained_on,
                        "observed": float(observed.mean()),
                        "predicted": predicted[n],
                        "low": low[n],
                        "high": high[n],
                        "mape_pct": mape_pct(predicted[n], observed),
                    }
                )
    return pd.DataFrame(rows, dtype=object)
