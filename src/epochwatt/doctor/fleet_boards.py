"""Boards of a fleet: each is asked what it is and sees, through Slurm or by its own command."""

import json
import secrets
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from epochwatt.device.node import HEAD, leave_file, workflow_of
from epochwatt.doctor.slurm import Node, on_node
from epochwatt.doctor.subject import IMPORTS_S, tried
from epochwatt.errors import EpochwattError
from epochwatt.study.config import Device
from epochwatt.study.expand import machine_settings
from epochwatt.study.place import MEASURED

ANSWER_S = IMPORTS_S + 90.0  # to all that a board is asked, with srun's wait for it
SEEN_S = 60.0  # for a board's file to be seen here, as latency-wait of profiles/slurm
AT_ONCE = 16  # boards that are asked at the same time


@dataclass
class Board:
    """A board of the fleet, and what it answered."""

    name: str  # of its node, or of its device where it is reached without Slurm
    device_name: str
    device: Device
    node: Node | None = None  # None: the device's own command reaches it
    answer: dict[str, Any] = field(default_factory=dict)  # of `epochwatt.device.node.look`
    error: str = ""  # why it did not answer
    seen_s: float | None = None  # until its file was seen here; None: it was not

    @property
    def python(self) -> list[str]:
        """Words that start, on the board, the interpreter that has torch."""
        start = [] if self.node is None else on_node(self.node)
        return [*start, *(self.device.python or [sys.executable])]

    @property
    def instance(self) -> str:
        """The unit that it is by its features, or the first one."""
        features = self.node.features if self.node else frozenset()
        named = [name for name in self.device.instances if name in features]
        return next(iter(named), self.device.instances[0])

    @property
    def settings(self) -> dict[str, Any]:
        """Return what its jobs are told of the machine."""
        is_real = self.device.sysroot == "/"
        factors = {
            "backend": ("jetson" if is_real else "fake") if self.device.board else "host",
            "instance": self.instance,
            "storage": next(iter(self.device.storage)),
        }
        return machine_settings(factors, self.device)


def ask(boards: Sequence[Board], checkout: Path) -> dict[str, Any]:
    """Ask all boards, some at a time, and keep what they answer; return the same of this machine.

    Raises
    ------
    EpochwattError : the folder of records cannot be written here
    """
    measured = checkout / MEASURED
    try:
        measured.mkdir(exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=".fleet-", dir=measured))
        (folder / HEAD).write_text(secrets.token_hex(), "ascii")
    except OSError as error:
        raise EpochwattError(f"cannot write to {measured}: {error.strerror}") from error
    try:
        head = leave_file(str(folder), "this") | workflow_of(sys.executable)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(lambda board: _ask(board, folder, checkout), boards))
        return head
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _ask(board: Board, folder: Path, checkout: Path) -> None:
    workflow = "" if board.node is None else sys.executable
    words = ["node", str(folder.absolute()), board.name, json.dumps(board.settings), workflow]
    try:
        board.answer = tried(board.python, words, ANSWER_S, checkout)
    except EpochwattError as error:
        board.error = str(error)
        return
    start_s = time.monotonic()
    while board.seen_s is None and time.monotonic() - start_s < SEEN_S:
        if (folder / board.name).exists():
            board.seen_s = time.monotonic() - start_s
        elif board.answer["seen"] is None:  # it did not see ours, so there is nothing to wait for
            return
        else:
            time.sleep(0.1)
