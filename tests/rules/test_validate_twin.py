"""Rule validate_twin: the committed refits held against the published numbers, table and figure."""

import csv
import shutil
from pathlib import Path

import pytest

from epochwatt.counting.count_workload import write_workload
from epochwatt.twin.calibrate_twin import MODELS, write_validation

TARGET = "results/twin/validation.csv"
NAMES = ("validation.csv", "groupings.csv", "validation.txt")


@pytest.mark.slow
def test_table_words_and_figure_are_those_of_the_committed_refits(
    checkout, run_rule, tmp_path, pytestconfig
):
    for folder in ("published", "twin", "devices"):
        source = pytestconfig.rootpath / "config" / folder
        shutil.copytree(source, checkout.path / "config" / folder, dirs_exist_ok=True)
    paths = [f"results/twin/workloads/{model}.json" for model in MODELS]
    for model, path in zip(MODELS, paths, strict=True):
        write_workload({"model": model}, path)
    run_rule("validate_twin", TARGET)

    found = {name: tmp_path / name for name in NAMES}
    write_validation(paths, *map(str, found.values()))
    for name, path in found.items():
        assert (Path("results/twin") / name).read_bytes() == path.read_bytes()
    with open(TARGET, newline="", encoding="utf-8") as handle:
        judged_as = [row["judged_as"] for row in csv.DictReader(handle)]
    with open("results/figures/twin/validation.csv", newline="", encoding="utf-8") as handle:
        drawn = [row for row in csv.DictReader(handle) if row["published_id"]]
    assert len(drawn) == judged_as.count("ratio") > 100
    drawn = sorted(path.name for path in Path("results/figures/twin").iterdir())
    assert drawn == [f"validation.{ending}" for ending in ("csv", "png", "svg", "txt", "vl.json")]
