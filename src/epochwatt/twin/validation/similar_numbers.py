"""Published numbers that ask the parameters nearly the same question.

The folds leave out every number from which a take-away follows by arithmetic. Other numbers may
still depend on the parameters in the same proportions: a fit that meets one then meets the other.
`near_folds` leaves these out as well, which shows how much of the accuracy is due to them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from epochwatt.published.folds import Fold
from epochwatt.published.numbers import Fact
from epochwatt.twin.calibration.calibrate import Problem
from epochwatt.twin.inputs.twin import Twin

NEAR = "near"  # grouping, and how the names of its folds begin
COSINE = 0.95  # of two numbers' sensitivities, from which on they are near


def near_folds(folds: Mapping[str, Fold], facts: Sequence[Fact], twin: Twin) -> dict[str, Fold]:
    """Return the folds that take a number away, with the numbers near their own removed as well."""
    alike = np.abs(_cosines(facts, twin)) >= COSINE
    seen = {fact.id for fact in facts}
    folds_with_near = {}
    for fold in folds.values():
        if fold.removed & seen:
            is_in_fold = [fact.id in fold.ids for fact in facts]
            near = alike[:, is_in_fold].any(axis=1)
            ids = {fact.id for fact, is_near in zip(facts, near, strict=True) if is_near}
            name = f"{NEAR} {fold.takeaway}"
            folds_with_near[name] = Fold(name, fold.ids, fold.removed | ids)
    return folds_with_near


def _cosines(facts: Sequence[Fact], twin: Twin) -> NDArray[np.floating]:
    """Return how alike the numbers hang on the parameters at their priors, -1 to 1: a matrix.

    A number that no parameter moves, as a bound that is met, is like none.
    """
    problem = Problem(facts, replace(twin, parameters=twin.parameters.candidates()))
    slopes = problem.jacobian(np.zeros(len(problem.names)))[: len(facts)]
    lengths = np.linalg.norm(slopes, axis=1, keepdims=True)
    directions = slopes / np.maximum(lengths, np.finfo(float).tiny)
    return np.asarray(directions @ directions.T)
