"""What the workflow fitted to each workload on a board, as results/models/{backend}/ holds it.

The models of all modes that were observed: those that `recommend` asks. Read without scikit-learn.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from epochwatt.prediction.data.modes import PredictionError
from epochwatt.prediction.models.linear_model import FittedModel, from_json
from epochwatt.records import files

TIME_FILE, ENERGY_FILE = "epoch_time.json", "epoch_energy.json"
SCHEMA_VERSION = 2  # of either file and of power_modes.json; raised with that of `model`
TIME, ENERGY = "time_s", "energy_wh"  # targets


@dataclass(frozen=True)
class Fit:
    """One workload on a board: runs that differ in the power mode only.

    Attributes
    ----------
    workload : all factors of its runs (`fields.FACTORS`) but `power_mode`
    runs : their ids
    time : physical model of epoch time, s, of all modes that were observed
    power : physical model of mean power, W; None: energy was not measured
    """

    workload: Mapping[str, Any]
    runs: tuple[str, ...]
    time: FittedModel
    power: FittedModel | None


def load_fits(folder: str | Path) -> list[Fit]:
    """Return the fits of a backend.

    Parameters
    ----------
    folder : results/models/{backend}

    Raises
    ------
    PredictionError : there are none, or they are of another form; says what makes them
    RecordError : a file is damaged
    """
    times, energies = (read_models(Path(folder) / name) for name in (TIME_FILE, ENERGY_FILE))
    power = {tuple(told["runs"]): told["all_modes"] for told in energies["workloads"]}
    fits = []
    for told in times["workloads"]:
        if told["all_modes"] is not None:
            runs = tuple(told["runs"])
            watts = power.get(runs)
            fits.append(
                Fit(
                    told["workload"],
                    runs,
                    from_json(told["all_modes"]),
                    None if watts is None else from_json(watts),
                )
            )
    if not fits:
        raise PredictionError(
            f"{folder} has no fitted model: no workload was run under two or more power modes with "
            "DVFS off whose four numbers config/devices/ states\n"
            "  run more modes: config/studies.yaml, then `make run`"
        )
    return fits


def read_models(path: Path) -> dict[str, Any]:
    """Return the content of a file of models. Raises as `load_fits`."""
    profile = "profiles/jetson" if path.parent.name == "jetson" else "profiles/host"
    again = f".venv/bin/snakemake --profile {profile} {path.with_name('scores.html')}"
    if not path.is_file():
        raise PredictionError(
            f"{path} is not there: nothing was fitted yet\n  `make run` makes it, and so does "
            f"`{again}`"
        )
    told: dict[str, Any] = files.read_json(str(path))
    if told.get("schema_version") != SCHEMA_VERSION:
        raise PredictionError(
            f"{path} has schema version {told.get('schema_version')!r}; this program reads "
            f"{SCHEMA_VERSION}\n  make it again: `{again}`"
        )
    return told
