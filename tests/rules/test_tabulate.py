"""Rules tabulate_setup and tabulate_text_only: the paper's tables, where its runs are selected."""

import csv
import json
import shutil
from pathlib import Path

import pytest
import yaml

REPOSITORY = Path(__file__).resolve().parents[2]
ORIN = "sigmetrics-orin"
TEXT = "results/tables/twin/text_only"


@pytest.fixture
def orin(checkout):
    """A checkout that simulates the paper's runs on AGX Orin; gives them."""
    small = (checkout.path / "config/plotting.yaml").read_text("utf-8").replace("small", ORIN)
    shutil.copytree(REPOSITORY / "config", checkout.path / "config", dirs_exist_ok=True)
    studies = yaml.safe_load((REPOSITORY / "config/studies.yaml").read_text("utf-8"))
    checkout.write("plotting.yaml", small)
    checkout.write("studies.yaml", {ORIN: studies[ORIN]})
    checkout.write("config.yaml", "studies: simulated\n")
    return checkout.runs


def read(path):
    with open(path, newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


def test_boards_networks_and_modes_are_tabulated(orin, run_rule):
    Path("results/twin/workloads").mkdir(parents=True)
    for run in orin:
        counts = {"parameters": 8, "kernels": {"flops_per_sample": [4e6], "phase": ["forward"]}}
        Path(f"results/twin/workloads/{run.factors['model']}.json").write_text(json.dumps(counts))
    run_rule("tabulate_setup", "results/tables/table2.html")
    here = {row["model"]: row["mflop"] for row in read("results/tables/table2.csv")[1::2]}
    assert here == {"lenet": "2.0", "mobilenet": "2.0", "resnet": "2.0", "vgg11": ""}
    assert len(read("results/tables/table1.csv")) > 12
    assert len(read("results/tables/table3.csv")) == 3 * 17


def test_runs_of_the_text_are_tabulated(orin, write_epochs, run_rule):
    for run in orin:
        write_epochs(run.id, run.factors, {}, {})
    run_rule("tabulate_text_only", f"{TEXT}.html")
    rows = read(f"{TEXT}.csv")
    assert {row["about"] for row in rows} == {"AGX Orin"}
    assert [(row["model"], row["value"]) for row in rows if row["quantity"] == "e2e_s"] == [
        (model, "4.0") for model in ("lenet", "mobilenet", "resnet")
    ]
