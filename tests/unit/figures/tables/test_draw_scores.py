"""The drawing of all methods' errors."""

import csv

import pytest

from epochwatt.figures.tables.scores import draw_scores

COLUMNS = ("board_group", "device", "target", "method", "learned_from", "median_pct", "p90_pct")
EVERY = "every subset of four"


@pytest.fixture
def drawn(tmp_path, request, monkeypatch):
    """Return a function: rows of scores.csv -> text of the drawing, rows of its table."""
    monkeypatch.chdir(request.config.rootpath)

    def draw(*rows, by_construction=False):
        with open(tmp_path / "scores.csv", "w", newline="", encoding="utf-8") as handle:
            writer = csv.writer(handle)
            writer.writerow((*COLUMNS, "by_construction"))
            writer.writerows((*row, by_construction) for row in rows)
        draw_scores(str(tmp_path), "twin")
        with open(tmp_path / "methods.csv", newline="", encoding="utf-8") as handle:
            table = list(csv.DictReader(handle))
        return (tmp_path / "methods.svg").read_text("utf-8"), table

    return draw


def test_every_method_of_the_table_is_drawn(drawn):
    rows = [
        (0, "agx", target, method, learned_from, 3.0, 9.0)
        for target in ("time_s", "power_w")
        for method in ("paper", "mine")
        for learned_from in (EVERY, "designed: a b c d")
    ]
    text, table = drawn(*rows)
    assert ">paper<" in text
    assert ">mine<" in text
    assert "simulated, not measured: agx" in text
    assert "by construction" not in text
    assert [(row["target"], row["method"]) for row in table] == [
        ("time_s", "paper"),
        ("time_s", "mine"),
        ("power_w", "paper"),
        ("power_w", "mine"),
    ]


def test_scores_by_construction_are_marked(drawn):
    text, _ = drawn((0, "agx", "time_s", "mine", EVERY, 0.3, 2.0), by_construction=True)
    assert "hollow: almost right by construction" in text


def test_without_scores_the_drawing_is_empty(drawn):
    text, table = drawn()
    assert "no run" in text
    assert table == []
