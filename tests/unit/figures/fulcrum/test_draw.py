"""Figures of the study of schedules: all files of each, of one provenance alone."""

import json
from pathlib import Path

import pytest
from panels import assert_readable, drawn_texts

from epochwatt.figures.fulcrum.draw import draw_schedules
from epochwatt.figures.fulcrum.names import gallery_entries, stems
from epochwatt.figures.fulcrum.power import shown_solvers
from epochwatt.schedule.played import LATENCY_COLUMNS, POWER_COLUMNS
from epochwatt.schedule.study import SCORE_COLUMNS as COLUMNS
from epochwatt.tables import write_table

STYLE = Path(__file__).parents[4] / "config/paper.mplstyle"
PAIR = {"jobs": "train_and_infer", "train": "a", "infer": "b", "device": "board"}
WORDS = {
    "twin": "Simulated boards",
    "public": "Computed from what others",
    "host": "Measured on the",
}


def scores():
    for provenance in ("simulated", "public"):
        for solver, loss in (("gmd", "2"), ("physical_10", ""), ("exhaustive", "0")):
            yield PAIR | {
                **{"provenance": provenance, "solver": solver, "answered_pct": "90"},
                **{"kept_pct": "100", "loss_mean_pct": loss, "n_profiles": "15"},
                "board_minutes": "10",
            }
    yield PAIR | {"provenance": "simulated", "solver": "presets"}  # it cannot answer


def powers():
    for provenance in ("simulated", "public"):
        for power_w, rate in (("12", ""), ("20", "0"), ("30", "4")):
            shared = PAIR | {"provenance": provenance, "max_power_w": power_w}
            yield shared | {"solver": "exhaustive", "throughput_per_s": rate}
    yield shared | {"train": "none", "solver": "gmd", "throughput_per_s": "0"}


def latencies():
    of_plans = (("simulated", ""), ("public", ""), ("measured", "x"), ("simulated", "x"))
    for provenance, plan in of_plans:
        for arrivals in ("constant", "poisson"):
            for percentile in ("0", "50", "100"):
                yield PAIR | {
                    **{"provenance": provenance, "plan": plan, "arrivals": arrivals},
                    **{"max_latency_s": "0.2", "percentile": percentile, "latency_s": "0.1"},
                }


@pytest.fixture
def tables(tmp_path):
    made = {
        "scores": (COLUMNS, scores()),
        "power": (POWER_COLUMNS, powers()),
        "latencies": (LATENCY_COLUMNS, latencies()),
    }
    for name, (columns, rows) in made.items():
        cells = ([row.get(column, "") for column in columns] for row in rows)
        write_table(tmp_path / f"{name}.csv", name, columns, cells)
    return [str(tmp_path / f"{name}.csv") for name in made]


def test_each_figure_has_all_its_files_and_rows_of_its_own_provenance(tables, tmp_path):
    names = [str(tmp_path / name) for name in stems(has_public=True, has_records=True)]
    draw_schedules(tables, str(STYLE), names)
    for name in names:
        stem, folder = Path(name), Path(name).parent.name
        endings = {path.suffix for path in stem.parent.glob(f"{stem.name}.*")}
        assert endings == {".svg", ".png", ".csv", ".txt", ".json"}
        assert WORDS[folder] in stem.with_suffix(".txt").read_text()
        spec = json.loads(Path(f"{name}.vl.json").read_text())
        kinds = {row["provenance"] for row in spec["data"]["values"]}
        expected = {"twin": {"simulated"}, "public": {"public"}, "host": {"measured", "simulated"}}
        assert kinds == expected[folder]


def test_solvers_of_few_profiles_are_readable(tmp_path):
    n_profiles = {"maxn": 1, "gmd": 3, "physical_3": 4, "exhaustive": 8}
    rows = [
        *({**row, "solver": solver, "n_profiles": str(n), "jobs": jobs}
          for row in scores() if row["solver"] == "gmd"
          for solver, n in n_profiles.items() for jobs in ("train", "infer", "two_infer")),
    ]  # fmt: skip
    cells = ([row.get(column, "") for column in COLUMNS] for row in rows)
    write_table(tmp_path / "scores.csv", "scores", COLUMNS, cells)
    with drawn_texts() as texts:
        draw_schedules(
            [str(tmp_path / "scores.csv")], str(STYLE), [str(tmp_path / "public/fulcrum_solvers")]
        )
    assert_readable({"solvers": texts[next(iter(texts))]})


def test_what_was_computed_from_tables_is_not_called_measured(tables, tmp_path):
    stem = tmp_path / "public/fulcrum_latency"
    draw_schedules(tables, str(STYLE), [str(stem)])
    drawn = stem.with_suffix(".svg").read_text() + stem.with_suffix(".txt").read_text()
    assert "computed from what others measured" in drawn.lower()


def test_of_solvers_with_random_modes_the_smallest_number_has_a_line():
    names = ["exhaustive", "gmd", "random_10", "physical_10", "physical_10_verified", "random_50"]
    assert shown_solvers(names) == ["exhaustive", "gmd", "random_10", "physical_10_verified"]


def test_a_study_without_public_jobs_and_records_has_simulated_figures_alone():
    drawn = [f"results/figures/{name}" for name in stems(has_public=False, has_records=False)]
    assert {entry["backend"] for entry in gallery_entries(drawn)} == {"twin"}
    assert len(drawn) == 3
