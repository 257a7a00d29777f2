"""Job predict_modes: predict with the stored models, and count as the paper does.

predictions.csv has predicted and observed values of each mode of each workload. `in_training_set`
says whether epochs of this workload in this mode went into the prediction. Bounds are those of
90 %, where the method has intervals. Observed values, and a row's MAPE, are means over valid epochs
1 to 5, those that the papers' runs have (`published.MEANT_EPOCHS`). statistics.csv is of
`paper_statistics`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pandas as pd

from epochwatt.prediction.data.workloads import (
    BoardGroup,
    ProfiledWorkload,
    board_groups,
    read_workloads,
)
from epochwatt.prediction.evaluation.paper_procedure import by_named_mode
from epochwatt.prediction.evaluation.paper_statistics import rows_of_group
from epochwatt.prediction.models.model_store import ENERGY_FILE, TIME_FILE, read_models
from epochwatt.prediction.models.times_power import with_energy
from epochwatt.prediction.names import ALL, ENERGY, TIME
from epochwatt.prediction.predictor import Json, Method
from epochwatt.prediction.registry import load_methods
from epochwatt.prediction.selection.choose_power_modes import Chosen
from epochwatt.published.numbers import MEANT_EPOCHS, load_published
from epochwatt.study.yaml_files import read_yaml
from epochwatt.tables import write_frame

CLAIMS, SLACK = "config/claims.yaml", "EPS_PP"  # of the take-aways: one tolerance
_ABOUT = ("backend", "setup", "device", "instance", "model", "storage", "num_workers", "batch_size")

# runs of a workload -> (method, training set) -> target -> JSON data of a predictor
Stored = dict[tuple[str, ...], dict[tuple[str, str], Json]]


def predict_modes(
    epochs: Iterable[str],
    modes: Mapping[str, Sequence[float]],
    choices: str,
    published: str,
    folder: str,
    root: Path = Path(),
) -> None:
    """Write predictions.csv and statistics.csv to the folder with the fits.

    `epochs` and `choices` are paths of each run's `epochs.csv` and of power_modes.json, `modes` has
    the numbers of each run's power mode, `published` is the folder of published numbers.
    """
    stored, methods = load_stored(folder), load_methods(root)
    printed = load_published(Path(published)).measurements
    slack_pp = float(read_yaml(root / CLAIMS)["tolerances"][SLACK]["value"])
    papers = [method.name for method in methods.values() if method.is_paper]
    predictions: list[pd.DataFrame] = []
    statistics: list[pd.DataFrame] = []
    for group, chosen in groups_with_choices(epochs, modes, choices):
        predicted = pd.concat(
            predict_workload(workload, stored, methods) for workload in group.workloads.values()
        )
        statistics.append(rows_of_group(chosen, predicted, printed, slack_pp, papers))
        predictions.append(predicted)
    write_by_group(f"{folder}/predictions.csv", "predictions", predictions)
    write_by_group(f"{folder}/statistics.csv", "statistics", statistics)


def groups_with_choices(
    epochs: Iterable[str], modes: Mapping[str, Sequence[float]], choices: str
) -> Iterator[tuple[BoardGroup, Chosen]]:
    """Yield each board group with its part of power_modes.json. Raises as `read_models`."""
    groups = board_groups(read_workloads(epochs, modes))
    for group, choice in zip(groups, read_models(Path(choices))["board_groups"], strict=True):
        yield group, Chosen(**choice)


def write_by_group(path: str, what: str, frames: Sequence[pd.DataFrame]) -> None:
    """Write one table of the frames of all board groups, numbered in its first column."""
    for number, frame in enumerate(frames):
        frame.insert(0, "board_group", number)
    whole = pd.concat([frame for frame in frames if len(frame)] or [pd.DataFrame()])
    write_frame(path, what, whole)


def load_stored(folder: str) -> Stored:
    """Read the fits of each workload from epoch_time.json and epoch_energy.json of a folder.

    Raises as `model_store.read_models`.
    """
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
    """Return a workload's rows of predictions.csv, by target, method, training set and mode.

    Fits to all modes are left out: they have seen what they would predict.
    """
    observed = workload.observed.after_first(MEANT_EPOCHS)
    runs = dict(zip(workload.modes, workload.runs, strict=True))
    about = {name: workload.factors[name] for name in _ABOUT}
    fits = {
        key: with_energy({t: methods[key[0]].load(data) for t, data in models.items()})
        for key, models in stored[workload.runs].items()
        if key[1] != ALL and key[0] in methods
    }
    rows = []
    for target in (TIME,) if workload.no_energy else (TIME, ENERGY):
        for (method, learned_from), predictors in fits.items():
            if target not in predictors:
                continue
            trained_on = set(map(tuple, predictors[target].trained_on.tolist()))
            for name, predicted in by_named_mode(predictors[target], workload.modes, observed):
                columns = predicted._asdict()
                mode = columns.pop("mode")
                row = {**about, "run": runs[name], "power_mode": name, **mode._asdict()}
                row |= {"target": target, "method": method, "learned_from": learned_from}
                rows.append({**row, "in_training_set": tuple(mode) in trained_on, **columns})
    return pd.DataFrame(rows, dtype=object)
