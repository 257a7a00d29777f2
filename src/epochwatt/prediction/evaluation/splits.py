"""Which modes train and which test: always by mode, never by row.

Epochs of one mode are nearly equal, so a split by row tests on what it trained on.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations, islice
from math import comb
from typing import NamedTuple

import numpy as np

from epochwatt.prediction.data.modes import Mode, PredictionError


class Split(NamedTuple):
    """Modes to train on, and the others."""

    train: tuple[Mode, ...]
    test: tuple[Mode, ...]


def split(modes: Sequence[Mode], train: Sequence[Mode]) -> Split:
    """Return the split that trains on `train` and tests on the rest.

    Raises PredictionError: a mode of `train` is not among `modes`, or none is left.
    """
    if unknown := [mode for mode in train if mode not in modes]:
        raise PredictionError(f"nothing was observed under {unknown[0]}")
    rest = tuple(mode for mode in modes if mode not in train)
    if not train or not rest:
        raise PredictionError(
            f"{len(train)} of {len(modes)} modes to train on",
            allowed="one or more, and not all of them",
        )
    return Split(tuple(train), rest)


def leave_one_mode_out(modes: Sequence[Mode]) -> list[Split]:
    """Return one split per mode, which alone tests."""
    return [split(modes, [m for m in modes if m != mode]) for mode in modes]


def every_subset(modes: Sequence[Mode], size: int) -> list[Split]:
    """Return a split for every subset of `size` modes, in the order of `modes`."""
    return [split(modes, train) for train in combinations(modes, size)]


def random_subsets(modes: Sequence[Mode], size: int, n_splits: int, seed: int) -> list[Split]:
    """Return `n_splits` different random subsets, or every one where there are no more."""
    if comb(len(modes), size) <= n_splits:
        return every_subset(modes, size)
    drawn = islice(_distinct(len(modes), size, seed), n_splits)
    return [split(modes, [modes[place] for place in places]) for places in drawn]


def _distinct(n: int, size: int, seed: int) -> Iterator[tuple[int, ...]]:
    rng, seen = np.random.default_rng(seed), set()
    while True:
        places = tuple(sorted(rng.choice(n, size, replace=False).tolist()))
        if places not in seen:
            seen.add(places)
            yield places
