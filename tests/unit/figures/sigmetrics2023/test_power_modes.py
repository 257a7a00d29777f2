"""Figures 8 and 11 to 16: the points, the fronts, what the markers tell, where letters stand."""

import math

import matplotlib.pyplot as plt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochwatt.figures.common.job import draw_figure
from epochwatt.figures.sigmetrics2023 import power_modes
from epochwatt.figures.sigmetrics2023.power_modes import (
    HOLLOW,
    LINE,
    SOLID,
    TRIANGLE,
    free_place,
    marker_styles,
)
from epochwatt.records import files

COSTS = {"a": (0.1, 9.0), "b": (0.2, 9.5), "g": (0.3, 5.0), "h": (0.4, 5.0)}  # Wh, s


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

    def test_each_network_has_its_front_and_lenet_the_other_axes(self, runs, job_of, numbers):
        both = [*runs(), *runs("resnet", {"g": (3.0, 349.0), "b": (2.0, 700.0)})]
        draw_figure(job_of("fig08", *both))
        told = set(numbers("fig08", "model", "power_mode", "axes", "on_front"))
        assert told == {
            ("lenet", "a", "secondary", "True"),
            ("lenet", "b", "secondary", "False"),
            ("lenet", "g", "secondary", "True"),
            ("lenet", "h", "secondary", "False"),
            ("resnet", "b", "primary", "True"),
            ("resnet", "g", "primary", "True"),
        }

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
        found = power_modes.group_runs(
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
        assert svg.count("energy per epoch (mWh)") == 2  # primary, and LeNet-5's
        assert "E2E per epoch (s), LeNet-5" in svg

    def test_note_says_where_from_and_that_marks_are_published(self, svg):
        assert "simulated, not measured: agx/d1; 6 runs, 12 epochs; black: published" in svg

    def test_missing_runs_are_named(self, runs, job_of, gone, tmp_path):
        draw_figure(job_of("fig08", *runs(), missing=[gone(power_mode="n")]))
        svg = (tmp_path / "figures/fig08.svg").read_text("utf-8")
        assert "missing: LeNet-5, n (out of memory)" in svg

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
    place = free_place((100.0, 100.0), [(100.0, 100.0, power_modes.POINT_PT)])
    assert place == pytest.approx((power_modes.NEAR_PT[0], 0.0))


@given(st.lists(st.tuples(st.floats(80, 120), st.floats(80, 120)), max_size=3))
def test_letter_is_clear_of_few_other_points(others):
    taken = [(x, y, power_modes.POINT_PT) for x, y in [(100.0, 100.0), *others]]
    x, y = free_place((100.0, 100.0), taken)
    assert math.hypot(x, y) <= power_modes.NEAR_PT[-1] + 1e-9
    assert all(math.dist((100.0 + x, 100.0 + y), (o[0], o[1])) >= 5.0 for o in taken)


def test_letters_keep_away_from_the_whole_front():
    places = power_modes.along([(0.0, 0.0), (9.0, 0.0), (9.0, 6.0)])
    assert places == [(0, 0), (3, 0), (6, 0), (9, 0), (9, 3)]
    assert power_modes.along([(0.0, 0.0)]) == []
