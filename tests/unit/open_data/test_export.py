"""Packages: what is written is read again, split by provenance, with licence, boards, records."""

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from epochwatt import columns
from epochwatt.analysis.collect_study import export_tables
from epochwatt.board.records.files import sha256_of
from epochwatt.errors import ConfigError, DataError
from epochwatt.open_data import package as layout
from epochwatt.open_data.check import check_folder
from epochwatt.open_data.export import export
from epochwatt.open_data.package import Terms
from epochwatt.open_data.read import find_tables, read_package
from epochwatt.open_data.schema import TABLES
from epochwatt.sweeps.mode_table import SweepRow, tables_of
from epochwatt.tables import read_cells

from .conftest import GPU_MHZ, sweep_rows


def rows_of(tables):
    return [row for table in tables for row in table.rows]


def test_a_sweep_that_was_exported_is_read_again_as_others(package):
    folder = package()
    tables = find_tables(str(folder))
    assert rows_of(tables) == [
        replace(row, provenance="public", time_s=float(f"{row.time_s:.9g}"))
        for row in sweep_rows("measured")
    ]
    assert tables[0].column("gpu_mhz").tolist() == list(GPU_MHZ)


WORK = next(column for column in TABLES["sweeps"].columns if column.name == "work")
TEXT = st.text(
    st.characters(exclude_categories=("Cs", "Cc"), exclude_characters='"'), min_size=1, max_size=20
).filter(lambda text: text == text.strip() and not WORK.problem(text))
POSITIVE = st.floats(1e-9, 1e9).map(lambda x: float(f"{x:.9g}"))
ROWS = st.lists(
    st.builds(
        SweepRow,
        sweep=TEXT,
        provenance=st.sampled_from(columns.PROVENANCES),
        device=TEXT,
        instance=st.one_of(st.just(""), TEXT),
        workload=TEXT,
        task=st.sampled_from(columns.TASKS),
        batch_size=st.one_of(st.none(), st.integers(1, 10**6)),
        precision=st.sampled_from(("", "fp32", "bf16")),
        work=TEXT,
        cores=st.one_of(st.none(), st.integers(1, 256)),
        gpu_mhz=st.one_of(st.none(), POSITIVE),
        repeat=st.integers(0, 100),
        time_s=POSITIVE,
        time_sd_s=st.one_of(st.none(), POSITIVE),
        power_w=st.one_of(st.none(), POSITIVE),
        power_scope=st.just("gpu"),
        valid=st.booleans(),
        flags=st.one_of(st.just(""), TEXT),
    ),
    min_size=1,
    max_size=8,
    unique_by=lambda row: (row.key._replace(provenance=""), row.cores, row.gpu_mhz, row.repeat),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=ROWS, suffix=st.sampled_from(("", ".zip")))
def test_any_table_comes_back_as_it_was(plant, tmp_path_factory, rows, suffix):
    plant(rows)
    output = tmp_path_factory.mktemp("packages") / f"pack{suffix}"
    export(["planted"], output, Terms("MIT"))
    (path,) = output.parent.iterdir()
    expected = [
        replace(row, provenance="public") if row.provenance == "measured" else row
        for provenance in sorted(columns.PROVENANCES)  # tables are read in the order of their names
        for row in rows_of(tables_of(rows))
        if row.provenance == provenance
    ]
    assert rows_of(read_package(path)) == rows_of(tables_of(expected))


@pytest.mark.parametrize(
    "name",
    ["=cmd|'/C calc'!A0", "@SUM(A1)", "+1+2", "-2+3", "\x1b[31mred", "two\nlines", "a\u202eb"],
)
def test_names_that_a_spreadsheet_or_a_terminal_would_obey_are_not_passed_on(plant, name):
    plant([replace(row, workload=name) for row in sweep_rows()])
    with pytest.raises(DataError, match="column workload: a cell that is not allowed"):
        export(["planted"], Path("pack"), Terms("MIT"))
    assert not Path("pack").exists()


def test_provenances_never_share_a_table(package):
    rows = [*sweep_rows("measured"), *sweep_rows("simulated"), *sweep_rows("fake")]
    folder = package(rows)
    assert folder.name == "pack-partly-fake-simulated"
    for provenance in ("measured", "simulated", "fake"):
        assert {row["provenance"] for row in read_cells(folder / f"sweeps-{provenance}.csv")} == {
            provenance
        }
    assert check_folder(folder) == []


def test_licence_is_needed_and_known(plant):
    plant(sweep_rows())
    for licence, told in (
        ("", "is missing"),
        ("CC-BY", "no licence of the SPDX"),
        ("mit", "other"),
    ):
        with pytest.raises(ConfigError, match=told):
            export(["planted"], Path("pack"), Terms(licence))
    assert not Path("pack").exists()


def test_rows_that_cannot_be_told_apart_are_not_passed_on(plant):
    row = sweep_rows()[0]
    plant([row, replace(row, time_s=3.0)])
    with pytest.raises(DataError, match="as in line 2"):
        export(["planted"], Path("pack"), Terms("MIT"))
    assert {path.name for path in Path().iterdir()} == {"config", "measured", "results"}


def test_nothing_is_overwritten(package):
    package()
    with pytest.raises(DataError, match="exists already"):
        package()


def test_measured_rows_name_their_records(package):
    records = json.loads((package() / layout.RECORDS).read_text())
    assert records["planted"].keys() == {"sweep-0/mode-c12-x-0-x", "sweep-1/mode-c12-x-1-x"}
    sums = Path("measured/sweep-0/mode-c12-x-0-x/SHA256SUMS")
    assert records["planted"]["sweep-0/mode-c12-x-0-x"] == sha256_of(str(sums))


def test_nothing_is_called_measured_without_a_record(plant):
    plant(sweep_rows())
    shutil.rmtree("measured")
    with pytest.raises(DataError, match="no record of planted is in measured/"):
        export(["planted"], Path("pack"), Terms("MIT"))


# -- tables of runs --------------------------------------------------------------------------------


@pytest.fixture
def runs(checkout, measure, write_epochs):
    """A measured run of two epochs, with its records, and a simulated one, in results/tables."""
    run = checkout.runs[0]
    for epoch in (0, 1):
        measure(run, epoch)
    twin_id = run.id.replace("host-", "twin-", 1)
    epochs = ({}, {"loss": math.inf, "flags": {"loss_not_finite"}})
    paths = [
        write_epochs(run.id, run.factors, *epochs),
        write_epochs(twin_id, {**run.factors, "backend": "twin"}, {"timing_method": "simulated"}),
    ]
    Path("results/tables").mkdir(parents=True)
    studies = {run.id: "small", twin_id: "small-twin"}
    export_tables(paths, studies, "results/tables/epochs.csv", "results/tables/runs.csv")
    return run.id, twin_id


def test_runs_are_split_by_provenance(runs):
    measured, simulated = runs
    export(["*"], Path("all"), Terms("CC0-1.0"))
    folder = Path("all-partly-simulated")
    assert check_folder(folder) == []
    for provenance, run in (("measured", measured), ("simulated", simulated)):
        rows = read_cells(folder / f"epochs-{provenance}.csv")
        assert {row["run"] for row in rows} == {run}
        assert {row["provenance"] for row in rows} == {provenance}
        assert (folder / f"runs-{provenance}.csv").is_file()


def test_a_study_alone_is_measured_and_names_its_records(runs):
    measured, _ = runs
    export(["small"], Path("small"), Terms("CC0-1.0"))
    records = json.loads(Path("small", layout.RECORDS).read_text())
    assert records.keys() == {measured}
    assert records[measured].keys() == {f"{measured}/epoch-0", f"{measured}/epoch-1"}
    devices = json.loads(Path("small", layout.DEVICES).read_text())
    assert devices["host"]["machines"] == [
        {"machine": {"cpu_model": "one"}, "software": {"torch": "2.9.1"}}
    ]


def test_a_simulated_run_called_measured_in_every_column_is_refused_by_its_id(
    runs, reseal, replace_everywhere
):
    _, simulated = runs
    export([simulated], Path("pack"), Terms("CC0-1.0"))
    folder = Path("pack-simulated")
    replace_everywhere(folder, "SIMULATED, not measured", "measured with epochwatt")
    replace_everywhere(folder, "simulated", "measured")
    folder = folder.rename("pack-measured")
    reseal(folder)
    problems = {p.where: p.found for p in check_folder(folder)}
    assert problems["epochs-measured.csv, line 2, column backend"] == "twin"
    assert problems["epochs-measured.csv, line 2, column run"] == simulated


def test_imported_logs_are_not_measured_by_us():
    assert layout.provenance_of("jetson", "sigmetrics2023") == "public"
    assert layout.provenance_of("jetson", "") == "measured"
    assert layout.provenance_of("twin", "") == "simulated"
    assert layout.provenance_of("fake", "") == "fake"
