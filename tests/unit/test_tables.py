"""Tables read and written: what is typed, what is missing, what is refused."""

from dataclasses import dataclass
from typing import NamedTuple

import pandas as pd
import pytest

from epochwatt.errors import ConfigError
from epochwatt.tables import (
    checked_rows,
    filled,
    read_cells,
    read_frame,
    write_entries,
    write_frame,
    write_table,
)


def test_frame_is_typed_by_the_columns(tmp_path):
    path = tmp_path / "epochs.csv"
    path.write_text("model,epoch,e2e_s,n_samples,valid,own,word\n"
                    "NA,0,0.1,,True,1,a\n,1,,5,false,,b\n", "utf-8")  # fmt: skip
    frame = read_frame(path)
    assert frame.model.tolist() == ["NA", ""]
    assert frame.epoch.tolist() == [0, 1]
    assert frame.epoch.dtype == "int64"
    assert frame.e2e_s[0] == 0.1
    assert frame[["e2e_s", "n_samples", "own"]].isna().sum().tolist() == [1, 1, 1]
    assert frame.valid.tolist() == [True, False]
    assert frame.word.tolist() == ["a", "b"]


def test_frame_of_no_rows_keeps_its_columns(tmp_path):
    (tmp_path / "a.csv").write_text("run,e2e_s\n", "utf-8")
    frame = read_frame(tmp_path / "a.csv")
    assert list(frame) == ["run", "e2e_s"]
    assert frame.e2e_s.dtype == float


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("e2e_s\nfast\n", "e2e_s"),
        ("valid\nyes\n", "'yes' is not true or false"),
        ("run,e2e_s\na\n", "more or fewer cells"),
        ('run\n"a\n', "cannot be read"),
    ],
)
def test_wrong_cells_are_refused(tmp_path, text, problem):
    (tmp_path / "a.csv").write_text(text, "utf-8")
    with pytest.raises(ConfigError, match=problem):
        read_frame(tmp_path / "a.csv")


class Pair(NamedTuple):
    class_: str
    value: float


@dataclass
class Row:
    name: str
    value: float | None = None


def test_every_way_writes_the_same_bytes(tmp_path):
    rows = [("a", 0.1 + 0.2), ("b", 3.0)]
    write_table(tmp_path / "1", "rows", ("class", "value"), rows)
    cells = [{"value": value, "class": name} for name, value in rows]
    write_table(tmp_path / "new/2", "rows", ("class", "value"), cells)
    write_entries(tmp_path / "3", "rows", Pair, [Pair(*row) for row in rows])
    write_frame(tmp_path / "4", "rows", pd.DataFrame(rows, columns=["class", "value"]))
    expected = b"class,value\na,0.30000000000000004\nb,3.0\n"
    assert {(tmp_path / name).read_bytes() for name in ("1", "new/2", "3", "4")} == {expected}
    write_entries(tmp_path / "short.csv", "rows", Pair, [Pair("a", 0.125)], ".2g")
    assert read_cells(tmp_path / "short.csv") == [{"class": "a", "value": "0.12"}]


def test_compressed_and_read_as_dataclasses(tmp_path):
    path = tmp_path / "a.csv.gz"
    write_table(path, "rows", ("name", "value", "more"), [("a", 1.5, 1), ("b", None, 2)])
    assert [row for _, _, row in checked_rows(Row, path, filled)] == [Row("a", 1.5), Row("b")]
    write_table(path, "rows", ("name", "value"), [("a", "x")])
    with pytest.raises(ConfigError, match=r"line 2.*value is 'x'"):
        list(checked_rows(Row, path))
