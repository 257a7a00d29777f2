"""Tables as strangers save them: other units, encodings, separators, sizes, and what is no file."""

import csv
import gzip
import io
import os
from pathlib import Path

import pytest

from epochwatt.errors import DataError
from epochwatt.open_data import read
from epochwatt.open_data.check import check_folder
from epochwatt.open_data.read import check_plain, find_tables, read_plain, report_lines
from epochwatt.sweeps.find import find_tables as find_public
from epochwatt.sweeps.mode_table import write_mode_tables
from epochwatt.sweeps.public.registry import load_registry

ROOT = Path(__file__).parents[3]
REGISTRY = load_registry(ROOT)
HEADER = "device,workload,task,cores,cpu_mhz,gpu_mhz,emc_mhz,time_s,power_w,power_scope"
LINES = [
    "agx_orin,yolo,train,8,1190.4,624.75,2133,0.081,17.25,module",
    "agx_orin,yolo,train,12,2201.6,1300.5,3199,0.043,38.5,module",
    "agx_orin,yolo,train,4,729.6,306,665.6,0.19,9.75,module",
]
TABLE = "\n".join([HEADER, *LINES, ""])


@pytest.fixture
def theirs(tmp_path):
    def write(content, name="theirs.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def rescaled(name, factor, text=TABLE):
    rows = list(csv.DictReader(io.StringIO(text)))
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows({**row, name: f"{float(row[name]) * factor:.10g}"} for row in rows)
    return out.getvalue()


@pytest.mark.parametrize(
    ("name", "factor", "unit"),
    [
        *(("cpu_mhz", 1e3, "kHz"), ("gpu_mhz", 1e6, "Hz"), ("emc_mhz", 1e-3, "GHz")),
        ("power_w", 1e3, "mW"),
        ("power_w", 1e-3, "kW"),
        ("power_w", 1e6, "uW"),
        ("time_s", 1e3, "ms"),
        ("time_s", 1e6, "us"),
    ],
)
def test_a_column_in_another_unit_is_refused_with_the_unit_that_is_meant(
    theirs, name, factor, unit
):
    path = theirs(rescaled(name, factor))
    (problem,) = check_plain(path)
    assert f"column {name}" in problem.where
    assert f"{name} looks like {unit}:" in problem.do
    assert problem.found
    assert " to " in problem.allowed
    with pytest.raises(DataError):
        find_tables(str(path))


def test_power_and_its_limit_are_in_one_unit(theirs):
    text = (
        "device,workload,task,power_limit_w,time_s,power_w,power_scope\n"
        "V100,w,train,250,0.1,1.9,gpu\nV100,w,train,200,0.12,1.7,gpu\n"
    )
    (problem,) = check_plain(theirs(text))
    assert "cannot be in the same unit" in problem.problem


@pytest.mark.parametrize("name", [*filter(REGISTRY.is_shipped, REGISTRY.sweeps)])
def test_public_sweeps_come_in_by_the_door_of_strangers(name, tmp_path):
    tables = find_public(name, ROOT)
    path = tmp_path / "theirs.csv.gz"
    write_mode_tables(path, tables)
    assert check_plain(path) == []


@pytest.mark.parametrize(
    ("content", "where", "told"),
    [
        (TABLE.replace("yolo", "yölo").encode("latin-1"), "line 2", "'yölo'"),
        (TABLE.encode("utf-16"), "", "UTF-16"),
        (TABLE.encode("utf-16-le"), "", "UTF-16"),
        (b"PK\x03\x04" + bytes(50), "", "spreadsheet"),
        (TABLE.replace(",", ";"), "line 1", "';'"),
        (TABLE.replace(",", "\t"), "line 1", "a tab"),
        ("sep=,\n" + TABLE, "line 1", "sep="),
        ("# measured at night\n" + TABLE, "line 1", "# measured at night"),
        ("<!DOCTYPE html><html>404</html>", "line 1", "<!DOCTYPE html>"),
        (TABLE.replace(",", ", "), "line 1", "a comma and a space"),
        (TABLE.replace("0.081", '"0,081"'), "line 2, column time_s", "0,081"),
        (TABLE.replace("1190.4", '"1,190.4"'), "line 2, column cpu_mhz", "1,190.4"),
        (TABLE.replace("0.081", "nan"), "line 2, column time_s", "nan"),
        (TABLE.replace("0.081", "0"), "line 2, column time_s", "0"),
        (TABLE.replace("17.25", "-3"), "line 2, column power_w", "-3"),
        (TABLE.replace("time_s", "gpu_mhz"), "line 1", "2 columns are called gpu_mhz"),
    ],
)
def test_what_is_not_understood_is_named(theirs, content, where, told):
    lines, valid = report_lines(theirs(content))
    assert not valid
    assert where in lines[1]
    assert any(told in line for line in lines)


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbf" + TABLE.encode(),
        TABLE.replace("\n", "\r\n").encode(),
        ",".join(f'"{name}"' for name in HEADER.split(",")).encode()
        + TABLE.removeprefix(HEADER).encode(),
        TABLE.replace(LINES[1], LINES[1] + "\n").encode() + b"\n\n",
        gzip.compress(TABLE.encode()),
    ],
    ids=["byte order mark", "Windows line ends", "quoted names", "empty lines", "packed"],
)
def test_what_can_be_understood_is(theirs, content):
    (table,) = read_plain(theirs(content))
    assert table.column("time_s").tolist() == [0.081, 0.043, 0.19]


def test_a_small_file_that_fills_the_memory_is_refused(theirs, monkeypatch):
    monkeypatch.setattr(read, "LARGEST_TABLE", 1 << 20)
    packed = gzip.compress(TABLE.encode() + LINES[0].encode() * (1 << 15))
    assert len(packed) < 10_000
    (problem,) = check_plain(theirs(packed, "theirs.csv.gz"))
    assert "too large" in problem.problem


def test_a_pipe_is_refused_and_not_waited_for(tmp_path, package):
    path = tmp_path / "theirs.csv"
    os.mkfifo(path)
    (problem,) = check_plain(path)
    assert "a pipe" in problem.problem
    folder = package()
    (folder / "datapackage.json").unlink()
    os.mkfifo(folder / "datapackage.json")
    (problem,) = check_folder(folder)
    assert problem.where == "datapackage.json"
