"""Read simulated boards with the clocks of their power modes, from `config/devices/`.

A module of its own: a simulated run has its clocks, and need not wait for pydantic.
"""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from epochwatt.study.devices import Devices
from epochwatt.twin.boards import Clocks, Modes
from epochwatt.twin.twin import Twin, load_twin

CONFIG = Path("config/twin")


def load_modes(devices: Iterable[str], root: Path = Path()) -> Modes:
    """Return label -> clocks of each device; modes without numbers are left out."""
    all_devices = Devices(root)
    return {
        device: {
            label: Clocks(mode.cores, mode.cpu_mhz, mode.gpu_mhz, mode.emc_mhz)
            for label, mode in all_devices.get(device, "config/twin").power_modes.items()
            if mode.cores and mode.cpu_mhz and mode.gpu_mhz and mode.emc_mhz
        }
        for device in devices
    }


def load_twin_with_modes(counts: Iterable[str], root: Path = Path()) -> Twin:
    """Return the simulated boards of a checkout; errors as `load_twin`."""
    twin = load_twin(root / CONFIG, counts)
    return replace(twin, modes=load_modes(twin.boards, root))
