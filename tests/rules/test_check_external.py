"""Rule check_external: others' measurements beside simulated boards, one table, page and figure."""

import csv
import shutil
from pathlib import Path

import pytest

from epochwatt.counting.count_workload import write_workload

REPOSITORY = Path(__file__).resolve().parents[2]
MODELS = ("lenet", "mobilenet", "resnet")


@pytest.fixture
def counted(checkout, monkeypatch):
    """A checkout with the public sweeps and the papers' networks counted."""
    for name in ("sweeps", "rooflines"):
        shutil.copytree(REPOSITORY / "config" / name, checkout.path / "config" / name)
    for name in ("twin", "devices"):
        shutil.copytree(
            REPOSITORY / "config" / name, checkout.path / "config" / name, dirs_exist_ok=True
        )
    Path("results/twin/workloads").mkdir(parents=True)
    for model in MODELS:
        write_workload({"model": model}, f"results/twin/workloads/{model}.json")
    monkeypatch.delenv("EPOCHWATT_PUBLIC_DATA", raising=False)
    return checkout


@pytest.mark.slow
def test_table_page_and_figure_of_what_is_here(counted, run_rule):
    run_rule("check_external", "results/external.html")
    with open("results/tables/external.csv", newline="", encoding="utf-8") as handle:
        verdicts = [row["verdict"] for row in csv.DictReader(handle)]
    assert verdicts.count("agrees") > 20
    assert verdicts.count("not available") == 9  # sources that may not be passed on, by question
    assert "Checked against measurements by others" in Path("results/external.html").read_text()
    for ending in ("svg", "png", "csv", "txt"):
        assert Path(f"results/figures/external/energy_curves.{ending}").stat().st_size
