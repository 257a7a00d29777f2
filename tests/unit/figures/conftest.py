"""Small made-up runs, and the job of a figure that draws them with the shipped settings."""

import csv
from itertools import combinations, count

import pytest
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.text import Text

from epochwatt import fields
from epochwatt.figures.job import Job
from epochwatt.study.config import Plotting
from epochwatt.study.validation import validated
from epochwatt.study.yaml_files import read_yaml

FACTORS = {
    **{"backend": "twin", "device": "agx", "instance": "d1", "model": "lenet", "dataset": "mnist"},
    **{"dataset_source": "official", "storage": "ssd", "power_mode": "g"},
}
INVALID = {"valid": False, "flags": {"fresh_weights"}, "e2e_s": 1000.0}
TITLES = {"lenet": "LeNet-5", "agx": "AGX Xavier"}


SMALLEST_PT = 6.0  # letters at the printed size
TOUCH_PX = 1.0  # texts may touch


def overlap(a, b):
    """Say whether two boxes of the canvas have more than a touch in common."""
    width = min(a.x1, b.x1) - max(a.x0, b.x0)
    height = min(a.y1, b.y1) - max(a.y0, b.y0)
    return width > TOUCH_PX and height > TOUCH_PX


def leaves(box, canvas):
    """Say whether a box is partly outside of the canvas."""
    over = (canvas.x0 - box.x0, canvas.y0 - box.y0, box.x1 - canvas.x1, box.y1 - canvas.y1)
    return max(over) > TOUCH_PX


@pytest.fixture(autouse=True)
def readable(monkeypatch):
    """Let every panel that a test draws fail when its text overlaps, is cut or is too small."""
    drawn, draw_text, save = {}, Text.draw, Job.save

    def draw(self, renderer, *args, **kwargs):
        if isinstance(renderer, RendererAgg) and self.get_visible() and self.get_text().strip():
            canvas = self.get_figure(root=True).bbox.frozen()
            drawn[id(self)] = (self, Text.get_window_extent(self, renderer), canvas)
        draw_text(self, renderer, *args, **kwargs)

    def checked(self, figure, name, rows, source=None):
        save(self, figure, name, rows, source)
        texts = [told for told in drawn.values() if told[0].get_figure(root=True) is figure]
        drawn.clear()
        assert texts, f"{name}: no text was drawn"
        small = [t.get_text() for t, _, _ in texts if t.get_fontsize() < SMALLEST_PT]
        assert small == [], f"{name}: too small"
        cut = [t.get_text() for t, box, canvas in texts if leaves(box, canvas)]
        assert cut == [], f"{name}: off the canvas"
        pairs = [
            (a.get_text(), b.get_text())
            for (a, one, _), (b, two, _) in combinations(texts, 2)
            if overlap(one, two)
        ]
        assert pairs == [], f"{name}: texts overlap"

    monkeypatch.setattr(Text, "draw", draw)
    monkeypatch.setattr(Job, "save", checked)


@pytest.fixture
def made_up(tmp_path, write_epochs):
    """Return a function that writes a run of two epochs or those given; it gives path and factors.

    An epoch has E2E 4 s (stall 1.5, compute 2.25, overhead 0.25) in 2 mini-batches, unless a test
    says otherwise.
    """
    numbers = count()

    def write(*epochs, **factors):
        told = fields.with_defaults({**FACTORS, **factors})
        return write_epochs(f"run-{next(numbers)}", told, *(epochs or ({}, {})), root=tmp_path)

    return write


@pytest.fixture
def gone():
    """Return a function that gives a run that cannot be had."""

    def row(reason="out of memory", **factors):
        told = fields.with_defaults({**FACTORS, **factors})
        return {**told, "run": "gone", "reason": reason}

    return row


@pytest.fixture
def job_of(tmp_path, pytestconfig):
    """Return a function that gives the job of a figure, as its rule would."""
    root = pytestconfig.rootpath
    plotting = validated(Plotting, read_yaml(root / "config/plotting.yaml"), "plotting.yaml")

    def make(figure, *epochs, **changes):
        about = plotting.figures[figure]
        return Job(
            **{
                **{"figure": figure, "backend": "twin", "paper": about.paper, "titles": TITLES},
                **{"folder": str(tmp_path / "figures"), "epochs": epochs},
                **{"style": str(root / "workflow/styles/paper.mplstyle")},
                **{"published": str(root / "config/published"), "twin": str(root / "config/twin")},
                **{"panels": {k: v.model_dump() for k, v in about.panels.items()}},
                **{"palette": plotting.palette, **changes},
            }
        )

    return make


@pytest.fixture
def numbers(tmp_path):
    """Return a function that gives some columns of the CSV beside a panel, a tuple per row."""

    def read(panel, *columns):
        with open(tmp_path / f"figures/{panel}.csv", newline="", encoding="utf-8") as handle:
            return [tuple(row[c] for c in columns) for row in csv.DictReader(handle)]

    return read
