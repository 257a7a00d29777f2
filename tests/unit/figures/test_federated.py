"""Figures of the study of rounds: all files of each, readable, of simulated boards."""

from itertools import product
from pathlib import Path

import pandas as pd
from panels import assert_readable, drawn_texts

from epochwatt.figures.federated.draw import draw_rounds
from epochwatt.figures.federated.names import RULES, TITLES, stems

STYLE = str(Path(__file__).parents[3] / "config/paper.mplstyle")
FLEET = {"provenance": "simulated", "boards": 100}
DATA = ("equal", "lognormal_0.5", "dirichlet_5", "dirichlet_0.5", "proportional")


def tables(folder):
    rows = {
        "timeline": [
            {**FLEET, "rule": rule, "board": f"{d} {k}", "device": d, "around_s": 10, "fit_s": k}
            | {"end_s": 60}
            for rule, d, k in product(("maxn", "plan"), ("nano", "nx", "agx", "orin"), (5, 20, 50))
        ],
        "deadlines": [
            {**FLEET, "data": data, "waiting": waiting, "rule": rule, "deadline": deadline}
            | {"draw": draw, "energy_pct": 90 - 10 * deadline + draw}
            for data, waiting, rule, deadline, draw in product(
                DATA[:3], ("governed", "pinned"), ("plan", "one_level"), (1, 1.5, 2), (0, 1)
            )
        ],
        "summary": [
            {**FLEET, "boards": boards, "data": data, "waiting": "governed", "rule": rule}
            | {"waiting_factor": 1, "saved_pct": 20, "saved_p10_pct": 10, "saved_p90_pct": 30}
            | {"waiting_time_pct": 5, "waiting_time_p10_pct": 2, "waiting_time_p90_pct": 9}
            for boards, data, rule in product((10, 100, 1000), DATA, RULES)
        ],
    }
    for name, of_table in rows.items():
        pd.DataFrame(of_table).to_csv(folder / f"{name}.csv", index=False)
        yield str(folder / f"{name}.csv")


def test_figures_of_rounds_are_readable_and_say_that_they_are_simulated(tmp_path):
    with drawn_texts() as texts:
        draw_rounds(tables(tmp_path), STYLE, [f"{tmp_path}/{stem}" for stem in stems()])
    assert_readable(texts)
    for name in TITLES:
        stem = tmp_path / "twin" / name
        endings = {file.suffix for file in stem.parent.glob(f"{name}.*")}
        assert endings == {".svg", ".png", ".csv", ".txt", ".json"}
        assert "Simulated · " in stem.with_suffix(".svg").read_text("utf-8")
        assert "Simulated boards, not measured." in stem.with_suffix(".txt").read_text("utf-8")
    drawn = pd.read_csv(tmp_path / "twin/federated_deadlines.csv")
    median = drawn[drawn.data.eq("equal") & drawn.rule.eq("plan") & drawn.deadline.eq(2)]
    assert list(median.energy_pct) == [70.5, 70.5]  # governed and pinned
