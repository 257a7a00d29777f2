"""The clocks of a power mode, as the simulation's equations take them."""

from collections.abc import Mapping
from typing import NamedTuple

from epochwatt.twin.inputs.numbers import Array


class Clocks(NamedTuple):
    """The settings of a power mode: online cores, and clocks in MHz."""

    cores: Array
    cpu_mhz: Array
    gpu_mhz: Array
    emc_mhz: Array


Modes = Mapping[str, Mapping[str, Clocks]]  # device -> label of a power mode -> its clocks
