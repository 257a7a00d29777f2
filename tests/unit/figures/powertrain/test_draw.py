"""The study's figures: what is drawn is what the tables say, and each says where it is from."""

import csv
import json
from itertools import product
from pathlib import Path

import pytest
import vl_convert

from epochwatt.figures.powertrain import looks
from epochwatt.figures.powertrain.draw import draw_powertrain
from epochwatt.prediction.transfer.names import TABLES

CONFIG = Path(__file__).resolve().parents[4] / "config"
RESNET, MOBILENET = "pt-resnet-imagenet", "pt-mobilenet-gld"
BASE = {
    "simulated": {"reference": RESNET, "workload": MOBILENET, "device": "orin"},
    "public": {"reference": "translucence-tx2-5000", "workload": "translucence-tx2-20000"},
}


def trial(method, provenance="simulated", **cells):
    """Return the shared cells of a row; only the transferred network has a reference."""
    row = {"provenance": provenance, "group": "learning-curve", "n_profiled": "50", "draw": "0"}
    row |= {"device": "tx2", **BASE[provenance], "method": method}
    return row | ({} if method == "powertrain" else {"reference": ""}) | cells


def errors():
    """Transfer: 10 % from ten modes, 6 % from fifty; from scratch twice that; three draws."""
    for provenance in BASE:
        for (method, times), (n, mape), draw, (target, part) in product(
            (("powertrain", 1), ("powertrain_scratch", 2)),
            (("10", 10), ("50", 6)),
            (0, 1, 2),
            (("time_s", 1.0), ("power_w", 0.5)),
        ):
            cells = {"n_profiled": n, "draw": str(draw), "target": target}
            yield trial(method, provenance, **cells, mape_pct=f"{(mape + draw - 1) * times * part}")
        everything = {"n_profiled": "4368", "target": "time_s", "mape_pct": "3"}
        yield trial("powertrain_all", provenance, group="all-modes", **everything)


def choices():
    """Limits of 20 and 30 W: transfer 1 and 3 % slower; one method has no answer."""
    penalties = {"powertrain": "1 3", "powertrain_scratch": "-70 -60", "random_front": " 14"}
    for provenance, (method, values) in product(BASE, penalties.items()):
        for limit, penalty in zip(("20", "30"), values.split(" "), strict=True):
            yield trial(method, provenance, limit_w=limit, penalty_pct=penalty)


def penalties():
    for provenance in BASE:
        for method, answered, over, over_1w in (
            ("powertrain", "2", "50", "0"),
            ("powertrain_scratch", "2", "100", "100"),
            ("random_front", "1", "0", "0"),
        ):
            cells = {"n_limits": "2", "n_answered": answered, "over_pct": over}
            cells |= {"over_1w_pct": over_1w, "excess_area_pct": "2", "penalty_pct": "2"}
            yield trial(method, provenance, **cells)


def fronts():
    """The observed front, and one that a method expects, in seconds of a mini-batch."""
    for watts, s in (("20", "0.2"), ("30", "0.1")):
        yield trial("observed", power_w=watts, time_s=s, n_profiled="", draw="")
        expected = {"predicted_power_w": watts, "predicted_time_s": s}
        yield trial("powertrain", **expected, power_w="31", time_s="0.1")


def example():
    shared = {"limit_w": "30", "minibatches": "1000"}
    yield trial("observed", **shared, epoch_s="100", power_w="29.5", penalty_pct="0", over_w="-0.5")
    yield trial("maxn", **shared, epoch_s="80", power_w="45", penalty_pct="-20", over_w="15")
    cells = {"predicted_epoch_s": "95", "predicted_power_w": "29.9", "epoch_s": "97"}
    cells |= {"power_w": "31.5", "penalty_pct": "-3", "over_w": "1.5"}
    yield trial("powertrain", **shared, **cells)


def transfer():
    for reference, method, mape in ((RESNET, "powertrain", 11), (MOBILENET, "powertrain_all", 7)):
        for target in looks.TARGETS:
            row = trial(method, reference=reference, target=target)
            yield row | {"mape_pct": mape, "low_pct": "10", "high_pct": "12", "n_draws": "3"}


ROWS = (errors, choices, penalties, fronts, example, transfer)


def draw(folder, *rows_of):
    """Draw all figures of tables with these rows; return their folder."""
    rows = {make.__name__: make() for make in rows_of}
    for name, columns in TABLES.items():
        with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as handle:
            writer = csv.DictWriter(handle, columns, restval="", extrasaction="ignore")
            writer.writeheader()
            writer.writerows(rows.get(name, []))
    modes, figures = folder / "modes.csv", folder / "figures"
    modes.write_text("power_w,time_s\n29,0.2\n30,0.15\n,0.3\n")
    numbers = str(CONFIG / "published/powertrain/numbers.csv")
    tables = [str(folder / f"{name}.csv") for name in TABLES]
    draw_powertrain(tables, numbers, str(modes), str(CONFIG / "paper.mplstyle"), str(figures))
    return figures


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    return draw(tmp_path_factory.mktemp("drawn"), *ROWS)


@pytest.fixture(scope="module")
def drawn_empty(tmp_path_factory):
    return draw(tmp_path_factory.mktemp("empty"))


def read(path):
    with open(path, newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


def one(rows, **cells):
    (row,) = (row for row in rows if all(row[name] == cell for name, cell in cells.items()))
    return row


@pytest.mark.parametrize("name", looks.FIGURES)
def test_each_figure_has_all_its_files_and_says_where_it_is_from(drawn, drawn_empty, name):
    svg = (drawn / f"{name}.svg").read_text("utf-8")
    assert (drawn / f"{name}.png").stat().st_size > 1000
    provenance = next(p for p, folder in looks.FOLDERS.items() if name.startswith(folder))
    whose = looks.PROVENANCES[provenance]
    title, caption, _ = (drawn / f"{name}.txt").read_text("utf-8").split("\n\n")
    spec = json.loads((drawn / f"{name}.vl.json").read_text("utf-8"))
    assert title == f"{looks.FIGURES[name]}."
    assert len(caption) > 200
    assert whose in svg
    assert whose.lower() in spec["title"]["subtitle"]
    assert spec["data"]["values"]
    vl_convert.vegalite_to_vega(spec)  # raises where it is none
    assert "no " in (drawn_empty / f"{name}.svg").read_text("utf-8").lower()
    assert read(drawn_empty / f"{name}.csv") == []
    assert "no numbers" in (drawn_empty / f"{name}.vl.json").read_text("utf-8")


def test_curves_are_medians_and_quartiles_over_draws(drawn):
    rows = read(drawn / "twin/powertrain_learning_time.csv")
    row = one(rows, method="powertrain_scratch", n_profiled="10", source="ours")
    assert (row["value"], row["low"], row["high"], row["n_draws"]) == ("20.0", "19.0", "21.0", "3")
    power = read(drawn / "twin/powertrain_learning_power.csv")
    assert one(power, method="powertrain", n_profiled="50", source="ours")["value"] == "3.0"


def test_the_papers_numbers_stand_on_simulated_boards_alone(drawn):
    mine = read(drawn / "twin/powertrain_learning_time.csv")
    paper = [row for row in mine if row["source"] == "paper"]
    assert {row["workload"] for row in paper} == {MOBILENET}
    assert one(paper, method="powertrain", n_profiled="10")["value"] == "26.7"
    assert one(paper, n_profiled="30", method="powertrain")["qualifier"] == "less_than"
    for name in ("learning_time", "limits"):
        rows = read(drawn / f"public/powertrain_{name}.csv")
        assert {(row["source"], row["provenance"]) for row in rows} == {("ours", "public")}


def test_a_penalty_never_stands_without_the_broken_limits(drawn):
    rows = [row for row in read(drawn / "twin/powertrain_limits.csv") if row["source"] == "ours"]
    assert all(row["over_pct"] and row["over_1w_pct"] for row in rows)
    row = one(rows, method="powertrain")
    assert [row[n] for n in ("value", "over_pct", "over_1w_pct")] == ["2.0", "50.0", "0.0"]
    assert one(rows, method="random_front")["unanswered_pct"] == "50.0"
    svg = (drawn / "twin/powertrain_limits.svg").read_text("utf-8")
    assert "no answer: 50 %" in svg
    assert "median -65 %" in svg  # beyond the axis, so it is told
