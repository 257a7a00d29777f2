"""Read config/devices/, and other files that map names to entries of one schema."""

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from epochwatt.board.device.container import NONE
from epochwatt.errors import ConfigError
from epochwatt.study.config import Closed, Device, PowerMode
from epochwatt.study.place import is_board
from epochwatt.study.validation import validated
from epochwatt.study.yaml_files import read_yaml

DEVICES = "config/devices"

T = TypeVar("T", bound=Closed)


class Devices:
    """The devices of config/devices/, each read when it is first asked for."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._known: dict[str, Device] = {}

    def names(self) -> list[str]:
        """Return the names of all device files."""
        return sorted(path.stem for path in (self.root / DEVICES).glob("*.yaml"))

    def get(self, name: str, where: str) -> Device:
        """Return a device, with an absolute sysroot; ConfigError: `where` names none there is."""
        if name not in self._known:
            if name not in self.names():
                names = self.names() or [f"none: {DEVICES}/ is empty"]
                raise ConfigError(f"{where} is {name!r}", allowed=names)
            check_names(where, [name])
            device = _read_device(self.root, name)
            sysroot = os.path.abspath(self.root / device.sysroot)
            self._known[name] = device.model_copy(update={"sysroot": sysroot})
        return self._known[name]

    def of_run(self, factors: Mapping[str, Any]) -> Device | None:
        """Return the device of a run; None: imported, from a board without a device file.

        Raises ConfigError: the run is not imported, and there is no such device.
        """
        if factors.get("imported") and factors["device"] not in self.names():
            return None
        return self.get(factors["device"], "the device of a run")

    def add_modes(self, name: str, modes: dict[str, PowerMode]) -> None:
        """Add power modes to a device; ConfigError: its file names one of them already."""
        device = self._known[name]
        if taken := device.power_modes.keys() & modes.keys():
            raise ConfigError(
                f"power_modes names {', '.join(sorted(taken))}, like modes of the starter study",
                where=f"{DEVICES}/{name}.yaml",
                do="give these modes other names",
            )
        self._known[name] = device.model_copy(update={"power_modes": device.power_modes | modes})

    def with_mode(self, name: str, mode: PowerMode) -> "Devices":
        """Return a copy in which device `name` has no power mode but this one, called ""."""
        devices = Devices(self.root)
        only = self.get(name, "device").model_copy(update={"power_modes": {"": mode}})
        devices._known = self._known | {name: only}
        return devices

    def here(self) -> dict[str, Device]:
        """Return the devices whose board is the one at hand (or a fake one that is there)."""
        devices = {name: self.get(name, DEVICES) for name in self.names()}
        return {name: d for name, d in devices.items() if d.board and is_board(d.board, d.sysroot)}


def read_rows(model: type[T], path: Path) -> dict[str, T]:
    """Return name -> entry of a YAML file, each checked by `model`; ConfigError: one is wrong."""
    content = read_yaml(path)
    if not isinstance(content, dict):
        raise ConfigError("holds no mapping", where=str(path), allowed="one key per entry")
    shown = str(Path(*path.parts[-2:]))
    return {str(k): validated(model, v, shown, str(k)) for k, v in content.items()}


def check_names(where: str, names: Iterable[str]) -> None:
    """Raise ConfigError for a name that cannot stand in a run's id, which is also a file name."""
    for name in names:
        if not re.fullmatch(r"[a-zA-Z0-9.]+", name):
            raise ConfigError(f"{where} has a name {name!r}", allowed="letters, digits and dots")


def _read_device(root: Path, name: str) -> Device:
    """Read a device file; ConfigError: a wrong key or value, or names that contradict another."""
    shown = f"{DEVICES}/{name}.yaml"
    device = validated(Device, read_yaml(root / shown), shown)
    for key, names in (
        ("instances", device.instances),
        ("storage", device.storage),
        ("power_modes", device.power_modes),
        ("containers", device.containers),
    ):
        check_names(f"{shown}: {key}", names)
    for instance in device.units.keys() - set(device.instances):
        raise ConfigError(f"units names {instance!r}", where=shown, allowed=device.instances)
    if NONE in device.containers:
        raise ConfigError(f"containers names {NONE!r}", where=shown, do="choose another name")
    if "jetson" in device.backends and not device.board:
        raise ConfigError("board is missing", where=shown, do="add it: backend jetson requires it")
    return device
