"""Mode tables as observations."""

from dataclasses import replace

import numpy as np
import pytest

from epochwatt.prediction.data.mode_tables import MHZ, UNKNOWN, observations_of
from epochwatt.prediction.data.modes import NO_LIMIT, PredictionError
from epochwatt.sweeps.mode_table import ModeTable
from tests.unit.prediction.sweeps import GRID, limited, planted


def changed(table, place, **values):
    rows = list(table.rows)
    rows[place] = replace(rows[place], **values)
    return ModeTable(table.key, tuple(rows))


def test_repeats_of_a_mode_are_one_row_with_the_energy_of_their_mean():
    table = planted(GRID[:6], repeats=2)
    table = changed(table, 0, time_s=10.0, power_w=5.0)
    table = changed(table, 1, time_s=30.0, power_w=9.0)
    rows = observations_of(table)
    assert len(rows.modes) == 6
    assert (rows.time_s[0], rows.power_w[0]) == (20.0, (50 + 270) / 40)
    assert rows.energy_wh[0] == pytest.approx((50 + 270) / 2 / 3600)
    assert rows.epoch.tolist() == [1] * 6


def test_a_repeat_without_power_counts_for_time_alone():
    table = changed(planted(GRID[:6], repeats=2), 1, power_w=None, power_scope="")
    rows = observations_of(table)
    assert rows.power_w[0] == table.rows[0].power_w
    bare = planted(GRID[:6], power_w=None)
    assert np.isnan(observations_of(bare).power_w).all()


def test_invalid_rows_are_left_out():
    table = changed(planted(GRID[:6]), 2, valid=False)
    assert len(observations_of(table).modes) == 5
    none = ModeTable(table.key, tuple(replace(row, valid=False) for row in table.rows))
    with pytest.raises(PredictionError, match="without a valid row"):
        observations_of(none)


def test_parts_that_are_not_known_are_the_same_constant_in_all_modes():
    rows = observations_of(limited())
    assert len(np.unique(rows.modes[:, :5], axis=0)) == 1
    assert rows.modes[0].tolist() == [*UNKNOWN[:5], 100.0]
    assert rows.modes[0, 2] == MHZ
    assert (observations_of(planted()).modes[:, 5] == NO_LIMIT).all()


def test_a_part_that_some_rows_know_is_refused():
    with pytest.raises(PredictionError, match="power_limit_w is known of 1 of 6 valid rows"):
        observations_of(changed(planted(GRID[:6]), 3, power_limit_w=100.0))


def test_inference_has_a_thread_for_each_core_and_training_its_workers():
    assert observations_of(planted()).processes == 5
    assert observations_of(planted(task="infer")).processes == 8
