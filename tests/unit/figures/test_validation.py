"""The figure of the cross-validation: what is drawn, the same bytes each time."""

import csv
import json

import matplotlib.pyplot as plt
import pytest
import vl_convert

from epochwatt.figures.validation import (
    FIELDS,
    draw,
    not_drawn,
    plot,
    read_points,
)

PALETTE = {"compute": "#0072B2", "epoch_0": "#D55E00", "stall": "#009E73", "missing": "#777777"}
TABLE = """\
published_id,class,device,published_value,held_out_prediction,held_out_error_pct,judged_as,unit,section_error_pct,met
S1,time,agx,10,11,9.531,ratio,s,13.9,
S4,time,agx,195,234,18.232,ratio,ms,20.1,
S2,energy_power,nano,5,4,22.314,ratio,W,23,
RS1,change,agx,-50,-75,69.315,ratio,pct,70,
RS2,change,nx,2,2.2,9.531,ratio,x,9.531,
RS3,small_change,nx,-2,-3,1,points,pct,1,
S3,bound,nx,20,12,,bound,s,,yes
H1,hipcw_time,nx,100,300,109.861,ratio,s,,
"""
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
def tables(tmp_path):
    """Paths of validation.csv, groupings.csv and priors.csv."""
    texts = {"validation": TABLE, "groupings": GROUPINGS, "priors": PRIORS}
    for name, text in texts.items():
        (tmp_path / f"{name}.csv").write_text(text, "utf-8")
    return [str(tmp_path / f"{name}.csv") for name in texts]


@pytest.fixture
def field(tables):
    """Return a function that draws one field and gives its axes."""

    def call(name):
        _, axes = plt.subplots()
        points = read_points(tables[0])
        draw(points[points["field"].eq(name)], FIELDS[name], axes, PALETTE)
        return axes

    yield call
    plt.close("all")


def texts(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def test_numbers_judged_as_a_ratio_are_drawn_changes_as_the_ratio_of_their_sides(tables, field):
    points = read_points(tables[0]).set_index("published_id")
    assert points[["published", "held_out", "field"]].to_dict("split")["data"] == [
        [10.0, 11.0, "time"],
        [0.195, 0.234, "time"],  # ms on an axis of seconds
        [5.0, 4.0, "power"],
        [0.5, 0.25, "change"],
        [2.0, 2.2, "change"],
        [100.0, 300.0, "time"],
    ]
    dots = field("change").collections[0].get_offsets().tolist()
    assert sorted(map(tuple, dots)) == [(0.5, 0.5), (2.0, pytest.approx(1.1))]
    assert not_drawn(tables[0]) == (
        "Not drawn: 1 bounds and ranges, 1 of them met; 1 shares and changes below 20 %, off by "
        f"1.0 points in the median ({tables[0]})"
    )


def test_files_are_the_same_each_time_and_the_spec_has_the_cells_of_the_csv(
    tables, tmp_path, pytestconfig
):
    root = pytestconfig.rootpath
    given = (str(root / "config/published"), str(root / "config/paper.mplstyle"), PALETTE, {})
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        plot(*tables, *given, str(folder / "validation"))
    first, second = ({p.name: p.read_bytes() for p in f.iterdir()} for f in folders)
    assert first == second
    endings = ("csv", "png", "svg", "txt", "vl.json")
    assert sorted(first) == [f"validation.{ending}" for ending in endings]
    assert b"simulated, not measured" in first["validation.svg"]
    rows = list(csv.DictReader(first["validation.csv"].decode().splitlines()))
    ids = [row["published_id"] for row in rows]
    assert ids == ["S1", "S4", "S2", "RS1", "RS2", "H1", *[""] * 5]
    assert [row["left_out"] for row in rows[6:]][:2] == ["take-away", "take-away"]
    spec = json.loads(first["validation.vl.json"])
    vl_convert.vegalite_to_svg(spec)
    assert "simulated, not measured" in spec["title"]["subtitle"]
    points = spec["vconcat"][0]["data"]["values"]
    cells = ("published_id", "published", "held_out", "error_pct")
    told = [tuple(row[name] for name in cells) for row in rows if row["published_id"]]
    assert [tuple(str(point[name]) for name in cells) for point in points] == told
