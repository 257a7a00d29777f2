"""Clocks of the boards' power modes, from `config/devices/`."""

from pathlib import Path

from epochwatt.study.devices import Devices
from epochwatt.twin.inputs.clocks import Clocks, Modes


def load_modes(devices: list[str], root: Path = Path()) -> Modes:
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
