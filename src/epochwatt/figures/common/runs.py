"""The runs that a figure draws: their epochs, and the reasons of those that are not there."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from epochwatt import columns
from epochwatt.board.records import files
from epochwatt.board.records.shapes import COUNT, TEXT
from epochwatt.columns import TWIN
from epochwatt.epochs.table import read_rows
from epochwatt.errors import EpochwattError
from epochwatt.text import POWER_SENSORS, counted, origin

SHOWN = (  # factors in the CSV beside a panel
    *("backend", "device", "instance", "model", "storage", "num_workers", "prefetch_factor"),
    *("batch_size", "power_mode", "dvfs", "cache_policy", "dataset_source", "dataset_scale"),
)
NO_EPOCH = {
    "0": "no valid first epoch",
    "1+": "no valid epoch after the first",
    "all": "no valid epoch",
}


NOT_MEASURED = "not measured"


class Number(NamedTuple):
    """One number of a run: mean or median over valid epochs, or the reason why there is none."""

    value: float | None
    n_epochs: int
    missing: str = ""


@dataclass(frozen=True)
class RunData:
    """One run."""

    id: str  # of the run
    factors: Mapping[str, Any]  # all of `columns.FACTORS`; those that hold nothing are None
    # a row per epoch, columns of `epochs.csv`; empty cells are None. No rows where the run is not
    # available
    epochs: Sequence[Mapping[str, Any]]
    reason: str = ""  # why it is not available

    def valid(self, epoch_set: str) -> list[Mapping[str, Any]]:
        """Return the valid epochs of a set: `0` the first, `1+` those after it, `all`."""
        inside = {"0": lambda k: k == 0, "1+": lambda k: k >= 1, "all": lambda k: True}[epoch_set]
        return [row for row in self.epochs if row["valid"] and inside(row["epoch"])]

    def values(self, column: str, epoch_set: str = "1+") -> NDArray[np.floating]:
        """Return a column over the valid epochs of a set; what was not measured is left out."""
        cells = (row[column] for row in self.valid(epoch_set))
        return np.array([cell for cell in cells if cell is not None], dtype=float)

    @property
    def is_measured(self) -> bool:
        """Whether clocks and sensors gave its numbers, be it of a fake board."""
        return self.factors["backend"] != TWIN

    def number(self, column: str, epoch_set: str = "1+", statistic: str = "mean") -> Number:
        """Return mean or median of a column over the valid epochs of a set."""
        values = self.values(column, epoch_set)
        if values.size:
            return Number(float(getattr(np, statistic)(values)), values.size)
        missing = NOT_MEASURED if self.valid(epoch_set) else NO_EPOCH[epoch_set]
        return Number(None, 0, self.reason or missing)


def read_runs(paths: Iterable[str], missing: Iterable[Mapping[str, Any]]) -> list[RunData]:
    """Read the runs of a figure: those with epochs, in order, then those that are not available.

    Raises EpochwattError: runs of several backends.

    Parameters
    ----------
    paths : one `epochs.csv` per run
    missing : factors, `run` and `reason` of runs that are not available
    """
    tables = [rows for rows in map(read_rows, paths) if rows]
    runs = [
        RunData(t[0]["run"], {name: t[0][name] for name in columns.FACTOR_NAMES}, t) for t in tables
    ]
    runs += [RunData(row["run"], row, (), row["reason"]) for row in missing]
    if len(backends := {run.factors["backend"] for run in runs}) > 1:
        raise EpochwattError(f"a figure of several backends: {', '.join(sorted(backends))}")
    return runs


def note(runs: Sequence[RunData], lacking: Sequence[str] = ()) -> str:
    """Return the corner note: where from, which boards, how many epochs, what is left out.

    Parameters
    ----------
    runs : that are drawn
    lacking : studies that would belong to the figure and are not selected
    """
    drawn = [run for run in runs if run.epochs]
    if not drawn:
        return "no epochs"
    units: dict[str, set[str]] = {}
    for run in drawn:
        units.setdefault(run.factors["device"], set()).add(run.factors["instance"])
    places = [f"{device}/{_span(sorted(names))}" for device, names in units.items()]
    n_epochs = sum(len(run.epochs) for run in drawn)
    left_out = n_epochs - sum(len(run.valid("all")) for run in drawn)
    text = f"{origin([drawn[0].factors['backend']])} {', '.join(places)}; "
    text += f"{counted(len(drawn), 'runs')}, {counted(n_epochs, 'epochs')}"
    text += f", {left_out} not valid and left out" if left_out else ""
    return text + (f"; lacks {', '.join(lacking)}" if lacking else "")


def _span(names: Sequence[str]) -> str:
    return "+".join(names) if len(names) <= 2 else f"{names[0]} to {names[-1]}"


OWN_PROCESS = "; every epoch in a process of its own"
NO_GPU = "; no GPU: training and loader workers share the CPUs"
HOST_CLOCK = "host_clock"  # timing of training that no GPU does
WHISKERS = "; whiskers: "  # begins the part of the note that says what they are
MACHINE = {  # of a record
    "machine": {"cpu_model": TEXT, "n_cpus?": (None, COUNT)},
    "software": {"torch": TEXT},
}


def measured_note(runs: Sequence[RunData], records: Mapping[str, str]) -> str:
    """Return for the corner note what measured runs ran on, and what their whiskers are.

    Parameters
    ----------
    runs : that are drawn
    records : run -> folder with the records of its epochs
    """
    drawn = [run for run in runs if run.epochs and run.is_measured]
    if not drawn:
        return ""
    machines = [machine for run in drawn if (machine := _machine(run, records.get(run.id, "")))]
    whiskers = any(run.values("e2e_s", "all").size > 1 for run in drawn)
    text = "".join(f"; {machine}" for machine in dict.fromkeys(machines))
    lone = any(run.values("e2e_s", part).size == 1 for run in drawn for part in ("0", "1+"))
    why = ", none on a bar of one epoch" if lone else ""
    cold = [row["cold_process"] for run in drawn for row in run.valid("1+")]
    text += OWN_PROCESS if cold and all(cold) else ""
    clocks = {row["timing_method"] for run in drawn for row in run.valid("all")}
    text += NO_GPU if clocks == {HOST_CLOCK} else ""
    return text + (f"{WHISKERS}lowest to highest epoch{why}" if whiskers else "")


def data_words(runs: Iterable[RunData]) -> str:
    """Return which data measured runs read, and how much, for a title; else nothing.

    Runs of several data sets have nothing either.
    """
    rows = [run.epochs[0] for run in runs if run.epochs and run.is_measured]
    words = {
        f"{row['dataset']} {row['dataset_source']}"
        + (f", {counted(row['n_samples'], 'samples')}" if row["n_samples"] is not None else "")
        for row in rows
    }
    return words.pop() if len(words) == 1 else ""


def _machine(run: RunData, folder: str) -> str:
    """Return CPU and version of PyTorch of a run's first epoch with a record; else nothing."""
    epochs = [f"epoch-{row['epoch']}" for row in run.valid("all")]
    return _machine_of(os.path.join(folder, name) for name in epochs) if folder else ""


def machines_of(folders: Iterable[str]) -> list[str]:
    """Return CPU and version of PyTorch of the machines that records name, each once.

    Parameters
    ----------
    folders : each with the records of a run's epochs; one that is not there is left out
    """
    machines = [_machine_of(map(str, sorted(Path(folder).glob("epoch-*")))) for folder in folders]
    return list(dict.fromkeys(filter(None, machines)))


def _machine_of(epochs: Iterable[str]) -> str:
    """Return CPU and version of PyTorch of the first of some epochs with a record; else nothing."""
    for epoch in epochs:
        path = os.path.join(epoch, "record.json")
        if os.path.exists(path):
            record = files.read_json(path, MACHINE)
            torch = str(record["software"]["torch"]).partition("+")[0]
            n_cpus = record["machine"].get("n_cpus")
            cpus = f", {counted(n_cpus, 'CPUs')}" if n_cpus else ""
            return f"{record['machine']['cpu_model']}{cpus}, PyTorch {torch}"
    return ""


def csv_row(
    run: RunData, quantity: str, number: Number, epoch_set: str = "1+", **more: Any
) -> dict[str, Any]:
    """Return a plotted number as a row of the CSV beside its panel.

    Parameters
    ----------
    run, quantity, number, epoch_set : what was drawn; the unit ends the quantity's name
    more : columns of this figure alone
    """
    return {
        "run": run.id,
        **{name: run.factors[name] for name in SHOWN},
        "epoch_set": epoch_set,
        "n_epochs": number.n_epochs,
        **more,
        "quantity": quantity,
        "value": number.value,
        "missing": number.missing,
    }


def why_empty(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return why no row of a CSV has a number; empty where one has, or where there are no rows."""
    if not rows or any(row.get("value") is not None for row in rows):
        return ""
    reasons = dict.fromkeys(_reason(row) for row in rows)
    return "; ".join([*reasons][:3]) + ("; and other reasons" if len(reasons) > 3 else "")


def _reason(row: Mapping[str, Any]) -> str:
    reason, quantity = str(row.get("missing") or "no number"), str(row.get("quantity", ""))
    if reason == NOT_MEASURED and quantity.startswith(("energy", "power")):
        return f"energy was not measured, as no power could be read. {POWER_SENSORS}"
    return reason
