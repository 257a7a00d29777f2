"""The shipped config/plotting.yaml: colours, modules and captions of everything it names."""

from importlib.util import find_spec
from types import SimpleNamespace

import pytest
from jinja2 import Template

from epochwatt.study.config import Plotting
from epochwatt.study.devices import Devices
from epochwatt.study.validation import validated
from epochwatt.study.yaml_files import read_yaml


@pytest.fixture
def plotting(pytestconfig):
    path = pytestconfig.rootpath / "config/plotting.yaml"
    return validated(Plotting, read_yaml(path), "plotting.yaml")


def test_every_model_has_a_colour_of_its_own(plotting, pytestconfig):
    models = read_yaml(pytestconfig.rootpath / "config/workloads.yaml")
    colours = [plotting.palette[model] for model in models]
    assert len(set(colours)) == len(colours)


def test_every_medium_of_a_device_file_has_a_colour(plotting, pytestconfig):
    devices = Devices(pytestconfig.rootpath)
    media = {medium for name in devices.names() for medium in devices.get(name, "").storage}
    assert media - set(plotting.palette) == set()


def test_every_figure_has_a_module_and_every_panel_a_caption(plotting, pytestconfig):
    captions = pytestconfig.rootpath / "workflow/report"
    assert [f for f in plotting.figures if not find_spec(f"epochwatt.figures.{f}")] == []
    panels = [panel for figure in plotting.figures.values() for panel in figure.panels]
    assert [panel for panel in panels if not (captions / f"{panel}.rst").read_text("utf-8")] == []


@pytest.fixture
def caption(pytestconfig):
    """Return a function that gives the sentences of a panel's caption for a backend."""

    def of(panel, backend):
        told = (pytestconfig.rootpath / f"workflow/report/{panel}.rst").read_text("utf-8")
        snakemake = SimpleNamespace(wildcards=SimpleNamespace(backend=backend))
        return Template(told).render(snakemake=snakemake).split(". ")

    return of


@pytest.mark.parametrize(
    ("panel", "outcome"),
    [
        ("fig04b", "fill the GPU"),
        ("hipcw_fig02", "hides most"),
        ("hipcw_fig03", "saves nothing"),
        ("hipcw_fig04", "never reads the disk"),
        ("hipcw_fig05", "the first epoch reads the disk"),
    ],
)
def test_caption_tells_of_an_outcome_as_of_the_papers(caption, panel, outcome):
    (sentence,) = (each for each in caption(panel, "jetson") if outcome in each)
    assert sentence.startswith("In the paper ")


def test_caption_tells_of_all_modes_of_the_simulation_alone(caption):
    for backend, is_told in (("twin", True), ("jetson", False)):
        sentences = caption("fig10b", backend)
        assert any("ten modes of three networks" in each for each in sentences) == is_told
        assert not any("no bar is a test" in each for each in sentences)


@pytest.mark.parametrize("panel", ["fig10a", "fig10b"])
def test_caption_names_the_epochs_of_a_mape(caption, panel):
    (sentence,) = (each for each in caption(panel, "twin") if "percentage error" in each)
    assert "over epochs 1 to 5" in sentence


def test_every_panel_is_drawn_once(plotting):
    panels = [panel for figure in plotting.figures.values() for panel in figure.panels]
    assert len(set(panels)) == len(panels)
