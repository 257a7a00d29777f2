"""Gradient-boosted trees of scikit-learn on the logarithms of cores and clocks.

Few rows: shallow trees, one value per mode (the mean of its epochs), and no interval, since a
handful of modes has no 5 % quantile. Trees are constant outside the training modes: they cannot
extrapolate. scikit-learn fits; the stored trees predict with numpy alone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from epochwatt.prediction.data.modes import Numbers, as_rows
from epochwatt.prediction.data.observations import Observations
from epochwatt.prediction.models.features import LOGS, design
from epochwatt.prediction.names import POWER, TIME
from epochwatt.prediction.predictor import Context, Method, Predictor

N_TREES, RATE, DEPTH = 12, 0.45, 2  # the training modes are met to 0.55^12: a part in a thousand
LEAST_MODES = 2

# of a tree: feature and threshold, where smaller and larger values go, value of each node
Tree = tuple[Sequence[int], Sequence[float], Sequence[int], Sequence[int], Sequence[float]]


@dataclass(frozen=True, eq=False)
class BoostedTrees(Predictor):
    """Logarithm of the target as a level and a sum of trees.

    Attributes
    ----------
    level : mean logarithm of the training modes
    trees : each as lists over its nodes, the root first; a leaf has -1 for what follows
    """

    target: str
    trained_on: Numbers
    level: float
    trees: Sequence[Tree]

    def predict(self, modes: ArrayLike) -> Numbers:
        """Return the expected value in each mode, shape (n,)."""
        rows = _rows(modes)
        return np.asarray(
            np.exp(self.level + RATE * sum(_leaves(tree, rows) for tree in self.trees))
        )

    def to_json(self) -> dict[str, Any]:
        """Return level and trees, which `from_json` reads."""
        trained_on = self.trained_on.tolist()
        return {
            "target": self.target,
            "trained_on": trained_on,
            "level": self.level,
            "trees": self.trees,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "BoostedTrees":
        """Return a model from `to_json`."""
        return cls(**{**data, "trained_on": np.array(data["trained_on"], float)})


def _rows(modes: ArrayLike) -> NDArray[np.float32]:
    return design(LOGS, as_rows(modes), processes=0).astype(np.float32)  # as scikit-learn's trees


def _leaves(tree: Tree, rows: NDArray[np.float32]) -> Numbers:
    """Return the value of the leaf that each row falls into, shape (n,)."""
    feature, threshold, smaller, larger, value = map(np.array, tree)
    node, row = np.zeros(len(rows), int), np.arange(len(rows))
    for _ in range(DEPTH):
        goes_on = smaller[node] >= 0
        below = rows[row, feature[node]] <= threshold[node]
        node = np.where(goes_on, np.where(below, smaller[node], larger[node]), node)
    return np.asarray(value[node])


def fit_boosted_trees(observations: Observations, context: Context) -> BoostedTrees:
    """Return boosted trees.

    Raises
    ------
    PredictionError : fewer than two distinct modes, or power that was not measured
    """
    from sklearn import config_context
    from sklearn.ensemble import GradientBoostingRegressor

    observations.need_modes(LEAST_MODES)
    if context.target != TIME:
        observations.need_energy()
    means = observations.per_mode()
    values = np.log(getattr(means, context.target))
    boosting = GradientBoostingRegressor(
        n_estimators=N_TREES, learning_rate=RATE, max_depth=DEPTH, random_state=0
    )
    with config_context(assume_finite=True, skip_parameter_validation=True):  # twice as fast
        boosting.fit(_rows(means.modes), values)
    return BoostedTrees(
        target=context.target,
        trained_on=means.modes,
        level=float(values.mean()),
        trees=[_lists(one.tree_) for one in boosting.estimators_[:, 0]],
    )


def _lists(tree: Any) -> Tree:
    return (
        tree.feature.tolist(),
        tree.threshold.tolist(),
        tree.children_left.tolist(),
        tree.children_right.tolist(),
        tree.value[:, 0, 0].tolist(),
    )


METHOD = Method("gradient-boosted trees", (TIME, POWER), fit_boosted_trees, BoostedTrees.from_json)
