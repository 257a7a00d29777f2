"""The figure of the cross-validation: what is drawn, the same bytes each time."""

import csv

import matplotlib.pyplot as plt
import pytest

from epochwatt.figures.validation import draw, plot, read

PALETTE = {"compute": "#0072B2", "epoch_0": "#D55E00", "stall": "#009E73", "missing": "#777777"}
HEAD = (
    "published_id class device published_value held_out_prediction held_out_error_pct "
    "judged_as unit"
)
TABLE = f"""{HEAD.replace(" ", ",")}
S1,time,agx,10,11,9.531,ratio,s
S2,energy_power,nano,5,4,22.314,ratio,W
RS1,change,agx,-50,-75,69.315,ratio,pct
RS2,change,nx,2,2.2,9.531,ratio,x
RS3,small_change,nx,-2,-3,1,points,pct
S3,bound,nx,20,12,,bound,s
H1,hipcw_time,nx,100,300,109.861,ratio,s
"""


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "validation.csv"
    path.write_text(TABLE, "utf-8")
    return str(path)


def test_numbers_judged_as_a_ratio_are_drawn_changes_as_the_ratio_of_their_sides(table):
    told = {point.published_id: (point.published, point.held_out) for point in read(table)}
    assert told == {
        "S1": (10.0, 11.0),
        "S2": (5.0, 4.0),
        "RS1": (0.5, 0.25),
        "RS2": (2.0, 2.2),
        "H1": (100.0, 300.0),
    }


def test_classes_and_papers_are_told_apart_with_their_numbers(table):
    figure, axes = plt.subplots()
    draw(read(table), axes, PALETTE)
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    plt.close(figure)
    assert labels == [
        "time (s, ms), SIGMETRICS 2023: 1",
        "energy, power (Wh, W), SIGMETRICS 2023: 1",
        "change (ratio), SIGMETRICS 2023: 2",
        "time (s, ms), HiPCW 2021, in no fit: 1",
    ]
    assert axes.get_xlim() == axes.get_ylim()


def test_files_are_the_same_each_time(table, tmp_path, request):
    style = str(request.config.rootpath / "workflow/styles/paper.mplstyle")
    for name in ("one", "two"):
        plot(table, style, PALETTE, str(tmp_path / name / "validation"))
    first, second = (
        {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()}
        for name in ("one", "two")
    )
    assert first == second
    assert sorted(first) == ["validation.csv", "validation.png", "validation.svg"]
    rows = list(csv.DictReader(first["validation.csv"].decode().splitlines()))
    assert [row["published_id"] for row in rows] == ["S1", "S2", "RS1", "RS2", "H1"]
    assert b"simulated boards" in first["validation.svg"]
