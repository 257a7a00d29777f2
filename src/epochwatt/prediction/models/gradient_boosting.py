"""Gradient-boosted trees on the logarithms of cores, clocks and the power limit.

Few rows: trees of two levels, one value per mode (the mean of its epochs), and no interval, since a
handful of modes has no 5 % quantile. Trees are constant outside the training modes: they cannot
extrapolate. Fitted here and not by scikit-learn, which takes 6 ms to fit twelve trees to four rows:
while methods are scored, that is done some thousand times.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from epochwatt.prediction.data.modes import Mode, Numbers, as_rows
from epochwatt.prediction.data.observations import Observations
from epochwatt.prediction.models.features import design, log_terms
from epochwatt.prediction.names import POWER, TIME
from epochwatt.prediction.predictor import Context, Method, Predictor

N_TREES, RATE = 8, 0.58  # the training modes are met to 0.42^8: a part in a thousand
LEAST_MODES = 2
PREFERRED = (4, 2, 3, 1, 0)  # columns, where splits do alike: limit, GPU and memory mostly decide
TIE = 1e-9  # relative: splits whose gains differ by less part the rows in the same way


@dataclass(frozen=True, eq=False)
class BoostedTrees(Predictor):
    """Logarithm of the target as a level and a sum of trees of two levels."""

    target: str
    trained_on: Numbers
    level: float  # mean logarithm of the training modes
    # (t, 3), columns that the root, its lower and its upper child split at
    features: NDArray[np.int64]
    thresholds: Numbers  # (t, 3), values up to which a row belongs to the lower side
    values: Numbers  # (t, 4), of the leaves, from the lowest to the uppermost

    def predict(self, modes: ArrayLike) -> Numbers:
        """Return the expected value in each mode, shape (n,)."""
        upper = _rows(modes, self.trained_on)[:, self.features] > self.thresholds  # (n, t, 3)
        leaf = np.where(upper[..., 0], 2 + upper[..., 2], upper[..., 1])
        total = self.values[np.arange(len(self.values)), leaf].sum(1)
        return np.asarray(np.exp(self.level + RATE * total))


def _rows(modes: ArrayLike, trained_on: Numbers) -> Numbers:
    return design(log_terms(trained_on), as_rows(modes), processes=0)


def fit_boosted_trees(observations: Observations, context: Context) -> BoostedTrees:
    """Return boosted trees.

    Raises PredictionError: fewer than two distinct modes, or power that was not measured.
    """
    observations.need_modes(LEAST_MODES)
    if context.target != TIME:
        observations.need_energy()
    means = observations.per_mode()
    values = np.log(getattr(means, context.target))
    level = float(values.mean())
    splits, left = _splits(_rows(means.modes, means.modes)), values - level
    trees = []
    for turn in range(N_TREES):
        chosen, leaves, fitted = _tree(splits, left, turn)
        left = left - RATE * fitted
        trees.append((splits.feature[chosen], splits.threshold[chosen], leaves))
    features, thresholds, leaf_values = map(np.array, zip(*trees, strict=True))
    return BoostedTrees(context.target, means.modes, level, features, thresholds, leaf_values)


class _Splits(NamedTuple):
    """All ways to part the training rows at one feature, in the order of the features."""

    # feature, threshold: (s,)
    feature: NDArray[np.int64]
    threshold: Numbers
    is_lower: Numbers  # (s, m), 1 for the rows up to the threshold, 0 for the others
    # for each feature of `PREFERRED`, the splits that begin with its own
    orders: list[NDArray[np.int64]]


def _splits(rows: Numbers) -> _Splits:
    """Return the splits half-way between values, and at the largest: that one parts nothing."""
    pairs = [
        (feature, threshold)
        for feature, column in enumerate(rows.T)
        for steps in [np.unique(column)]
        for threshold in [*(steps[:-1] + steps[1:]) / 2, steps[-1]]
    ]
    features, thresholds = map(np.array, zip(*pairs, strict=True))
    is_lower = (rows.T[features] <= thresholds[:, None]).astype(float)
    preferred = [column for column in PREFERRED if column < rows.shape[1]]
    starts = features.searchsorted(preferred)
    orders = [np.r_[start : len(features), :start] for start in starts]
    return _Splits(features, thresholds, is_lower, orders)


def _tree(splits: _Splits, left: Numbers, turn: int) -> tuple[NDArray[np.int64], Numbers, Numbers]:
    """Return the splits of the tree that leaves least (3,), its leaves (4,), its values (m,)."""
    root = _best(splits, left, np.ones((1, len(left))), turn)
    lower = splits.is_lower[root[0]]
    sides = np.array([lower, 1 - lower])
    children = _best(splits, left, sides, turn)
    below = splits.is_lower[children]
    is_in = np.stack([sides * below, sides * (1 - below)], axis=1)  # (sides, leaves of each, m)
    n, total = is_in.sum(2), is_in @ left
    side = total.sum(1, keepdims=True) / np.maximum(n.sum(1, keepdims=True), 1)
    leaves = np.where(n > 0, total / np.maximum(n, 1), side).ravel()
    return np.append(root, children), leaves, leaves @ is_in.reshape(4, -1)


def _best(splits: _Splits, left: Numbers, sides: Numbers, turn: int) -> NDArray[np.int64]:
    """Return the split of each side (k, m) that leaves least of its rows, shape (k,).

    A few modes often differ in several features together, and then no feature is the better one:
    each tree prefers the next of them.
    """
    n, total = sides.sum(1), sides @ left
    n_lower, lower = splits.is_lower @ sides.T, splits.is_lower @ (sides * left).T
    gain = lower**2 / np.maximum(n_lower, 1) + (total - lower) ** 2 / np.maximum(n - n_lower, 1)
    is_best = gain >= gain.max(0) * (1 - TIE)
    order = splits.orders[turn % len(splits.orders)]
    return order[is_best[order].argmax(0)]


METHOD = Method(
    "gradient-boosted trees",
    (TIME, POWER),
    fit_boosted_trees,
    BoostedTrees.from_json,
    parts=Mode._fields,
)
