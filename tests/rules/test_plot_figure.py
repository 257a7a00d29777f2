"""The rules plot_{figure}: the numbers of all panels (golden), and the same files each time."""

from pathlib import Path

import pytest

from epochwatt.figures.common.job import Job
from epochwatt.figures.draw_figure import draw_figure

FOLDER = "results/figures/host"
INVALID = {"valid": False, "flags": {"fresh_weights"}, "e2e_s": 1000.0}


@pytest.fixture
def paths(checkout, write_epochs):
    """epochs.csv of three runs, one with an invalid epoch; a fourth cannot be had."""
    where = {"num_workers": 2, "batch_size": 32}
    checkout.write("exclusions.yaml", [{"where": where, "reason": "out of memory"}])
    first, second, third = checkout.runs
    return [
        write_epochs(first.id, first.factors, {"wait_s": 3.0, "e2e_s": 6.0}, {}, INVALID),
        write_epochs(second.id, second.factors, {}, {"copy_s": 0.25}, {"compute_s": 2.0}),
        write_epochs(third.id, third.factors, {}, INVALID),
    ]


def test_numbers_are_the_golden_ones_and_a_second_drawing_has_the_same_bytes(
    paths, checkout, run_rule, expected, assert_table, tmp_path, pytestconfig
):
    run_rule("plot_fig02", f"{FOLDER}/fig02a.svg")
    for panel in ("fig02a", "fig02b", "fig02c"):
        assert_table(f"{FOLDER}/{panel}.csv", expected("plot_figure", f"{panel}.csv"))

    root = pytestconfig.rootpath
    draw_figure(
        Job(
            folder=str(tmp_path / "again"),
            style=str(root / "config/paper.mplstyle"),
            epochs=paths,
            published=str(root / "config/published"),
            twin=str(root / "config/twin"),
            **checkout.settings().drawing("fig02", "host"),
        )
    )
    by_rule = {path.name: path.read_bytes() for path in Path(FOLDER).iterdir()}
    again = {path.name: path.read_bytes() for path in (tmp_path / "again").iterdir()}
    assert [name for name, found in by_rule.items() if found != again[name]] == []
    assert len(by_rule) == len(again) == 18
