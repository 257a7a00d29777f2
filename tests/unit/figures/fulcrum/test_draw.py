"""Figures of the study of schedules: all files of each, of one provenance alone."""

import json
from itertools import product
from pathlib import Path

import pytest

from epochwatt.figures.fulcrum.draw import WAYS, draw_schedules
from epochwatt.figures.fulcrum.names import REPLANNING, stems
from epochwatt.schedule.changing import SLOT_COLUMNS
from epochwatt.schedule.played import LATENCY_COLUMNS, POWER_COLUMNS
from epochwatt.schedule.study import SCORE_COLUMNS
from epochwatt.tables import write_table

STYLE = str(Path(__file__).parents[4] / "config/paper.mplstyle")
PAIR = {"jobs": "train_and_infer", "train": "a", "infer": "b", "device": "board"}


def scores():
    for provenance in ("simulated", "public"):
        for solver, loss in (("gmd", "2"), ("physical_10", ""), ("exhaustive", "0")):
            row = PAIR | {"provenance": provenance, "solver": solver, "answered_pct": "90"}
            yield row | {"kept_pct": "100", "loss_mean_pct": loss, "n_profiles": "15"}
    yield PAIR | {"provenance": "simulated", "solver": "presets"}  # it cannot answer


def powers():
    for provenance in ("simulated", "public"):
        for power_w, rate in (("12", ""), ("20", "0"), ("30", "4")):
            shared = PAIR | {"provenance": provenance, "max_power_w": power_w}
            yield shared | {"solver": "exhaustive", "throughput_per_s": rate}
    yield shared | {"train": "none", "solver": "gmd", "throughput_per_s": "0"}


def latencies():
    plans = (("simulated", ""), ("public", ""), ("measured", "x"), ("simulated", "x"))
    for (provenance, plan), arrivals, percentile in product(
        plans, ("constant", "poisson"), ("0", "50", "100")
    ):
        row = PAIR | {"provenance": provenance, "plan": plan, "arrivals": arrivals}
        yield row | {"max_latency_s": "0.2", "percentile": percentile, "latency_s": "0.1"}


def slots():
    for train, arrivals, switch_s, policy, t_s in product(
        ("lenet", "vgg"), ("steady", "poisson"), (0.01, 3, 30), WAYS, (0, 60)
    ):
        row = PAIR | {"provenance": "simulated", "train": train, "rates": "day", "t_s": t_s}
        row |= {"arrivals": arrivals, "switch_s": switch_s, "policy": policy}
        yield (
            row
            | {"rate_per_s": 5, "max_latency_s": 6, "gpu_mhz": 3, "worst_s": 1}
            | {"trained_per_s": 9}
        )


ROWS = {"scores": (SCORE_COLUMNS, scores), "power": (POWER_COLUMNS, powers)}
ROWS |= {"latencies": (LATENCY_COLUMNS, latencies), "changing-slots": (SLOT_COLUMNS, slots)}


def write(folder, name, columns, rows):
    path = folder / f"{name}.csv"
    cells = ([row.get(column, "") for column in columns] for row in rows)
    write_table(path, name, columns, cells)
    return str(path)


@pytest.fixture
def tables(tmp_path):
    return [write(tmp_path, name, columns, rows()) for name, (columns, rows) in ROWS.items()]


def test_each_figure_has_all_its_files_and_rows_of_its_own_provenance(tables, tmp_path):
    names = [*stems(has_public=True, has_records=True), f"twin/{REPLANNING}"]
    draw_schedules(tables, STYLE, [str(tmp_path / name) for name in names])
    whose = {
        "twin": ("Simulated boards", {"simulated"}),
        "public": ("Computed from what others", {"public"}),
        "host": ("Measured on the", {"measured", "simulated"}),
    }
    for path in map(tmp_path.joinpath, names):
        endings = {file.suffix for file in path.parent.glob(f"{path.name}.*")}
        assert endings == {".svg", ".png", ".csv", ".txt", ".json"}
        words, provenances = whose[path.parent.name]
        assert words in path.with_suffix(".txt").read_text()
        rows = json.loads(Path(f"{path}.vl.json").read_text())["data"]["values"]
        assert {row["provenance"] for row in rows} == provenances
    latency = (tmp_path / "public/fulcrum_latency.svg").read_text()
    assert "computed from what others measured" in latency  # and not that it was measured
