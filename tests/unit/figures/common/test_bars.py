"""Bars in groups: which runs are one group, what stands below and above, what is missing."""

import matplotlib.pyplot as plt
import pytest

from epochwatt.figures.common.bars import (
    SETUP,
    THIN,
    Bracket,
    draw_brackets,
    draw_missing,
    draw_stacks,
    grouped,
    label_axes,
    legend,
    of_epochs,
    x_of,
)
from epochwatt.figures.common.published import Mark
from epochwatt.figures.common.runs import read_runs

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


def test_groups_are_in_order_and_name_what_differs_between_them(bars, made_up, gone):
    def groups(*runs, **changes):
        return [bar.group for bar in bars(*(made_up(**run) for run in runs), **changes)[0]]

    found, _ = bars(*(made_up(num_workers=workers) for workers in (8, 0, 16, 2)))
    assert [bar.tick for bar in found] == ["0", "2", "8", "16"]
    assert {bar.group for bar in found} == {"LeNet-5"}
    assert groups({}, {"device": "nano", "batch_size": 32}) == [
        *("LeNet-5\nAGX Xavier\nbatch 16", "LeNet-5\nnano\nbatch 32")
    ]
    assert groups({"seed": 0}, {"seed": 1}, {"model": "resnet", "seed": 2}) == [
        *("LeNet-5\nseed 0", "LeNet-5\nseed 1", "resnet")
    ]
    eight = [gone(dataset_scale=8, num_workers=2)]  # a whole number, as of an excluded run
    assert set(groups({"dataset_scale": 8}, {"dataset_scale": 1}, missing=eight)) == {
        *("LeNet-5\ndataset scale 1", "LeNet-5\ndataset scale 8")
    }
    assert groups({"imported": "scripts-2023"}) == ["LeNet-5\nimported"]


def test_runs_keep_the_papers_order_where_one_is_missing(job_of, made_up, gone):
    there = [made_up(device=d, model=m) for d, m in (("nano", "lenet"), ("agx", "resnet"))]
    missing = [gone(device="nx"), gone(device="agx", model="lenet"), gone(device="other")]
    titles = {"lenet": "LeNet-5", "resnet": "ResNet-18"}
    job = job_of("fig02", *there, missing=missing, titles=titles)
    assert [(run.factors["device"], run.factors["model"]) for run in job.runs] == [
        *(("agx", "lenet"), ("agx", "resnet"), ("nx", "lenet"), ("nano", "lenet")),
        ("other", "lenet"),
    ]


def test_runs_are_counted_by_the_epochs_that_are_drawn(made_up):
    runs = read_runs([made_up(*[{}] * 9, setup=of) for of in (SETUP, "own")], [])
    assert [len(run.epochs) for run in of_epochs(runs)] == [6, 9]
    assert [len(run.epochs) for run in of_epochs(runs, "1+")] == [5, 8]
    assert [[row["epoch"] for row in run.epochs] for run in of_epochs(runs, "0")] == [[0], [0]]


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


@pytest.mark.parametrize(
    ("told", "ends"),
    [
        (Mark(2.0, None, "id", "exact", seen_by_fit=True), (0.0, 2.0)),
        (Mark(2.0, 3.0, "id", "range", seen_by_fit=False), (2.0, 3.0)),
    ],
)
def test_a_published_compute_time_is_a_bar_of_its_own_at_its_value_beside_the_stack(
    bars, made_up, axes, printed, told, ends
):
    printed(compute_s=told)
    found, job = bars(made_up())
    legend(axes, draw_stacks(found, axes, job, "1+"), job)
    drawn = [bar for part in axes.containers for bar in part]
    (twin,) = [bar for bar in drawn if bar.get_width() == pytest.approx(THIN)]
    assert (twin.get_y(), twin.get_y() + twin.get_height()) == ends
    assert twin.get_x() >= max(b.get_x() + b.get_width() for b in drawn if b is not twin)
    words = [text.get_text() for text in axes.figure.legends[0].get_texts()]
    assert words == ["stall", "compute", "overhead", "published compute, from 0"]


@pytest.mark.parametrize(
    ("stall_s", "qualifier", "has_line"),
    [(1.5, "exact", True), (0.1, "exact", False), (0.1, "less_than", True)],
)
def test_no_line_hides_a_low_stall_and_bounds_are_arrows(
    bars, made_up, axes, printed, stall_s, qualifier, has_line
):
    printed(stall_s=Mark(0.2, None, "id", qualifier, seen_by_fit=True))
    found, job = bars(made_up({}, {"wait_s": stall_s, "copy_s": 0.0}))
    draw_stacks(found, axes, job, "1+")
    lines = [line for line in axes.lines if len(line.get_xdata()) > 1]
    assert [list(line.get_ydata()) for line in lines] == [[0.2, 0.2]] * has_line
    markers = [line.get_marker() for line in axes.lines if len(line.get_xdata()) == 1]
    assert markers == ["v" if qualifier == "less_than" else "s"]


def words(axes):
    return [text.get_text() for text in axes.texts]


def test_missing_bars_say_why_once_where_they_stand_together(bars, made_up, gone, axes):
    missing = [gone("out of memory", num_workers=8), gone("it wants another board " * 3)]
    found, job = bars(made_up(num_workers=0), missing=missing)
    rows = [row.cells() for row in draw_stacks(found, axes, job, "1+")]
    assert {row["missing"] for row in rows} == {"", "out of memory", missing[1]["reason"]}
    assert sorted(words(axes)) == [
        *("missing: it wants another board i…", "missing: out of memory")
    ]
    axes.clear()
    draw_missing([(0.2, "a"), (-0.2, "a"), (1.0, ""), (1.8, "a"), (2.0, "b")], axes, "black")
    assert words(axes) == ["missing: a", "missing: a", "missing: b"]
    assert [text.xy[0] for text in axes.texts] == [0.0, 1.8, 2.0]
    axes.clear()
    draw_missing([(x, f"reason {x // 2}") for x in range(18)], axes, "black")
    assert words(axes)[0].split("\n") == [
        *("missing: reason 0", "missing: reason 1", "missing: reason 2"),
        "and other reasons: see the CSV",
    ]


def test_ticks_stand_below_bars_and_groups_below_ticks(bars, made_up, axes):
    found, _ = bars(*(made_up(num_workers=n, batch_size=b) for b in (16, 32) for n in (0, 2)))
    assert x_of(found).tolist() == [0.0, 1.0, 3.0, 4.0]
    label_axes(found, axes, "loader workers")
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0", "2", "0", "2"]
    below = axes.child_axes[0]
    assert [t.get_text() for t in below.get_xticklabels()] == [
        *("LeNet-5\nbatch 16", "LeNet-5\nbatch 32")
    ]
    assert below.get_xlabel() == "loader workers"


def test_brackets_that_would_lie_on_one_another_stand_one_above_the_other():
    figure, axes = plt.subplots(layout="constrained")
    axes.set_xlim(-0.5, 5.5)
    ends = ((0, 1), (3, 4), (0, 4))
    draw_brackets([(axes, [Bracket(a, b, [f"{a} to {b}"], "black") for a, b in ends])])
    heights = {text.get_text(): text.get_position()[1] for text in axes.texts}
    assert heights["0 to 1"] == heights["3 to 4"] < heights["0 to 4"]
    plt.close(figure)
