"""The Pareto front of two costs."""

import numpy as np
from numpy.typing import NDArray


def pareto_front(
    first: NDArray[np.floating], second: NDArray[np.floating]
) -> NDArray[np.signedinteger]:
    """Return the indices of the points that no other beats in both costs, ascending in `first`.

    The rule of SIGMETRICS 2023, section 5.6: from the least of `first` up, a point is added when
    its `second` is below that of all before it. Of equal points the first counts.

    `first`, `second`: the two costs of each point, shape (n,)
    """
    order = np.lexsort((second, first))
    best_before = np.minimum.accumulate(np.concatenate([[np.inf], second[order][:-1]]))
    return order[second[order] < best_before]
