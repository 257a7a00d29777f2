"""Baselines of a choice of modes, which are no methods of the registry.

The strongest mode, the board's preset modes, and the best of the profiled modes answer without any
prediction. NVIDIA's PowerEstimator is a web page that states no times, so it is not among them.
"""

import re

import numpy as np

from epochwatt.board.device.kinds import KINDS, StockMode
from epochwatt.prediction.data.modes import Mode, Numbers, PredictionError
from epochwatt.prediction.data.observations import Observations
from epochwatt.prediction.harness import NONE, Places
from epochwatt.text import counted

ROUNDED = 1.005  # clocks of nvpmodel.conf are rounded


def strongest(rows: Observations) -> int:
    """Return the row of MAXN: the mode in which every part is at its highest.

    Raises PredictionError: the table has no such mode.
    """
    return _place(rows, rows.modes.max(0), "the strongest mode")


def stock_choices(rows: Observations, device: str, limits_w: Numbers) -> Places:
    """Return for each limit (k,) the row of the preset with the most watts in its name within it.

    `NONE` where every preset has more.

    A preset stands for the mode of the table whose cores and clocks are the highest that it allows.
    The tables gate no part of a GPU off, as the presets of 15 and 30 W do. Raises PredictionError:
    no preset modes of the device are known, or the table lacks them.
    """
    places = preset_places(rows, device)
    within = [[watts for watts in places if watts <= limit_w] for limit_w in limits_w]
    return np.array([places[max(watts)] if watts else NONE for watts in within], np.intp)


def preset_places(rows: Observations, device: str) -> dict[float, int]:
    """Return the rows of a device's presets by the watts in their names: the first preset of each.

    The presets are those of the oldest release. Raises as `stock_choices`.
    """
    kind = KINDS.get(device)
    presets: dict[float, StockMode] = {}
    for mode in kind.releases[0].modes if kind is not None and kind.releases else ():
        if watts := re.search(r"(\d+)W", mode.name):
            presets.setdefault(float(watts[1]), mode)
    if not presets:
        described = [name for name, known in KINDS.items() if known.releases]
        raise PredictionError(f"no preset modes of {device} are known", allowed=described)
    return {
        watts: _place(rows, _steps(rows, mode), f"preset mode {mode.name}")
        for watts, mode in presets.items()
    }


def _steps(rows: Observations, mode: StockMode) -> Numbers:
    """Return the highest steps of a table that a preset allows; clocks of -1 and 0 allow all."""
    clocks = mode.cpu_khz[1] / 1e3, mode.gpu_hz[1] / 1e6, mode.emc_hz / 1e6
    parts = rows.modes.max(0)
    for part, most in enumerate((mode.cores, *(mhz if mhz > 0 else np.inf for mhz in clocks))):
        allowed = rows.modes[rows.modes[:, part] <= ROUNDED * most, part]
        parts[part] = allowed.max() if len(allowed) else np.nan
    return parts


def _place(rows: Observations, parts: Numbers, what: str) -> int:
    """Return the row of a mode, `what` in messages. Raises PredictionError: there is none."""
    places = np.flatnonzero((rows.modes == parts).all(1))
    if not len(places):
        raise PredictionError(
            f"{what} is not among {counted(len(rows.modes), 'modes')}",
            where=rows.workload,
            found=str(Mode(*parts)),
            do="leave this baseline out of the group in config/powertrain.yaml",
        )
    return int(places[0])
