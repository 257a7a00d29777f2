"""The main paper's choice of four modes (SIGMETRICS 2023, section 5.7.1).

Those whose fits have the lowest RMSE, summed over the networks, of all subsets of the modes that
were measured: a choice that has seen what it predicts. All fits at once, without scikit-learn.
"""

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from epochwatt.prediction.data.modes import Mode, Numbers, PredictionError
from epochwatt.prediction.data.observations import Observations
from epochwatt.prediction.models.features import plain
from epochwatt.prediction.models.min_norm import least_norm
from epochwatt.text import counted

N_EPOCHS = 2  # the last epoch that trains: 1 and 2, the first is dropped
N_MODES = 4


class Subset(NamedTuple):
    """One candidate for the representative modes."""

    modes: tuple[Mode, ...]
    rmse_s: tuple[float, ...]  # of each network
    total_s: float


def n_fixed(modes: Sequence[Mode]) -> int:
    """Return how many of the model's five coefficients these modes can fix."""
    rows = plain(modes)
    return int(np.linalg.matrix_rank(np.column_stack([rows, np.ones(len(rows))])))


def rank_subsets(
    observations: Sequence[Observations], size: int = N_MODES, standardise: bool = False
) -> list[Subset]:
    """Return every subset of the common modes, the lowest summed RMSE first.

    Raises PredictionError: the networks have too few modes in common.
    """
    common = common_modes(observations, size)
    places = np.array(list(combinations(range(len(common)), size)))
    rmse_s = np.stack(
        [_rmse_s(rows.only(common), common, places, standardise) for rows in observations]
    )
    order = np.argsort(rmse_s.sum(0), kind="stable")
    return [
        Subset(tuple(common[place] for place in places[n]), tuple(rmse), sum(rmse))
        for n, rmse in zip(order.tolist(), rmse_s.T[order].tolist(), strict=True)
    ]


def _rmse_s(
    observations: Observations,
    modes: Sequence[Mode],
    places: NDArray[np.int64],
    standardise: bool,
) -> Numbers:
    """Return the error over all rows of the fits to some subsets, shape (s,).

    Parameters
    ----------
    places : (s, size), each subset's places in `modes`
    """
    times_s = [observations.only([mode]).time_s for mode in modes]
    rows, mean_s = plain(modes), np.array([time_s.mean() for time_s in times_s])
    n_epochs = np.array([float(len(time_s)) for time_s in times_s])
    coefficients, intercepts = least_norm(
        rows[places], mean_s[places], n_epochs[places], standardise
    )
    errors_s = coefficients @ rows.T + intercepts[:, None] - mean_s
    within = sum(float(((time_s - time_s.mean()) ** 2).sum()) for time_s in times_s)
    return np.sqrt((errors_s**2 @ n_epochs + within) / n_epochs.sum())


def left_out(ranked: Sequence[Subset], place: int) -> list[Subset]:
    """Return the subsets ranked without one network: the one at `place`."""
    kept = [
        Subset(subset.modes, rmse_s, sum(rmse_s))
        for subset in ranked
        for rmse_s in [subset.rmse_s[:place] + subset.rmse_s[place + 1 :]]
    ]
    return sorted(kept, key=lambda subset: subset.total_s)


def common_modes(observations: Sequence[Observations], least: int) -> tuple[Mode, ...]:
    """Return the modes that every network was observed under. Raises PredictionError."""
    shared = (
        set.intersection(*(set(rows.distinct()) for rows in observations)) if observations else ()
    )
    if len(shared) < least:
        names = ", ".join(rows.workload for rows in observations) or "no network"
        raise PredictionError(
            f"{counted(len(shared), 'power modes')} in common",
            where=names,
            allowed=f"{least} or more",
        )
    return tuple(mode for mode in observations[0].distinct() if mode in shared)


def ties(ranked: Sequence[Subset], tolerance: float) -> list[Subset]:
    """Return the subsets whose total lies within a fraction `tolerance` of the lowest."""
    return [subset for subset in ranked if subset.total_s <= (1 + tolerance) * ranked[0].total_s]
