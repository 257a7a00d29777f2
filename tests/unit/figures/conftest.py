"""Small made-up runs, and the job of a figure that draws them with the shipped settings."""

import csv
from itertools import count

import pytest
from panels import KeepingJob

from epochwatt.columns import with_defaults
from epochwatt.study.config import Plotting
from epochwatt.study.validation import validated
from epochwatt.study.yaml_files import read_yaml

FACTORS = {
    "backend": "twin",
    "device": "agx",
    "instance": "d1",
    "model": "lenet",
    "dataset": "mnist",
    "dataset_source": "official",
    "storage": "ssd",
    "power_mode": "g",
}
TITLES = {"lenet": "LeNet-5", "agx": "AGX Xavier"}


@pytest.fixture
def made_up(tmp_path, write_epochs):
    """Return a function that writes a run of two epochs or those given; it gives path and factors.

    An epoch has E2E 4 s (stall 1.5, compute 2.25, overhead 0.25) in 2 mini-batches, unless a test
    says otherwise.
    """
    numbers = count()

    def write(*epochs, **factors):
        told = with_defaults({**FACTORS, **factors})
        return write_epochs(f"run-{next(numbers)}", told, *(epochs or ({}, {})), root=tmp_path)

    return write


@pytest.fixture
def gone():
    """Return a function that gives a run that cannot be had."""

    def row(reason="out of memory", **factors):
        told = with_defaults({**FACTORS, **factors})
        return {**told, "run": "gone", "reason": reason}

    return row


@pytest.fixture
def job_of(tmp_path, pytestconfig):
    """Return a function that gives the job of a figure, as its rule would."""
    root = pytestconfig.rootpath
    plotting = validated(Plotting, read_yaml(root / "config/plotting.yaml"), "plotting.yaml")

    def make(figure, *epochs, **changes):
        entry = plotting.figures[figure]
        settings = {
            "figure": figure,
            "backend": "twin",
            "draw": entry.draw,
            "parameters": entry.parameters,
            "paper": entry.paper,
            "panels": {name: panel.model_dump() for name, panel in entry.panels.items()},
            "palette": plotting.palette,
            "titles": TITLES,
            "folder": str(tmp_path / "figures"),
            "epochs": epochs,
            "style": str(root / "config/paper.mplstyle"),
            "published": str(root / "config/published"),
            "twin": str(root / "config/twin"),
        }
        return KeepingJob(**{**settings, **changes})

    return make


@pytest.fixture
def numbers(tmp_path):
    """Return a function that gives some columns of the CSV beside a panel, a tuple per row."""

    def read(panel, *columns):
        with open(tmp_path / f"figures/{panel}.csv", newline="", encoding="utf-8") as handle:
            return [tuple(row[c] for c in columns) for row in csv.DictReader(handle)]

    return read
