"""Fake board for tests: make it, run it, break it, read its settings."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from epochwatt.device.kinds import EMC_CAP
from epochwatt.errors import BoardError, ConfigError
from epochwatt.fakeboard.kinds import FakeKind, find_kind
from epochwatt.fakeboard.model import FAULTS, Model
from epochwatt.fakeboard.tools.board_files import CPU, NVFANCONTROL, BoardFiles
from epochwatt.fakeboard.tree import PACKAGE, RUN, write_tree

# Settings that a mode, locked clocks or the fan at full speed can change, as patterns.
_SETTINGS = (
    CPU + "cpu[0-9]*/online",
    CPU + "cpu[0-9]*/cpuidle/state*/disable",
    "var/lib/nvpmodel/status",
    EMC_CAP,
    NVFANCONTROL,
)


def make_board(folder: str | os.PathLike[str], kind: str) -> "FakeBoard":
    """Make a board in an empty or new folder, and start it in its default mode.

    Parameters
    ----------
    folder : the board's root
    kind : a name of `kinds.KINDS`

    Raises
    ------
    ConfigError
        Unknown kind, or the folder is not empty.
    """
    fake = find_kind(kind)
    root = Path(folder).resolve()
    if root.exists() and any(root.iterdir()):
        raise ConfigError(f"{root} is not empty", do="make the fake board in a new folder")
    root.mkdir(parents=True, exist_ok=True)
    write_tree(root, fake)
    board = FakeBoard(root)
    board.reboot()
    Model(str(root)).step(0.0, 0.0)
    return board


class FakeBoard:
    """A board that was made before.

    Attributes
    ----------
    root : its folder, in place of `/`
    kind : its kind and release
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.root = Path(folder).resolve()
        self.files = BoardFiles(str(self.root))
        self.kind: FakeKind = find_kind(self.files.facts["name"])

    def run(self, tool: str, *words: str) -> "subprocess.CompletedProcess[str]":
        """Run one of the board's programs (its path below the root) with nothing on its input."""
        return subprocess.run(
            [str(self.root / tool), *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    def reboot(self) -> None:
        """Start the board anew: pins are gone, the remembered mode is made, counters are 0.

        Raises
        ------
        BoardError
            The mode cannot be made.
        """
        for folder, _ in self.files.clusters():
            self.files.write(folder + "scaling_governor", "schedutil")
        for path in self._paths(CPU + "cpu[0-9]*/cpuidle/state*/disable"):
            self.files.write(path, 0)
        self.files.write(self.files.facts["gpu_device"] + "/railgate_enable", 1)
        emc = self.files.emc
        unlocked = 0 if "locked" in emc else self.kind.board.emc_hz[0]
        self.files.write(emc.get("locked", emc["wanted"]), unlocked)
        if self.files.facts["fan"]["control"]:
            self.files.write(self.files.facts["fan"]["control"], 1)
        else:
            self.files.write(NVFANCONTROL, 1)
            self.files.write(self.files.facts["oc"], 0)
        (self.root / RUN / "reboot").unlink(missing_ok=True)
        done = self.run("usr/sbin/nvpmodel", "--boot")
        if done.stderr:
            raise BoardError(f"{self.root} does not start: {done.stderr.strip()}")

    def set_fault(self, name: str, value: Any = True) -> None:
        """Switch a fault of `model.FAULTS` on, or off with None, also while the board runs."""
        if name not in FAULTS:
            raise ConfigError(f"unknown fault {name!r}", allowed=FAULTS)
        path = self.root / RUN / "faults.json"
        faults = {**json.loads(path.read_text("utf-8")), name: value}
        kept = {key: setting for key, setting in faults.items() if setting is not None}
        new = path.with_suffix(".new")
        new.write_text(json.dumps(kept), "utf-8")
        new.replace(path)

    @contextmanager
    def live(self, load_of: int | None = None) -> Iterator["FakeBoard"]:
        """Run the board: it follows the load of a process tree (None: the caller's).

        Raises
        ------
        BoardError
            The process does not start.
        """
        words = [sys.executable, "-m", "epochwatt.fakeboard", self.kind.name, str(self.root)]
        words += ["--load-of", str(load_of or os.getpid()), "--parent", str(os.getpid())]
        environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
        with subprocess.Popen(words, stdout=subprocess.PIPE, env=environment, text=True) as process:
            try:
                if process.stdout is None or not process.stdout.readline():
                    raise BoardError(f"the fake board in {self.root} does not start")
                yield self
            finally:
                process.terminate()

    def energy_j(self, begin_s: float, end_s: float) -> float:
        """Return the energy that the rails showed between two moments of the monotonic clock, J.

        A power that the running process wrote holds until it writes again.
        """
        lines = (self.root / RUN / "power.csv").read_text("ascii").splitlines()[1:]
        steps = [tuple(map(float, line.split(","))) for line in lines]
        ends_s = [step[0] for step in steps[1:]] + [float("inf")]
        return sum(
            power_w * max(0.0, min(until_s, end_s) - max(from_s, begin_s))
            for (from_s, power_w), until_s in zip(steps, ends_s, strict=True)
        )

    def snapshot(self) -> dict[str, str]:
        """Return every setting that a restore has to put back: file -> content."""
        facts = self.files.facts
        names = [path for pattern in _SETTINGS for path in self._paths(pattern)]
        online = self.files.online()
        for folder, cpus in self.files.clusters():
            if set(cpus) & set(online):  # the clocks of a cluster that is off mean nothing
                names += self._paths(folder + "scaling_m??_freq")
                names += [folder + "scaling_governor", folder + "scaling_setspeed"]
        names += self._paths(facts["gpu"] + "/m??_freq")
        names += [
            facts["gpu"] + "/governor",
            *facts["dla"].values(),
            self.files.emc.get("locked", self.files.emc["wanted"]),
        ]
        device = facts["gpu_device"]
        names += [device + "/railgate_enable", device + "/power/control"]
        names += self._paths(device + "/tpc_pg_mask")
        control = facts["fan"]["control"] or NVFANCONTROL
        if self.files.text(control) != "1":  # else the fan follows the temperature
            names.append(facts["fan"]["pwm"])
        return {name: self.files.text(name) for name in [*names, control]}

    def _paths(self, pattern: str) -> list[str]:
        return sorted(str(path.relative_to(self.root)) for path in self.root.glob(pattern))
