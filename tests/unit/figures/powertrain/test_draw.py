"""The study's figures: what is drawn is what the tables say, and each says where it is from."""

import csv
import json

import pytest
import vl_convert

from epochwatt.figures.powertrain import looks


def read(path):
    with open(path, newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


def one(rows, **cells):
    (row,) = (row for row in rows if all(row[name] == cell for name, cell in cells.items()))
    return row


@pytest.mark.parametrize("name", looks.FIGURES)
def test_each_figure_has_all_its_files_and_says_where_it_is_from(drawn, name):
    svg = (drawn / f"{name}.svg").read_text("utf-8")
    assert (drawn / f"{name}.png").stat().st_size > 1000
    provenance = next(p for p, folder in looks.FOLDERS.items() if name.startswith(folder))
    assert looks.PROVENANCES[provenance] in svg
    title, caption = (drawn / f"{name}.txt").read_text("utf-8").split("\n\n")
    assert title == looks.FIGURES[name]
    assert len(caption) > 200
    spec = json.loads((drawn / f"{name}.vl.json").read_text("utf-8"))
    assert spec["data"]["values"]
    assert looks.PROVENANCES[provenance] in spec["title"]["subtitle"]
    vl_convert.vegalite_to_vega(spec)  # raises where it is none


@pytest.mark.parametrize("name", looks.FIGURES)
def test_without_rows_a_sentence_stands_in_place_of_each_figure(drawn_empty, name):
    assert "no " in (drawn_empty / f"{name}.svg").read_text("utf-8")
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
    assert {row["workload"] for row in paper} == {"pt-mobilenet-gld"}
    assert one(paper, method="powertrain", n_profiled="10")["value"] == "26.7"
    assert one(paper, n_profiled="30", method="powertrain")["qualifier"] == "less_than"
    for name in ("learning_time", "limits"):
        rows = read(drawn / f"public/powertrain_{name}.csv")
        assert {row["source"] for row in rows} == {"ours"}
        assert {row["provenance"] for row in rows} == {"public"}


def test_a_penalty_never_stands_without_the_broken_limits(drawn):
    rows = [row for row in read(drawn / "twin/powertrain_limits.csv") if row["source"] == "ours"]
    assert all(row["over_pct"] and row["over_1w_pct"] for row in rows)
    transfer = one(rows, method="powertrain")
    assert (transfer["value"], transfer["over_pct"], transfer["over_1w_pct"]) == (
        *("2.0", "50.0", "0.0"),
    )
    assert one(rows, method="random_front")["unanswered_pct"] == "50.0"
    svg = (drawn / "twin/powertrain_limits.svg").read_text("utf-8")
    assert "no answer: 50 %" in svg
    assert "median -65 %" in svg  # beyond the axis, so it is told


def test_the_matrix_has_ours_beside_the_papers(drawn):
    rows = read(drawn / "twin/powertrain_transfer.csv")
    pair = {"reference": "pt-resnet-imagenet", "workload": "pt-mobilenet-gld"}
    cells = [row for row in rows if row["quantity"] == "time_s_mape_pct"]
    assert one(cells, source="ours", **pair)["value"] == "11.0"
    assert one(cells, source="paper", **pair)["value"] == "14.53"
    assert "14.53" in (drawn / "twin/powertrain_transfer.svg").read_text("utf-8")


def test_the_example_leads_from_what_is_expected_to_what_is(drawn):
    rows = read(drawn / "twin/powertrain_example.csv")
    choice = one(rows, what="choice", method="powertrain")
    assert (choice["predicted_epoch_s"], choice["epoch_s"], choice["power_w"]) == (
        *("95", "97", "31.5"),
    )
    front = [row for row in rows if (row["what"], row["method"]) == ("front", "powertrain")]
    assert {row["predicted_epoch_s"] for row in front} == {"200", "100"}  # of a whole epoch
    assert one(rows, what="paper", method="observed")["epoch_s"] == "186.0"
    svg = (drawn / "twin/powertrain_example.svg").read_text("utf-8")
    assert "limit 30 W" in svg
    assert "MAXN: 45 W, 80 s" in svg  # outside


def test_unknown_methods_have_looks_of_their_own():
    shown = looks.looks(["zebra", "powertrain", "aardvark"])
    assert list(shown) == ["powertrain", "aardvark", "zebra"]
    assert len({(look.colour, look.mark, look.line) for look in shown.values()}) == 3
    known_looks = [(x.colour, x.mark, x.line) for x in looks.METHODS.values()]
    assert len({mark for _, mark, _ in known_looks}) == len(known_looks)  # not by colour alone
