"""Mode tables: what is written is read again, and a wrong cell is named."""

import gzip
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochwatt.errors import ConfigError
from epochwatt.sweeps.mode_table import SweepRow, read_mode_tables, tables_of, write_mode_tables

ROW = SweepRow(
    **{"sweep": "planted", "provenance": "measured", "device": "agx_orin", "workload": "lenet"},
    **{"task": "train", "batch_size": 16, "precision": "fp32", "cores": 12, "cpu_mhz": 2201.6},
    **{"gpu_mhz": 1300.5, "emc_mhz": 3199, "time_s": 0.0125, "power_w": 20.5},
    power_scope="module",
)
positive = st.floats(1e-6, 1e6).map(lambda number: float(f"{number:.9g}"))


@given(
    time_s=positive,
    power_w=st.none() | positive,
    limit=st.none() | positive,
    valid=st.booleans(),
    workload=st.text("abc, \"'µ-@", min_size=1),
)
def test_a_row_survives_the_file(tmp_path_factory, time_s, power_w, limit, valid, workload):
    told = {"time_s": time_s, "power_w": power_w, "power_limit_w": limit, "workload": workload}
    row = replace(ROW, **told, valid=valid, flags="" if valid else "clock_below_request")
    path = tmp_path_factory.mktemp("tables") / "sweep.csv.gz"
    write_mode_tables(path, tables_of([row]))
    (table,) = read_mode_tables(path)
    assert table.rows == (row,)


def test_workloads_are_told_apart_and_what_varies_counts_valid_rows_only():
    rows = [replace(ROW, workload=name, repeat=n) for n, name in enumerate("bab")]
    found = [(t.key.workload, [row.repeat for row in t.rows]) for t in tables_of(rows)]
    assert found == [("b", [0, 2]), ("a", [1])]
    rows = [ROW, replace(ROW, gpu_mhz=624), replace(ROW, cpu_mhz=729, valid=False)]
    (table,) = tables_of(rows)
    assert table.varied() == ("gpu_mhz",)
    assert table.parts == ("cores", "cpu_mhz", "gpu_mhz", "emc_mhz")
    assert len(table.valid().rows) == 2
    assert table.modes.shape == (3, 6)
    assert math.isnan(table.modes[0, -1])
    assert np.array_equal(table.column("time_s"), [0.0125] * 3)
    with pytest.raises(ConfigError, match="several scopes"):
        tables_of([ROW, replace(ROW, power_scope="gpu")])


@pytest.mark.parametrize(
    ("column", "cell"),
    [
        *(("time_s", cell) for cell in ("0", "nan", "fast")),
        *(("gpu_mhz", "-3"), ("provenance", "guessed"), ("power_scope", "")),
    ],
)
def test_a_wrong_cell_is_named_with_its_line(tmp_path: Path, column, cell):
    path = tmp_path / "sweep.csv"
    write_mode_tables(path, tables_of([ROW, ROW]))
    head, first, second = path.read_text().splitlines()
    place = head.split(",").index(column)
    cells = second.split(",")
    cells[place] = cell
    path.write_text("\n".join([head, first, ",".join(cells)]) + "\n")
    with pytest.raises(ConfigError) as error:
        read_mode_tables(path)
    assert f"{path}, line 3" in str(error.value)
    assert column in str(error.value)


def test_an_empty_and_a_cut_file_are_refused(tmp_path: Path):
    path = tmp_path / "sweep.csv.gz"
    write_mode_tables(path, [])
    with pytest.raises(ConfigError, match="without a row"):
        read_mode_tables(path)
    path.write_bytes(gzip.compress(b"sweep,provenance\n" * 50)[:30])
    with pytest.raises(ConfigError, match="cannot be read"):
        read_mode_tables(path)
