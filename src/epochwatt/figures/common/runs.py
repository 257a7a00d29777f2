"""The runs that a figure draws: their epochs, and the reasons of those that are not there."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from epochwatt import columns
from epochwatt.board.records import files
from epochwatt.board.records.shapes import COUNT, OBJECT, TEXT
from epochwatt.columns import TWIN
from epochwatt.epochs.table import read_rows
from epochwatt.errors import EpochwattError
from epochwatt.text import POWER_SENSORS_HERE, counted, origin

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
OWN_PROCESS = "every epoch in a process of its own"
NO_GPU = "no GPU: training and loader workers share the CPUs"
HOST_CLOCK = "host_clock"  # timing of training that no GPU does
MACHINE = {  # of a record
    "machine": {"cpu_model": TEXT, "n_cpus?": (None, COUNT)},
    "software": {"torch": TEXT},
}
DATASETS = {  # as people write them
    **{"mnist": "MNIST", "cifar10": "CIFAR-10", "gld23k": "GLD-23k", "imagenet": "ImageNet"},
    **{"squad": "SQuAD", "wikitext": "WikiText-2", "coco": "COCO"},
}
SOURCES = {"official": "{}", "synthetic": "made-up {}", "digits": "scikit-learn's digits as {}"}
MOST_REASONS = 3  # why nothing is drawn

Cells = Mapping[str, Any]  # of a row, by column


class Number(NamedTuple):
    """One number of a run: mean or median over valid epochs, or the reason why there is none."""

    value: float | None
    n_epochs: int
    missing: str = ""


@dataclass(frozen=True)
class RunData:
    """One run."""

    id: str
    factors: Cells  # all of `columns.FACTORS`; those that hold nothing are None
    epochs: Sequence[Cells]  # rows of `epochs.csv`, empty cells are None; none: it is not available
    reason: str = ""  # why it is not available

    @property
    def is_measured(self) -> bool:
        """Whether clocks and sensors gave its numbers, be it of a fake board."""
        return self.factors["backend"] != TWIN

    def valid(self, epoch_set: str) -> list[Cells]:
        """Return the valid epochs of a set: `0` the first, `1+` those after it, `all`."""
        in_set = {"0": lambda k: k == 0, "1+": lambda k: k >= 1, "all": lambda k: True}[epoch_set]
        return [row for row in self.epochs if row["valid"] and in_set(row["epoch"])]

    def values(self, column: str, epoch_set: str = "1+") -> NDArray[np.floating]:
        """Return a column over the valid epochs of a set; what was not measured is left out."""
        cells = (row[column] for row in self.valid(epoch_set))
        return np.array([cell for cell in cells if cell is not None], dtype=float)

    def number(self, column: str, epoch_set: str = "1+", statistic: str = "mean") -> Number:
        """Return mean or median of a column over the valid epochs of a set."""
        values = self.values(column, epoch_set)
        if values.size:
            return Number(float(getattr(np, statistic)(values)), values.size)
        missing = NOT_MEASURED if self.valid(epoch_set) else NO_EPOCH[epoch_set]
        return Number(None, 0, self.reason or missing)


def read_runs(paths: Iterable[str], missing: Iterable[Cells]) -> list[RunData]:
    """Read the runs of a figure: those with epochs, in order, then those that are not available.

    `paths` has one `epochs.csv` per run; `missing` has the factors, `run` and `reason` of each run
    that is not available. Raises EpochwattError: runs are of several backends.
    """
    runs = []
    for epochs in map(read_rows, paths):
        if epochs:
            factors = {name: epochs[0][name] for name in columns.FACTOR_NAMES}
            runs.append(RunData(epochs[0]["run"], factors, epochs))
    runs += [RunData(row["run"], row, (), row["reason"]) for row in missing]
    if len(backends := {run.factors["backend"] for run in runs}) > 1:
        raise EpochwattError(f"a figure of several backends: {', '.join(sorted(backends))}")
    return runs


def csv_row(
    run: RunData, quantity: str, number: Number, epoch_set: str = "1+", **more: Any
) -> dict[str, Any]:
    """Return a plotted number as a row of the panel's CSV: run, factors, `more` columns, value."""
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


def note(
    runs: Sequence[RunData],
    lacking: Sequence[str] = (),
    titles: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Write a panel's note: backend, boards, numbers of runs and epochs, and what whiskers are.

    `lacking`: studies that belong to the figure and are not selected; `titles`: model or device ->
    name for people. A network is named where all runs are of it.
    """
    drawn = [run for run in runs if run.epochs]
    if not drawn:
        return "no epochs"
    instances_by_device: dict[str, set[str]] = {}
    for run in drawn:
        instances_by_device.setdefault(run.factors["device"], set()).add(run.factors["instance"])
    boards = ", ".join(titles.get(device, device) for device in instances_by_device)
    counts = sorted({len(instances) for instances in instances_by_device.values()})
    if counts != [1]:
        boards += f", {' to '.join(map(str, dict.fromkeys([counts[0], counts[-1]])))} boards each"
    models = {titles.get(model, model) for model in (run.factors["model"] for run in drawn)}
    network = f" of {models.pop()}" if len(models) == 1 else ""
    n_epochs = sum(len(run.epochs) for run in drawn)
    n_invalid = n_epochs - sum(len(run.valid("all")) for run in drawn)
    text = f"{origin([drawn[0].factors['backend']])} {boards}; "
    text += f"{counted(len(drawn), 'runs')}{network}, {counted(n_epochs, 'epochs')}"
    text += f", {n_invalid} not valid and left out" if n_invalid else ""
    measured = [run for run in drawn if run.is_measured]
    if any(run.values("e2e_s", "all").size > 1 for run in measured):
        text += "; whiskers: lowest to highest epoch"
        if any(run.values("e2e_s", part).size == 1 for run in measured for part in ("0", "1+")):
            text += ", none where there is one"
    return text + (f"; lacks {', '.join(lacking)}" if lacking else "")


def measured_on(runs: Sequence[RunData], records: Mapping[str, str]) -> str:
    """Describe the machines of measured runs: CPU, PyTorch, no GPU, cold processes.

    `records`: run -> folder of its epochs. Empty where all runs are simulated.
    """
    drawn = [run for run in runs if run.epochs and run.is_measured]
    words = machines_of(records[run.id] for run in drawn if records.get(run.id))
    clocks = {row["timing_method"] for run in drawn for row in run.valid("all")}
    words += [NO_GPU] if clocks == {HOST_CLOCK} else []
    cold = [row["cold_process"] for run in drawn for row in run.valid("1+")]
    words += [OWN_PROCESS] if cold and all(cold) else []
    return "; ".join(words)


def machines_of(folders: Iterable[str]) -> list[str]:
    """Describe each machine of run folders once: CPU, number of CPUs, PyTorch's version.

    Read from the first epoch's record.json of each folder; one without epochs is skipped.
    """
    machines = []
    for folder in folders:
        paths = sorted(str(path) for path in Path(folder).glob("epoch-*/record.json"))
        if paths:
            record = files.read_json(paths[0], MACHINE)
            torch = str(record["software"]["torch"]).partition("+")[0]
            n_cpus = record["machine"].get("n_cpus")
            cpus = f", {counted(n_cpus, 'CPUs')}" if n_cpus else ""
            machines.append(f"{record['machine']['cpu_model']}{cpus}, PyTorch {torch}")
    return list(dict.fromkeys(machines))


def mode_setting(run: RunData, folder: str, name: str) -> float | None:
    """Read a setting (`cores`, `gpu_mhz`, ...) of a run's power mode from the records in `folder`.

    None: there is no record of a valid epoch, or it does not tell.
    """
    for row in run.valid("all"):
        path = Path(folder, f"epoch-{row['epoch']}", "record.json")
        if folder and path.exists():
            record = files.read_json(str(path), {"factors": {"power_mode_settings?": OBJECT}})
            return record["factors"].get("power_mode_settings", {}).get(name)
    return None


def data_words(runs: Iterable[RunData]) -> str:
    """Describe the data set that all measured runs read, with its samples; empty if they differ."""
    descriptions = set()
    for run in runs:
        if run.epochs and run.is_measured:
            row = run.epochs[0]
            n_samples = row["n_samples"]
            samples = "" if n_samples is None else f", {counted(n_samples, 'samples')}"
            source = SOURCES.get(row["dataset_source"], "{} " + row["dataset_source"])
            name = DATASETS.get(row["dataset"], row["dataset"])
            descriptions.add(f"{source.format(name)}{samples}")
    return descriptions.pop() if len(descriptions) == 1 else ""


def why_empty(rows: Sequence[Cells]) -> str:
    """Return why no row of a CSV has a number; empty where one has, or where there are no rows."""
    if not rows or any(row.get("value") is not None for row in rows):
        return ""
    reasons = []
    for row in rows:
        reason = str(row.get("missing") or "no number")
        if reason == NOT_MEASURED and str(row.get("quantity")).startswith(("energy", "power")):
            reason = f"energy was not measured, as no power could be read. {POWER_SENSORS_HERE}"
        reasons.append(reason)
    reasons = list(dict.fromkeys(reasons))
    cut = "; and other reasons" if len(reasons) > MOST_REASONS else ""
    return "; ".join(reasons[:MOST_REASONS]) + cut
