"""Hold a simulated epoch, as a measurement would have seen it."""

from typing import NamedTuple

import numpy as np


class Samples(NamedTuple):
    """The samples of one telemetry source during an epoch; there is a row at both of its bounds.

    Attributes
    ----------
    name : of the source: `twin` (rails and power_module_w), `host` and `board` as on a board
    scope : power scope; empty: it reports no power
    period_s : of its readings, s
    columns : c names with their units
    total : the column that holds its whole power; None: there is none
    t_s : float (k,), s on the run's clock, ascending
    values : float (k, c)
    """

    name: str
    scope: str
    period_s: float
    columns: tuple[str, ...]
    total: str | None
    t_s: np.ndarray
    values: np.ndarray


class SimulatedEpoch(NamedTuple):
    """One epoch of a simulated run.

    Attributes
    ----------
    epoch : its number
    t_start_s : its start on the run's own clock, which begins at 0
    e2e_s : its length
    times_s : float (n, 3), s: wait, copy, compute of each mini-batch
    fetch_s, preprocess_s : summed over the workers
    n_samples : trained on
    cached_before_pct, cached_after_pct : share of the data set in the page cache
    sources : what the sensors told
    """

    epoch: int
    t_start_s: float
    e2e_s: float
    times_s: np.ndarray
    fetch_s: float
    preprocess_s: float
    n_samples: int
    cached_before_pct: float
    cached_after_pct: float
    sources: tuple[Samples, ...]
