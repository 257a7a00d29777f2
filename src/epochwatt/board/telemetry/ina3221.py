"""Read the module's power sensors by the kernel's files (board side: Python 3.6 grammar).

An INA3221 measures voltage and current of three rails; a board has one or two. JetPack 4 has a
driver of NVIDIA's own with a file for the power, JetPack 5 and later the kernel's, without one:
power is voltage times current. An unconnected channel has no label there, and its current no data.

Sources: Linux Documentation/hwmon/ina3221.rst; GearDVFS@3c50990 configs (paths of JetPack 4);
alumet-dev/alumet issue 212 (all files of an AGX Orin).
"""

import os
from typing import Any, Dict, List, Optional

from epochwatt.board.telemetry.ina3221_chip import CHANNELS, Layout, chips, sensor
from epochwatt.board.telemetry.open_files import text
from epochwatt.board.telemetry.rails import ModulePower, is_connected
from epochwatt.board.telemetry.source import NAN, Source

PERIOD_S = 0.1
_READ_BYTES = 32
_ADDRESS = 5  # place of the chip's address in the path of its folder


class Channel:
    """One rail: its files, open.

    Parameters
    ----------
    folder : the chip's
    layout : how its files are named
    n : number of the channel, from 0

    Attributes
    ----------
    label : the rail
    fds : the files of a reading, open; none where it is not connected or cannot be opened
    error : why the latest reading failed; None when it did not
    """

    def __init__(self, folder: str, layout: Layout, n: int) -> None:
        number = n + layout.first
        self.label = text(os.path.join(folder, layout.label.format(number)))
        self.shunt = text(os.path.join(folder, layout.shunt.format(number))) or None
        self.error: Optional[str] = None
        self.fds: List[int] = []
        if not is_connected(self.label):
            return
        try:
            for name in layout.files:
                path = os.path.join(folder, name.format(number))
                self.fds.append(os.open(path, os.O_RDONLY))
        except OSError as error:
            self.error = str(error)
            self.close()

    def take(self) -> List[bytes]:
        """Return what each file holds; nothing when one of them cannot be read."""
        try:
            return [os.pread(fd, _READ_BYTES, 0) for fd in self.fds]
        except OSError as error:
            self.error = str(error)
            return [b""] * len(self.fds)

    def watts(self, taken: List[bytes]) -> float:
        """Return the rail's power, W; NaN where a file holds no number."""
        try:
            numbers = [int(text) for text in taken]
        except ValueError as error:
            self.error = self.error or str(error)
            return NAN
        return (
            numbers[0] / 1e3 if len(numbers) == 1 else numbers[0] * numbers[1] / 1e6
        )  # mW, or mV and mA

    def close(self) -> None:
        """Close the files."""
        for fd in self.fds:
            os.close(fd)
        self.fds = []


class Ina3221Source(Source):
    """All rails of a board, and the module's power out of them.

    Parameters
    ----------
    root : `/`, or the folder of a fake board
    kind : kind of board, which says what the rails add up to
    fallback : why this source stands for another that was asked for; None: it does not
    """

    name = "sysfs"
    period_s = PERIOD_S
    scope = "module"

    def __init__(self, root: str, kind: str, fallback: Optional[str] = None) -> None:
        self._root = root
        self._fallback = fallback
        self._layout, self._folders = chips(root)
        every = [Channel(f, self._layout, n) for f in self._folders for n in range(CHANNELS)]
        self._channels = [channel for channel in every if channel.fds]
        self._unread = {c.label: c.error for c in every if c.error is not None}
        if not self._channels:
            reason = "; ".join(map(str, self._unread.values())) or "no such sensor"
            raise OSError(f"no rail of an INA3221 can be read below {root}: {reason}")
        self._fds = [fd for channel in self._channels for fd in channel.fds]
        self._power = ModulePower(kind, [channel.label for channel in self._channels])
        self.columns, self.total = self._power.columns, self._power.total

    def start(self) -> None:
        """Count contradictions from zero."""
        self._power.start()
        for channel in self._channels:
            channel.error = None

    def take(self) -> List[bytes]:
        """Return what each file holds; nothing for both files of a rail that cannot be read."""
        pread = os.pread
        try:
            return [pread(fd, _READ_BYTES, 0) for fd in self._fds]
        except OSError:
            return [text for channel in self._channels for text in channel.take()]

    def values(self, taken: List[bytes]) -> List[float]:
        """Return the power of each rail and of the module, W; raises OSError when none answers."""
        n = len(self._layout.files)
        watts = [c.watts(taken[k * n : k * n + n]) for k, c in enumerate(self._channels)]
        if all(value != value for value in watts):
            raise OSError(f"no rail answers: {self._channels[0].error}")
        return self._power.row(watts)

    def settings(self) -> Dict[str, Any]:
        """Return the sensors' settings and what the total is made of."""
        settings = self._power.settings()
        settings.update(
            power=" x ".join(self._layout.files),
            chips=[self._chip(folder) for folder in self._folders],
            shunt={channel.label: channel.shunt for channel in self._channels},
            errors={c.label: c.error for c in self._channels if c.error is not None},
            cannot_be_opened=self._unread,
            sensor=sensor(self._root, self._power.parts(), self.period_s),
        )
        if self._fallback is not None:
            settings["fallback"] = self._fallback
        return settings

    def _chip(self, folder: str) -> Dict[str, Optional[str]]:
        """Return a chip's own settings; None where the driver does not show them."""
        return {
            "address": os.path.relpath(folder, self._root).split(os.sep)[_ADDRESS],
            "samples": text(os.path.join(folder, "samples")) or None,
            "update_interval_ms": text(os.path.join(folder, "update_interval")) or None,
        }

    def close(self) -> None:
        """Close all files."""
        for channel in self._channels:
            channel.close()
