"""Rules that choose power modes, fit and score models, and tabulate what a paper prints beside."""

import json
import shutil
from pathlib import Path

import pytest
import yaml

from epochwatt.counting.count_workload import write_workload
from tests.rules.tables import rows

REPOSITORY = Path(__file__).resolve().parents[2]
STUDIES = ("sigmetrics-power-modes", "sigmetrics-prediction", "sigmetrics-orin")
NETWORKS = ("lenet", "mobilenet", "resnet", "vgg11")
COUNTS = {"parameters": 8, "kernels": {"flops_per_sample": [4e6], "phase": ["forward"]}}
MODELS = Path("results/models/twin")
TABLES = Path("results/tables")
RULES = "choose_power_modes fit_epoch_time fit_epoch_energy tabulate_setup tabulate_text_only"


def time_s(run):
    """Return the planted time of an epoch."""
    return 900.0 - 0.5 * run.factors["power_mode_settings"]["gpu_mhz"]


@pytest.fixture(scope="module")
def fitted(checkout, write_epochs, run_rules):
    """The models of a checkout that simulates the paper's power modes, all of which have run."""
    small = (checkout.path / "config/plotting.yaml").read_text("utf-8").replace("small", STUDIES[0])
    shutil.copytree(REPOSITORY / "config", checkout.path / "config", dirs_exist_ok=True)
    shipped = yaml.safe_load((REPOSITORY / "config/studies.yaml").read_text("utf-8"))
    checkout.write("plotting.yaml", small)
    checkout.write("studies.yaml", {name: shipped[name] for name in STUDIES})
    checkout.write("config.yaml", "studies: simulated\n")
    for run in checkout.runs:
        energy = dict.fromkeys(("energy_wh", "energy_paper_wh"), 0.01 * time_s(run))
        epoch = {"e2e_s": time_s(run), **energy, "power_scope": "module"}
        write_epochs(run.id, run.factors, {"e2e_s": 2 * time_s(run)}, epoch, epoch)
    Path("results/twin/workloads").mkdir(parents=True)
    for model in NETWORKS:
        Path(f"results/twin/workloads/{model}.json").write_text(json.dumps(COUNTS))
    models = [str(MODELS / f"epoch_{what}.json") for what in ("time", "energy")]
    run_rules(RULES, *models, str(TABLES / "table2.html"), str(TABLES / "twin/text_only.html"))
    names = ("power_modes", "epoch_time", "epoch_energy")
    return {name: json.loads((MODELS / f"{name}.json").read_text("utf-8")) for name in names}


def is_paper(row):
    return (row["method"], row["learned_from"]) == ("paper", "paper")


def test_modes_are_chosen_that_predict_all_networks(fitted):
    (group,) = [group for group in fitted["power_modes"]["board_groups"] if group["choices"]]
    assert (group["networks"], group["unseen"]) == (["lenet", "mobilenet", "resnet"], ["vgg11"])
    assert group["choices"]["paper"]["total_s"] == pytest.approx(0, abs=1e-6)
    assert len(rows(MODELS / "power_modes.csv")) == 420


def test_models_of_time_have_the_planted_coefficients(fitted):
    fits = [fit for of in fitted["epoch_time"]["workloads"] for fit in of["fits"] if is_paper(fit)]
    expected = pytest.approx([0, 0, -0.5, 0, 900], abs=1e-4)
    assert [fit["model"]["coefficients"] for fit in fits] == [expected] * 4


def test_models_of_energy_come_from_power_or_from_a_search(fitted):
    n_energies = set()
    for workload in fitted["epoch_energy"]["workloads"]:
        targets = {fit["target"] for fit in workload["fits"] if fit["learned_from"] == "all"}
        assert targets == {"power_w"}
        energies = {fit["method"] for fit in workload["fits"] if fit["target"] == "energy_wh"}
        n_energies.add(len(energies))
    assert n_energies == {0, 4}  # without a search, and with one


@pytest.mark.usefixtures("fitted")
def test_what_the_paper_prints_is_tabulated_beside_ours(checkout):
    here = {row["model"]: row["mflop"] for row in rows(TABLES / "table2.csv")[1::2]}
    assert here == dict.fromkeys(NETWORKS, "2.0")
    assert len(rows(TABLES / "table1.csv")) > 12
    assert len(rows(TABLES / "table3.csv")) == 3 * 17
    told = [row for row in rows(TABLES / "twin/text_only.csv") if row["quantity"] == "e2e_s"]
    orin = {
        run.factors["model"]: time_s(run)
        for run in checkout.runs
        if run.factors["device"] == "orin"
    }
    assert {r["model"]: float(r["value"]) for r in told if r["about"] == "AGX Orin"} == orin


@pytest.mark.thorough
@pytest.mark.usefixtures("fitted")
def test_predictions_are_scored(run_rules):
    for model in NETWORKS:
        write_workload({"model": model}, f"results/twin/workloads/{model}.json")
    run_rules("predict_modes score_predictions", str(MODELS / "scores.html"))
    paper = [row for row in rows(MODELS / "predictions.csv") if is_paper(row)]
    assert max(float(row["mape_pct"]) for row in paper) < 1e-3
    below = [r for r in rows(MODELS / "statistics.csv") if r["published_id"] == "S5.7.2-01"]
    counted = [(row["value"], row["agrees"]) for row in below if is_paper(row)]
    assert counted == [("40.0", "yes"), ("24.0", "yes")]
    assert {"paper", "physical", "twin_prior"} <= {r["method"] for r in rows(MODELS / "scores.csv")}
    assert "simulated, not measured" in (MODELS / "scores.html").read_text("utf-8")
