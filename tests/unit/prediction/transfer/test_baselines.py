"""MAXN, preset modes and the best of the profiled modes."""

from itertools import product

import numpy as np
import pytest

from epochwatt.prediction.data.mode_tables import observations_of
from epochwatt.prediction.data.modes import PredictionError
from epochwatt.prediction.transfer.baselines import best_profiled, stock_choices, strongest
from epochwatt.prediction.transfer.limits import NONE
from tests.unit.prediction.sweeps import GRID, planted

CPU = (1036.8, 1190.4, 1651.2, 2201.6)
GPU = (318.75, 420.75, 624.75, 828.75, 1300.5)
ORIN = list(product((2, 4, 8, 12), CPU, GPU, (2133, 3199)))


def test_the_strongest_mode_has_every_part_at_its_highest():
    rows = observations_of(planted())
    assert rows.modes[strongest(rows)][1:4].tolist() == [2200, 1300, 1600]
    with pytest.raises(PredictionError, match="the strongest mode is not among 47 modes"):
        strongest(observations_of(planted(GRID[:-1])))


def test_the_best_profiled_mode_is_one_that_was_profiled_and_keeps_the_limit():
    rows = observations_of(planted())
    profiled = np.array([5, 20, 40])
    places = best_profiled(rows, profiled, np.array([1.0, rows.power_w[20], 100.0]))
    assert places[0] == NONE
    assert rows.power_w[places[1]] <= rows.power_w[20]
    assert places[2] == profiled[rows.time_s[profiled].argmin()]


def test_a_preset_mode_serves_from_the_watts_in_its_name_to_the_next():
    """Cores and clocks of AGX Orin's presets, rounded down to steps of the table."""
    rows = observations_of(planted(ORIN))
    chosen = stock_choices(rows, "agx_orin", np.array([14.0, 15.0, 29.0, 30.0, 50.0]))
    assert chosen[0] == NONE
    assert chosen[1] == chosen[2]
    fifteen, thirty, fifty = rows.modes[chosen[[1, 3, 4]], :4].tolist()
    assert fifteen == [4, 1036.8, 420.75, 2133]  # 1,113.6 MHz is no step here
    assert thirty == [8, 1651.2, 624.75, 3199]  # 1,728 MHz likewise
    assert fifty == [12, 1190.4, 828.75, 3199]  # 1,497.6 MHz likewise


def test_unknown_presets_are_refused():
    rows = observations_of(planted())
    with pytest.raises(PredictionError, match="no preset modes of V100 are known"):
        stock_choices(rows, "V100", np.array([10.0]))
