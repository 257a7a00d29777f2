"""MAXN and preset modes."""

from itertools import product

import numpy as np
import pytest

from epochwatt.prediction.data.mode_tables import observations_of
from epochwatt.prediction.data.modes import PredictionError
from epochwatt.prediction.harness import NONE
from epochwatt.prediction.transfer.baselines import stock_choices, strongest
from tests.unit.prediction.sweeps import GRID, planted

CPU = (1036.8, 1190.4, 1651.2, 2201.6)
GPU = (318.75, 420.75, 624.75, 828.75, 1300.5)
ORIN = list(product((2, 4, 8, 12), CPU, GPU, (2133, 3199)))


def test_the_strongest_mode_has_every_part_at_its_highest():
    rows = observations_of(planted())
    assert rows.modes[strongest(rows)][1:4].tolist() == [2200, 1300, 1600]
    with pytest.raises(PredictionError, match="the strongest mode is not among 47 modes"):
        strongest(observations_of(planted(GRID[:-1])))


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
