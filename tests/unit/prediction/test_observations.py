"""Rows of epochs under power modes, and tables of them."""

import numpy as np
import pytest

from epochwatt.prediction.modes import PredictionError
from epochwatt.prediction.observations import of_rows, read_power_mode_table

# made up for this test
TABLE = """\
workload,note,cores,cpu_mhz,gpu_mhz,emc_mhz,time_s,power_w
small,x,8,2265.6,1377,2133,10,30
small,y,4,1190.4,675.75,1331.2,25,12
large,z,8,2265.6,1377,2133,100,
"""


def test_power_of_a_mode_is_that_of_its_mean_energy(named):
    """Epochs of 100 s at 36 W and 300 s at 12 W: 1 Wh each, so 1 Wh in 200 s, which is 18 W."""
    of = of_rows("w", [named["g"]] * 2, [100, 300], [36, 12])
    assert of.energy_wh.tolist() == [1, 1]
    mean = of.per_mode()
    assert (mean.time_s[0], mean.power_w[0]) == (200, pytest.approx(18))


def test_later_epochs_leave_out_the_first(named):
    of = of_rows("w", [named["g"]] * 4, [9, 1, 2, 3], epoch=[0, 1, 2, 3])
    assert of.after_first(2).time_s.tolist() == [1, 2]
    assert of.after_first().time_s.tolist() == [1, 2, 3]


def test_rows_of_some_modes(named):
    of = of_rows("w", [named[n] for n in "gagb"], [1, 2, 3, 4])
    assert of.only({named["g"], named["b"]}).time_s.tolist() == [1, 3, 4]
    assert of.distinct() == (named["g"], named["a"], named["b"])


def test_missing_energy_is_named(named):
    of = of_rows("lenet", [named["g"], named["a"]], [1, 2], [20, float("nan")])
    with pytest.raises(PredictionError, match=r"lenet: no energy.*in 1 of 2 modes.*4 cores"):
        of.need_energy()


@pytest.mark.parametrize(("time_s", "power_w"), [(0, 20), (-1, 20), (float("nan"), 20), (1, 0)])
def test_times_and_powers_are_above_zero(named, time_s, power_w):
    with pytest.raises(PredictionError, match="it is above zero"):
        of_rows("w", [named["g"]], [time_s], [power_w])


def test_columns_are_equally_long(named):
    with pytest.raises(PredictionError, match=r"columns of \[1, 2\] rows"):
        of_rows("w", [named["g"]] * 2, [1])


def test_table_is_read_by_workload(tmp_path, named):
    path = tmp_path / "table.csv"
    path.write_text(TABLE, "utf-8")
    tables = read_power_mode_table(path)
    assert list(tables) == ["small", "large"]
    assert tables["small"].distinct() == (named["g"], named["a"])
    assert tables["small"].time_s.tolist() == [10, 25]
    assert np.isnan(tables["large"].power_w).all()


def test_table_without_a_column_is_refused(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(TABLE.replace("emc_mhz", "memory"), "utf-8")
    with pytest.raises(PredictionError, match="no column emc_mhz"):
        read_power_mode_table(path)


def test_cell_that_is_no_number_is_named_by_its_line(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(TABLE.replace("1190.4", "slow"), "utf-8")
    with pytest.raises(PredictionError, match="line 3: could not convert"):
        read_power_mode_table(path)
