"""Which modes to profile, by what they leave open."""

from itertools import combinations

import numpy as np
import pytest

from epochwatt.board.device.board_files import Tables
from epochwatt.errors import EpochwattError
from epochwatt.prediction.data.modes import Board, Mode, PredictionError
from epochwatt.prediction.selection.optimal_design import board_design, choose_modes

SMALL = Board(
    "small",
    3,
    Tables((500_000, 1_500_000), (300_000_000, 1_200_000_000), (400_000_000, 1_600_000_000)),
)


@pytest.fixture(scope="module")
def agx_design(agx):
    return board_design(agx)


def subsets(of, n_modes):
    return combinations([Mode(*row) for row in of.candidates.tolist()], n_modes)


@pytest.mark.parametrize("n_modes", [1, 2])
def test_search_is_as_good_as_trying_all(n_modes):
    of = board_design(SMALL)
    best = min(of.plan(modes).expected_sd_pct for modes in subsets(of, n_modes))
    assert choose_modes(of, n_modes).expected_sd_pct == pytest.approx(best)


def test_chosen_modes_beat_the_papers_and_random_ones_at_equal_cost(agx, agx_design, efij):
    paper = agx_design.plan(efij)
    ours = choose_modes(agx_design, 4, max_cost=paper.epoch_cost)
    rng, modes = np.random.default_rng(0), agx.all_modes()
    short = modes[agx_design.times(modes) <= paper.epoch_cost / 4]
    random = [
        agx_design.plan([Mode(*row) for row in rng.choice(short, 4, replace=False).tolist()])
        for _ in range(50)
    ]
    assert ours.epoch_cost <= paper.epoch_cost * (1 + 1e-6)
    assert ours.expected_sd_pct < min(plan.expected_sd_pct for plan in random)
    assert ours.expected_sd_pct < 0.8 * paper.expected_sd_pct


def test_modes_profiled_already_are_not_chosen_again_and_count(agx_design, efij):
    plan = choose_modes(agx_design, 2, already=efij)
    assert not set(plan.modes) & set(efij)
    alone = agx_design.plan(efij).expected_sd_pct
    assert plan.expected_sd_pct < alone


def test_limit_that_cannot_be_kept_is_refused(agx_design):
    with pytest.raises(PredictionError, match="4 of 1296 candidates within 2") as caught:
        choose_modes(agx_design, 4, max_cost=2)
    assert caught.value.found == "their shortest epochs alone are expected to take 4"


def test_profiled_mode_that_the_board_lacks_is_refused(agx_design):
    with pytest.raises(EpochwattError, match="gpu_mhz: 1000 MHz is not a step"):
        choose_modes(agx_design, 1, already=[Mode(8, 2265, 1000, 1600)])
