"""Figure 2: groups and bars, what is missing, what is drawn, the same bytes each time."""

import csv

import matplotlib.pyplot as plt
import pytest

from epochwatt.errors import ConfigError
from epochwatt.figures.fig02 import (
    COLUMNS_SPLIT,
    COLUMNS_STALL,
    draw_split,
    draw_stall,
    plot,
    read,
    rows_split,
    rows_stall,
)

TITLES = {"lenet": "LeNet-5"}
PALETTE = {
    **{"stall": "#009E73", "compute": "#0072B2", "overhead": "#BBBBBB", "missing": "#777777"},
    **{"epoch_0": "#D55E00", "epoch_1_plus": "#CC79A7"},
}
INVALID = {"valid": False, "flags": {"fresh_weights"}, "e2e_s": 1000.0}


@pytest.fixture
def bars(checkout, write_epochs):
    """Return a function that reads the figure of the checkout's runs; epochs by place of the run.

    Every run has two epochs (E2E 4 s: stall 1.5, compute 2.25, overhead 0.25 s) unless it is told
    otherwise; excluded rows come from config/.
    """

    def call(epochs=None):
        settings = checkout.settings()
        paths = [
            write_epochs(run.id, run.factors, *(epochs or {}).get(place, [{}, {}]))
            for place, run in enumerate(settings.figure_runs("fig02", "host"))
        ]
        return read(paths, settings.excluded("fig02", "host"), TITLES)

    return call


@pytest.fixture
def axes():
    """Axes to draw on."""
    figure, axes = plt.subplots()
    yield axes
    plt.close(figure)


def heights(axes):
    """Return label -> heights of the bars drawn under it, left to right."""
    return {c.get_label(): [patch.get_height() for patch in c] for c in axes.containers}


def texts(axes):
    return [text.get_text() for text in axes.texts]


class TestRead:
    """From epochs to bars."""

    def test_runs_that_differ_in_workers_only_are_one_group(self, bars):
        told = [(bar.group, bar.num_workers) for bar in bars().bars]
        assert told == [
            ("LeNet-5\nbatch 16", 0),
            ("LeNet-5\nbatch 16", 2),
            ("LeNet-5\nbatch 32", 0),
            ("LeNet-5\nbatch 32", 2),
        ]

    def test_bars_of_a_group_are_in_order_of_workers(self, bars, checkout):
        checkout.sweep({"num_workers": [8, 0, 16, 2]})
        assert [bar.num_workers for bar in bars().bars] == [0, 2, 8, 16]

    def test_group_names_what_else_is_not_the_same_everywhere(self, bars, checkout):
        checkout.sweep({"seed": [0, 1], "num_workers": [0, 1]})
        groups = [bar.group.split("\n") for bar in bars().bars]
        assert [group[2:] for group in groups] == [["seed 0"]] * 2 + [["seed 1"]] * 2

    def test_group_of_a_run_in_jobs_of_several_epochs_is_another_one(self, bars, checkout):
        checkout.sweep({"epochs_per_job": [1, 3]})
        assert len({bar.group for bar in bars().bars}) == 2

    def test_model_without_a_title_keeps_its_name(self, checkout, write_epochs):
        run = checkout.runs[0]
        data = read([write_epochs(run.id, run.factors, {}, {})], [], {})
        assert data.bars[0].group == "lenet\nbatch 16"

    def test_parts_are_means_of_the_later_epochs(self, bars):
        data = bars({0: [{"wait_s": 50.0}, {"wait_s": 1.0}, {"wait_s": 2.0}]})
        assert data.bars[0].parts_s == pytest.approx(
            {"stall": 2.0, "compute": 2.25, "overhead": -0.25}
        )

    def test_stall_is_that_of_the_first_epoch_and_the_mean_of_the_later_ones(self, bars):
        data = bars({0: [{"wait_s": 5.0}, {"wait_s": 1.0}, {"wait_s": 2.0}]})
        assert data.bars[0].stall_s == pytest.approx({"0": 5.5, "1+": 2.0})

    def test_invalid_epochs_are_left_out_and_counted_in_the_note(self, bars):
        data = bars({0: [{}, {}, INVALID], 1: [INVALID, {}]})
        first = next(bar for bar in data.bars if bar.n_epochs == {"0": 1, "1+": 1})
        assert first.parts_s == pytest.approx({"stall": 1.5, "compute": 2.25, "overhead": 0.25})
        assert data.note == ("measured on host/local; 4 runs, 9 epochs, 2 not valid and left out")

    def test_note_of_valid_epochs_says_nothing_of_invalid_ones(self, bars):
        assert bars().note == "measured on host/local; 4 runs, 8 epochs"

    def test_run_without_a_valid_later_epoch_is_missing_but_keeps_its_first_stall(self, bars):
        bar = bars({0: [{}, INVALID]}).bars[0]
        assert (bar.parts_s, bar.stall_s) == (None, {"0": 1.5, "1+": None})
        assert bar.missing == "no valid epoch after the first"

    def test_run_whose_first_epoch_is_invalid_lacks_only_that(self, bars):
        bar = bars({0: [INVALID, {}]}).bars[0]
        assert bar.stall_s == {"0": None, "1+": 1.5}
        assert bar.parts_s is not None

    def test_excluded_row_is_a_missing_bar_of_its_group(self, bars, checkout):
        where = {"num_workers": 0, "batch_size": 32}
        checkout.write("exclusions.yaml", [{"where": where, "reason": "out of memory"}])
        bar = bars().bars[2]
        assert (bar.group, bar.num_workers) == ("LeNet-5\nbatch 32", 0)
        assert (bar.missing, bar.parts_s, bar.stall_s) == (
            *("out of memory", None, {"0": None, "1+": None}),
        )

    def test_excluded_row_is_in_its_group_when_scales_differ(self, bars, checkout):
        checkout.sweep({"dataset_scale": [1, 8], "num_workers": [0, 2]})
        where = {"num_workers": 0, "dataset_scale": 8}
        checkout.write("exclusions.yaml", [{"where": where, "reason": "out of memory"}])
        assert len({bar.group for bar in bars().bars}) == 2

    def test_only_excluded_rows_make_a_figure_of_missing_bars(self, bars, checkout):
        checkout.write("exclusions.yaml", [{"where": {"model": "lenet"}, "reason": "no memory"}])
        data = bars()
        assert [bar.missing for bar in data.bars] == ["no memory"] * 4
        assert data.note == "no epochs"


class TestDraw:
    """From bars to a figure."""

    def test_split_is_stacked_up_to_the_whole_epoch(self, bars, axes):
        draw_split(bars({0: [{}, {"e2e_s": 8.0}]}), axes, PALETTE)
        assert heights(axes) == {
            "stall": pytest.approx([1.5] * 4),
            "compute": pytest.approx([2.25] * 4),
            "overhead": pytest.approx([4.25, 0.25, 0.25, 0.25]),
        }
        tops = [patch.get_y() + patch.get_height() for patch in axes.containers[-1]]
        assert tops == pytest.approx([8.0, 4.0, 4.0, 4.0])

    def test_stall_of_first_and_later_epochs_stand_beside_each_other(self, bars, axes):
        draw_stall(bars({0: [{"wait_s": 5.0}, {}]}), axes, PALETTE)
        assert heights(axes) == {
            "epoch 0": pytest.approx([5.5, 1.5, 1.5, 1.5]),
            "epochs 1+": pytest.approx([1.5] * 4),
        }
        first, later = (container[0] for container in axes.containers)
        assert first.get_x() + first.get_width() == pytest.approx(later.get_x())

    def test_bars_of_a_group_stand_closer_than_groups(self, bars, axes):
        draw_split(bars(), axes, PALETTE)
        x = [patch.get_x() for patch in axes.containers[0]]
        assert x[1] - x[0] == pytest.approx(x[3] - x[2])
        assert x[2] - x[1] > x[1] - x[0]

    @pytest.mark.parametrize("draw", [draw_split, draw_stall])
    def test_axes_name_quantity_and_unit(self, draw, bars, axes):
        draw(bars(), axes, PALETTE)
        assert axes.get_ylabel().endswith("(s)")

    @pytest.mark.parametrize("draw", [draw_split, draw_stall])
    def test_number_of_workers_stands_below_each_bar(self, draw, bars, axes):
        draw(bars(), axes, PALETTE)
        assert [label.get_text() for label in axes.get_xticklabels()] == ["0", "2", "0", "2"]

    def test_bars_that_differ_in_prefetch_factor_are_told_apart(self, bars, axes, checkout):
        checkout.sweep({"num_workers": [1, 2], "prefetch_factor": [1, 8]})
        data = bars()
        draw_split(data, axes, PALETTE)
        labels = [label.get_text() for label in axes.get_xticklabels()]
        told = {(bar.group, label) for bar, label in zip(data.bars, labels, strict=True)}
        assert len(told) == 4

    def test_missing_bar_says_why(self, bars, axes, checkout):
        checkout.write("exclusions.yaml", [{"where": {"num_workers": 2}, "reason": "no memory"}])
        draw_split(bars(), axes, PALETTE)
        assert texts(axes) == ["missing: no memory"] * 2

    def test_missing_half_of_a_pair_says_why(self, bars, axes):
        draw_stall(bars({0: [{}, INVALID]}), axes, PALETTE)
        assert texts(axes) == ["missing: no valid epoch after the first"]

    def test_missing_first_epoch_says_why(self, bars, axes):
        draw_stall(bars({0: [INVALID, {}]}), axes, PALETTE)
        (text,) = texts(axes)
        assert text.removeprefix("missing: ").strip() != ""

    def test_nothing_missing_leaves_no_note(self, bars, axes):
        draw_split(bars(), axes, PALETTE)
        assert texts(axes) == []

    @pytest.mark.parametrize(
        ("draw", "keys"),
        [
            (draw_split, ["stall", "compute", "overhead", "missing"]),
            (draw_stall, ["epoch_0", "epoch_1_plus", "missing"]),
        ],
    )
    def test_every_colour_comes_from_the_palette(self, draw, keys, bars, axes):
        for lost in keys:
            short = {key: colour for key, colour in PALETTE.items() if key != lost}
            with pytest.raises(ConfigError, match=rf"no colour for {lost}\n"):
                draw(bars(), axes, short)


class TestNumbers:
    """What stands in the CSV beside a panel."""

    def test_split_has_a_row_per_bar(self, bars, checkout):
        rows = [dict(zip(COLUMNS_SPLIT, row, strict=True)) for row in rows_split(bars())]
        wanted = {
            **{"backend": "host", "run": checkout.ids[0], "group": "LeNet-5, batch 16"},
            **{"num_workers": 0, "epoch_set": "1+", "n_epochs": 1, "missing": ""},
            **{"stall_s": 1.5, "compute_s": 2.25, "overhead_s": 0.25},
        }
        assert wanted.items() <= rows[0].items()
        assert len(rows) == 4

    def test_stall_has_a_row_per_bar_of_both_sets(self, bars):
        rows = [dict(zip(COLUMNS_STALL, row, strict=True)) for row in rows_stall(bars())]
        assert [row["epoch_set"] for row in rows] == ["0", "1+"] * 4
        assert {row["stall_s"] for row in rows} == {1.5}

    def test_missing_bars_have_reasons_instead_of_numbers(self, bars, checkout):
        checkout.write("exclusions.yaml", [{"where": {"num_workers": 0}, "reason": "no memory"}])
        split = dict(zip(COLUMNS_SPLIT, rows_split(bars())[0], strict=True))
        stall = dict(zip(COLUMNS_STALL, rows_stall(bars())[0], strict=True))
        assert [split[f"{part}_s"] for part in ("stall", "compute", "overhead")] == [None] * 3
        assert (split["missing"], stall["missing"], stall["stall_s"]) == (
            *("no memory", "no memory", None),
        )


@pytest.fixture(scope="module")
def arguments(tmp_path_factory, make_checkout, write_epochs, pytestconfig):
    """All that `plot` takes, but for where to write: three runs, a row that cannot be had."""
    checkout = make_checkout(tmp_path_factory.mktemp("checkout"))
    *runs, gone = checkout.runs
    plotting = checkout.settings().plotting
    return {
        "paths": [write_epochs(r.id, r.factors, {}, {}, root=checkout.path) for r in runs],
        "excluded": [{**gone.factors, "run": gone.id, "reason": "out of memory"}],
        "titles": TITLES,
        "style_file": str(pytestconfig.rootpath / "workflow/styles/paper.mplstyle"),
        "palette": plotting.palette,
        "panels": checkout.settings().panels("fig02"),
    }


@pytest.fixture(scope="module")
def draw(arguments, tmp_path_factory):
    """Return a function that draws both panels; it gives name -> bytes of the files."""

    def call(**changes):
        folder = tmp_path_factory.mktemp("figures")
        stems = {panel: f"{folder}/{panel}" for panel in ("fig02a", "fig02b")}
        plot(**{**arguments, "stems": stems, **changes})
        return {path.name: path.read_bytes() for path in folder.iterdir()}

    return call


@pytest.fixture(scope="module")
def files(draw):
    """The files of a first drawing."""
    return draw()


class TestPlot:
    """Files."""

    def test_are_svg_png_and_csv_of_both_panels(self, files):
        assert sorted(files) == [
            f"{panel}.{form}" for panel in ("fig02a", "fig02b") for form in ("csv", "png", "svg")
        ]
        assert files["fig02a.svg"].startswith(b"<?xml")
        assert files["fig02a.png"].startswith(b"\x89PNG")

    def test_have_the_same_bytes_each_time(self, files, draw):
        assert [name for name, content in draw().items() if content != files[name]] == []

    def test_name_no_time_and_no_version(self, files):
        assert b"<dc:date>" not in files["fig02a.svg"]
        assert b"Matplotlib" not in files["fig02a.svg"] + files["fig02a.png"]

    def test_show_title_and_corner_note(self, files):
        svg = files["fig02a.svg"].decode("utf-8")
        assert "time by workers" in svg
        assert "measured on host/local; 3 runs, 6 epochs" in svg

    def test_change_with_a_colour(self, files, arguments, draw):
        other = draw(palette={**arguments["palette"], "epoch_0": "#000000"})
        changed = [name for name, content in other.items() if content != files[name]]
        assert sorted(changed) == ["fig02b.png", "fig02b.svg"]

    def test_leave_no_figure_open(self, files):
        assert plt.get_fignums() == []

    def test_leave_no_figure_open_after_an_error(self, draw):
        with pytest.raises(ConfigError):
            draw(palette={})
        assert plt.get_fignums() == []

    def test_have_empty_cells_for_missing_numbers(self, files):
        rows = csv.DictReader(files["fig02a.csv"].decode("utf-8").splitlines())
        missing = [row for row in rows if row["missing"]]
        assert [(row["stall_s"], row["missing"]) for row in missing] == [("", "out of memory")]
