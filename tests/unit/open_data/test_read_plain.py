"""Somebody's plain table of modes: few columns are enough, and what is wrong is named."""

import gzip
from pathlib import Path

import pytest

from epochwatt.errors import DataError
from epochwatt.open_data.read import find_tables, read_plain, report_lines

from .conftest import sweep_rows

PLAIN = """\
device,workload,task,gpu_mhz,time_s,comment
tx2,yolo,infer,1300.5,0.041,warm
tx2,yolo,infer,624.75,0.077,
"""


@pytest.fixture
def plain(tmp_path):
    def write(text=PLAIN, name="theirs.csv"):
        path = tmp_path / name
        content = text.encode()
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        return path

    return write


@pytest.mark.parametrize("name", ["theirs.csv", "theirs.csv.gz"])
def test_few_columns_are_enough(plain, name):
    (table,) = find_tables(str(plain(name=name)))
    assert (table.key.sweep, table.key.provenance, table.key.device) == ("theirs", "public", "tx2")
    assert table.column("time_s").tolist() == [0.041, 0.077]
    assert table.varied() == ("gpu_mhz",)


@pytest.mark.parametrize(("stated", "read"), [("measured", "public"), ("simulated", "simulated")])
def test_what_others_measured_is_public_and_simulated_stays(plain, stated, read):
    text = PLAIN.replace("device", "provenance,device").replace("tx2", f"{stated},tx2")
    (table,) = read_plain(plain(text))
    assert table.key.provenance == read


def test_lines_of_one_mode_are_its_repeats(plain):
    (table,) = read_plain(plain(PLAIN.replace("624.75", "1300.5")))
    assert [row.repeat for row in table.rows] == [0, 1]


def test_a_mode_that_failed_has_no_row(plain):
    with pytest.raises(DataError) as error:
        find_tables(str(plain(PLAIN.replace("0.077", ""))))
    assert "line 3, column time_s" in str(error.value)
    assert "do: leave the row out, as of a mode that failed" in str(error.value)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("time_s", "seconds", "line 1: no column time_s: mean time of the work"),
        ("device,", "board,", "line 1: no column device: board kind"),
        ("gpu_mhz", "clock", "line 1: no column of a mode\n  allowed: cores, cpu_mhz, gpu_mhz"),
        ("comment", "Power_W", "line 1: column 'Power_W' would not be read\n  allowed: power_w"),
        ("0.077", "77 ms", "line 3, column time_s: a cell that is not allowed\n  found: 77 ms"),
        ("0.077,", "0.077", "line 3: 5 cells where the first line has 6"),
        ("infer", "inference", "line 2, column task: a cell that is not allowed"),
    ],
)
def test_what_is_wrong_is_named(plain, old, new, told):
    path = plain(PLAIN.replace(old, new))
    with pytest.raises(DataError) as error:
        find_tables(str(path))
    assert told in str(error.value)
    lines, valid = report_lines(path)
    assert not valid
    assert told in "\n".join(lines)


def test_our_own_sweep_is_measured_by_name_and_by_path(plant):
    plant(sweep_rows())
    for what in ("planted", "results/sweeps/planted.csv"):
        assert {table.key.provenance for table in find_tables(what)} == {"measured"}
    Path("copy.csv").write_bytes(Path("results/sweeps/planted.csv").read_bytes())
    assert {table.key.provenance for table in find_tables("copy.csv")} == {"public"}


def test_a_compressed_table_that_was_damaged_is_refused(plain):
    path = plain(name="theirs.csv.gz")
    content = bytearray(path.read_bytes())
    content[10] = 0xFF  # behind the header: no such block
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"theirs\.csv\.gz cannot be read"):
        find_tables(str(path))
    assert not report_lines(path)[1]
