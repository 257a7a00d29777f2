"""Profiles on tables that others measured: regret, broken limits, and what stands beside them."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from benchmarks.profile_replays import SHARES, from_random, profiled, without_profiles
from epochwatt.prediction.harness import NONE
from epochwatt.prediction.profile.bench import replayed
from epochwatt.prediction.profile.command import METHOD
from epochwatt.prediction.registry import load_method
from epochwatt.sweeps.find import find_tables

MINUTES = 30.0


TABLES = ["translucence-tx2-20000"]
TABLES.append(pytest.param("translucence-tx1-5000", marks=pytest.mark.thorough))


@pytest.fixture(scope="module", params=TABLES)
def board(request):
    """A table that plays the board."""
    (table,) = find_tables(request.param, Path(__file__).parents[4])
    return replayed(table)


def limits_of(board):
    return np.quantile(board.table.power_w, np.linspace(*SHARES, 5))


def test_a_profile_breaks_no_limit_and_loses_less_than_random_modes_do(board):
    limits_w = limits_of(board)
    mine = profiled(board, load_method(METHOD), limits_w, MINUTES)
    assert (mine["place"] != NONE).all()
    assert (mine["over_w"] <= 0).all()
    assert (mine["minutes"] <= MINUTES).all()
    assert (mine["n_profiled"] <= 30).all()
    assert mine["penalty_pct"].median() <= 5
    assert mine["penalty_pct"].quantile(0.9) <= 20
    chance = pd.concat(from_random(board, limits_w, 16))
    assert not (chance["over_w"] > 0).any()
    assert mine["penalty_pct"].median() <= chance["penalty_pct"].median()
    hoped = pd.concat(from_random(board, limits_w, 25, load_method("gaussian_process")))
    assert len(hoped) == 50
    assert (hoped["over_w"] > 0).mean() > 0.2  # the fastest by prediction breaks limits
    rows = board.table
    for frame in without_profiles(board, limits_w):  # where the table has that mode
        assert set(frame["strategy"]) == {"MAXN"}
        assert (rows.modes[frame["place"]] == rows.modes.max(0)).all()
