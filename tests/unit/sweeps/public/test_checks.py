"""Tables that say nothing about modes, and copies of others, are recognised by their content."""

from dataclasses import replace

import numpy as np
import pytest

from epochwatt.errors import ConfigError
from epochwatt.sweeps.mode_table import ModeTable, SweepRow, tables_of
from epochwatt.sweeps.public.convert import (
    refuse_copies,
    without_copies,
    without_uninformative,
)

CPU, GPU = (345.6, 960.0, 1420.8, 2035.2), (624.75, 828.75, 1032.75, 1300.5)


def planted(n, seed=0, follows=True, workload="image", noise=0.05):
    """Return a table of n random modes whose time follows the GPU's clock, or nothing."""
    random = np.random.default_rng(seed)
    rows = []
    for _ in range(n):
        cpu_mhz, gpu_mhz = random.choice(CPU), random.choice(GPU)
        time_s = 2000 / gpu_mhz + 200 / cpu_mhz if follows else random.choice([1.0, 2.0, 3.0])
        rows.append(
            SweepRow(
                **{"sweep": "planted", "provenance": "public", "device": "tx2", "task": "infer"},
                **{"workload": workload, "cpu_mhz": float(cpu_mhz), "gpu_mhz": float(gpu_mhz)},
                time_s=float(time_s * np.exp(noise * random.normal())),
            )
        )
    (table,) = tables_of(rows)
    return table


def scaled(table, ratio):
    return ModeTable(table.key, tuple(replace(r, time_s=r.time_s * ratio) for r in table.rows))


@pytest.mark.parametrize("n", [50, 1500])
@pytest.mark.parametrize("seed", range(2))
def test_a_table_stays_if_it_follows_its_clocks_and_is_refused_if_it_follows_none(n, seed):
    table = planted(n, seed, noise=0.2)
    assert without_uninformative(table) is table
    with pytest.raises(ConfigError, match="says nothing"):
        without_uninformative(planted(n, seed, follows=False))


@pytest.mark.parametrize("ratio", [1.0, 0.4])
def test_a_copy_in_another_file_is_refused_in_any_order(ratio):
    table = planted(120)
    copy = scaled(ModeTable(table.key, table.rows[::-1]), ratio)
    with pytest.raises(ConfigError, match=f"{ratio:g} times"):
        refuse_copies([table], [copy])
    refuse_copies([table], [planted(120, seed=1)])
    refuse_copies([table], [ModeTable(table.key, table.rows[:50])])


def test_workloads_of_one_file_with_the_same_times_are_left_out():
    table = planted(120)
    copies = [
        ModeTable(table.key._replace(workload=name), table.rows) for name in ("bfs", "cfd", "nw")
    ]
    other = planted(120, seed=1, workload="stream")
    kept, reasons = without_copies([*copies, other])
    assert kept == [other]
    assert len(reasons) == 3
    assert "bfs: its times are those of 2 other workloads" in reasons[0]
