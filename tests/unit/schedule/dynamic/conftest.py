"""Two modes: one trains fast and serves slowly, the other the other way round."""

import numpy as np
import pytest

from epochwatt.schedule.dynamic.slots import options_for
from epochwatt.schedule.profiles import Workload
from epochwatt.schedule.space import Space

MODES = np.array([[4, 400, 100, 700, 1, 0], [8, 400, 200, 700, 1, 0]], float)
ONE = np.ones((2, 1))


@pytest.fixture
def options():
    """Return a function that gives both modes for rates; within 1 s and 30 W.

    Requests are served one by one. At 2/s the first trains 30 mini-batches/s, the second 12; above
    5/s only the second serves them all.
    """
    train = Workload("t", MODES, np.array([16]), np.array([[0.02], [0.07]]), 20 * ONE)
    infer = Workload("i", MODES, np.array([1]), np.array([[0.2], [0.05]]), 25 * ONE)
    space = Space(train, (infer,))
    return lambda rates: options_for(space, 30.0, 1.0, np.asarray(rates, float))
