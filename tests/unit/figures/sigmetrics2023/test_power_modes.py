"""Figures 8 and 11 to 16: the points, the fronts, what the markers tell, where letters stand."""

import math
from itertools import combinations

import matplotlib.pyplot as plt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochwatt.board.records import files
from epochwatt.figures.draw_figure import draw_figure
from epochwatt.figures.sigmetrics2023 import letters
from epochwatt.figures.sigmetrics2023.clouds import Cloud, group_runs, ranges
from epochwatt.figures.sigmetrics2023.letters import free_place
from epochwatt.figures.sigmetrics2023.power_modes import (
    HOLLOW,
    LINE,
    SOLID,
    TRIANGLE,
    draw_arrow,
    marker_styles,
)

COSTS = {"a": (0.1, 9.0), "b": (0.2, 9.5), "g": (0.3, 5.0), "h": (0.4, 5.0)}  # Wh, s
PAPER = {"setup": "sigmetrics2023"}
MODELS = ("lenet", "mobilenet", "resnet")


@pytest.fixture
def runs(made_up):
    """Return a function that writes a run per mode of `costs`; gives the paths."""

    def write(model="lenet", costs=COSTS, **factors):
        return [
            made_up(
                {},
                {"energy_paper_wh": wh, "e2e_s": s, "power_mean_w": wh * 3600 / s},
                **{"model": model, "power_mode": mode, **factors},
            )
            for mode, (wh, s) in costs.items()
        ]

    return write


@pytest.fixture
def records(tmp_path):
    """Return a function that writes a record of run-0, run-1 and so on; gives the folders."""

    def write(*settings):
        folders = {f"run-{n}": tmp_path / f"records/{n}" for n in range(len(settings))}
        for folder, told in zip(folders.values(), settings, strict=True):
            (folder / "epoch-0").mkdir(parents=True)
            if told is not None:
                record = {"factors": {"power_mode_settings": told}}
                files.write_json(str(folder / "epoch-0/record.json"), record)
        return {run: str(folder) for run, folder in folders.items()}

    return write


def words(job):
    """Return the texts of a job's panels, each in one line."""
    texts = [text.get_text() for panel in job.saved.values() for text, _, _ in panel]
    return " | ".join(text.replace("\n", " ") for text in texts)


class TestNumbers:
    """What stands in the CSV beside the panel."""

    @pytest.mark.parametrize("figure", ["fig08", "fig13"])
    def test_points_are_energy_and_time_and_those_on_the_front_are_told(
        self, figure, runs, job_of, numbers, records
    ):
        folders = records(*[{"cores": 8, "cpu_mhz": 1, "gpu_mhz": 1, "emc_mhz": 1}] * 4)
        draw_figure(job_of(figure, *runs(), records=folders))
        told = numbers(figure, "power_mode", "quantity", "value", "on_front", "epoch_set")
        assert told == [
            ("a", "energy_paper_wh", "0.1", "True", "1+"),
            ("a", "e2e_s", "9.0", "True", "1+"),
            ("b", "energy_paper_wh", "0.2", "False", "1+"),
            ("b", "e2e_s", "9.5", "False", "1+"),
            ("g", "energy_paper_wh", "0.3", "True", "1+"),
            ("g", "e2e_s", "5.0", "True", "1+"),
            ("h", "energy_paper_wh", "0.4", "False", "1+"),
            ("h", "e2e_s", "5.0", "False", "1+"),
        ]

    def test_figure_11_has_power_and_its_own_front(self, runs, job_of, numbers):
        costs = {"a": (0.001, 6.0), "g": (0.003, 3.0), "h": (0.01, 4.0)}
        draw_figure(job_of("fig11", *runs(costs=costs)))
        told = numbers("fig11", "power_mode", "quantity", "value", "on_front")
        assert told[::2] == [
            ("a", "power_mean_w", str(0.001 * 3600 / 6.0), "True"),
            ("g", "power_mean_w", str(0.003 * 3600 / 3.0), "True"),
            ("h", "power_mean_w", str(0.01 * 3600 / 4.0), "False"),
        ]

    def test_each_network_has_its_front_and_only_lenet_modes_k_to_n_in_it(
        self, runs, job_of, numbers
    ):
        costs = {"g": (3.0, 349.0), "b": (2.0, 700.0), "n": (2.5, 500.0)}
        draw_figure(job_of("fig08", *runs(costs=costs, **PAPER), *runs("resnet", costs, **PAPER)))
        told = set(numbers("fig08", "model", "power_mode", "compared", "on_front"))
        assert told == {
            *(("lenet", mode, "True", "True") for mode in "bgn"),
            *(("resnet", mode, "True", "True") for mode in "bg"),
            ("resnet", "n", "False", ""),
        }

    def test_modes_of_other_setups_are_all_compared(self, runs, job_of):
        both = runs("resnet", {"n": (2.0, 5.0), "g": (3.0, 4.0)})
        (cloud,) = group_runs(job_of("fig08", *both), "energy_paper_wh")
        assert cloud.front == [0, 1]

    def test_run_without_energy_is_missing_and_on_no_front(self, runs, job_of, numbers, made_up):
        paths = [*runs(), made_up({}, {}, power_mode="c")]
        draw_figure(job_of("fig08", *paths))
        told = numbers("fig08", "power_mode", "quantity", "value", "on_front", "missing")
        assert told[-2:] == [
            ("c", "energy_paper_wh", "", "", "not measured"),
            ("c", "e2e_s", "4.0", "", ""),
        ]

    def test_run_that_cannot_be_had_keeps_its_row(self, runs, job_of, numbers, gone):
        draw_figure(job_of("fig08", *runs(), missing=[gone(power_mode="n")]))
        assert numbers("fig08", "power_mode", "missing")[-1] == ("n", "out of memory")

    def test_published_numbers_stand_beside_ours(self, runs, job_of, numbers):
        draw_figure(job_of("fig08", *runs("resnet", {"g": (3.0, 350.0), "b": (2.0, 700.0)})))
        told = numbers("fig08", "power_mode", "quantity", "published", "published_id")
        assert told == [
            ("g", "energy_paper_wh", "3.03", "S5.5.1-03"),
            ("g", "e2e_s", "349.0", "S5.5.1-01"),
            ("b", "energy_paper_wh", "", ""),
            ("b", "e2e_s", "", ""),
        ]

    def test_a_single_mode_compares_nothing(self, runs, job_of):
        found = group_runs(
            job_of("fig08", *runs(), *runs("resnet", {"g": (3, 9)})), "energy_paper_wh"
        )
        assert [cloud.model for cloud in found] == ["lenet"]

    def test_setting_of_the_mode_is_told_and_empty_where_records_are_gone(
        self, runs, job_of, numbers, records
    ):
        folders = records({"cores": 8}, {"cores": 2}, {"cores": 8}, None)
        draw_figure(job_of("fig13", *runs(), records=folders))
        told = numbers("fig13", "power_mode", "cores")[::2]
        assert told == [("a", "8"), ("b", "2"), ("g", "8"), ("h", "")]

    def test_a_run_that_was_left_out_and_a_record_without_settings_have_none(
        self, runs, job_of, numbers, records, gone
    ):
        folders = records({"cores": 8}, {"cores": 2}, {"cores": 8}, {"cores": 8})
        path = f"{folders['run-3']}/epoch-0/record.json"
        files.write_json(path, {"factors": {}})
        missing = [gone(power_mode="n")]
        draw_figure(job_of("fig13", *runs(), records=folders, missing=missing))
        told = dict(numbers("fig13", "power_mode", "cores"))
        assert told == {"a": "8", "b": "2", "g": "8", "h": "", "n": ""}


class TestPicture:
    """What is drawn."""

    @pytest.fixture
    def svg(self, runs, job_of, tmp_path):
        """The text of figure 8 of two networks."""
        both = [*runs(), *runs("resnet", {"g": (3.0, 349.0), "b": (2.0, 700.0)})]
        job = job_of("fig08", *both, titles={"lenet": "LeNet-5", "resnet": "ResNet-18"})
        draw_figure(job)
        return (tmp_path / "figures/fig08.svg").read_text("utf-8")

    def test_axes_are_named_with_the_papers_units(self, svg):
        assert svg.count("energy per epoch (mWh)") == 2  # a field for each network
        assert svg.count("E2E per epoch, epochs 1+ (s)") == 1

    def test_a_published_point_is_a_cross(self, svg):
        assert ">published<" in svg
        assert "published E2E alone" not in svg

    def test_published_spreads_of_energy_are_told_beside_ours(self, runs, job_of):
        costs = {"a": (2.0, 9.0), "e": (1.8, 8.0), "g": (3.0, 5.0)}
        job = job_of("fig08", *runs("resnet", costs, **PAPER))
        draw_figure(job)
        assert "spread, a, e: ≈6 %, here 10 %" in words(job)

    def test_no_figure_stays_open(self, svg):
        assert plt.get_fignums() == []

    def test_only_missing_runs_draw_an_empty_panel(self, job_of, gone, numbers):
        none = [gone(power_mode="n"), {**gone(power_mode="m"), "run": "gone too"}]
        draw_figure(job_of("fig08", missing=none))
        assert {missing for (missing,) in numbers("fig08", "missing")} == {"out of memory"}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({8, 4, 2}, {8: SOLID, 4: HOLLOW, 2: LINE}),
        ({4.0, 3.0, 2.0, 1.0}, {4.0: SOLID, 3.0: TRIANGLE, 2.0: HOLLOW, 1.0: LINE}),
        ({1, 2, 3, 4, 5}, {5: SOLID, 4: TRIANGLE, 3: HOLLOW, 2: LINE, 1: LINE}),
        (set(), {}),
    ],
)
def test_markers_go_from_high_to_low(values, expected):
    assert marker_styles(values) == expected


def test_letter_stands_right_of_a_lone_point():
    place = free_place((100.0, 100.0), [(100.0, 100.0, letters.POINT_PT)])
    assert place == pytest.approx((letters.NEAR_PT[0], 0.0))


@given(st.lists(st.tuples(st.floats(80, 120), st.floats(80, 120)), max_size=3))
def test_letter_is_clear_of_few_other_points(others):
    taken = [(x, y, letters.POINT_PT) for x, y in [(100.0, 100.0), *others]]
    x, y = free_place((100.0, 100.0), taken)
    assert math.hypot(x, y) <= letters.NEAR_PT[-1] + 1e-9
    assert all(math.dist((100.0 + x, 100.0 + y), (o[0], o[1])) >= 5.0 for o in taken)


@given(st.lists(st.tuples(st.floats(20, 80), st.floats(20, 80)), min_size=14, max_size=14))
def test_letters_of_a_field_do_not_collide(points):
    taken = [(x, y, letters.POINT_PT) for x, y in points]
    placed = []
    for point in points:
        x, y = free_place(point, taken, (-40.0, -40.0, 140.0, 200.0))
        placed.append((point[0] + x, point[1] + y))
        taken.append((*placed[-1], letters.LETTER_PT))
    assert all(math.dist(a, b) >= letters.LETTER_PT - 0.01 for a, b in combinations(placed, 2))
    assert all(-40.0 <= x <= 140.0 and -40.0 <= y <= 200.0 for x, y in placed)


@given(st.lists(st.tuples(st.floats(70, 130), st.floats(70, 130)), min_size=1, max_size=3))
def test_a_letter_without_a_line_is_clearly_nearer_to_its_own_point(others):
    own = (100.0, 100.0)
    apart = [other for other in others if math.dist(own, other) > letters.POINT_PT]
    x, y = free_place(own, [(*other, letters.POINT_PT) for other in apart], rivals=apart)
    at, length = (100.0 + x, 100.0 + y), math.hypot(x, y)
    if length <= letters.FAR_PT:
        assert all(math.dist(at, other) >= letters.NEARER * length - 0.02 for other in apart)


def test_letters_keep_away_from_the_whole_front():
    places = letters.along([(0.0, 0.0), (9.0, 0.0), (9.0, 6.0)])
    assert places == [(0, 0), (3, 0), (6, 0), (9, 0), (9, 3)]
    assert letters.along([(0.0, 0.0)]) == []


def test_lines_of_letters_do_not_cross():
    """Three points in a row, letters only above: without care the second line crosses the first."""
    figure, axes = plt.subplots(figsize=(1.2, 1.2))
    axes.set(xlim=(0.0, 10.0), ylim=(0.0, 10.0))
    taken = letters.Taken(axes)
    points = [(4.0, 5.0), (4.2, 4.8), (4.8, 4.8), (5.2, 4.6), (4.5, 5.4)]
    taken.add_rivals(points)
    for point, name in zip(points, "cdfen", strict=True):
        taken.write(point, name, "green")
    ties = [(text.xy, text.get_position()) for text in axes.texts if text.arrow_patch]
    lines = []
    for at, offset in ties:
        x, y = letters.on_page(axes, at)
        lines.append(((x, y), (x + offset[0], y + offset[1])))
    assert len(lines) >= 2
    assert not any(cross(*one, *two) for one, two in combinations(lines, 2))
    for (x0, y0), (x1, y1) in lines:  # an upright line could be taken for an l
        assert abs(x1 - x0) >= letters.UPRIGHT * math.hypot(x1 - x0, y1 - y0) - 1e-9
    plt.close(figure)


def cross(a, b, c, d):
    """Say whether the lines from a to b and from c to d cross."""

    def side(p, q, r):
        return (q[0] - p[0]) * (r[1] - p[1]) - (q[1] - p[1]) * (r[0] - p[0])

    return side(a, b, c) * side(a, b, d) < 0 and side(c, d, a) * side(c, d, b) < 0


@pytest.mark.parametrize(
    ("points", "is_drawn"),
    [
        ({"f": (1.0, 9.0), "e": (9.0, 1.0)}, True),
        ({"f": (5.0, 5.0), "e": (5.3, 5.0)}, False),  # a stub
        ({"f": (1.0, 9.0), "e": (9.0, 1.0), "c": (5.0, 5.1)}, False),  # c lies on it
    ],
)
def test_an_arrow_has_room_or_is_not_drawn(points, is_drawn, runs, job_of):
    job = job_of("fig08", *runs(costs=points))
    (cloud,) = group_runs(job, "energy_paper_wh")
    bare = Cloud(cloud.label, cloud.model, cloud.runs, cloud.x, frozenset(points))  # no front
    figure, axes = plt.subplots(figsize=(2.0, 2.0))
    axes.set(xlim=(0.0, 10.0), ylim=(0.0, 10.0))
    assert draw_arrow(bare, axes, ["f", "e"]) == ([points["f"], points["e"]] if is_drawn else [])
    assert bool(axes.texts) == is_drawn
    plt.close(figure)


def test_an_arrow_is_not_drawn_on_the_front(runs, job_of):
    job = job_of("fig08", *runs(costs={"f": (1.0, 9.0), "e": (9.0, 1.0)}))
    (cloud,) = group_runs(job, "energy_paper_wh")
    figure, axes = plt.subplots(figsize=(2.0, 2.0))
    axes.set(xlim=(0.0, 10.0), ylim=(0.0, 10.0))
    assert draw_arrow(cloud, axes, ["f", "e"]) == []
    plt.close(figure)


def test_letters_in_words():
    assert ranges("abcdefklmn") == "a to f, k to n"
    assert ranges(["b", "a", "g"]) == "a, b, g"
