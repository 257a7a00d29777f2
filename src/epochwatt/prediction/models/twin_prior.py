"""Simulated time and power of a workload in each power mode, as priors of models.

The closed form (`twin/epoch.py`): an epoch of the long run, all modes at once. A model on
such a prior learns how far the board is from it (`physical.fit_on_prior`). The prior must not
have seen what is predicted: its parameters are those of a calibration without any number of a power
mode other than the default one, and without DVFS, which lowers clocks too
(`twin.refits.load_prior_parameters`).
"""

from collections.abc import Mapping
from functools import lru_cache, partial

import numpy as np

from epochwatt.columns import Factors
from epochwatt.prediction.data.modes import (
    N_PARTS,
    NO_LIMIT,
    Columns,
    Mode,
    Numbers,
    PredictionError,
    as_rows,
)
from epochwatt.prediction.names import POWER, TIME
from epochwatt.prediction.predictor import Prior
from epochwatt.twin.boards import Array
from epochwatt.twin.epoch import Setting, epoch
from epochwatt.twin.sweep import N_PARTS as N_SIMULATED
from epochwatt.twin.sweep import mode_by_mode
from epochwatt.twin.twin import Twin


def priors(factors: Factors, twin: Twin, p: Mapping[str, float]) -> dict[str, Prior]:
    """Return functions of modes: simulated time of an epoch, s, and mean module power, W.

    By target. `p` are the twin's parameters. Raises EpochwattError: a board, network or data set
    that is not simulated; from the functions themselves: a clock that the board cannot have, a
    gated GPU or a power limit.
    """
    # called for its exception only
    twin.find(factors["device"], factors["model"], factors["dataset"], factors.get("task", "train"))
    pinned = {**factors, "dvfs": "off", "setup": ""}

    def time_and_power(setting: Setting) -> tuple[Array, Array]:
        mean = epoch(setting, p)
        return mean.e2e_s, mean.power_w

    @lru_cache(maxsize=2)  # both targets are wanted of the same modes
    def simulated(rows: bytes) -> tuple[Numbers, ...]:
        modes = np.frombuffer(rows).reshape(-1, N_PARTS)[:, :N_SIMULATED]
        return mode_by_mode(modes, pinned, twin, time_and_power)

    def expected(column: int, modes: Numbers) -> Numbers:
        rows = as_rows(modes)
        parts = Columns(*rows.T)
        not_simulated = {
            "a simulated board has its whole GPU on": parts.gpu_share != 1,
            "a simulated board has no power limit": parts.power_limit_w != NO_LIMIT,
        }
        for problem, is_wrong in not_simulated.items():
            if is_wrong.any():
                raise PredictionError(problem, found=str(Mode(*rows[is_wrong][0])))
        return simulated(rows.tobytes())[column].copy()

    return {TIME: partial(expected, 0), POWER: partial(expected, 1)}


def memoised(prior: Prior, rows: Numbers) -> Prior:
    """Return a prior that looks up its values in the modes `rows` (n, 6), worked out once, here.

    It raises PredictionError for any other mode.
    """
    values = dict(zip(map(tuple, rows.tolist()), prior(rows).tolist(), strict=True))

    def look_up(modes: Numbers) -> Numbers:
        keys = list(map(tuple, as_rows(modes).tolist()))
        if unknown := [key for key in keys if key not in values]:
            raise PredictionError(f"the prior was not worked out for {Mode(*unknown[0])}")
        return np.array([values[key] for key in keys])

    return look_up
