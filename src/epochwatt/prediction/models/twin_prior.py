"""What the simulated board of a workload expects in each power mode, before any run of it.

The closed form (`twin/model/epoch.py`): an epoch of the long run, all modes at once. A model on
such a prior learns how far the board is from it (`physical.fit_time_on_prior`). What predicts must
not have seen what it predicts: the parameters are those of a calibration that saw no number of any
power mode but the default one, and none of DVFS, which lowers clocks too
(`twin.refits.load_prior_parameters`).
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from epochwatt.prediction.data.modes import Mode, Numbers, PredictionError, as_rows
from epochwatt.prediction.evaluation.cross_validation import Priors
from epochwatt.prediction.models.linear_model import Prior
from epochwatt.twin.inputs.numbers import Array
from epochwatt.twin.inputs.twin import Twin
from epochwatt.twin.model.epoch import Epoch, Setting, epoch
from epochwatt.twin.model.power import Clocks

_AT_ONCE = 256  # modes: more do not fit into a CPU's cache, and large networks get slow


def time_prior(factors: Mapping[str, Any], twin: Twin, p: Mapping[str, float]) -> Prior:
    """Return the expected time of an epoch, modes (n, 5) -> s (n,).

    Parameters
    ----------
    factors : of the workload's runs; the power mode is not looked at
    twin : boards and counted networks
    p : parameters that saw no number of a power mode, nor of DVFS

    Raises
    ------
    EpochwattError : a board, network or data set that is not simulated; from the prior itself: a
        clock that the board cannot have
    """
    return _prior(factors, twin, p, lambda e: e.e2e_s)


def power_prior(factors: Mapping[str, Any], twin: Twin, p: Mapping[str, float]) -> Prior:
    """Return the expected mean power of the module over an epoch, modes (n, 5) -> W (n,)."""
    return _prior(factors, twin, p, lambda e: e.power_w)


def priors(factors: Mapping[str, Any], twin: Twin, p: Mapping[str, float]) -> Priors:
    """Return both."""
    return Priors(time_prior(factors, twin, p), power_prior(factors, twin, p))


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
                f"a simulated board has its whole GPU on; asked for {Mode(*gated[0])}"
            )
        n_parts = -(-len(rows) // _AT_ONCE) or 1
        return np.concatenate([some(part) for part in np.array_split(rows, n_parts)])

    return expected
