"""The sample files: whole rows, whatever happens to the disk or to the sampler."""

import math
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochwatt.board.records.samples import (
    MAX_BYTES,
    SampleWriter,
    read_samples,
    row_format,
    samples_path,
    write_samples,
)
from epochwatt.errors import RecordError

HEADER = "t_mono_s,t_unix_s,power_gpu_w\n"


def write(folder, text):
    Path(samples_path(str(folder), "nvml")).write_text(text, encoding="ascii")


def read(folder, finished=True):
    return read_samples(str(folder), "nvml", finished)


numbers = st.floats(-1e9, 1e9) | st.just(math.nan)


@given(st.lists(st.tuples(st.floats(0, 1e7), numbers, numbers), max_size=20))
def test_what_was_written_is_read_back(tmp_path_factory, rows):
    folder = str(tmp_path_factory.mktemp("samples"))
    rows.sort(key=lambda row: row[0])
    writer = SampleWriter(folder, "rails", ["power_w", "energy_j"])
    for t_s, power_w, energy_j in rows:
        writer.add(t_s, t_s + 1.7e9, [power_w, energy_j])
        writer.flush()
    writer.close()
    found = read_samples(folder, "rails")
    assert list(found) == ["t_mono_s", "t_unix_s", "power_w", "energy_j"]
    assert all(column.dtype == np.float64 for column in found.values())
    t_s, power_w, energy_j = np.array(rows).reshape(-1, 3).T
    np.testing.assert_allclose(found["t_mono_s"], t_s, rtol=0, atol=1e-6)
    np.testing.assert_allclose(found["t_unix_s"], t_s + 1.7e9, rtol=0, atol=1e-6)
    np.testing.assert_allclose(found["power_w"], power_w, rtol=5.1e-6)  # six digits
    np.testing.assert_allclose(found["energy_j"], energy_j, rtol=0, atol=1e-6)


@given(st.lists(st.tuples(st.floats(0, 1e7), numbers, numbers), max_size=20))
def test_all_at_once_is_the_file_that_row_by_row_gives(tmp_path_factory, rows):
    folder, columns = str(tmp_path_factory.mktemp("samples")), ["power_w", "energy_j"]
    writer = SampleWriter(folder, "single", columns)
    for t_s, *values in rows:
        writer.add(t_s, t_s + 1.7e9, values)
    writer.close()
    table = np.array(rows).reshape(-1, 3)
    write_samples(folder, "whole", columns, table[:, 0], table[:, 0] + 1.7e9, table[:, 1:])
    single, whole = (Path(samples_path(folder, name)).read_bytes() for name in ("single", "whole"))
    assert single == whole


def test_bit_masks_and_energy_counters_keep_every_digit():
    form = row_format(["power_w", "energy_gpu_j", "throttle_reasons"])
    assert form % (1, 2, 1.23456789, 123456789.123456, 2.0**40 + 1) == (
        "1.000000,2.000000,1.23457,123456789.123456,1099511627777\n"
    )
    assert form % (1, 2, math.nan, math.nan, math.nan) == "1.000000,2.000000,nan,nan,nan\n"


def test_last_line_that_is_cut_is_left_out_of_an_unfinished_epoch_only(tmp_path):
    write(tmp_path, HEADER + "1,2,3\n2,3,4")
    assert read(tmp_path, finished=False)["power_gpu_w"].tolist() == [3.0]
    with pytest.raises(RecordError, match="last line is cut"):
        read_samples(str(tmp_path), "nvml")


def test_file_that_is_larger_than_any_sampler_writes_is_refused_before_it_is_read(tmp_path):
    write(tmp_path, HEADER)
    os.truncate(samples_path(str(tmp_path), "nvml"), MAX_BYTES + 1)
    with pytest.raises(RecordError, match="no sampler writes so many"):
        read(tmp_path)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "header"),
        ("t_mono_s,t_un", "header"),
        ("t_mono_s,power_w\n1,2\n", "header"),
        ("t_mono_s,t_unix_s,a,a\n1,2,3,4\n", "header"),
        (HEADER + "1,2\n", "line 2: not 3 cells"),
        (HEADER + "1,2,3\n1,2,3,4\n3,4\n", "line 3: not 3 cells"),
        (HEADER + "1,2,3\n\n", "line 3: not 3 cells"),
        (HEADER + "1,2,x\n", "from line 2 on: "),
        (HEADER + "2,2,3\n1,2,3\n", "not in order"),
        (HEADER + "nan,2,3\n", "not in order"),
    ],
)
def test_damaged_file_is_refused(tmp_path, text, fault):
    write(tmp_path, text)
    with pytest.raises(RecordError, match=fault):
        read(tmp_path, finished=False)


def test_full_disk_loses_whole_rows_and_says_so(small_disk):
    writer = SampleWriter(str(small_disk), "nvml", ["power_gpu_w"])
    for n in range(3):
        writer.add(n, n, [1.0])
    writer.flush()
    for n in range(3, 10000):
        writer.add(n, n, [1.0])
    writer.flush()
    writer.add(10000, 0, [1.0])
    writer.close()
    assert writer.error == "No space left on device"
    assert writer.n_rows == 10001
    assert writer.n_lost == 9998
    assert read(small_disk)["t_mono_s"].tolist() == [0, 1, 2]
