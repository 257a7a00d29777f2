"""The shipped config/plotting.yaml: colours, modules and captions of everything it names."""

from importlib.util import find_spec

import pytest

from epochwatt.study.config import Plotting, read_yaml, validated


@pytest.fixture
def plotting(pytestconfig):
    path = pytestconfig.rootpath / "config/plotting.yaml"
    return validated(Plotting, read_yaml(path), "plotting.yaml")


def test_every_model_has_a_colour_of_its_own(plotting, pytestconfig):
    models = read_yaml(pytestconfig.rootpath / "config/workloads.yaml")
    colours = [plotting.palette[model] for model in models]
    assert len(set(colours)) == len(colours)


def test_every_figure_has_a_module_and_every_panel_a_caption(plotting, pytestconfig):
    captions = pytestconfig.rootpath / "workflow/report"
    assert [f for f in plotting.figures if not find_spec(f"epochwatt.figures.{f}")] == []
    panels = [panel for figure in plotting.figures.values() for panel in figure.panels]
    assert [panel for panel in panels if not (captions / f"{panel}.rst").read_text("utf-8")] == []


def test_every_panel_is_drawn_once(plotting):
    panels = [panel for figure in plotting.figures.values() for panel in figure.panels]
    assert len(set(panels)) == len(panels)
