"""Rows of predictions.csv: what each fit says of each mode of each workload, beside what was seen.

`trains` says whether epochs of this workload in this mode went into the prediction. Bounds are
those of 90 % and stand where the fit states any. What was observed, and a row's MAPE, are means
over valid epochs 1 to 5, those that the papers' runs have (`published.MEANT_EPOCHS`).
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from epochwatt.prediction.data.modes import Mode, Numbers, as_rows
from epochwatt.prediction.data.observations import Observations
from epochwatt.prediction.data.workloads import Workload
from epochwatt.prediction.evaluation.cross_validation import mape_pct
from epochwatt.prediction.evaluation.fit_models import PHYSICAL, PHYSICAL_DESIGNED
from epochwatt.prediction.models.linear_model import FittedModel, bounds, from_json, sample_both
from epochwatt.prediction.models.model_store import (
    ENERGY,
    ENERGY_FILE,
    TIME,
    TIME_FILE,
    read_models,
)
from epochwatt.prediction.models.paper_energy import PaperEnergy
from epochwatt.prediction.selection.choose_power_modes import RAW
from epochwatt.published.numbers import MEANT_EPOCHS

LEVEL = 0.9
_PLACE = ("backend", "setup", "device", "instance", "model", "storage", "num_workers", "batch_size")

Row = dict[str, Any]
Told = Mapping[str, Any]  # JSON data


class Predicted(NamedTuple):
    """What a fit says of some modes, each (n,), and the modes that it learned from."""

    values: Numbers
    low: Numbers | None
    high: Numbers | None
    trained_on: frozenset[Mode]


class Models(NamedTuple):
    """The fits of a backend: content of epoch_time.json and epoch_energy.json."""

    time: Mapping[tuple[str, ...], Told]  # by `runs`
    power: Mapping[tuple[str, ...], Told]
    energy: Sequence[Told]  # by bench


def load_models(folder: str) -> Models:
    """Read both files. Raises as `fits.load_fits`."""
    time, energy = (read_models(Path(folder) / name) for name in (TIME_FILE, ENERGY_FILE))
    by_runs = [{tuple(of["runs"]): of for of in told["workloads"]} for told in (time, energy)]
    return Models(by_runs[0], by_runs[1], energy["benches"])


def rows_of(workload: Workload, models: Models, bench: int) -> list[Row]:
    """Return the rows of a workload, in the order of target, fit and mode.

    Parameters
    ----------
    bench : the place of its bench in power_modes.json
    """
    after = workload.observed.after_first(MEANT_EPOCHS)
    seen = set(after.distinct())
    modes = {name: mode for name, mode in workload.modes.items() if mode in seen}
    if not modes:
        return []
    time = dict(_times(workload, models, modes))
    energy = {} if workload.no_energy else dict(_energies(workload, models, bench, modes, time))
    return [
        row
        for target, fits in ((TIME, time), (ENERGY, energy))
        for fit, predicted in fits.items()
        for row in _rows(workload, after, modes, target, fit, predicted)
    ]


def _rows(
    workload: Workload,
    after: Observations,
    modes: Mapping[str, Mode],
    target: str,
    fit: str,
    predicted: Predicted,
) -> Iterator[Row]:
    place = {name: workload.factors[name] for name in _PLACE}
    runs = dict(zip(workload.modes, workload.runs, strict=True))
    for n, (name, mode) in enumerate(modes.items()):
        observed = getattr(after.only([mode]), target)
        value = float(predicted.values[n])
        yield {
            **place,
            "run": runs[name],
            "power_mode": name,
            **mode._asdict(),
            "target": target,
            "fit": fit,
            "trains": mode in predicted.trained_on,
            "observed": float(observed.mean()),
            "predicted": value,
            "low": None if predicted.low is None else float(predicted.low[n]),
            "high": None if predicted.high is None else float(predicted.high[n]),
            "mape_pct": mape_pct(value, observed),
        }


def _times(
    workload: Workload, models: Models, modes: Mapping[str, Mode]
) -> Iterator[tuple[str, Predicted]]:
    rows = as_rows(list(modes.values()))
    for fit, told in models.time[workload.runs]["fits"].items():
        yield fit, _of_model(from_json(told["model"]), rows)


def _of_model(model: FittedModel, rows: Numbers) -> Predicted:
    low, high = model.interval(rows, LEVEL) if len(model.draws) else (None, None)
    return Predicted(model.predict(rows), low, high, _modes(model.trained_on))


def _modes(rows: Sequence[Sequence[float]] | Numbers) -> frozenset[Mode]:
    return frozenset(Mode(*row) for row in as_rows(rows).tolist())


def _energies(
    workload: Workload,
    models: Models,
    bench: int,
    modes: Mapping[str, Mode],
    time: Mapping[str, Predicted],
) -> Iterator[tuple[str, Predicted]]:
    rows = as_rows(list(modes.values()))
    for fit, told in models.energy[bench]["fits"].items():
        if RAW in time:
            knows = workload.name in told["networks"]
            learned = time[RAW].trained_on | (_modes(told["trained_on"]) if knows else frozenset())
            energy = PaperEnergy(np.array(told["coefficients"]), told["intercept_wh"])
            yield fit, Predicted(energy.predict(rows, time[RAW].values), None, None, learned)
    for fit in (PHYSICAL, PHYSICAL_DESIGNED):
        times, powers = (of[workload.runs]["fits"].get(fit) for of in (models.time, models.power))
        if times and powers:
            yield fit, time_by_power(from_json(times["model"]), from_json(powers["model"]), rows)


def time_by_power(time: FittedModel, power: FittedModel, rows: Numbers) -> Predicted:
    """Return energy, Wh, as time x power, whose deviations are independent."""
    values = time.predict(rows) * power.predict(rows) / 3600
    seconds, watts = sample_both(time, power, rows)
    low, high = bounds(seconds * watts / 3600, LEVEL)
    return Predicted(values, low, high, _modes(time.trained_on) | _modes(power.trained_on))
