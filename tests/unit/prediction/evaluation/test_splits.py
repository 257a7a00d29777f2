"""Which modes train and which test."""

from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochwatt.prediction.data.modes import Mode, PredictionError
from epochwatt.prediction.evaluation.splits import (
    every_subset,
    leave_one_mode_out,
    random_subsets,
    split,
)

MODES = [Mode(n, 1000.0, 900.0, 1600.0) for n in range(1, 9)]


@given(st.integers(1, 7), st.integers(1, 100), st.integers(0, 99))
def test_each_mode_trains_or_tests_and_no_subset_comes_twice(size, n_splits, seed):
    splits = random_subsets(MODES, size, n_splits, seed)
    assert len(splits) == min(n_splits, comb(len(MODES), size))
    assert len({frozenset(of.train) for of in splits}) == len(splits)
    for of in splits:
        assert len(of.train) == size
        assert sorted(of.train + of.test) == MODES


def test_same_seed_gives_the_same_subsets():
    assert random_subsets(MODES, 4, 9, 3) == random_subsets(MODES, 4, 9, 3)
    assert random_subsets(MODES, 4, 9, 3) != random_subsets(MODES, 4, 9, 4)


def test_every_subset_is_every_one():
    assert len({of.train for of in every_subset(MODES, 4)}) == 70


def test_leave_one_mode_out_tests_each_mode_once():
    assert [of.test for of in leave_one_mode_out(MODES)] == [(mode,) for mode in MODES]


@pytest.mark.parametrize("train", [[], MODES])
def test_nothing_to_train_on_or_to_test_is_refused(train):
    with pytest.raises(PredictionError, match="one or more, and not all of them"):
        split(MODES, train)


def test_mode_that_was_not_observed_cannot_train():
    with pytest.raises(PredictionError, match="nothing was observed under 9 cores"):
        split(MODES, [Mode(9, 1000.0, 900.0, 1600.0)])
