"""Find the telemetry sources of this machine (board side: Python 3.6 grammar)."""

import logging
import math
import os
from typing import Callable, Dict, List, Optional

from epochwatt.board.device import board_files, remedies
from epochwatt.board.telemetry import which_gpu
from epochwatt.board.telemetry.board import BoardSource
from epochwatt.board.telemetry.host import HostSource
from epochwatt.board.telemetry.ina3221 import Ina3221Source
from epochwatt.board.telemetry.nvml import open_gpu
from epochwatt.board.telemetry.rapl import RaplSource
from epochwatt.board.telemetry.source import READ_ERRORS, Source
from epochwatt.board.telemetry.tegrastats import TegrastatsSource

log = logging.getLogger(__name__)

AUTO = "auto"  # sysfs where it can be read, else jtop
POWER = ("none", AUTO, "sysfs", "jtop", "tegrastats")  # a board's power sources, by name
JTOP_S = 1.0


def sources(
    pid: int,
    data_path: str,
    root: str = "/",
    power: str = "none",
    gpu: str = which_gpu.ANY,
    refused: Optional[Dict[str, str]] = None,
) -> List[Source]:
    """Return the usable sources: host counters, then a board's or a processor's and a GPU's.

    `data_path`: any path on the file system that holds the data set
    `root`: `/`, or the folder of a fake board; processes and disks are the real machine's
    `power`: one of `POWER`; where it cannot be used, `sysfs` stands for it and says why, and jtop
    for `AUTO`
    `gpu`: which GPU of a host trains (`which_gpu.choose`)
    `refused`: takes up why a source is not used that others would take for the run's: name ->
    reason
    """
    kind = board_files.board_kind(root)
    refused = {} if refused is None else refused

    def find_gpu() -> Optional[Source]:
        try:
            return open_gpu(gpu)
        except ValueError as error:
            refused["nvml"] = str(error)
            raise

    def find_rapl() -> Optional[Source]:
        rapl = RaplSource(root)
        if rapl.usable():
            return rapl
        rapl.close()
        return None

    makers: List[Callable[[], Optional[Source]]] = [
        lambda: HostSource("/", pid, data_path, board_root=root)
    ]
    makers += [lambda: BoardSource(root)] if kind else [find_gpu, find_rapl]
    if power != "none":
        makers.append(lambda: _power_source(root, kind, power))
    usable = []
    for make in makers:
        try:
            source = make()
        except READ_ERRORS as error:
            log.warning("a telemetry source cannot be used: %s", error)
            continue
        if source is not None:
            usable.append(source)
    return usable


def no_power_remedy(root: str = "/", kind: str = "") -> str:
    """Say how the power of this machine, of that kind of board, could be read where none is."""
    if kind:
        return "check that the driver of the INA3221 is loaded: ls /sys/bus/i2c/drivers/ina3221*"
    if os.path.exists("/proc/driver/nvidia"):
        return "the GPU counts its energy: pip install nvidia-ml-py where epochwatt measures"
    if os.path.exists(os.path.join(root, "sys/class/powercap/intel-rapl:0/energy_uj")):
        return "the processor counts its energy: sudo chmod a+r /sys/class/powercap/*/energy_uj"
    return (
        "this machine has no known sensor: `epochwatt import` takes the log of a meter at the plug"
    )


def _power_source(root: str, kind: str, name: str) -> Source:
    """Open the power source of that name, or sysfs where it cannot be used; raises OSError."""
    if name == AUTO:
        return _first_readable(root, kind)
    try:
        if name == "tegrastats":
            return TegrastatsSource(root, kind)
        if name == "jtop":
            return _jtop(kind)
    except READ_ERRORS as error:
        why = f"{name} cannot be used: {error}"
        log.warning("the sensors are read from sysfs: %s", remedies.in_full(why))
        return Ina3221Source(root, kind, fallback=why)
    return Ina3221Source(root, kind)


def _first_readable(root: str, kind: str) -> Source:
    """Open sysfs where this user reads a power in it, else jtop; raises OSError: neither works.

    Ten readings a second at random instants bound an energy three times as tightly as jtop's one.
    """
    try:
        files = Ina3221Source(root, kind)
        values = dict(zip(files.columns, files.read()))
        if files.total is None or not math.isnan(values[files.total]):
            return files
        files.close()
        raise OSError("a rail of the total gives no reading")
    except READ_ERRORS as error:
        why = f"sysfs cannot be read: {error}"
    try:
        source = _jtop(kind, why)
    except READ_ERRORS as error:
        raise OSError(f"{why}; jtop cannot be used: {error}") from error
    log.warning("%s; power is read from jtop, once a second: energies have wider bounds", why)
    return source


def _jtop(kind: str, not_sysfs: Optional[str] = None) -> Source:
    # imported where it is wanted: few have jtop
    from epochwatt.board.telemetry.jtop_source import open_jtop

    return open_jtop(kind, JTOP_S, not_sysfs)
