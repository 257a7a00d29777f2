"""Check what can be measured on this machine: the board, its unit, its storage media."""

import os
import platform
from functools import lru_cache
from pathlib import Path

from epochwatt.board.device.identity import Identity, identify
from epochwatt.board.device.storage import medium_of
from epochwatt.board.records.run_folder import RunFolder
from epochwatt.study.config import Device, Storage
from epochwatt.study.runs import MEASURED, Run

# Snakemake keeps a cache in the home folder; whoever has none that can be written needs another
CACHE_ELSEWHERE = "export XDG_CACHE_HOME=$PWD/.cache, then start again"


@lru_cache
def _identity(sysroot: str) -> Identity | None:
    return identify(sysroot)


def is_board(kind: str, sysroot: str) -> bool:
    """Return whether the board whose files lie in `sysroot` is of this kind."""
    identity = _identity(sysroot)
    return identity is not None and identity.kind == kind


def board_at_hand() -> str:
    """Return in words what this machine is."""
    identity = _identity("/")
    return f"this machine is a {identity.model} ({identity.kind})" if identity else _no_board("/")


def absence(run: Run, device: Device) -> str | None:
    """Return why a run cannot be measured on this machine; None: it can."""
    if device.remote or device.constraint:
        return None
    if reason := other_board(device) or _other_unit(device, run.factors["instance"]):
        return reason
    name = run.factors["storage"]
    missing = no_medium(device.storage[name])
    return f"medium {name}: {missing}" if missing else None


def other_board(device: Device) -> str | None:
    """Return why a device is not the board at hand; None: it is, has none, or is on a network."""
    is_elsewhere = device.remote or device.constraint
    if is_elsewhere or not device.board or is_board(device.board, device.sysroot):
        return None
    identity = _identity(device.sysroot)
    here = f"here is a {identity.model}" if identity else _no_board(device.sysroot)
    return f"it wants a {device.title}: {here}"


def _no_board(sysroot: str) -> str:
    where = "this machine" if sysroot == "/" else sysroot
    return f"{where} is no Jetson board"


def _other_unit(device: Device, instance: str) -> str | None:
    """Return why this machine is not the unit that an instance is bound to; None: it is."""
    unit = device.units.get(instance, "")
    if device.board and not unit and instance != device.instances[0]:
        return f"unit {instance} is not bound to a board: name it under units in config/devices/"
    identity = _identity(device.sysroot) if device.board else None
    own_names = [platform.node(), identity.serial if identity else ""]
    if not unit or unit in own_names:
        return None
    return f"unit {instance} is {unit}: this one is {' or '.join(filter(None, own_names))}"


def medium_is_here(storage: Storage) -> bool:
    """Return whether a medium can be used: mounted where it has to be, on the device it names."""
    return no_medium(storage) is None


def no_medium(storage: Storage) -> str | None:
    """Return why a medium cannot be used; None: it can."""
    if storage.mount and not os.path.ismount(storage.mount):
        return f"nothing is mounted at {storage.mount}"
    device = _block_device(storage.root) if storage.block_device else ""
    if not device.startswith(storage.block_device):
        actual = device or "no block device"
        return f"{storage.root} lies on {actual}, not on {storage.block_device}"
    return None


@lru_cache
def _block_device(path: str) -> str:
    return medium_of(path).device


def is_measured(run: Run, root: Path) -> bool:
    """Return whether every epoch of a run has been measured, on whatever machine."""
    folder = RunFolder(str(root / MEASURED), run.id)
    return all(folder.has(epoch) for epoch in range(run.epochs))
