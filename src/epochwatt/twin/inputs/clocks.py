"""The clocks of a power mode, as the simulation's equations take them."""

from collections.abc import Mapping
from typing import NamedTuple

from epochwatt.errors import EpochwattError
from epochwatt.twin.inputs.numbers import Array


class Clocks(NamedTuple):
    """What a power mode sets: online cores, and clocks in MHz."""

    cores: Array
    cpu_mhz: Array
    gpu_mhz: Array
    emc_mhz: Array


Modes = Mapping[str, Mapping[str, Clocks]]  # device -> label of a power mode -> its clocks


def mode_clocks(modes: Modes, device: str, power_mode: str) -> Clocks:
    """Return the clocks of a power mode; EpochwattError names those there are."""
    of_device = modes.get(device, {})
    if power_mode not in of_device:
        problem = f"{device} has no power mode {power_mode!r} with numbers"
        raise EpochwattError(problem, allowed=list(of_device) or "none")
    return of_device[power_mode]
