"""Published numbers as marks: which run they are of, what the fit has seen, how they are drawn."""

import matplotlib.pyplot as plt
import pytest

from epochwatt.figures.common.published import (
    cells,
    deviation_pct,
    draw_mark,
    handles,
    idle_mark,
    mark,
    published_marks,
)
from epochwatt.figures.common.runs import read_runs


@pytest.fixture
def marks(pytestconfig):
    """Return a function that gives the marks of a paper for a backend."""
    root = pytestconfig.rootpath

    def of(paper="sigmetrics2023", backend="twin"):
        return published_marks(
            str(root / "config/published"), str(root / "config/twin"), paper, backend
        )

    return of


@pytest.fixture
def factors(made_up):
    """Return a function that gives the factors of a run."""
    return lambda **told: read_runs([made_up(**told)], [])[0].factors


def test_mark_is_that_of_the_very_run_metric_and_epochs(marks, factors):
    resnet = factors(model="resnet")
    assert mark(marks(), resnet, "e2e_s").value == 349.0
    assert mark(marks(), resnet, "power_mean_w").value == 31.0
    assert mark(marks(), resnet, "e2e_s", "0") is None
    assert mark(marks(), factors(model="resnet", batch_size=32), "e2e_s") is None
    assert mark(marks(), factors(model="resnet", instance="d2"), "e2e_s") is None


@pytest.mark.parametrize(
    "other", [{"task": "infer"}, {"precision": "fp16"}, {"compile": "on"}, {"container": "podman"}]
)
def test_nothing_is_published_of_inference_other_arithmetic_or_containers(other, marks, factors):
    assert mark(marks(), factors(model="resnet", **other), "e2e_s") is None


def test_value_counts_more_than_a_bound_of_the_same_run(marks, factors):
    found = mark(marks(), factors(storage="hdd", num_workers=1), "stall_s")
    assert (found.value, found.qualifier) == (12.1, "exact")


def test_lower_and_upper_bound_are_one_range(marks, factors):
    found = mark(marks(), factors(dvfs="on"), "gpu_util_pct")
    assert found[:4] == (14.0, 34.0, "S5.5.2-04 S5.5.2-05", "range")


def test_papers_are_not_pooled(marks, factors):
    nx = factors(device="nx", model="mobilenet", storage="hdd", power_mode="15W", num_workers=1)
    assert mark(marks(), nx, "stall_s").value == 456.0
    assert mark(marks("hipcw2021"), nx, "stall_s") is None


def test_simulation_has_seen_what_it_is_fitted_to_and_no_more(marks, factors):
    found = marks()
    assert mark(found, factors(model="resnet"), "e2e_s").seen_by_fit
    assert not mark(
        found, factors(model="resnet", dvfs="on"), "cpu_below_peak_time_pct"
    ).seen_by_fit
    other = marks("hipcw2021")  # what its set-up has of its own has seen what can be judged
    assert {each.id for each in other.values() if each.seen_by_fit} >= {"H-III.A-01", "H-III.F-01"}
    assert "H-III.A-25" not in {each.id for each in other.values() if each.seen_by_fit}  # a zero


def test_nothing_measured_was_fitted(marks):
    assert not any(each.seen_by_fit for each in marks(backend="jetson").values())


def test_idle_state_i_is_of_the_module_and_the_others_at_the_plug(marks):
    found = marks()
    assert idle_mark(found, "agx", "g", "i", "module").value == 7.527
    assert idle_mark(found, "agx", "g", "i", "socket") is None
    assert idle_mark(found, "nano", "MAXN", "iv", "socket").qualifier == "less_than"
    assert idle_mark(found, "nano", "MAXN", "iv", "module") is None


@pytest.mark.parametrize(
    ("about", "drawn"),
    [
        ({"quantity": "e2e_s", "published_qualifier": "exact"}, [("d", 3.0)]),
        ({"quantity": "stall_s", "published_qualifier": "approx"}, [("s", 3.0)]),
        ({"quantity": "stall_s", "published_qualifier": "less_than"}, [("v", 3.0)]),
        ({"published_qualifier": "range", "published_hi": 5.0}, [("^", 3.0), ("v", 5.0)]),
    ],
)
@pytest.mark.parametrize("seen", [True, False])
def test_mark_is_filled_where_seen_and_an_arrow_where_a_bound(about, drawn, seen):
    figure, axes = plt.subplots()
    draw_mark(axes, 1.0, {**cells(None), "published": 3.0, "seen_by_fit": seen, **about}, "#000000")
    assert [(line.get_marker(), float(line.get_ydata()[0])) for line in axes.lines] == drawn
    assert {line.get_markerfacecolor() for line in axes.lines} == {"#000000" if seen else "white"}
    plt.close(figure)


def test_legend_has_an_entry_per_shape_filled_where_the_fit_has_seen_all_of_it():
    told = {**cells(None), "published": 3.0, "published_qualifier": "exact", "seen_by_fit": True}
    rows = [
        {**told, "quantity": "stall_s"},
        {**told, "quantity": "e2e_s"},
        {**told, "quantity": "e2e_s", "seen_by_fit": False},
        {**told, "quantity": "energy_paper_wh"},
        {**told, "quantity": "n_epochs_in_15h"},
        {**told, "published_qualifier": "at_least"},
        {**cells(None), "quantity": "compute_s"},
    ]
    found = handles(rows, "#000000")
    assert [(line.get_label(), line.get_markerfacecolor()) for line in found] == [
        ("published stall", "#000000"),
        ("published E2E", "white"),
        ("published", "#000000"),
        ("published bound", "#000000"),
    ]


def test_nothing_is_drawn_where_nothing_is_published():
    figure, axes = plt.subplots()
    draw_mark(axes, 1.0, cells(None), "#000000")
    assert not axes.lines
    plt.close(figure)


TOLD = {**cells(None), "published": 10.0, "seen_by_fit": True, "published_qualifier": "exact"}


@pytest.mark.parametrize(
    ("about", "off"),
    [
        ({"value": 10.9}, 9.0),
        ({"value": 12.0}, 20.0),
        ({"value": 8.0}, -20.0),
        ({"value": None}, None),
        ({"value": 3.0, "published": 0.0}, None),
        ({"value": 5.0, "published_qualifier": "less_than"}, 0.0),
        ({"value": 15.0, "published_qualifier": "at_most"}, 50.0),
        ({"value": 5.0, "published_qualifier": "at_least"}, -50.0),
        ({"value": 12.0, "published_hi": 14.0, "published_qualifier": "range"}, 0.0),
        ({"value": 21.0, "published_hi": 14.0, "published_qualifier": "range"}, 50.0),
        ({"value": 12.9, "quantity": "gpu_util_pct"}, 29.0),
        ({"value": 26.0, "quantity": "gpu_util_pct"}, 160.0),
    ],
)
def test_deviation_counts_from_the_published_number_or_the_end_of_its_range(about, off):
    row = {**TOLD, **about}
    assert deviation_pct(row) == (None if off is None else pytest.approx(off))


def test_mark_over_a_bar_is_a_line_of_its_width_and_a_marker_beside_it():
    figure, axes = plt.subplots()
    draw_mark(axes, 2.0, {**TOLD, "value": 20.0}, "#000000", width=0.6)
    line, marker = axes.lines
    assert list(line.get_xdata()) == pytest.approx([1.7, 2.3])
    assert set(line.get_ydata()) == {10.0} == set(marker.get_ydata())
    right = axes.transData.transform((2.3, 10.0))[0]
    assert marker.get_transform().transform((2.3, 10.0))[0] > right
    plt.close(figure)


def test_line_is_dashed_where_the_fit_has_not_seen_the_number():
    figure, axes = plt.subplots()
    for seen in (True, False):
        draw_mark(axes, 0.0, {**TOLD, "value": 10.0, "seen_by_fit": seen}, "#000000", width=0.6)
    assert [line.get_linestyle() for line in axes.lines[::2]] == ["-", "--"]
    plt.close(figure)
