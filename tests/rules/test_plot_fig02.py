"""Rule plot_fig02: the numbers of both panels (golden), and files that are the same each time."""

from pathlib import Path

import pytest

from epochwatt.figures.fig02 import plot

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
    for panel in ("fig02a", "fig02b"):
        assert_table(f"{FOLDER}/{panel}.csv", expected("plot_fig02", f"{panel}.csv"))

    settings = checkout.settings()
    plot(
        paths=paths,
        excluded=settings.excluded("fig02", "host"),
        titles=settings.model_titles,
        style_file=str(pytestconfig.rootpath / "workflow/styles/paper.mplstyle"),
        palette=settings.plotting.palette,
        panels=settings.panels("fig02"),
        stems={panel: str(tmp_path / panel) for panel in ("fig02a", "fig02b")},
    )
    by_rule = {path.name: path.read_bytes() for path in Path(FOLDER).iterdir()}
    differing = [name for name, found in by_rule.items() if found != (tmp_path / name).read_bytes()]
    assert differing == []
    assert len(by_rule) == 6
