"""Rules of sweeps, rooflines, schedules and PowerTrain on small studies, all in one start."""

import json
import shutil
from itertools import product
from pathlib import Path
from typing import NamedTuple

import pytest

from epochwatt.cli import main
from epochwatt.figures.federated.names import TITLES
from epochwatt.figures.powertrain.looks import FIGURES
from epochwatt.pages.studies import federated
from epochwatt.prediction.transfer.names import TABLES
from epochwatt.roofline.fits import FitRow, read_fits
from epochwatt.roofline.points import read_points
from epochwatt.roofline.wanted import WantedCeilings, wanted_ceilings
from epochwatt.rounds.rules import RULES as ROUND_RULES
from epochwatt.schedule.study import SCORE_COLUMNS
from epochwatt.study.runs import Run
from epochwatt.study.settings import load_settings
from epochwatt.sweeps.mode_table import read_mode_tables, write_mode_tables
from epochwatt.sweeps.table import Sweep, load_sweeps
from epochwatt.tables import write_entries
from tests.rules.tables import rows
from tests.unit.prediction.sweeps import GRID, planted

REPOSITORY = Path(__file__).resolve().parents[2]
SHIPPED = ("sweeps", "rooflines", "published/powertrain", "published/federated")
SHIPPED += tuple(f"devices/{name}.yaml" for name in ("agx", "nano", "nx", "orin"))
SHIPPED += tuple(f"twin/{name}.yaml" for name in ("boards", "parameters", "samples"))
CONFIG = {"studies": ["small"], "sweeps": ["mine", "simulated"]}
MODES = [{"cores": 1}]
WORKLOAD = {"model": "lenet", "num_workers": 0}
SWEEPS = {
    "mine": {"title": "t", "backend": "host", "device": "host", "grid": {"modes": MODES}},
    "simulated": {"title": "t", "backend": "twin", "device": "orin", "grid": "fulcrum-orin"},
}
# training in fp32, training in bf16 and inference: other kernels, bytes and operations
ARITHMETIC = ({}, {"precision": "bf16"}, {"task": "infer"})
JOBS = {"train": "lenet", "infer": "lenet", "max_power_w": 30, "max_latency_s": 1}
SCHEDULE = {
    **{"device": "orin", "grid": "fulcrum-orin"},
    **{"train": {"lenet": 16}, "infer": {"lenet": [1, 4]}, "together": [["lenet", "lenet"]]},
    **{"methods": ["physical"], "n_profiled": [10], "draws": 2},
    "changing": {
        **{"slot_s": 10, "switch_s": [1], "jobs": [{**JOBS, "peak_per_s": 20}]},
        "rates": {"steps": {"steps": [[20, 0.5], [20, 1]]}, "trace": {"file": "trace.txt"}},
    },
}
FEDERATED = {
    **{"workload": "lenet", "devices": ["nano", "orin"], "modes": 60, "samples": 40000},
    **{"fleets": [4], "judged_fleet": 4, "data": ["equal"], "judged_data": ["equal"], "draws": 1},
    **{"model_mb": 1, "bandwidth_mbit_s": 100, "engine_s": 1, "training": {"rounds": 2}},
    **{"waiting": ["governed"], "waiting_factors": [1]},
}
TRANSFER_MODES = [(4, *clocks) for clocks in product((400, 1500), (150, 400, 1300), (600, 1600))]
POWERTRAIN = {
    "example": {"workload": "new", "limit_w": 5, "minibatches": 100},
    "groups": {
        "all-modes": {"title": "t", "workloads": ["old"], "methods": ["powertrain_all", "maxn"]},
        "curve": {
            **{"title": "t", "references": ["old"], "workloads": ["new"], "n_profiled": [5]},
            **{"methods": ["powertrain", "physical", "random_front"], "draws": 2},
            "limits_w": [3, 9],
        },
    },
}
RULES = """
list_modes collect_sweep simulate_sweep count_workload count_work score_sweep score_sweeps
list_ceiling_modes place_points explain_runs fit_public_rooflines draw_rooflines
simulate_schedules score_schedules play_schedules summarise_schedules replan_schedules
draw_replanning judge_transfer collect_powertrain draw_powertrain compare_powertrain
check_table_claims show_powertrain simulate_rounds draw_rounds
"""
TARGETS = ("tables/explanations.csv", "roofline/points.csv", "figures/roofline/time_public.svg")
TARGETS += ("fulcrum/summary.csv", "figures/twin/fulcrum_replanning.svg", "powertrain/index.html")
TARGETS += ("federated/claims.csv", "figures/twin/federated_waiting.svg")


class Made(NamedTuple):
    """What was asked for, and what the start said."""

    runs: list[Run]
    ceilings: WantedCeilings
    measured: Sweep
    simulated: Sweep
    output: str


@pytest.fixture(scope="module")
def made(checkout, measure_mode, write_epochs, run_rules):
    """A checkout after the start that makes everything."""
    for name in SHIPPED:
        source, target = REPOSITORY / "config" / name, checkout.path / "config" / name
        target.parent.mkdir(exist_ok=True)
        shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)
    checkout.sweep(*({"torch_threads": 1, **changes} for changes in ARITHMETIC), ceilings=True)
    checkout.write(
        "sweeps.yaml", {n: {**entry, "workload": WORKLOAD} for n, entry in SWEEPS.items()}
    )
    checkout.write("config.yaml", CONFIG)
    checkout.write("schedule.yaml", SCHEDULE)
    Path("trace.txt").write_text("\n".join(str(n / 10) for n in range(250)), "utf-8")
    checkout.write("powertrain.yaml", POWERTRAIN)
    checkout.write("federated.yaml", FEDERATED)
    keep_sweeps("energy-time-fairness-tx2")
    old = planted(TRANSFER_MODES, sweep="old", workload="old")
    new = planted(TRANSFER_MODES, lambda mode: 50 / mode[2] + 0.02, sweep="new", workload="new")
    for table in (old, new):
        write_mode_tables(Path(f"config/sweeps/{table.key.sweep}.csv.gz"), [table])
    settings, sweeps = load_settings(CONFIG, checkout.path), load_sweeps(CONFIG, checkout.path)
    ceilings, *_ = wanted_ceilings(settings, sweeps).values()
    mine, simulated = sweeps.sweeps["mine"], sweeps.sweeps["simulated"]
    runs = list(settings.table.runs.values())
    for run in runs:
        write_epochs(run.id, run.factors, {}, {"compute_s": 1.0, "e2e_s": 4.0})
    plant_fits()
    measure_mode(mine, MODES[0], flags=["cold_process"])
    (receipt,) = map(Path, mine.receipts)
    receipt.parent.mkdir(parents=True)
    receipt.write_text("{}", "utf-8")
    targets = [ceilings.modes_file, mine.modes_file, mine.table, simulated.table]
    output = run_rules(RULES, *targets, *(f"results/{target}" for target in TARGETS))
    return Made(runs, ceilings, mine, simulated, output)


def keep_sweeps(*names):
    """Remove all other public sweeps."""
    for path in Path("config/sweeps").glob("*.csv.gz"):
        if path.name.removesuffix(".csv.gz") not in names:
            path.unlink()


def plant_fits():
    """Write the rooflines of one core."""
    place = {"provenance": "measured", "device": "host", "instance": "local", "cores": 1}
    fit = FitRow(
        **{**place, "processor": "cpu", "precision": "fp32", "ridge_flop_per_byte": 10.0, "n": 9},
        **{"flops_per_s": 1e9, "bytes_per_s": 1e8, "launch_s": 1e-6},
    )
    fits = Path("results/roofline/fits_measured.csv")
    fits.parent.mkdir(parents=True)
    write_entries(fits, "fits", FitRow, [fit], ".9g")


def test_lists_of_modes_are_written(made):
    for listed in (made.measured.modes_file, made.ceilings.modes_file):
        assert json.loads(Path(listed).read_text("utf-8")) == MODES


def test_a_table_is_made_of_the_records_of_a_sweep(made):
    (row,) = rows(made.measured.table)
    assert (row["sweep"], row["provenance"], row["workload"]) == ("mine", "measured", "lenet")
    assert (row["cores"], row["cpu_mhz"], row["n_minibatches"]) == ("1", "", "5")
    assert (float(row["time_s"]), row["valid"], row["flags"]) == (0.8, "true", "cold_process")


def test_a_simulated_sweep_says_so_in_every_row(made):
    (table,) = read_mode_tables(Path(made.simulated.table))
    assert len(table.rows) == 441
    assert {row.provenance for row in table.rows} == {"simulated"}
    assert table.varied() == ("cores", "cpu_mhz", "gpu_mhz", "emc_mhz")
    assert table.power_scope == "module"
    times = {tuple(row[:4]): s for row, s in zip(table.modes, table.column("time_s"), strict=True)}
    assert times[max(times)] < times[min(times)]


@pytest.mark.usefixtures("made")
def test_each_run_is_judged_by_the_counts_of_its_own_work():
    train, half, infer = read_points("results/roofline/points.csv")
    assert (train.workload, train.batch_size, train.cores, train.time_s) == ("lenet", 16, 1, 0.5)
    assert [point.precision for point in (train, half, infer)] == ["fp32", "bf16", "fp32"]
    assert 0 < infer.flops < 0.5 * train.flops  # no way back, no optimiser
    assert infer.launches < 0.3 * train.launches
    assert half.launches > train.launches  # casts
    assert half.bytes != train.bytes


def test_runs_are_explained_by_the_rooflines_of_their_mode(made):
    explained = rows("results/tables/explanations.csv")
    whole, *classes = [row for row in explained if row["run"] == made.runs[0].id]
    assert whole["operators"] == "all"
    shares = {name: float(whole[f"{name}_pct"]) for name in ("loader", "copy", "overhead")}
    assert shares == {"loader": 25.0, "copy": 12.5, "overhead": 37.5}  # of 4 s
    computing = ("launches", "arithmetic", "memory", "below_the_roof")
    assert sum(float(whole[f"{part}_pct"]) for part in computing) == pytest.approx(25.0, rel=1e-4)
    assert {row["operators"] for row in classes} >= {"convolution", "gemm", "optimiser"}
    for column in ("launches", "gflop", "mb"):
        assert sum(float(row[column]) for row in classes) == pytest.approx(
            float(whole[column]), rel=1e-4
        )


@pytest.mark.usefixtures("made")
def test_public_rooflines_are_fitted_and_drawn():
    fits = read_fits("results/roofline/fits_public.csv")
    assert {row.provenance for row in fits} == {"public"}
    assert {row.device for row in fits} == {"orin.nano", "orin.nx", "tx2"}
    fields = {row["field"] for row in rows("results/figures/roofline/time_public.csv")}
    assert fields == {"Orin Nano", "Orin NX", "AGX Orin 64 GB", "Jetson TX2"}
    assert "Measured by others." in Path("results/figures/roofline/energy_public.txt").read_text()


def test_schedules_have_scores_of_each_solver_and_a_summary(made):
    tables = read_mode_tables(Path("results/fulcrum/tables.csv"))
    keys = {(table.key.workload, table.key.task, table.key.batch_size) for table in tables}
    assert keys == {("lenet", "train", 16), ("lenet", "infer", 1), ("lenet", "infer", 4)}
    scores, mean = rows("results/fulcrum/scores.csv"), rows("results/fulcrum/scores-mean.csv")
    assert list(scores[0]) == list(SCORE_COLUMNS)
    assert {row["provenance"] for row in scores} == {"simulated"}
    drawn = {"random_10": 2, "physical_10": 2, "physical_10_verified": 2}
    drawn |= dict.fromkeys(("exhaustive", "gmd", "gain", "maxn", "presets"), 1)
    for jobs, rule, table in (
        *((jobs, "highest", scores) for jobs in ("train", "infer", "train_and_infer")),
        ("train_and_infer", "mean", mean),
    ):
        solvers = [r["solver"] for r in table if (r["jobs"], r["power_rule"]) == (jobs, rule)]
        assert {name: solvers.count(name) for name in solvers} == drawn
    assert {row["jobs"] for row in mean} == {"train_and_infer"}
    assert "39 problems (1 of 4 sets" in made.output
    summary = {row["solver"]: row for row in rows("results/fulcrum/summary.csv")}
    assert set(summary) == set(drawn)
    assert summary["exhaustive"]["loss_pct"] == "0.0"


@pytest.mark.usefixtures("made")
def test_rates_that_change_are_played_and_drawn():
    played = rows("results/fulcrum/changing.csv")
    kinds = [("steps", "steady"), ("steps", "poisson"), ("trace", "trace")]
    assert list(dict.fromkeys((row["rates"], row["arrivals"]) for row in played)) == kinds
    assert {row["policy"] for row in played} == {"oracle", "never", "always", "hysteresis"}
    assert min(float(row["regret_pct"]) for row in played) >= 0


@pytest.mark.usefixtures("made")
def test_rounds_of_a_small_fleet_become_tables_claims_figures_and_a_section():
    summary = {row["rule"]: row for row in rows("results/federated/summary.csv")}
    assert set(summary) == set(ROUND_RULES)
    assert {row["provenance"] for row in summary.values()} == {"simulated"}
    assert float(summary["maxn"]["saved_pct"]) == 0 < float(summary["plan"]["saved_pct"])
    trainings = rows("results/federated/trainings_summary.csv")
    assert {(row["rule"], row["disturbed"]) for row in trainings} == {
        *product(("maxn", "plan_once", "plan_again", "oracle"), ("True", "False"))
    }
    for name in TITLES:
        assert Path(f"results/figures/twin/{name}.png").is_file()
    tables = ("summary", "trainings_summary", "claims")
    section = federated({name: f"results/federated/{name}.csv" for name in tables})
    assert section["lead"][0].startswith("Simulated boards, not measured: of ")
    assert len(section["summary"].lines) == len(ROUND_RULES)


@pytest.mark.usefixtures("made")
def test_jobs_of_powertrain_become_tables_figures_and_a_page():
    assert len(list(Path(".cache").glob("powertrain-*.npz"))) == 2
    tables = {name: rows(f"results/powertrain/{name}.csv") for name in TABLES}
    for name, columns in TABLES.items():
        assert all(tuple(row) == columns for row in tables[name])
    errors = {(row["method"], row["reference"]) for row in tables["errors"]}
    assert errors == {("physical", ""), ("powertrain", "old"), ("powertrain_all", "")}
    assert {r["n_judged"] for r in tables["errors"] if r["method"] == "physical"} == {"7"}
    assert len(tables["choices"]) == 2 * 34 + 3 * 2 * 7  # limits of the two groups
    assert len(tables["penalties"]) == 2 + 3 * 2
    maxn = next(row for row in tables["penalties"] if row["method"] == "maxn")
    assert (maxn["n_limits"], maxn["n_answered"]) == ("34", "34")
    assert float(maxn["over_pct"]) == pytest.approx(100 * 33 / 34)  # all but the highest power
    diagonal = {(row["reference"], row["workload"]) for row in tables["transfer"]}
    assert diagonal == {("old", "old")}
    assert tables["example"][0]["method"] == "observed"
    page = Path("results/powertrain/index.html").read_text("utf-8")
    assert "of 18 claims" in page
    for name in FIGURES:
        assert f'src="../figures/{name}.svg"' in page
        assert Path(f"results/figures/{name}.png").is_file()


@pytest.mark.thorough
def test_rules_and_command_judge_the_methods_on_a_public_sweep_the_same(made, run_rules, capsys):
    keep_sweeps()
    Path("config/powertrain.yaml").unlink()
    write_mode_tables(Path("config/sweeps/tiny.csv.gz"), [planted(GRID[::4], sweep="tiny")])
    run_rules("score_sweep score_sweeps", "results/sweeps/sweep_scores.html")
    scores = Path("results/sweeps/scores.csv").read_text("utf-8")
    assert {row["n_profiled"] for row in rows("results/sweeps/scores.csv")} == {"4"}
    page = Path("results/sweeps/sweep_scores.html").read_text("utf-8")
    assert "tiny: planted on board, 12 modes of cpu_mhz, gpu_mhz, emc_mhz (public)" in page
    assert 'src="../figures/public/sweep_learning_time.svg"' in page
    assert main(["score", "config/sweeps/tiny.csv.gz", "--csv", "mine.csv"]) == 0
    assert Path("mine.csv").read_text("utf-8") == scores
    assert "scored tiny, planted: 4 random modes (2 of 2)" in capsys.readouterr().err
