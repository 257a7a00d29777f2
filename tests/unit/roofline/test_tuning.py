"""Tuned modes: chosen among all modes of a table, against MAXN, within a limit of time."""

from dataclasses import replace

import pytest

from epochwatt.roofline.fits import FitRow, write_fits
from epochwatt.roofline.tuning import balances, tune, write_tuning
from epochwatt.sweeps.mode_table import SweepRow, tables_of, write_mode_tables
from epochwatt.tables import read_cells

ROW = SweepRow(
    **{"sweep": "made-up", "provenance": "simulated", "device": "agx_orin", "workload": "lenet"},
    **{"task": "infer", "batch_size": 16, "cores": 12, "cpu_mhz": 2200, "gpu_mhz": 1300},
    **{"emc_mhz": 3200, "time_s": 1.0, "power_w": 40.0, "power_scope": "module"},
)
ROWS = (
    ROW,
    replace(ROW, gpu_mhz=1100, time_s=1.04, power_w=34.0),  # 35.4 J, 4 % slower
    replace(ROW, gpu_mhz=500, time_s=2.0, power_w=14.0),  # 28 J, twice as long
    replace(ROW, gpu_mhz=1200, time_s=0.9, power_w=1.0, valid=False),  # does not count
    replace(ROW, gpu_mhz=800, time_s=1.2, power_w=None, power_scope=""),
)


def choices(rows):
    (table,) = tables_of(rows)
    return {row.aim: row for row in tune(table).itertuples()}


def test_modes_are_chosen_by_aim_and_within_a_limit():
    chosen = choices(ROWS)
    assert chosen["maxn"].gpu_mhz == chosen["fastest"].gpu_mhz == 1300
    assert chosen["least_energy"].gpu_mhz == 500
    assert chosen["least_energy"].saved_pct == pytest.approx(30)
    assert chosen["least_energy"].slower_pct == pytest.approx(100)
    assert chosen["least_energy_within_2"].gpu_mhz == 1300
    assert chosen["least_energy_within_5"].gpu_mhz == 1100
    assert chosen["least_energy_within_5"].saved_pct == pytest.approx(100 * (1 - 35.36 / 40))
    assert {row.n_modes for row in chosen.values()} == {3}


def test_a_table_without_its_highest_mode_is_held_against_the_fastest():
    lacking = [replace(ROW, emc_mhz=2100, time_s=1.1), *ROWS[1:3]]
    chosen = choices(lacking)
    assert "maxn" not in chosen
    assert {row.against for row in chosen.values()} == {"fastest"}
    assert chosen["fastest"].slower_pct == 0


FIT = FitRow(
    **{"provenance": "simulated", "device": "orin", "gpu_mhz": 1300, "processor": "gpu"},
    **{"precision": "fp32", "flops_per_s": 2e12, "bytes_per_s": 1e11, "launch_s": 1e-5, "n": 20},
    **{"j_per_flop": 5e-12, "j_per_byte": 6e-11, "constant_w": 9.0},
    **{"ridge_flop_per_byte": 20.0, "balance_flop_per_byte": 12.0},
)


def test_the_implication_is_that_the_balance_is_not_beyond_the_ridge(tmp_path):
    fits = [replace(FIT, balance_flop_per_byte=balance) for balance in (12.0, 21.0, None)]
    assert balances(fits)["is_efficient_where_fast"].tolist() == [1, 0]
    write_mode_tables(tmp_path / "sweep.csv", tables_of(ROWS))
    write_fits(tmp_path / "fits.csv", [FIT])
    paths = [str(tmp_path / name) for name in ("sweep.csv", "fits.csv", "t.csv", "b.csv")]
    write_tuning(paths[:1], paths[1:2], paths[2], paths[3])
    assert {row["aim"] for row in read_cells(paths[2])} >= {"maxn", "least_energy_within_10"}
    (row,) = read_cells(paths[3])
    assert (row["provenance"], row["is_efficient_where_fast"]) == ("simulated", "1")
