"""Gradient-boosted trees on the logarithms of cores, clocks and the power limit.

Few rows: trees of two levels, one value per mode (the mean of its epochs), and no interval, since a
handful of modes has no 5 % quantile. Trees are constant outside the training modes: they cannot
extrapolate. Fitted here and not by scikit-learn, which takes 6 ms to fit twelve trees to four rows:
while methods are scored, that is done some thousand times.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from epochwatt.prediction.data.modes import Mode, Numbers
from epochwatt.prediction.data.observations import Observations
from epochwatt.prediction.models.features import log_rows
from epochwatt.prediction.names import POWER, TIME
from epochwatt.prediction.predictor import Context, Method, Predictor

N_TREES, RATE = 8, 0.58  # the training modes are met to 0.42^8: a part in a thousand
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
        is_upper = log_rows(modes, self.trained_on)[:, self.features] > self.thresholds  # (n, t, 3)
        root, lower, upper = np.moveaxis(is_upper, -1, 0)
        leaf = np.where(root, 2 + upper, lower)  # 0 or 1 below the lower child, 2 or 3 the upper
        total = self.values[np.arange(len(self.values)), leaf].sum(1)
        return np.asarray(np.exp(self.level + RATE * total))


def fit_boosted_trees(observations: Observations, context: Context) -> BoostedTrees:
    """Fit boosted trees, each to what the ones before leave over.

    Raises PredictionError: fewer than two distinct modes, or power that was not measured.
    """
    means = observations.means_of(context.target)
    rows, values = log_rows(means.modes, means.modes), np.log(means.values(context.target))
    level = float(values.mean())
    # all splits: half-way between the values of a feature, and at the largest: that parts nothing
    steps = [np.unique(column) for column in rows.T]
    thresholds = np.concatenate([[*(s[:-1] + s[1:]) / 2, s[-1]] for s in steps])
    features = np.repeat(np.arange(len(steps)), [len(s) for s in steps])
    is_lower = (rows.T[features] <= thresholds[:, None]).astype(float)
    # A few modes often differ in several features together, and then no feature is the better one:
    # each tree prefers the next of them.
    preferred = [column for column in PREFERRED if column < len(steps)]
    orders = [np.roll(np.arange(len(features)), -features.searchsorted(c)) for c in preferred]
    residuals, splits, leaves = values - level, [], []
    for number in range(N_TREES):
        tree_splits, tree_leaves, fitted = _tree(is_lower, residuals, orders[number % len(orders)])
        residuals = residuals - RATE * fitted
        splits.append(tree_splits)
        leaves.append(tree_leaves)
    chosen = np.array(splits)
    return BoostedTrees(
        context.target, means.modes, level, features[chosen], thresholds[chosen], np.array(leaves)
    )


def _tree(
    is_lower: Numbers, residuals: Numbers, order: NDArray[np.int64]
) -> tuple[NDArray[np.int64], Numbers, Numbers]:
    """Fit a tree of two levels to residuals (m,) by least squares, from all s possible splits.

    Returns the splits of root, lower and upper child (3,), the leaves (4,) and the fitted values
    (m,). `is_lower`, (s, m), is 1 for the rows up to a split's threshold; of splits that do alike
    the first in `order` is taken.
    """

    def best_splits(subsets: Numbers) -> NDArray[np.int64]:
        """Return the best split of each subset of the rows (k, m, of 0 and 1), shape (k,)."""
        n, total = subsets.sum(1), subsets @ residuals
        n_lower, lower = is_lower @ subsets.T, is_lower @ (subsets * residuals).T
        gain = lower**2 / np.maximum(n_lower, 1) + (total - lower) ** 2 / np.maximum(n - n_lower, 1)
        is_best = gain >= gain.max(0) * (1 - TIE)
        return order[is_best[order].argmax(0)]

    root = best_splits(np.ones((1, len(residuals))))
    lower = is_lower[root[0]]
    sides = np.array([lower, 1 - lower])
    children = best_splits(sides)
    below = is_lower[children]
    is_in = np.stack([sides * below, sides * (1 - below)], axis=1)  # (sides, leaves of each, m)
    n, total = is_in.sum(2), is_in @ residuals
    side_mean = total.sum(1, keepdims=True) / np.maximum(n.sum(1, keepdims=True), 1)
    leaves = np.where(n > 0, total / np.maximum(n, 1), side_mean).ravel()  # empty: as its side
    return np.append(root, children), leaves, leaves @ is_in.reshape(4, -1)


METHOD = Method(
    "gradient-boosted trees",
    (TIME, POWER),
    fit_boosted_trees,
    BoostedTrees.from_json,
    parts=Mode._fields,
)
