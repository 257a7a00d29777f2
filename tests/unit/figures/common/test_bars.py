"""Bars in groups: which runs are one group, what stands below, what is missing."""

import matplotlib.pyplot as plt
import pytest

from epochwatt.figures.common.bars import (
    SETUP,
    THIN,
    draw_missing,
    draw_stacks,
    grouped,
    label_axes,
    legend,
    of_epochs,
    positions,
)
from epochwatt.figures.common.published import Mark
from epochwatt.figures.common.runs import read_runs


@pytest.fixture
def axes():
    """Axes to draw on."""
    figure, axes = plt.subplots()
    yield axes
    plt.close(figure)


@pytest.fixture
def bars(job_of):
    """Return a function that gives the bars of runs, by number of workers."""

    def of(*paths, **changes):
        job = job_of("fig02", *paths, **changes)
        workers = lambda run: run.factors["num_workers"]  # noqa: E731
        within = ("num_workers", "prefetch_factor")
        return grouped(job.runs, job, within, lambda run: str(workers(run)), workers), job

    return of


def groups(found):
    return [bar.group for bar in found[0]]


def test_runs_that_differ_within_a_group_only_are_one_group_in_order(bars, made_up):
    found = bars(*(made_up(num_workers=workers) for workers in (8, 0, 16, 2)))
    assert groups(found) == ["LeNet-5"] * 4
    assert [bar.tick for bar in found[0]] == ["0", "2", "8", "16"]


def test_group_names_device_and_batch_size_where_there_are_several(bars, made_up):
    found = bars(made_up(), made_up(device="nano", batch_size=32))
    assert groups(found) == ["LeNet-5\nAGX Xavier\nbatch 16", "LeNet-5\nnano\nbatch 32"]


def test_group_names_what_else_differs_between_runs_of_a_model_and_device(bars, made_up):
    found = bars(made_up(seed=0), made_up(seed=1), made_up(model="resnet", seed=2))
    assert groups(found) == ["LeNet-5\nseed 0", "LeNet-5\nseed 1", "resnet"]


def test_scale_of_an_excluded_run_is_the_same_number(bars, made_up, gone):
    missing = [gone(dataset_scale=8, num_workers=2)]
    paths = [made_up(dataset_scale=8, num_workers=0), made_up(dataset_scale=1, num_workers=0)]
    assert sorted(set(groups(bars(*paths, missing=missing)))) == [
        *("LeNet-5\ndataset scale 1", "LeNet-5\ndataset scale 8")
    ]


def test_imported_runs_say_so(bars, made_up):
    found = bars(made_up({}, imported="scripts-2023"))
    assert groups(found) == ["LeNet-5\nimported"]


def test_bars_of_a_group_stand_closer_than_groups():
    assert positions(["a", "a", "b", "b"]).tolist() == [0.0, 1.0, 3.0, 4.0]


def test_stack_is_as_high_as_the_epoch(bars, made_up, axes):
    found, job = bars(made_up({}, {"e2e_s": 8.0}))
    rows = draw_stacks(found, axes, job, "1+")
    assert [(row["quantity"], row["value"]) for row in rows] == [
        *(("stall_s", 1.5), ("compute_s", 2.25), ("overhead_s", 4.25), ("e2e_s", 8.0))
    ]
    top = axes.containers[-1][0]
    assert top.get_y() + top.get_height() == 8.0


@pytest.mark.parametrize(
    ("told", "ends"),
    [
        (Mark(2.0, None, "id", "exact", seen_by_fit=True), (0.0, 2.0)),
        (Mark(2.0, 3.0, "id", "range", seen_by_fit=False), (2.0, 3.0)),
    ],
)
def test_a_published_compute_time_is_a_bar_of_its_own_at_its_value_beside_the_stack(
    bars, made_up, axes, monkeypatch, told, ends
):
    printed = {"compute_s": told}
    monkeypatch.setattr(
        "epochwatt.figures.common.bars.mark", lambda _m, _f, name, _e: printed.get(name)
    )
    found, job = bars(made_up())
    draw_stacks(found, axes, job, "1+")
    bars_drawn = [bar for part in axes.containers for bar in part]
    (twin,) = [bar for bar in bars_drawn if bar.get_width() == pytest.approx(THIN)]
    assert (twin.get_y(), twin.get_y() + twin.get_height()) == ends
    right = max(bar.get_x() + bar.get_width() for bar in bars_drawn if bar is not twin)
    assert twin.get_x() >= right


def test_a_published_bound_of_compute_stays_an_arrow_at_its_value(bars, made_up, axes, monkeypatch):
    printed = {"compute_s": Mark(2.0, None, "id", "at_most", seen_by_fit=False)}
    monkeypatch.setattr(
        "epochwatt.figures.common.bars.mark", lambda _m, _f, name, _e: printed.get(name)
    )
    found, job = bars(made_up())
    draw_stacks(found, axes, job, "1+")
    assert [float(line.get_ydata()[0]) for line in axes.lines] == [2.0]


def test_missing_bar_says_why_and_a_long_reason_is_cut(bars, made_up, gone, axes):
    missing = [gone("out of memory", num_workers=8), gone("it wants another board " * 3)]
    found, job = bars(made_up(num_workers=0), missing=missing)
    rows = draw_stacks(found, axes, job, "1+")
    assert {row["missing"] for row in rows} == {"", "out of memory", missing[1]["reason"]}
    assert sorted(text.get_text() for text in axes.texts) == [
        *("missing: it wants another board i…", "missing: out of memory")
    ]


def told(axes):
    return [text.get_text() for text in axes.texts]


def test_bars_close_together_that_miss_for_one_reason_say_so_once(axes):
    draw_missing([(0.2, "a"), (-0.2, "a"), (1.0, ""), (1.8, "a"), (2.0, "b")], axes, "black")
    assert told(axes) == ["missing: a", "missing: a", "missing: b"]
    assert [text.xy[0] for text in axes.texts] == [0.0, 1.8, 2.0]


def test_one_sentence_where_nothing_is_there(axes):
    draw_missing([(x, "not measured") for x in range(18)], axes, "black")
    assert told(axes) == ["missing: not measured"]


def test_reason_stands_in_the_axes_where_these_do_not_begin_at_zero(axes):
    axes.plot([1.0, 2.0], [575.0, 605.0])
    draw_missing([(1.0, ""), (2.0, "a")], axes, "black")
    axes.figure.draw_without_rendering()
    place = axes.texts[0].get_window_extent()
    assert axes.bbox.y0 <= place.y0 < place.y1 <= axes.bbox.y1


def test_runs_keep_the_papers_order_where_one_is_missing(job_of, made_up, gone):
    there = [made_up(device=d, model=m) for d, m in (("nano", "lenet"), ("agx", "resnet"))]
    missing = [gone(device="nx"), gone(device="agx", model="lenet"), gone(device="other")]
    titles = {"lenet": "LeNet-5", "resnet": "ResNet-18"}
    job = job_of("fig02", *there, missing=missing, titles=titles)
    assert [(run.factors["device"], run.factors["model"]) for run in job.runs] == [
        *(("agx", "lenet"), ("agx", "resnet"), ("nx", "lenet"), ("nano", "lenet")),
        ("other", "lenet"),
    ]


def test_many_reasons_where_nothing_is_there_are_cut(axes):
    draw_missing([(x, f"reason {x}") for x in range(9)], axes, "black")
    (text,) = told(axes)
    assert text.split("\n") == [
        *("missing: reason 0", "missing: reason 1", "missing: reason 2"),
        "and other reasons: see the CSV",
    ]


def test_legend_has_an_entry_for_each_kind_of_published_value(bars, made_up, axes):
    found, job = bars(made_up(model="mobilenet", storage="hdd"), made_up(model="resnet"))
    legend(axes, draw_stacks(found, axes, job, "1+"), job)
    (drawn,) = axes.figure.legends
    assert [text.get_text() for text in drawn.get_texts()] == [
        *("stall", "compute", "overhead", "published stall", "published E2E"),
    ]


def test_ticks_stand_below_bars_and_groups_below_ticks(bars, made_up, axes):
    paths = [made_up(num_workers=n, batch_size=b) for b in (16, 32) for n in (0, 2)]
    found, _ = bars(*paths)
    label_axes(found, axes, "loader workers")
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0", "2", "0", "2"]
    below = axes.child_axes[0]
    assert [t.get_text() for t in below.get_xticklabels()] == [
        *("LeNet-5\nbatch 16", "LeNet-5\nbatch 32")
    ]
    assert below.get_xlabel() == "loader workers"


def test_whiskers_of_a_measured_run_go_from_its_lowest_to_its_highest_epoch(bars, made_up, axes):
    epochs = ({}, {"wait_s": 0.5}, {"e2e_s": 8.0, "wait_s": 2.5}, {"e2e_s": 9.0})
    found, job = bars(made_up(*epochs, backend="host", device="host"), backend="host")
    rows = draw_stacks(found, axes, job, "1+")
    whiskers = [c.lines[2][0] for c in axes.containers if hasattr(c, "has_yerr")]
    spans = [[float(y) for y in one.get_segments()[0][:, 1]] for one in whiskers]
    assert spans == [[4.0, 9.0], [1.0, 3.0], [1.0, 3.0]]  # the stall's with a white rim below it
    assert (rows[-1]["lowest"], rows[-1]["highest"]) == (4.0, 9.0)


def test_whiskers_of_equal_epochs_have_no_length(bars, made_up, axes):
    epochs = [{"e2e_s": 0.1, "wait_s": 0.0, "copy_s": 0.1, "compute_s": 0.0}] * 4
    found, job = bars(made_up(*epochs, backend="host", device="host"), backend="host")
    rows = draw_stacks(found, axes, job, "1+")  # the mean of three times 0.1 is more
    assert rows[-1]["value"] > rows[-1]["highest"]


@pytest.mark.parametrize(
    ("stall_s", "qualifier", "has_line"),
    [(1.5, "exact", True), (0.1, "exact", False), (0.1, "less_than", True)],
)
def test_no_line_hides_a_low_stall(bars, made_up, axes, monkeypatch, stall_s, qualifier, has_line):
    printed = {"stall_s": Mark(0.2, None, "id", qualifier, seen_by_fit=True)}
    monkeypatch.setattr(
        "epochwatt.figures.common.bars.mark", lambda _m, _f, name, _e: printed.get(name)
    )
    found, job = bars(made_up({}, {"wait_s": stall_s, "copy_s": 0.0}))
    draw_stacks(found, axes, job, "1+")
    lines = [line for line in axes.lines if len(line.get_xdata()) > 1]
    assert [list(line.get_ydata()) for line in lines] == [[0.2, 0.2]] * has_line


def test_runs_are_counted_by_the_epochs_that_are_drawn(made_up):
    long = made_up(*[{}] * 9, setup=SETUP)
    runs = read_runs([long, made_up(*[{}] * 9, setup="own")], [])
    assert [len(run.epochs) for run in of_epochs(runs)] == [6, 9]
    assert [len(run.epochs) for run in of_epochs(runs, "1+")] == [5, 8]
    assert [[row["epoch"] for row in run.epochs] for run in of_epochs(runs, "0")] == [[0], [0]]


def test_simulated_runs_have_no_whiskers(bars, made_up, axes):
    found, job = bars(made_up({}, {"e2e_s": 4.0}, {"e2e_s": 8.0}))
    rows = draw_stacks(found, axes, job, "1+")
    assert not [c for c in axes.containers if hasattr(c, "has_yerr")]
    assert "lowest" not in rows[-1]
