"""Hold a simulated epoch, as a measurement would have seen it."""

from typing import NamedTuple

import numpy as np


class Samples(NamedTuple):
    """The samples of one telemetry source during an epoch; there is a row at both of its bounds."""

    name: str  # of the source: `twin` (rails and power_module_w), `host` and `board` as on a board
    scope: str  # power scope; empty: it reports no power
    period_s: float  # of its readings, s
    columns: tuple[str, ...]  # c names with their units
    total: str | None  # the column that holds its whole power; None: there is none
    t_s: np.ndarray  # float (k,), s on the run's clock, ascending
    values: np.ndarray  # float (k, c)


class SimulatedEpoch(NamedTuple):
    """One epoch of a simulated run."""

    epoch: int  # its number
    t_start_s: float  # its start on the run's own clock, which begins at 0
    e2e_s: float  # its length
    times_s: np.ndarray  # float (n, 3), s: wait, copy, compute of each mini-batch
    fetch_s: float  # summed over the workers
    preprocess_s: float
    n_samples: int  # trained on
    cached_before_pct: float  # share of the data set in the page cache
    cached_after_pct: float
    sources: tuple[Samples, ...]  # what the sensors told
