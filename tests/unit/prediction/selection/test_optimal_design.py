"""Which modes to profile, by what they leave open."""

from itertools import combinations

import numpy as np
import pytest

from epochwatt.board.device.board_files import Tables
from epochwatt.errors import EpochwattError
from epochwatt.prediction.data.modes import Board, Mode, PredictionError, as_rows
from epochwatt.prediction.data.observations import observations_from_rows
from epochwatt.prediction.harness import mape_pct
from epochwatt.prediction.models.features import TIME, design
from epochwatt.prediction.models.physical import fit_physical_time
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


@pytest.mark.parametrize("n_modes", [1, 2, 3])
def test_search_is_as_good_as_trying_all(n_modes):
    of = board_design(SMALL)
    best = min(of.plan(modes).expected_sd_pct for modes in subsets(of, n_modes))
    assert choose_modes(of, n_modes).expected_sd_pct == pytest.approx(best)


def test_limit_is_used_as_well_as_trying_all():
    of = board_design(SMALL)
    within = [modes for modes in subsets(of, 3) if of.times(as_rows(modes)).sum() <= 4.5]
    best = min(of.plan(modes).expected_sd_pct for modes in within)
    assert len(within) > 10
    assert choose_modes(of, 3, max_cost=4.5).expected_sd_pct <= 1.1 * best


@pytest.mark.parametrize("max_cost", [6.5, 12.0])
def test_limit_of_board_time_is_kept(agx_design, max_cost):
    plan = choose_modes(agx_design, 4, max_cost)
    assert plan.epoch_cost <= max_cost * (1 + 1e-6)
    assert len(set(plan.modes)) == 4


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


def test_what_is_expected_of_a_choice_comes_true_in_worlds_of_that_kind(agx, agx_design, efij):
    """Mean errors over all modes of the board, in worlds of random shares: by construction."""
    chosen = choose_modes(agx_design, 4, max_cost=agx_design.plan(efij).epoch_cost)
    modes = agx.all_modes()
    rows = design(TIME, modes, 5)
    rng, errors = np.random.default_rng(2), []
    for _ in range(40):
        coefficients = rng.dirichlet(np.ones(5)) / agx_design.scale
        told = []
        for train in (chosen.modes, efij):
            seen = design(TIME, train, 5) @ coefficients
            seen = seen * np.exp(0.02 * rng.standard_normal(4))
            model = fit_physical_time(observations_from_rows("w", train, seen), n_draws=0)
            told.append(mape_pct(model.predict(modes), rows @ coefficients))
        errors.append(told)
    for average in (np.median, np.mean):
        ours, papers = average(errors, axis=0)
        assert ours < papers


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
