"""The figure of the cross-validation: what is drawn, the same bytes each time."""

import csv
import json

import matplotlib.pyplot as plt
import pytest
import vl_convert
from matplotlib.text import Text
from panels import SMALLEST_PT

from epochwatt.figures.common import style
from epochwatt.figures.validation import (
    FIXED,
    _name_worst,
    draw,
    draw_medians,
    plot,
    read_medians,
    read_names,
    read_points,
    read_rest,
    slips,
)
from epochwatt.published.numbers import Published, load_published

PALETTE = {"compute": "#0072B2", "epoch_0": "#D55E00", "stall": "#009E73", "missing": "#777777"}
HEAD = (
    "published_id class device published_value held_out_prediction held_out_error_pct "
    "judged_as unit section_error_pct met"
)
TABLE = f"""{HEAD.replace(" ", ",")}
S1,time,agx,10,11,9.531,ratio,s,13.9,
S4,time,agx,195,234,18.232,ratio,ms,20.1,
S2,energy_power,nano,5,4,22.314,ratio,W,23,
RS1,change,agx,-50,-75,69.315,ratio,pct,70,
RS2,change,nx,2,2.2,9.531,ratio,x,9.531,
RS3,small_change,nx,-2,-3,1,points,pct,1,
S3,bound,nx,20,12,,bound,s,,yes
H1,hipcw_time,nx,100,300,109.861,ratio,s,,
"""


PUBLISHED = Published({}, {})
GROUPINGS = """grouping,left_out,class,n,n_groups,median_error_pct,low_pct,high_pct
take-away,take-away,time,35,9,7.80,4.90,13.00
take-away,take-away,stall,20,6,11.60,9.00,15.50
take-away,take-away,energy_power,5,3,25.90,,
board,board,time,35,3,12.50,,
"""
PRIORS = """priors,fitted,seed,class,n,median_error_pct
as chosen,no,0,time,35,6.60
as chosen,yes,0,time,35,7.80
shifted 1,yes,0,time,35,10.70
"""


@pytest.fixture
def others(tmp_path):
    """Paths of groupings.csv and priors.csv."""
    (tmp_path / "groupings.csv").write_text(GROUPINGS, "utf-8")
    (tmp_path / "priors.csv").write_text(PRIORS, "utf-8")
    return str(tmp_path / "groupings.csv"), str(tmp_path / "priors.csv")


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "validation.csv"
    path.write_text(TABLE, "utf-8")
    return str(path)


def test_numbers_judged_as_a_ratio_are_drawn_changes_as_the_ratio_of_their_sides(table):
    told = {point.published_id: (point.published, point.held_out) for point in read_points(table)}
    assert told == {
        "S1": (10.0, 11.0),
        "S4": (0.195, 0.234),  # ms on an axis of seconds
        "S2": (5.0, 4.0),
        "RS1": (0.5, 0.25),
        "RS2": (2.0, 2.2),
        "H1": (100.0, 300.0),
    }


@pytest.fixture
def panel(table):
    """Return a function that draws one panel and gives its axes."""

    def call(name):
        _, axes = plt.subplots()
        draw(
            [point for point in read_points(table) if point.panel == name],
            name,
            axes,
            PALETTE,
            PUBLISHED,
            {"H1": "x"},
        )
        return axes

    yield call
    plt.close("all")


def texts(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def test_each_panel_has_its_unit_its_papers_and_their_median_errors(panel):
    times = panel("time")
    assert texts(times) == [
        "SIGMETRICS 2023, 2 numbers: median error 13.9 %, × or ÷ 1.15",
        "with the whole section left out: 17.0 %",
        "HiPCW 2021, 1 number: median error 109.9 %, × or ÷ 3.00",
    ]
    assert times.get_legend().get_title().get_text() == (
        "times, each take-away left out of the fit in turn"
    )
    low, high = times.get_ylim()
    assert low * high == pytest.approx(1.0)  # as far below 1 as above
    assert times.get_ylabel() == "simulated / published"
    assert times.get_xlabel().startswith("published (s); circles: of an epoch, tri")
    powers = panel("power")
    assert texts(powers)[0] == "SIGMETRICS 2023, 1 number: median error 22.3 %, × or ÷ 1.25"
    assert powers.get_xlabel().startswith("published (W)\n")
    assert panel("change").get_xlabel().startswith("published (ratio of two sides)\n")


def test_worst_points_of_each_paper_are_named_with_both_sides(panel):
    times = panel("time")
    assert [text.get_text() for text in times.texts] == ["1", "2", "3"]
    assert times.get_xlabel().replace(FIXED, " ").split("\n")[1:] == [
        "1  S4 0.195 s, here 0.234 s",
        "2  S1 10 s, here 11 s",
        "3  x 100 s, here 300 s",
    ]


def test_points_that_hide_one_another_and_what_is_printed_otherwise_are_said(table, pytestconfig):
    facts = load_published(pytestconfig.rootpath / "config/published")
    (point,) = [point for point in read_points(table) if point.published_id == "S4"]
    slip = point._replace(published_id="RH-III.A-04", published=21.56, held_out=12.0)
    near = slip._replace(published_id="RH-III.A-05", published=21.3, held_out=12.0, error_pct=1.0)
    far = slip._replace(published_id="x", published=2.0, error_pct=0.5)
    _, axes = plt.subplots()
    first, *_ = _name_worst([slip, near, far], axes, {}, facts)
    assert first.replace(FIXED, " ") == (
        "1  RH-III.A-04 21.6 s (printed 20.56), here 12 s; 2 points lie here"
    )
    plt.close("all")


def test_published_numbers_have_names_in_words(pytestconfig):
    facts = load_published(pytestconfig.rootpath / "config/published")
    names = read_names(facts, {"nx": "Xavier NX", "resnet": "ResNet-18"})
    assert names["H-III.A-06"] == "Xavier NX, mobilenet, SD card, 1 worker: stall"
    assert names["S5.6.4-01"] == "agx, ResNet-18, SSD, 4 workers, mode b: compute"
    assert (
        names["RH-III.A-02"] == "Xavier NX, mobilenet, SD card, 0 workers against 1 worker: stall"
    )
    # -67.3 % is of the second run, held against the first
    assert names["RS5.1.6-01"].endswith("hard disk, 2 workers against 1 worker: stall")
    assert "mode g against GPU at 114.75 MHz" in names["RS5.6-03"]
    assert "DVFS" not in names["S5.5.1-03"]
    assert names["S5.5.1-04"] == "agx, ResNet-18, SSD, 4 workers, DVFS on: energy"
    assert names["H-III.B-07"] == "agx, mobilenet, hard disk, 4 workers, first epoch: stall"


def test_numbers_that_a_paper_prints_otherwise_are_named(pytestconfig, table):
    facts = load_published(pytestconfig.rootpath / "config/published")
    (point,) = [point for point in read_points(table) if point.published_id == "S4"]
    points = [
        point._replace(published_id=id_, published=value)
        for id_, value in (("S5.3.1-01", 0.195), ("S5.3.1-02", 0.361))
    ]
    assert slips(points, facts) == [
        "corrected: 0.195 and 0.361 s are printed as 195 µs and 361 µs, read as ms"
    ]
    points = [point._replace(published_id=f"RH-III.A-0{n}") for n in range(1, 6)]
    assert slips(points, facts) == ["corrected: 5 numbers of SIGMETRICS 2023, (A-B)/B is printed"]
    assert slips([point], facts) == []


def test_what_is_not_drawn_is_counted(table):
    assert read_rest(table) == (
        "not drawn: 1 bounds and ranges, 1 of them met; 1 shares and changes below 20 %, off by "
        f"1.0 points in the median ({table})"
    )


def test_no_letters_are_too_small(pytestconfig, table, others, tmp_path, monkeypatch):
    saved = {}

    def save(figure, stem, rows):
        figure.draw_without_rendering()
        shown = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text()]
        saved["sizes"] = {text.get_fontsize() for text in shown}

    monkeypatch.setattr(style, "save", save)
    monkeypatch.setattr("epochwatt.figures.validation.write_validation_spec", lambda *_: None)
    root = pytestconfig.rootpath
    plot(
        *(table, *others, str(root / "config/published"), str(root / "config/paper.mplstyle")),
        *(PALETTE, {}, str(tmp_path / "validation")),
    )
    assert min(saved["sizes"]) >= SMALLEST_PT


def test_points_are_drawn_at_prediction_over_published_number(panel):
    dots = panel("change").collections[0]  # of SIGMETRICS 2023
    assert sorted(map(tuple, dots.get_offsets().tolist())) == [
        (0.5, 0.5),
        (2.0, pytest.approx(1.1)),
    ]


def test_interactive_spec_has_the_cells_of_the_csv(table, others, tmp_path, request):
    root = request.config.rootpath
    files = (str(root / "config/published"), str(root / "config/paper.mplstyle"))
    plot(table, *others, *files, PALETTE, {}, str(tmp_path / "validation"))
    spec = json.loads((tmp_path / "validation.vl.json").read_text("utf-8"))
    vl_convert.vegalite_to_svg(spec)
    assert "simulated, not measured" in spec["title"]["subtitle"]
    rows = list(csv.DictReader((tmp_path / "validation.csv").read_text("utf-8").splitlines()))
    points, medians = (
        list(csv.DictReader(part["data"]["values"].splitlines()))
        for part in (spec, spec["vconcat"][1])
    )
    cells = ("published_id", "published", "held_out", "error_pct")
    told = [tuple(row[name] for name in cells) for row in rows if row["published_id"]]
    assert [tuple(point[name] for name in cells) for point in points] == told
    assert {point["published_id"]: point["field"] for point in points}["S4"] == "times (s)"
    assert {point["published_id"]: point["ratio"] for point in points}["RS1"] == "0.5"
    units = {row["published_id"]: (row["published"], row["unit"]) for row in rows}
    assert (units["S4"], units["RS1"]) == (("0.195", "s"), ("0.5", "x"))
    assert [row["median_error_pct"] for row in medians] == [
        row["median_error_pct"] for row in rows if not row["published_id"]
    ]


def test_median_line_is_as_far_off_as_the_median(panel):
    dashed = [line for line in panel("power").get_lines() if line.get_linestyle() == "--"]
    assert dashed[0].get_ydata() == pytest.approx([1.25, 1.25], rel=1e-3)


def test_medians_are_by_what_was_left_out_and_by_other_priors(others):
    found = read_medians(*others)
    assert [(m.left_out, m.class_, m.median_error_pct) for m in found] == [
        ("take-away", "time", 7.8),
        ("take-away", "energy_power", 25.9),
        ("board", "time", 12.5),
        ("not fitted, priors as chosen", "time", 6.6),
        ("fitted, priors shifted 1", "time", 10.7),
    ]
    assert [m.low_pct for m in found] == [4.9, None, None, None, None]
    _, axes = plt.subplots()
    draw_medians(found, axes, PALETTE)
    assert texts(axes) == [
        "times, 35 numbers: 8 to 12 % by what is left out",
        "energies and powers, 5 numbers: 26 to 26 % by what is left out",
    ]
    ticks = axes.get_yticklabels()
    assert [tick.get_text() for tick in ticks] == [
        "left out of the fit: each ...",
        *("take-away of the paper", "board", "priors (fitted: without each take-away)"),
        *("priors as chosen, nothing fitted", "priors shifted at random (1), fitted"),
    ]
    assert [n for n, tick in enumerate(ticks) if tick.get_fontweight() == "bold"] == [0, 3]
    plt.close("all")


def test_files_are_the_same_each_time(table, others, tmp_path, request):
    root = request.config.rootpath
    files = (str(root / "config/published"), str(root / "config/paper.mplstyle"))
    for name in ("one", "two"):
        plot(table, *others, *files, PALETTE, {}, str(tmp_path / name / "validation"))
    first, second = (
        {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()}
        for name in ("one", "two")
    )
    assert first == second
    endings = ("csv", "png", "svg", "txt", "vl.json")
    assert sorted(first) == [f"validation.{ending}" for ending in endings]
    rows = list(csv.DictReader(first["validation.csv"].decode().splitlines()))
    ids = [row["published_id"] for row in rows]
    assert ids == ["S1", "S4", "S2", "RS1", "RS2", "H1", *[""] * 5]
    assert [row["left_out"] for row in rows[6:]][:2] == ["take-away", "take-away"]
    assert b"simulated, not measured" in first["validation.svg"]
