"""The study's page, and its section on the landing page."""

import csv
from pathlib import Path

import pytest
from page_numbers import differing
from planted_page import plant

from epochwatt.claims.beside_paper import Beside
from epochwatt.claims.table_claims import TableClaimRow
from epochwatt.figures.powertrain import looks
from epochwatt.pages import powertrain_tables as tables
from epochwatt.pages.show_powertrain import write_powertrain

NUMBER = dict.fromkeys(Beside._fields, "") | {
    **{"id": "PT-01", "place": "Fig. 6", "exactness": "printed", "paper_workload": "YOLOv8n"},
    **{"workload": "pt-ssdlite-coco", "reference": "pt-resnet-imagenet", "method": "powertrain"},
    **{"n_profiled": "50", "target": "time_s", "statistic": "mape_pct", "unit": "%"},
    **{"qualifier": "less_than", "published": "15", "provenance": "simulated", "ours": "10.32"},
    **{"low": "9.1", "high": "11.9", "n_draws": "10"},
}
CLAIM = dict.fromkeys(TableClaimRow._fields, "") | {
    **{"claim": "PT-C1", "provenance": "simulated", "status": "holds", "sentence": "a < b"},
    **{"section": "abstract", "paper_value": "< 15 %", "our_value": "worst = 10 %"},
}


@pytest.fixture
def paths(tmp_path):
    """Tables of one number with ours, one without, and two claims."""
    rows = {
        "numbers": [NUMBER, NUMBER | {"ours": "", "missing": "no row of ours"}],
        "claims": [CLAIM, CLAIM | {"status": "not_evaluable", "missing": "rows of errors.csv"}],
        "errors": [],
        "penalties": [],
    }
    return {name: write(tmp_path / f"{name}.csv", some) for name, some in rows.items()}


def write(path, rows):
    with path.open("w", newline="", encoding="utf-8") as handle:
        writer = csv.DictWriter(handle, list(rows[0]) if rows else ["provenance"])
        writer.writeheader()
        writer.writerows(rows)
    return str(path)


def test_the_page_shows_figures_claims_and_numbers(paths, tmp_path):
    svg = tmp_path / "twin/powertrain_limits.svg"
    svg.parent.mkdir()
    svg.with_suffix(".txt").write_text("A title\n\nWhat one sees.\n")
    write_powertrain(paths.values(), [str(svg)], str(tmp_path / "index.html"))
    page = (tmp_path / "index.html").read_text("utf-8")
    assert 'src="twin/powertrain_limits.svg"' in page
    assert "What one sees." in page
    assert "of 2 claims 1 hold, 0 do not, 1 cannot be evaluated" in page
    assert "&lt; 15 %" in page
    assert "No table has a row." in page  # of methods


def test_numbers_say_which_workload_is_ours_and_how_the_papers_is_known(paths):
    first, second = tables.numbers_table([NUMBER, NUMBER | {"ours": "", "missing": "no row"}])
    assert first["workload"] == "YOLOv8n (ours: SSDLite320 on COCO)"
    assert (first["paper"], first["ours"], first["quartiles"]) == (
        "< 15 %",
        "10.3 %",
        "9.1 to 11.9",
    )
    assert (first["what"], first["the paper's is"]) == ("error (MAPE) of time", "printed")
    assert (second["ours"], second["ours is"]) == ("", "simulated")


def test_methods_stand_beside_each_other_of_one_provenance_alone():
    shared = {"provenance": "public", "group": "public", "device": "tx2", "n_profiled": "50"}
    shared |= {"reference": "", "target": "time_s"}
    errors = [
        shared | {"workload": w, "method": m, "draw": d, "mape_pct": v}
        for w, m, d, v in [
            *(("a", "physical", "0", "4"), ("a", "physical", "1", "6")),
            *(("b", "physical", "0", "9"), ("a", "powertrain_scratch", "0", "30")),
        ]
    ]
    errors.append(errors[0] | {"provenance": "simulated", "mape_pct": "1000"})
    rows = tables.methods_table(errors, [], "public")
    board = {"board": "Jetson TX2"}
    scratch = {"method": "same network from scratch", "error of time, %": "30"}
    physical = {"method": "physical terms", "error of time, %": "7 (5 to 9)"}
    assert rows == [
        board | scratch | {"workloads": 1, "draws": 1},
        board | physical | {"workloads": 2, "draws": 2},
    ]


def test_the_landing_page_shows_the_study_where_it_was_made(checkout, paths, write_epochs):
    figure = looks.gallery_entries(["results/figures/twin/powertrain_limits"])
    Path("results/figures/twin").mkdir(parents=True)
    Path("results/figures/twin/powertrain_limits.svg").write_text("<svg viewBox='0 0 9 9'></svg>")
    shown = {name: paths[name] for name in ("numbers", "claims")}
    page = plant([], write_epochs, figures=figure, powertrain=shown)
    assert differing(page, Path()) == []
    text = page.read_text("utf-8")
    assert '<section id="powertrain">' in text
    assert text.count('data-column="ours"') == 1  # what we have nothing for stands on its own page
    assert "PowerTrain (FGCS 2024)" in text
    assert "Under power limits: time lost, and limits broken" in text


def test_without_the_study_the_landing_page_does_not_mention_it(checkout, write_epochs):
    assert "PowerTrain" not in plant([], write_epochs).read_text("utf-8")
