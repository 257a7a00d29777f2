"""Open the measured machine, a host or a board (board side: Python 3.6 grammar)."""

import os
import platform
import re
import time
from typing import Any, Dict, List, Optional, Sequence, Tuple

from epochwatt.board.device import clocks, host, page_cache, storage
from epochwatt.board.device.board_files import board_kind, text
from epochwatt.board.device.cpu_clocks import CpuClocks
from epochwatt.board.device.frequencies import resolve
from epochwatt.board.records.shapes import Document
from epochwatt.errors import BoardError, ConfigError

AS_IT_IS = "as it is"


class Machine:
    """A machine to measure on: describe, check, set, watch.

    Of one that is no board only the CPU clock is ever set, for modes of a sweep that name it.

    `settings`: the machine's part of the device's configuration: `backend` (`host`, `jetson` or
    `fake`), `root` (where a board's files are), `kind` (of board), `unit` (serial number or host
    name of the one machine that may measure; empty: any), `storage` (`root`, `mount`,
    `block_device`)
    """

    backend = "host"  # as the machine itself shows

    def __init__(self, settings: Document) -> None:
        self.settings = settings
        self.root: str = settings["root"]  # `/`, or the folder of a fake board
        self.cpu_clocks = CpuClocks(self.root)  # a board has other ways

    def describe(self) -> Document:
        """Return `machine`, `software` and `host_state`, as `host.describe` does."""
        return host.describe()

    def check(self) -> None:
        """Check that a row may be measured here: the unit it is bound to, the data set's medium.

        Raises BoardError: another backend, kind of board or unit, or a data set on another medium.
        """
        unit, names = self.settings["unit"], self.unit_names()
        if unit and unit not in names:
            raise BoardError(
                f"the row is bound to unit {unit} (`units` in config/devices/); nothing was "
                "measured",
                found=" or ".join(names),
                do="measure it there, or bind it to this machine",
            )
        self.check_medium(self.settings["storage"]["root"])

    def check_medium(self, path: str) -> None:
        """Check that a path lies on the medium that the row names; raises BoardError."""
        medium = self.settings["storage"]
        storage.check_medium(path, medium["mount"], medium["block_device"])

    def unit_names(self) -> List[str]:
        """Return the names by which a row may be bound to this machine."""
        return [platform.node()]

    def apply(self, mode: Document, dvfs: str) -> Document:
        """Set a power mode, read everything back and compare; return its `outcome`.

        `restore` puts everything back, also after an error in the middle.

        Raises ConfigError: the machine has no such mode or step; BoardError: what was read back is
        not what was asked for; RebootNeeded: the board has to be restarted first.

        `mode`: empty (as the machine is), `nvpmodel` (the name of a mode), or any of `cores`,
        `cpu_mhz`, `gpu_mhz`, `emc_mhz`
        `dvfs`: `on` (the governors choose the clocks) or `off` (they are pinned)
        """
        if mode or dvfs != "on":
            raise ConfigError(
                "power mode and clocks of this machine cannot be set: it is no Jetson board",
                found="{} with dvfs {}".format(mode or "no mode", dvfs),
                allowed='an empty power mode with dvfs: "on"',
            )
        return outcome(mode, dvfs)

    def check_modes(self, modes: Sequence[Document], dvfs: str) -> None:
        """Check that the machine can be set to each mode of a sweep, before anything is set.

        Of a machine that is no board these are only `cores`, threads of the training process, which
        are no setting of the machine, and `cpu_mhz` where cpufreq lets this user set it.

        Raises ConfigError: the machine lacks a step, or cannot set it.
        """
        n_cpus = os.cpu_count() or 1
        steps_mhz = self.cpu_clocks.steps_mhz()
        for mode in modes:
            board_settings = {k: v for k, v in mode.items() if k not in ("cores", "cpu_mhz")}
            if board_settings or dvfs != "on":
                self.apply(board_settings, dvfs)  # raises ConfigError
            if "cpu_mhz" in mode:
                if not steps_mhz:
                    raise ConfigError(
                        "the CPU clock of this machine cannot be set: "
                        + self.cpu_clocks.why_fixed(),
                        do="leave it as it is: `parts: {cpu_mhz: []}` in config/sweeps.yaml",
                    )
                resolve("cpu_mhz", mode["cpu_mhz"], steps_mhz)
            if not 1 <= mode.get("cores", 1) <= n_cpus:
                raise ConfigError(
                    "cores: this machine does not have that many",
                    found=str(mode["cores"]),
                    allowed=f"1 to {n_cpus}",
                )

    def change(self, mode: Document, dvfs: str) -> Document:
        """Set a mode of a sweep, read everything back and compare; nothing is put back before.

        Call it after `check_modes`. What is not met is no error, but `unmet` in the outcome:
        whoever measures flags it. On a machine that is no board, a mode without `cpu_mhz` has the
        CPU clocks as they were found.
        """
        if "cpu_mhz" not in mode:
            self.cpu_clocks.restore()
            return outcome(mode, dvfs, unmet={})
        steps_mhz = self.cpu_clocks.steps_mhz()
        resolved = {"cpu_mhz": resolve("cpu_mhz", mode["cpu_mhz"], steps_mhz)}
        self.cpu_clocks.pin(resolved["cpu_mhz"])
        readings, unmet, unverified = self.cpu_clocks.read_back(resolved)
        return outcome(
            mode,
            dvfs,
            resolved=resolved,
            read_back=clocks.summary(readings),
            unverified=unverified,
            unmet=unmet,
        )

    def unmet(self, applied: Document) -> Dict[str, float]:
        """Read back again and return what is not met now of what `change` returned."""
        resolved = applied["resolved"]
        return self.cpu_clocks.read_back(resolved, patience_s=0.0)[1] if resolved else {}

    def restore(self) -> None:
        """Put back the settings from before `apply` and `change`, if any. Raises BoardError."""
        self.cpu_clocks.restore()

    def left_over(self) -> bool:
        """Return whether settings of a crashed process are still in effect."""
        return self.cpu_clocks.left_over()

    def events(self) -> Dict[str, int]:
        """Return event counters; a growth between two calls is an event between them.

        Keys: `throttle` (clocks were limited because of heat), `over_current`, and `swap_kib` (swap
        in use, KiB); a key that this machine cannot read is missing.
        """
        total, free = [host.meminfo_kib(self.root, name) for name in ("SwapTotal", "SwapFree")]
        return {} if total is None or free is None else {"swap_kib": total - free}

    def busy_pct(self, over_s: float) -> Optional[float]:
        """Return the CPUs' utilisation during the next `over_s` seconds, in % of all of them.

        None where it cannot be read.
        """
        before = self._cpu_ticks()
        time.sleep(over_s)
        busy, total = [now - then for now, then in zip(self._cpu_ticks(), before)]
        return 100.0 * busy / total if total > 0 else None

    def _cpu_ticks(self) -> Tuple[int, int]:
        """Return the CPU time spent busy and the whole, in ticks since the machine's start."""
        line = text(self.root, "proc/stat").partition("\n")[0]
        words = line.split()[1:9]  # guests are in user
        if len(words) < 5 or not all(re.match(r"[0-9]{1,18}$", word) for word in words):
            return 0, 0
        ticks = [int(word) for word in words]
        return sum(ticks) - ticks[3] - ticks[4], sum(ticks)  # without idle and iowait

    def drop_page_cache(self, paths: List[str]) -> str:
        """Empty the page cache (`dropped`), or remove these files from it (`advised`)."""
        return page_cache.drop(paths)


def open_this_machine(power_source: str = "auto") -> Machine:
    """Return the board, or other machine, that this program runs on, bound to no row."""
    kind = board_kind("/")
    return open_machine(
        {
            "backend": "jetson" if kind else "host",
            "root": "/",
            "kind": kind,
            "unit": "",
            "storage": {"root": "", "mount": "", "block_device": ""},
            "power_source": power_source,
            "settle": None,
        }
    )


def open_machine(settings: Document) -> Machine:
    """Return the machine of a device's settings (see `Machine`)."""
    if settings["backend"] == "host":
        return Machine(settings)
    from epochwatt.board.device.jetson import JetsonBoard  # it imports this module

    return JetsonBoard(settings)


def outcome(mode: Document, dvfs: str, **changes: Any) -> Document:
    """Return the result of `Machine.apply` or `change`: of a mode that set nothing, with `changes`.

    `requested` (the mode), `resolved` (the steps and limits it stands for), `read_back`
    (afterwards; the same keys, and more), `unverified` (keys of `resolved` that cannot be read
    back), `verified` (there are none), `dvfs`, `fan`; of `change` also `unmet`: what was read back
    of each key that is not met.
    """
    result: Document = {
        "requested": dict(mode),
        "resolved": {},
        "read_back": {},
        "unverified": [],
        "dvfs": dvfs,
        "fan": AS_IT_IS,
    }
    result.update(changes)
    result["verified"] = not result["unverified"]
    return result
