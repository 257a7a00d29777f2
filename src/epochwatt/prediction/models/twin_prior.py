"""Simulated time and power of a workload in each power mode, as priors of models.

The closed form (`twin/model/epoch.py`): an epoch of the long run, all modes at once. A model on
such a prior learns how far the board is from it (`physical.fit_on_prior`). The prior must not
have seen what is predicted: its parameters are those of a calibration without any number of a power
mode other than the default one, and without DVFS, which lowers clocks too
(`twin.validation.cross_validation_fits.load_prior_parameters`).
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from epochwatt.prediction.data.modes import Mode, Numbers, PredictionError, as_rows
from epochwatt.prediction.names import POWER, TIME
from epochwatt.prediction.predictor import Prior
from epochwatt.twin.inputs.numbers import Array
from epochwatt.twin.inputs.twin import Twin
from epochwatt.twin.model.epoch import Epoch, Setting, epoch
from epochwatt.twin.model.power import Clocks

_AT_ONCE = 256  # modes: more do not fit into a CPU's cache, and large networks get slow


def priors(factors: Mapping[str, Any], twin: Twin, p: Mapping[str, float]) -> dict[str, Prior]:
    """Return the expected time, s, and mean power of the module, W, of an epoch, by target.

    Parameters
    ----------
    factors : of the workload's runs; the power mode is not looked at
    twin : boards and counted networks
    p : parameters that saw no number of a power mode, nor of DVFS

    Raises
    ------
    EpochwattError : a board, network or data set that is not simulated; from the priors themselves:
        a clock that the board cannot have
    """
    return {
        TIME: _prior(factors, twin, p, lambda e: e.e2e_s),
        POWER: _prior(factors, twin, p, lambda e: e.power_w),
    }


def memoised(prior: Prior, rows: Numbers) -> Prior:
    """Return a prior whose values were worked out once, for the modes (n, 6) it will be called for.

    The modes that models learn from are among them. It raises PredictionError for any other mode.
    """
    values = dict(zip(map(tuple, rows.tolist()), prior(rows).tolist(), strict=True))

    def look_up(modes: Numbers) -> Numbers:
        keys = list(map(tuple, as_rows(modes).tolist()))
        if unknown := [key for key in keys if key not in values]:
            raise PredictionError(f"the prior was not worked out for {Mode(*unknown[0])}")
        return np.array([values[key] for key in keys])

    return look_up


def _prior(
    factors: Mapping[str, Any],
    twin: Twin,
    p: Mapping[str, float],
    value: Callable[[Epoch], Array],
) -> Prior:
    board, work, samples = twin.find(factors["device"], factors["model"], factors["dataset"])

    def some(rows: Numbers) -> Numbers:
        setting = Setting(
            board,
            work,
            samples,
            factors["storage"],
            factors["batch_size"],
            Clocks(*rows[:, :4].T),
            factors["num_workers"],
            cold=factors["cache_policy"] == "dropped",
            scale=float(factors["dataset_scale"]),
        )
        return np.broadcast_to(value(epoch(setting, p)), len(rows))

    def expected(modes: Numbers) -> Numbers:
        rows = as_rows(modes)
        if (gated := rows[rows[:, 4] != 1]).size:
            raise PredictionError(
                "a simulated board has its whole GPU on", found=str(Mode(*gated[0]))
            )
        n_parts = -(-len(rows) // _AT_ONCE) or 1
        return np.concatenate([some(part) for part in np.array_split(rows, n_parts)])

    return expected
