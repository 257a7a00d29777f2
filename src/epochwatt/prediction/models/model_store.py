"""Read results/models/{backend}/: what the workflow fitted to each workload on a board."""

from dataclasses import dataclass
from pathlib import Path

from epochwatt.board.records import files
from epochwatt.columns import Factors
from epochwatt.prediction.data.modes import PredictionError
from epochwatt.prediction.names import ALL, POWER, TIME
from epochwatt.prediction.predictor import Json, Method, Predictor
from epochwatt.project import start_command

TIME_FILE, ENERGY_FILE = "epoch_time.json", "epoch_energy.json"
SCHEMA_VERSION = 5  # of both files, of the predictors in them and of power_modes.json


@dataclass(frozen=True)
class FittedWorkload:
    """One workload on a board: runs that differ in the power mode only."""

    workload: Factors  # all factors of its runs (`columns.FACTORS`) except `power_mode`
    runs: tuple[str, ...]  # their ids
    time: Predictor  # predictor of epoch time, s, from all modes that were observed
    power: Predictor | None  # predictor of mean power, W; None: energy was not measured


def load_fitted(folder: str | Path, method: Method) -> list[FittedWorkload]:
    """Read the models of a method that learned from all modes, by workload, of results/models/X/.

    Raises PredictionError: the method never does, or the models are missing or of another schema
    version. Raises RecordError: a file is damaged.
    """
    if ALL not in method.learns_from:
        raise PredictionError(
            "it learns from a few modes only, and recommending takes all that were run",
            where=f"--method {method.name}",
        )
    times, energies = (read_models(Path(folder) / name) for name in (TIME_FILE, ENERGY_FILE))
    powers = {tuple(row["runs"]): _all_modes(row, method, POWER) for row in energies["workloads"]}
    fitted = [
        FittedWorkload(row["workload"], tuple(row["runs"]), time, powers.get(tuple(row["runs"])))
        for row in times["workloads"]
        if (time := _all_modes(row, method, TIME)) is not None
    ]
    if not fitted:
        raise PredictionError(
            f"{folder} has no model of method {method.name}: no workload was run under two or more "
            "power modes with DVFS off whose four numbers config/devices/ states",
            do=f"run more modes: config/studies.yaml, then `{start_command()}`",
        )
    return fitted


def _all_modes(row: Json, method: Method, target: str) -> Predictor | None:
    for fit in row["fits"]:
        if (fit["method"], fit["learned_from"], fit["target"]) == (method.name, ALL, target):
            return method.load(fit["model"])
    return None


def read_models(path: Path) -> Json:
    """Return the content of a file of models. Raises as `load_fitted`, of this file."""
    profile = "profiles/jetson" if path.parent.name == "jetson" else "profiles/host"
    command = f".venv/bin/snakemake --profile {profile} {path.with_name('scores.html')}"
    if not path.is_file():
        raise PredictionError(
            f"{path} is missing: nothing was fitted yet", do=f"`{start_command()}` or `{command}`"
        )
    content: Json = files.read_json(str(path))
    if content.get("schema_version") != SCHEMA_VERSION:
        raise PredictionError(
            "models of another schema version",
            where=str(path),
            found=repr(content.get("schema_version")),
            allowed=str(SCHEMA_VERSION),
            do=f"make them again: `{command}`",
        )
    return content
