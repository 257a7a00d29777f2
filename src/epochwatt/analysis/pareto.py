"""The Pareto front of two costs."""

import numpy as np
from numpy.typing import NDArray


def pareto_front(
    first: NDArray[np.floating], second: NDArray[np.floating]
) -> NDArray[np.signedinteger]:
    """Return the places that none beats in both costs, ascending in `first`.

    The rule of SIGMETRICS 2023, section 5.6: from the least of `first` up, a place is added when
    its `second` is below that of the last one added. Of equal points the first counts.

    `first`, `second`: shape (n,), less is better
    """
    order = np.lexsort((second, first))
    best_before = np.minimum.accumulate(np.concatenate([[np.inf], second[order][:-1]]))
    return order[second[order] < best_before]
