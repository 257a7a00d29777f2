"""Records and tables of schema version 1 are read, shown and continued."""

import csv
import math
import shutil
import sys
from pathlib import Path

import pytest

from epochwatt import columns
from epochwatt.analysis.collect_study import read_epochs
from epochwatt.board.records.run_folder import RunFolder
from epochwatt.claims.number_sources import EpochTable, read_rows
from epochwatt.epochs.collect import collect_run
from epochwatt.figures.common.runs import read_runs
from epochwatt.prediction.data.workloads import read_workloads
from epochwatt.tables import read_cells

OLD = Path(__file__).parents[2] / "data/schema-1"
TABLE = OLD / "tables/epochs.csv"
RUN = "host-local-slow-ssd-w0-bs16-native-p1-0123abcd"
EFFECTS = dict.fromkeys(columns.FLAGS, "informs")
PAPER_WH, ACCURATE_WH = 0.0021819422222243805, 0.010668743802160338  # of epoch 1, as it was


@pytest.fixture
def measured(tmp_path):
    """The old records, to be changed."""
    shutil.copytree(OLD / "measured", tmp_path / "measured")
    return tmp_path / "measured"


def collected(measured, n_epochs):
    paths = [str(measured.parent / name) for name in ("epochs.csv", "energy.csv")]
    collect_run(str(measured), RUN, n_epochs, EFFECTS, *paths)
    return read_cells(paths[0])


def test_old_records_give_todays_columns_and_the_same_numbers(measured):
    rows = collected(measured, 2)
    with TABLE.open(newline="", encoding="utf-8") as handle:
        header, *old = csv.reader(handle)
    for row, cells in zip(rows, old, strict=True):
        before = dict(zip(columns.current_names(header), cells, strict=True))
        assert row.pop("schema_version") == "2"
        assert before.pop("schema_version") == "1"
        younger = row.keys() - before.keys()
        assert "imported" in younger
        assert before.keys() == row.keys() - younger
        for name, cell in before.items():
            # sums may differ in the last digit from processor to processor
            assert row[name] == cell or float(row[name]) == pytest.approx(float(cell), rel=1e-12)


def test_a_run_goes_on_where_the_older_version_stopped(
    measured, data_root, machine, on_the_cpu, monkeypatch
):
    from epochwatt.board.training.job import run_part

    monkeypatch.setattr(sys, "path", [*sys.path, str(OLD)])  # the run's own network
    before = {path: path.read_bytes() for path in measured.rglob("*.*") if path.suffix != ".npz"}
    folder = RunFolder(str(measured), RUN)
    factors = folder.read(1).meta["factors"]
    run_part(folder, factors, 0, 2, data_root, str(measured.parent / "receipt.json"), machine)
    assert {path: path.read_bytes() for path in before} == before
    third = folder.read(2).meta
    assert (third["schema_version"], third["weights"]) == (columns.SCHEMA_VERSION, "checkpoint")
    assert [row["epoch"] for row in collected(measured, 3)] == ["0", "1", "2"]


def test_every_reader_of_an_old_table_takes_energies_for_what_they_are():
    summary = read_epochs([TABLE]).iloc[1]
    assert (summary.energy_wh, summary.energy_paper_wh) == (ACCURATE_WH, PAPER_WH)
    (run,) = read_runs([str(TABLE)], [])
    assert run.number("energy_wh").value == ACCURATE_WH
    assert run.number("energy_paper_wh").value == PAPER_WH
    (workload,) = read_workloads([str(TABLE)], {RUN: (2, 1, 1, 1)})
    assert workload.metered.after_first().energy_wh.tolist() == pytest.approx([ACCURATE_WH])
    assert workload.observed.after_first().energy_wh.tolist() == pytest.approx([PAPER_WH])
    rows = read_rows([TABLE])
    assert EpochTable(rows).number("energy_wh", rows[0], "1+") == PAPER_WH
    assert math.isclose(rows[1]["energy_wh"] * 3600 / rows[1]["e2e_s"], rows[1]["power_mean_w"])
