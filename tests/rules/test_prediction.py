"""Rules choose_power_modes, fit_epoch_time, fit_epoch_energy and score_predictions.

On a linear world: four modes are enough to know it, so every count of the paper is at its best.
"""

import csv
import json
import shutil
from pathlib import Path

import pytest
import yaml

from epochwatt.counting.count_workload import write_workload
from epochwatt.prediction.data.required_runs import fitted_runs
from epochwatt.prediction.evaluation.fit_models import fit_models
from epochwatt.prediction.selection.choose_power_modes import choose_power_modes

REPOSITORY = Path(__file__).resolve().parents[2]
STUDIES = ("sigmetrics-power-modes", "sigmetrics-prediction")
MODELS = "results/models/twin"
FITTED = ("epoch_time.json", "epoch_energy.json")


@pytest.fixture
def power_modes(checkout, write_epochs):
    """A checkout that simulates the paper's power modes, all of which have run."""
    small = (checkout.path / "config/plotting.yaml").read_text("utf-8").replace("small", STUDIES[0])
    shutil.copytree(REPOSITORY / "config", checkout.path / "config", dirs_exist_ok=True)
    studies = yaml.safe_load((REPOSITORY / "config/studies.yaml").read_text("utf-8"))
    checkout.write("plotting.yaml", small)
    checkout.write("studies.yaml", {name: studies[name] for name in STUDIES})
    checkout.write("config.yaml", "studies: simulated\n")
    for run in checkout.runs:
        time_s = 900.0 - 0.5 * run.factors["power_mode_settings"]["gpu_mhz"]
        energy = dict.fromkeys(("energy_wh", "energy_paper_wh"), 0.01 * time_s)
        told = {"e2e_s": time_s, **energy, "power_scope": "module"}
        write_epochs(run.id, run.factors, {"e2e_s": 2 * time_s}, told, told)
    return checkout


@pytest.fixture
def made(power_modes):
    """Return a function that does what the rules before do, without Snakemake."""

    def call(n_jobs):
        found = fitted_runs(power_modes.settings().table, "twin")
        paths = [run.epochs_csv for run in found.runs]
        choices, table, times, energies = (
            f"{MODELS}/{name}" for name in ("power_modes.json", "power_modes.csv", *FITTED)
        )
        jobs = (
            (choose_power_modes, "twin", choices, table),
            (fit_models, choices, ("time_s",), times),
            (fit_models, choices, ("power_w", "energy_wh"), energies),
        )
        for job, *arguments in jobs[:n_jobs]:
            job(paths, found.modes, *arguments)

    return call


def is_paper(row):
    return (row["method"], row["learned_from"]) == ("paper", "paper")


def read(name):
    path = Path(MODELS, name)
    if path.suffix == ".json":
        return json.loads(path.read_text("utf-8"))
    with open(path, newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


def test_choose_power_modes(power_modes, run_rule):
    run_rule("choose_power_modes", f"{MODELS}/power_modes.json")
    (group,) = [of for of in read("power_modes.json")["board_groups"] if of["choices"]]
    assert (group["networks"], group["unseen"]) == (["lenet", "mobilenet", "resnet"], ["vgg11"])
    assert group["choices"]["paper"]["total_s"] == pytest.approx(0, abs=1e-6)
    assert len(read("power_modes.csv")) == 420


def test_fit_epoch_time(power_modes, made, run_rule):
    made(1)
    run_rule("fit_epoch_time", f"{MODELS}/epoch_time.json")
    fits = [
        fit
        for workload in read("epoch_time.json")["workloads"]
        for fit in workload["fits"]
        if is_paper(fit)
    ]
    expected = pytest.approx([0, 0, -0.5, 0, 900], abs=1e-4)
    assert [fit["model"]["coefficients"] for fit in fits] == [expected] * 4


def test_fit_epoch_energy(power_modes, made, run_rule):
    made(2)
    run_rule("fit_epoch_energy", f"{MODELS}/epoch_energy.json")
    told = read("epoch_energy.json")
    n_energies = set()
    for workload in told["workloads"]:
        targets = {fit["target"] for fit in workload["fits"] if fit["learned_from"] == "all"}
        assert targets == {"power_w"}
        energies = {fit["method"] for fit in workload["fits"] if fit["target"] == "energy_wh"}
        n_energies.add(len(energies))
    assert n_energies == {0, 4}  # without a search, and with one


@pytest.mark.thorough
def test_score_predictions(power_modes, made, run_rule):
    made(3)
    for model in ("lenet", "mobilenet", "resnet", "vgg11"):
        write_workload({"model": model}, f"results/twin/workloads/{model}.json")
    run_rule("score_predictions", f"{MODELS}/scores.html")
    paper = [row for row in read("predictions.csv") if is_paper(row)]
    assert max(float(row["mape_pct"]) for row in paper) < 1e-3
    below = [row for row in read("statistics.csv") if row["published_id"] == "S5.7.2-01"]
    counted = [(row["value"], row["agrees"]) for row in below if is_paper(row)]
    assert counted == [("40.0", "yes"), ("24.0", "yes")]
    methods = {row["method"] for row in read("scores.csv")}
    assert {"paper", "physical", "twin_prior"} <= methods
    assert "simulated, not measured" in Path(MODELS, "scores.html").read_text("utf-8")
