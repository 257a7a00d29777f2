"""The shipped config/plotting.yaml: colours, functions and captions of everything it names."""

from importlib import import_module

import pytest

from epochwatt.study.config import Plotting
from epochwatt.study.devices import Devices
from epochwatt.study.validation import validated
from epochwatt.study.yaml_files import read_yaml


@pytest.fixture
def plotting(pytestconfig):
    path = pytestconfig.rootpath / "config/plotting.yaml"
    return validated(Plotting, read_yaml(path), "plotting.yaml")


def test_every_model_and_every_medium_has_a_colour(plotting, pytestconfig):
    models = read_yaml(pytestconfig.rootpath / "config/workloads.yaml")
    colours = [plotting.palette[model] for model in models]
    assert len(set(colours)) == len(colours)
    devices = Devices(pytestconfig.rootpath)
    media = {medium for name in devices.names() for medium in devices.get(name, "").storage}
    assert media - set(plotting.palette) == set()


def test_every_figure_has_a_function_and_every_panel_a_caption_and_one_place(plotting):
    panels = []
    for figure in plotting.figures.values():
        module, _, name = figure.draw.rpartition(".")
        assert callable(getattr(import_module(module), name))
        assert all(panel.caption or figure.caption for panel in figure.panels.values())
        panels += figure.panels
    assert len(set(panels)) == len(panels)
