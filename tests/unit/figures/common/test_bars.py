"""Bars in groups: which runs are one group, what stands below and above, what is missing."""

import matplotlib.pyplot as plt
import pytest

from epochwatt.figures.common.bars import (
    draw_stacks,
    grouped,
)

HOST = {"backend": "host", "device": "host"}


@pytest.fixture
def axes():
    """Axes to draw on."""
    figure, axes = plt.subplots()
    yield axes
    plt.close(figure)


@pytest.fixture
def bars(job_of):
    """Return a function that gives the bars of runs, by number of workers, and their job."""

    def of(*paths, **changes):
        job = job_of("fig02", *paths, **changes)
        workers = lambda run: run.factors["num_workers"]  # noqa: E731
        return grouped(job.runs, job, ("num_workers", "prefetch_factor"), workers, workers), job

    return of


@pytest.fixture
def printed(monkeypatch):
    """Return a function that gives every run published numbers: quantity -> mark."""

    def tell(**marks):
        found = lambda _m, _f, quantity, _e: marks.get(quantity)  # noqa: E731
        monkeypatch.setattr("epochwatt.figures.common.published.mark", found)

    return tell


def test_runs_keep_the_papers_order_where_one_is_missing(job_of, made_up, gone):
    there = [made_up(device=d, model=m) for d, m in (("nano", "lenet"), ("agx", "resnet"))]
    missing = [gone(device="nx"), gone(device="agx", model="lenet"), gone(device="other")]
    titles = {"lenet": "LeNet-5", "resnet": "ResNet-18"}
    job = job_of("fig02", *there, missing=missing, titles=titles)
    assert [(run.factors["device"], run.factors["model"]) for run in job.runs] == [
        *(("agx", "lenet"), ("agx", "resnet"), ("nx", "lenet"), ("nano", "lenet")),
        ("other", "lenet"),
    ]


def test_stack_is_as_high_as_the_epoch_and_simulated_runs_have_no_whiskers(bars, made_up, axes):
    found, job = bars(made_up({}, {"e2e_s": 8.0}))
    rows = [row.cells() for row in draw_stacks(found, axes, job, "1+")]
    assert [(row["quantity"], row["value"]) for row in rows] == [
        *(("stall_s", 1.5), ("compute_s", 2.25), ("overhead_s", 4.25), ("e2e_s", 8.0))
    ]
    top = axes.containers[-1][0]
    assert top.get_y() + top.get_height() == 8.0
    assert not [c for c in axes.containers if hasattr(c, "has_yerr")]


def test_whiskers_of_a_measured_run_go_from_its_lowest_to_its_highest_epoch(bars, made_up, axes):
    epochs = ({}, {"wait_s": 0.5}, {"e2e_s": 8.0, "wait_s": 2.5}, {"e2e_s": 9.0})
    found, job = bars(made_up(*epochs, **HOST), backend="host")
    rows = draw_stacks(found, axes, job, "1+")
    whiskers = [c.lines[2][0] for c in axes.containers if hasattr(c, "has_yerr")]
    spans = [[float(y) for y in one.get_segments()[0][:, 1]] for one in whiskers]
    assert spans == [[4.0, 9.0]] * 2 + [[1.0, 3.0]] * 2  # each with a white rim below it
    told = rows[-1].cells()
    assert (told["lowest"], told["highest"]) == (4.0, 9.0)


def words(axes):
    return [text.get_text() for text in axes.texts]
