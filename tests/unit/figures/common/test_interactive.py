"""Interactive specs: the cells of the CSV, marks of what is published, and Vega-Lite takes them."""

import csv
import io
import itertools
import json
import re
from pathlib import Path

import pytest
import vl_convert

from epochwatt.figures.common.interactive import write_spec
from epochwatt.figures.draw_figure import draw_figure
from epochwatt.study.config import Plotting
from epochwatt.study.validation import validated
from epochwatt.study.yaml_files import read_yaml

PALETTE = {
    **{"lenet": "#D55E00", "stall": "#00441B", "compute": "#8FBC5A", "published": "#000000"},
    **{"warning": "#B2182B", "overhead": "#8C8C8C", "epoch_0": "#44546A"},
    "epoch_1_plus": "#A9BCCB",
}
TITLES = {"lenet": "LeNet-5", "agx": "AGX Xavier"}
RUN = {
    **{"run": "r", "backend": "twin", "device": "agx", "instance": "d1", "model": "lenet"},
    **{"num_workers": "0", "power_mode": "g", "missing": "", "published": "", "published_hi": ""},
    **{"published_qualifier": "", "seen_by_fit": ""},
}


@pytest.fixture
def spec_of(tmp_path):
    """Return a function that gives the spec of rows."""

    def make(*rows, backend="twin", verdict=""):
        stem = tmp_path / "fig"
        names = list(dict.fromkeys(name for row in rows for name in row))
        with open(f"{stem}.csv", "w", newline="", encoding="utf-8") as handle:
            writer = csv.DictWriter(handle, names, restval="", lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
        write_spec(str(stem), "A title", backend, TITLES, PALETTE, verdict)
        return json.loads((tmp_path / "fig.vl.json").read_text("utf-8"))

    return make


def row(**cells):
    return {**RUN, **cells}


def stack(**cells):
    parts = {"stall_s": "1", "compute_s": "2", "overhead_s": "0.5", "e2e_s": "3.5"}
    return [row(quantity=name, value=value, **cells) for name, value in parts.items()]


def drawn(spec):
    """Return the SVG; what holds no number would be drawn as NaN."""
    plain = json.loads(json.dumps(spec).replace('"container"', "400"))
    svg = vl_convert.vegalite_to_svg(plain)
    assert "NaN" not in svg
    return svg


def n_marks(spec, kind):
    return len(re.findall(f'aria-roledescription="{kind}"', drawn(spec)))


def cells(spec):
    return list(csv.DictReader(io.StringIO(spec["data"]["values"])))


def test_data_are_the_cells_of_the_csv_and_parts_of_an_epoch_a_stack(spec_of):
    rows = stack(num_workers="0") + stack(num_workers="2")
    spec = spec_of(*rows)
    names = (*RUN, "value")
    assert [{n: cell[n] for n in names} for cell in cells(spec)] == [
        {n: r[n] for n in names} for r in rows
    ]
    assert n_marks(spec, "bar") == 6  # without their sum


def test_published_numbers_are_marks_ranges_rods_and_what_is_missing_a_cross(spec_of):
    spec = spec_of(
        row(quantity="stall_s", value="1", published="1.5", seen_by_fit="True"),
        row(
            quantity="stall_s", value="2", num_workers="1", published="3",
            published_qualifier="less_than", seen_by_fit="False",
        ),
        row(quantity="stall_s", value="", num_workers="2", missing="out of memory"),
    )  # fmt: skip
    svg = drawn(spec)
    assert "black marks: published" in spec["title"]["subtitle"]
    assert (n_marks(spec, "bar"), n_marks(spec, "point")) == (2, 2)
    assert "published: 1.5" in svg
    assert "missing: out of memory" in svg
    assert {cell["shape"] for cell in cells(spec)} == {"diamond", "triangle-down"}
    ends = spec_of(row(quantity="stall_s", value="1", published="1", published_hi="2"))
    assert n_marks(ends, "rule mark") == 1


@pytest.mark.thorough
def test_every_panel_of_epochs_alone_has_a_spec_that_is_drawn(job_of, made_up, pytestconfig):
    text = read_yaml(pytestconfig.rootpath / "config/plotting.yaml")
    figures = validated(Plotting, text, "plotting.yaml").figures
    power = {"energy_wh": 0.02, "energy_paper_wh": 0.02, "power_mean_w": 9.0, "read_iops": 3.0}
    power |= {"gpu_util_pct": 40.0, "cached_after_pct": 90.0}
    epochs = [{"e2e_s": 4.0 + 0.1 * n, **power} for n in range(3)]
    where = itertools.product(("agx", "nx"), ("g", "a"), (0, 4), ("ssd", "hdd"))
    runs = [
        made_up(*epochs, device=d, power_mode=m, num_workers=w, storage=s) for d, m, w, s in where
    ]
    n_panels = 0
    for name, figure in figures.items():
        if set(figure.reads) == {"epochs"}:
            job = job_of(name, *runs)
            draw_figure(job)
            for panel in figure.panels:
                spec = json.loads(Path(f"{job.folder}/{panel}.vl.json").read_text("utf-8"))
                assert spec["title"]["text"] == figure.panels[panel].title
                drawn(spec)
                n_panels += 1
    assert n_panels > 20
