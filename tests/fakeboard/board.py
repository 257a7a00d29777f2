"""A fake board: make it, start it anew, run its programs."""

import os
import subprocess
from pathlib import Path

from epochwatt.errors import BoardError, ConfigError
from tests.fakeboard.kinds import FakeKind, find_kind
from tests.fakeboard.model import Model
from tests.fakeboard.tools.board_files import CPU, NVFANCONTROL, BoardFiles
from tests.fakeboard.tree import RUN, write_tree


def make_board(folder: str | os.PathLike[str], kind: str) -> "FakeBoard":
    """Make a board of a kind in an empty or new folder, and start it in its default mode.

    Raises ConfigError: unknown kind, or the folder is not empty.
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
    """A board that was made before, in a folder in place of `/`."""

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

        Raises BoardError: the mode cannot be made.
        """
        for folder, _ in self.files.clusters():
            self.files.write(folder + "scaling_governor", "schedutil")
        for path in self.root.glob(CPU + "cpu[0-9]*/cpuidle/state*/disable"):
            self.files.write(str(path.relative_to(self.root)), 0)
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
