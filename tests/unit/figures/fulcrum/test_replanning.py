"""Figure of rates that change: all its files, from a table of slots."""

import json
from itertools import product
from pathlib import Path

from epochwatt.figures.fulcrum.replanning import LOOKS, draw_replanning
from epochwatt.schedule.changing import SLOT_COLUMNS
from epochwatt.tables import write_table

STYLE = Path(__file__).parents[4] / "config/paper.mplstyle"
NUMBERS = (5.0, 6.0, 0.3, 1.0, 9.0)


def test_files_of_the_figure(tmp_path):
    cases = product(("lenet", "vgg"), ("steady", "poisson"), (0.01, 3, 30), LOOKS, (0, 60))
    rows = [
        ["simulated", "orin", train, "bert", "day", arrivals, switch_s, policy, t_s, *NUMBERS]
        for train, arrivals, switch_s, policy, t_s in cases
    ]
    write_table(tmp_path / "slots.csv", "slots", SLOT_COLUMNS, rows)
    draw_replanning(str(tmp_path / "slots.csv"), str(STYLE), str(tmp_path / "out"))
    assert {path.suffix for path in tmp_path.glob("out.*")} == {
        *(".svg", ".png", ".csv", ".txt", ".json")
    }
    text = (tmp_path / "out.txt").read_text()
    assert "Simulated boards, not measured." in text
    assert "Clocks take 3 s to settle" in " ".join(text.split())
    values = json.loads((tmp_path / "out.vl.json").read_text())["data"]["values"]
    assert len(values) == len(LOOKS) * 2
    assert {(row["train"], row["arrivals"], row["switch_s"]) for row in values} == {
        ("lenet", "steady", "3")
    }
