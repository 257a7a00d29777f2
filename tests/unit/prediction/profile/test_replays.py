"""Profiles on tables that others measured: regret, broken limits, and what stands beside them."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks import least_energy
from benchmarks.profile_replays import LIMITS, from_random, profiled, without_profiles
from epochwatt.prediction.harness import NONE
from epochwatt.prediction.profile.bench import replayed
from epochwatt.prediction.registry import RECOMMENDED, load_method
from epochwatt.sweeps.find import find_tables

MINUTES = 30.0


@pytest.fixture(scope="module")
def board():
    """A table that plays the board."""
    (table,) = find_tables("translucence-tx2-20000", Path(__file__).parents[4])
    return replayed(table)


def test_a_profile_breaks_few_limits_in_unseen_repeats_and_loses_less_than_random_modes(board):
    limits_w = np.quantile(board.power_w, np.linspace(*LIMITS, 13))
    mine = profiled(board, load_method(RECOMMENDED), limits_w, MINUTES)
    assert mine["place"].ne(NONE).mean() > 0.85
    assert mine["broken"].mean() <= 0.1
    assert mine["regret_pct"].median() <= 7
    assert (mine["minutes"] <= MINUTES).all()
    chance = pd.concat(from_random(board, limits_w, 16))
    assert chance["broken"].mean() > 0.1  # measured once, without a margin
    assert mine["regret_pct"].median() <= chance["regret_pct"].median()
    hoped = pd.concat(from_random(board, limits_w[::2], 25, load_method("gaussian_process")))
    assert hoped["broken"].mean() > 0.2  # the fastest by prediction breaks limits
    for frame in without_profiles(board, limits_w):  # where the table has that mode
        assert (board.modes[frame["place"]] == board.modes.max(0)).all()


def test_ten_runs_find_nearly_the_least_energy_of_real_tables():
    """Of GPU clocks, and of power limits; with a plot of the authors where a curve has no time."""
    tasks = [
        task for task in least_energy.tasks() if task.sweep in ("ali-gv100", "zeus-v100-windows")
    ]
    frame = pd.concat(map(least_energy.answers, tasks))
    mine = frame[frame.strategy == "profile, 10 runs"]
    assert len(mine) == 8
    assert mine.regret_pct.median() <= 1.5
    assert mine.regret_pct.max() <= 5
    assert (mine.saved_pct > 10).all()
    assert (mine.runs <= 10).all()


def test_energies_of_fine_tuning_are_read_from_the_authors_plots(tmp_path):
    path = tmp_path / "clone/src/plots/net.py"
    path.parent.mkdir(parents=True)
    path.write_text(
        'task_data = {\n    "config_freq_mhz": [300, 600, 900],\n    "energy_j": [\n'
        "        30.5, 20.25, 25.0\n    ]\n}\ntask_mode0_energy = 27.5\n"
    )
    (task,) = least_energy.fine_tuning(tmp_path)
    assert [row.gpu_mhz for row in task.table.rows] == [300, 600, 900]
    assert [row.time_s * row.power_w for row in task.table.rows] == [30.5, 20.25, 25.0]
    assert task.governed_j == 27.5
