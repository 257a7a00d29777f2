"""Table of ceilings: what is written is read, and what cannot be is refused with its place."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochwatt import columns
from epochwatt.errors import ConfigError
from epochwatt.roofline.ceilings import CEILING_NAMES, CeilingRow, read_ceilings, write_ceilings

ROW = {
    **{"provenance": "measured", "device": "host", "processor": "cpu", "precision": "fp32"},
    **{"kernel": "triad", "size": 1024, "flops": 2048.0, "bytes": 12288.0, "repeats": 10},
    **{"time_s": 2e-6, "best_s": 1e-6},
}
ABOVE_ZERO = st.floats(1e-9, 1e15).map(lambda x: float(f"{x:.9g}"))
OPTIONAL = st.none() | ABOVE_ZERO


@given(data=st.data())
def test_rows_come_back_as_they_were_written(data, tmp_path_factory):
    times = sorted(data.draw(st.lists(ABOVE_ZERO, min_size=2, max_size=2)))
    row = CeilingRow(
        **{
            **ROW,
            "kernel": data.draw(st.sampled_from(columns.CEILING_KERNELS)),
            "cores": data.draw(st.none() | st.integers(1, 128)),
            **{name: data.draw(OPTIONAL) for name in ("cpu_mhz", "gpu_mhz", "emc_mhz")},
            "flops": data.draw(st.just(0.0) | ABOVE_ZERO),
            "bytes": data.draw(st.just(0.0) | ABOVE_ZERO),
            "best_s": times[0],
            "time_s": times[1],
            "power_w": data.draw(OPTIONAL),
            "power_scope": "module",
            "valid": data.draw(st.booleans()),
            "flags": data.draw(st.sampled_from(["", "stopped", "power_gap stopped"])),
        }
    )
    path = tmp_path_factory.mktemp("c") / "ceilings.csv"
    write_ceilings(path, [row, row])
    assert read_ceilings(path) == [row, row]


@pytest.mark.parametrize(
    ("column", "cell", "fault"),
    [
        ("time_s", "0", "time_s is 0; a finite number above zero is allowed"),
        ("time_s", "nan", "time_s"),
        ("bytes", "-1", "bytes is -1; a finite number of zero or more is allowed"),
        ("kernel", "stream", "kernel is 'stream'"),
        ("best_s", "3e-06", "best_s is 3e-06, above time_s"),
        ("power_w", "5", "power_w needs a power_scope"),
        ("device", "", "device"),
    ],
)
def test_a_cell_that_cannot_be_is_named_with_its_line(tmp_path, column, cell, fault):
    path = tmp_path / "ceilings.csv"
    write_ceilings(path, [CeilingRow(**ROW)])
    header, line = path.read_text("utf-8").splitlines()
    cells = line.split(",")
    cells[CEILING_NAMES.index(column)] = cell
    path.write_text(f"{header}\n{','.join(cells)}\n", "utf-8")
    with pytest.raises(ConfigError, match="line 2") as caught:
        read_ceilings(path)
    assert fault in str(caught.value)
