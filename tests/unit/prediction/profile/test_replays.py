"""Profiles on tables that others measured: regret, broken limits, and what stands beside them."""

from pathlib import Path

import numpy as np
import pytest

from epochwatt.prediction.evaluation.profile_replays import (
    Answer,
    best_of_random,
    by_prediction,
    limits_of,
    replay_profiles,
    summarise,
    without_profiles,
)
from epochwatt.prediction.profile.command import METHOD
from epochwatt.prediction.profile.replay import Replayed
from epochwatt.prediction.registry import load_method
from epochwatt.prediction.transfer.limits import NONE
from epochwatt.sweeps.find import find_tables

ROOT = Path(__file__).parents[4]
MINUTES = 30.0


@pytest.fixture(scope="module", params=["translucence-tx1-5000", "translucence-tx2-20000"])
def board(request):
    """A table that plays the board."""
    (table,) = find_tables(request.param, ROOT)
    return Replayed(table)


def test_a_profile_breaks_no_limit_and_loses_less_than_random_modes_do(board):
    rows = board.table
    limits_w = limits_of(rows, 5)
    benches = [board.anew() for _ in limits_w]
    profiles = replay_profiles(benches, load_method(METHOD), limits_w, MINUTES)
    mine = summarise(rows, profiles)[0]
    assert mine.answered_pct == 100
    assert mine.broken_pct == 0
    assert all(answer.minutes <= MINUTES for answer in profiles)
    assert all(answer.n_profiled <= 30 for answer in profiles)
    assert mine.regret_pct <= 5
    assert mine.regret_p90_pct <= 20
    (chance,) = summarise(rows, best_of_random(board, rows, 16, limits_w))
    assert chance.broken_pct == 0
    assert mine.regret_pct <= chance.regret_pct


def test_the_fastest_by_prediction_breaks_limits(board):
    rows = board.table
    limits_w = limits_of(rows, 5)
    answers = by_prediction(board, rows, load_method("gaussian_process"), None, 25, limits_w)
    (one,) = summarise(rows, answers)
    assert one.n_answers == 50
    assert one.broken_pct > 20


def test_maxn_is_the_strongest_mode_whatever_the_limit(board):
    rows = board.table
    answers = without_profiles(rows, "tx1", limits_of(rows, 5))
    for answer in answers:
        assert (rows.modes[answer.place] == rows.modes.max(0)).all()
        assert answer.strategy == "MAXN"


def test_a_summary_counts_answers_and_limits(board):
    rows = board.table
    order = np.argsort(rows.power_w)
    weak, strong = int(order[0]), int(order[-1])
    limit_w = float(rows.power_w[order[-1]]) - 2.0
    answers = [Answer("s", 0, limit_w, place, 4, 2.0) for place in (weak, strong, NONE)]
    (one,) = summarise(rows, answers)
    assert (one.n_answers, one.answered_pct) == (3, pytest.approx(200 / 3))
    assert (one.broken_pct, one.over_1w_pct) == (50, 50)
    best_s = rows.time_s[rows.power_w <= limit_w].min()
    assert one.regret_pct == pytest.approx(100 * (rows.time_s[weak] / best_s - 1))
