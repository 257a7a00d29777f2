"""A board that is a control group: its power modes are shares of one core (cgroup v1 or v2).

A group has two others within: `mode` holds the process that fits, with the quota of its mode; all
else (Flower, the sampler, the keeper of the mode) is in `rest`, without one. The board's folder has
`speed` (a share: slower hardware) and `throttled` (how often it has been), which a test may write,
and a made-up energy counter of `POWER_W`. Only power is made up: times are real.
"""

import json
import os
from pathlib import Path

from epochwatt.board.device.machine import Machine, outcome
from epochwatt.errors import ConfigError

FOLDER = "EPOCHWATT_FLEET_BOARD"  # variable with the board's folder
PERIOD_US = 100_000
SHARES_MHZ = (100, 150, 200, 250, 300, 350, 400, 450)  # a mode of 1000 "MHz" would be a core
IDLE_W, CORE_W = 2.0, 20.0
V1, V2 = Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup")


def power_w(share: float | None) -> float:
    """Return the power of a board that computes with this share of a core; None: it rests."""
    return IDLE_W + CORE_W * (share or 0.0) ** 1.5


def root() -> Path:
    """Return the folder of the CPU controller."""
    return V1 if (V1 / "cpu.cfs_quota_us").exists() else V2


class Group:
    """A control group of CPU time."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def make(self) -> None:
        """Make it and, where the kernel wants that, the controller in the one above."""
        if root() == V2:
            (self.path.parent / "cgroup.subtree_control").write_text("+cpu")
        self.path.mkdir()

    def add(self, pid: int) -> None:
        """Move a process with all its threads into it."""
        (self.path / "cgroup.procs").write_text(str(pid))

    @property
    def share(self) -> float | None:
        """Share of a core that it may take; None: no limit."""
        if root() == V2:
            quota, period = (self.path / "cpu.max").read_text().split()
            return None if quota == "max" else int(quota) / int(period)
        quota_us = int((self.path / "cpu.cfs_quota_us").read_text())
        return None if quota_us < 0 else quota_us / PERIOD_US

    @share.setter
    def share(self, share: float | None) -> None:
        quota_us = None if share is None else round(PERIOD_US * share)
        if root() == V2:
            text = "max" if quota_us is None else str(quota_us)
            (self.path / "cpu.max").write_text(f"{text} {PERIOD_US}")
        else:
            (self.path / "cpu.cfs_quota_us").write_text(str(-1 if quota_us is None else quota_us))

    def remove(self) -> None:
        """Remove it, once its processes have ended."""
        self.path.rmdir()


class QuotaMachine(Machine):
    """A machine whose mode is the quota of the process that asks for it."""

    def __init__(self) -> None:
        super().__init__({"root": "/", "unit": "", "kind": "", "backend": "host"})
        self.folder = Path(os.environ[FOLDER])
        self.group = Group(Path((self.folder / "group").read_text()) / "mode")
        self.note = self.folder / "before.json"

    def check(self) -> None:
        """Accept: a test has put it where it is."""

    def check_modes(self, modes, dvfs):
        """Raise ConfigError: the board has no such mode."""
        for mode in modes:
            if mode.get("cpu_mhz") not in SHARES_MHZ or dvfs != "on":
                raise ConfigError(f"no mode {mode}", allowed=SHARES_MHZ)

    def change(self, mode, dvfs):
        """Set the quota, and move the process that fits under it."""
        if not self.left_over():
            self.note.write_text(json.dumps(self.group.share))
        speed = float((self.folder / "speed").read_text())
        self.group.share = mode["cpu_mhz"] / 1000 * speed
        self.group.add(os.getppid())
        return outcome(mode, dvfs, resolved=dict(mode), read_back=dict(mode), unmet={})

    def unmet(self, applied):
        """Return nothing: hardware that slows down does not say so."""
        return {}

    def restore(self):
        """Put the quota back."""
        if self.left_over():
            self.group.share = json.loads(self.note.read_text())
            self.note.unlink()

    def left_over(self):
        """Return whether a mode is set that nobody has put back."""
        return self.note.exists()

    def events(self):
        """Return how often the board has been throttled."""
        return {"throttle": int((self.folder / "throttled").read_text())}
