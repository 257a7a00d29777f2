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

N_CLOCKS = 4  # cores and clocks: the parts of a mode that presets name
ROUNDED = 1.005  # clocks of nvpmodel.conf are rounded
MHZ, KHZ = 1e6, 1e3


def strongest(rows: Observations) -> int:
    """Return the place of MAXN: the mode in which every part is at its highest.

    Raises PredictionError: the table has no such mode.
    """
    return _place(rows, rows.modes.max(0), "the strongest mode")


def stock_choices(rows: Observations, device: str, limits_w: Numbers) -> Places:
    """Return for each limit (k,) the preset mode with the most watts in its name within it.

    A preset stands for the mode of the table whose cores and clocks are the highest that it allows.
    The tables gate no part of a GPU off, as the presets of 15 and 30 W do. Raises PredictionError:
    no preset modes of the device are known, or the table lacks them.
    """
    places = preset_places(rows, device)
    chosen = []
    for limit_w in limits_w:
        within = [watts for watts in places if watts <= limit_w]
        chosen.append(places[max(within)] if within else NONE)
    return np.array(chosen, np.intp)


def preset_places(rows: Observations, device: str) -> dict[float, int]:
    """Return watts -> the place of the preset mode with these in its name. Raises as above."""
    return {
        watts: _place(rows, _steps(rows, mode), f"preset mode {mode.name}")
        for watts, mode in _presets(device).items()
    }


def _presets(device: str) -> dict[float, StockMode]:
    """Return watts -> the first preset mode with these in its name; of the oldest release."""
    kind = KINDS.get(device)
    modes = kind.releases[0].modes if kind is not None and kind.releases else ()
    presets: dict[float, StockMode] = {}
    for mode in modes:
        if watts := re.search(r"(\d+)W", mode.name):
            presets.setdefault(float(watts[1]), mode)
    if not presets:
        described = [name for name, some in KINDS.items() if some.releases]
        raise PredictionError(f"no preset modes of {device} are known", allowed=described)
    return presets


def _steps(rows: Observations, mode: StockMode) -> Numbers:
    """Return the highest steps of a table that a preset allows."""
    highest = (
        float(mode.cores),
        _limit(mode.cpu_khz[1] / KHZ),
        _limit(mode.gpu_hz[1] / MHZ),
        _limit(mode.emc_hz / MHZ),
    )
    parts = rows.modes.max(0)
    for part, most in enumerate(highest):
        allowed = rows.modes[rows.modes[:, part] <= ROUNDED * most, part]
        parts[part] = allowed.max() if len(allowed) else np.nan
    return parts


def _limit(number: float) -> float:
    """Return a clock of nvpmodel.conf; -1 and 0 stand for none."""
    return number if number > 0 else np.inf


def _place(rows: Observations, parts: Numbers, what: str) -> int:
    places = np.flatnonzero((rows.modes == parts).all(1))
    if not len(places):
        raise PredictionError(
            f"{what} is not among {counted(len(rows.modes), 'modes')}",
            where=rows.workload,
            found=str(Mode(*parts)),
            do="leave this baseline out of the group in config/powertrain.yaml",
        )
    return int(places[0])
