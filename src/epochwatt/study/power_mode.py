"""Check how a power mode is written: the name of an nvpmodel mode, numbers, or both."""

from collections.abc import Mapping
from typing import Any

MODE_NUMBERS = ("cores", "cpu_mhz", "gpu_mhz", "emc_mhz")  # the twin needs all of them


def need_one_way(mode: Mapping[str, Any]) -> None:
    """Refuse a mode of which it is not clear what sets it.

    Parameters
    ----------
    mode : keys of `config.PowerMode` that are set

    Raises
    ------
    ValueError : some numbers beside a name, or a share of the GPU without one
    """
    numbers = mode.keys() - {"nvpmodel"}
    if "nvpmodel" in mode and numbers and not numbers >= set(MODE_NUMBERS):
        raise ValueError(
            "either the name of an nvpmodel mode or numbers, not both, except all of "
            f"{', '.join(MODE_NUMBERS)}: they say what the named mode is"
        )
    if "gpu_share" in mode and "nvpmodel" not in mode:
        raise ValueError("gpu_share goes with an nvpmodel mode: only a start of the board sets it")
