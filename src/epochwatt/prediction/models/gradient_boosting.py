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
        upper = log_rows(modes, self.trained_on)[:, self.features] > self.thresholds  # (n, t, 3)
        leaf = np.where(upper[..., 0], 2 + upper[..., 2], upper[..., 1])
        total = self.values[np.arange(len(self.values)), leaf].sum(1)
        return np.asarray(np.exp(self.level + RATE * total))


def fit_boosted_trees(observations: Observations, context: Context) -> BoostedTrees:
    """Return boosted trees.

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
    left, trees = values - level, []
    for turn in range(N_TREES):
        chosen, leaves, fitted = _tree(is_lower, left, orders[turn % len(orders)])
        left = left - RATE * fitted
        trees.append((features[chosen], thresholds[chosen], leaves))
    arrays = map(np.array, zip(*trees, strict=True))
    return BoostedTrees(context.target, means.modes, level, *arrays)


def _tree(
    is_lower: Numbers, left: Numbers, order: NDArray[np.int64]
) -> tuple[NDArray[np.int64], Numbers, Numbers]:
    """Return the splits of the tree that leaves least (3,), its leaves (4,), its values (m,).

    `is_lower`, (s, m), is 1 for the rows up to a split's threshold; of splits that do alike the
    first in `order` is taken.
    """

    def best(sides: Numbers) -> NDArray[np.int64]:
        """Return the split of each side (k, m) that leaves least of its rows, shape (k,)."""
        n, total = sides.sum(1), sides @ left
        n_lower, lower = is_lower @ sides.T, is_lower @ (sides * left).T
        gain = lower**2 / np.maximum(n_lower, 1) + (total - lower) ** 2 / np.maximum(n - n_lower, 1)
        is_best = gain >= gain.max(0) * (1 - TIE)
        return order[is_best[order].argmax(0)]

    root = best(np.ones((1, len(left))))
    lower = is_lower[root[0]]
    sides = np.array([lower, 1 - lower])
    children = best(sides)
    below = is_lower[children]
    is_in = np.stack([sides * below, sides * (1 - below)], axis=1)  # (sides, leaves of each, m)
    n, total = is_in.sum(2), is_in @ left
    side = total.sum(1, keepdims=True) / np.maximum(n.sum(1, keepdims=True), 1)
    leaves = np.where(n > 0, total / np.maximum(n, 1), side).ravel()
    return np.append(root, children), leaves, leaves @ is_in.reshape(4, -1)


METHOD = Method(
    "gradient-boosted trees",
    (TIME, POWER),
    fit_boosted_trees,
    BoostedTrees.from_json,
    parts=Mode._fields,
)
