"""Hold a power mode while another process trains (board side: Python 3.6 grammar).

`python -m epochwatt.board.training.mode_keeper` sets the mode, prints what came of it, waits until
its stdin ends or its parent is gone, and puts everything back, whatever ended that process.
`HeldMode` is the side of the process that trains. A killed keeper leaves the board's own note of
what was set before, which the next keeper puts back.
"""

import argparse
import importlib
import json
import logging
import os
import select
import subprocess
import sys
from typing import Any, List, Optional

import epochwatt
from epochwatt.board.device.locks import machine_lock
from epochwatt.board.device.machine import Machine
from epochwatt.board.records.shapes import Document
from epochwatt.board.training.preparation import put_back
from epochwatt.errors import EpochwattError, LockedError

log = logging.getLogger(__name__)

LOOK_S = 0.5  # between two looks at the parent; loader workers may keep its pipe open
PATIENCE_S = 180.0  # with a keeper: the root helper gives each of its tools a minute
THIS_MACHINE = "epochwatt.board.device.machine:open_this_machine"


class HeldMode:
    """A mode that another process, the keeper, has set and holds until `close`. Nothing raises.

    `mode`: `cores`, `cpu_mhz`, `gpu_mhz`, `emc_mhz`; empty: as the machine is
    `dvfs`: `on` or `off`, as of `Machine.change`
    `machine`: `module:function` that returns a `Machine`

    Attributes:
    `is_set`: the machine is in this mode
    `is_alone`: no other process measures on this machine or holds a mode of it
    `flags`: what speaks against it, of config/flags
    """

    def __init__(self, mode: Document, dvfs: str = "on", machine: str = THIS_MACHINE) -> None:
        self.is_set = self.is_alone = False
        self.flags: List[str] = []
        package = os.path.dirname(os.path.dirname(os.path.abspath(epochwatt.__file__)))
        words = [sys.executable, "-m", "epochwatt.board.training.mode_keeper"]
        words += [machine, json.dumps(mode), dvfs, str(os.getpid())]
        self._process = subprocess.Popen(
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=dict(os.environ, PYTHONPATH=os.pathsep.join([package] + sys.path)),
            universal_newlines=True,
            start_new_session=True,  # what ends the process that trains is not for it
        )
        answer = self._answer()
        self.is_alone = bool(answer.get("alone"))
        self.is_set = self.is_alone and not answer.get("error") and not answer.get("unmet")
        if answer.get("unverified"):
            self.flags.append("mode_not_verified")
        if mode and not self.is_set:
            self.flags.append("mode_not_met")
            log.warning("the mode %s is not set: %s", mode, answer.get("error", answer))

    def _answer(self) -> Document:
        stdout, line = self._process.stdout, ""  # type: Any, str
        if select.select([stdout], [], [], PATIENCE_S)[0]:
            line = stdout.readline()
        try:
            return dict(json.loads(line))
        except (TypeError, ValueError):
            return {"error": f"its keeper says {line!r}"}

    def close(self) -> None:
        """Have the former mode put back; then `flags` also has what happened meanwhile."""
        process = self._process
        try:
            process.stdin.close()  # type: ignore[union-attr]
        except OSError:
            pass
        self.flags += self._answer().get("flags", [])
        process.stdout.close()  # type: ignore[union-attr]
        try:
            status = process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            status = None
        if status != 0:
            log.warning("the mode before this fit may not be put back: the keeper's log says why")


def keep(machine: Machine, mode: Document, dvfs: str, parent: int) -> None:
    """Set a mode, tell it, wait for the end of the parent or of stdin, and put it back.

    Raises EpochwattError: the former mode cannot be put back.
    """
    with put_back(machine):
        applied = {"unmet": {}}  # type: Document
        try:
            if mode:
                machine.check_modes([mode], dvfs)
                applied = machine.change(mode, dvfs)
        except EpochwattError as error:
            machine.restore()
            applied["error"] = str(error)
        before = machine.events()
        _tell(dict(applied, alone=True))
        wait_for_end(parent)
        after = machine.events()
        flags = [
            flag
            for flag, event in (("throttled", "throttle"), ("over_current", "over_current"))
            if after.get(event, 0) > before.get(event, 0)
        ]
        if applied.get("resolved") and machine.unmet(applied):
            flags.append("mode_not_met")
    _tell({"flags": flags})


def wait_for_end(parent: int) -> None:
    """Wait until stdin has ended or the parent is another one."""
    while os.getppid() == parent:
        if select.select([0], [], [], LOOK_S)[0] and not os.read(0, 4096):
            return


def _tell(answer: Document) -> None:
    try:
        print(json.dumps(answer), flush=True)
    except OSError:
        pass  # nobody listens any more


def main(argv: Optional[List[str]] = None) -> int:
    """Run the command; return 1 where the mode cannot be set or put back."""
    parser = argparse.ArgumentParser(prog="mode_keeper", description=__doc__)
    parser.add_argument("machine", help="module:function that returns a Machine")
    parser.add_argument("mode", type=json.loads, help="as JSON")
    parser.add_argument("dvfs", choices=("on", "off"))
    parser.add_argument("parent", type=int, help="process that trains")
    given = parser.parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="mode keeper: %(message)s")
    try:
        with machine_lock().acquire({"power mode of a federated fit": given.mode}):
            keep(_machine(given.machine), given.mode, given.dvfs, given.parent)
        return 0
    except LockedError as error:
        _tell({"error": str(error)})
        wait_for_end(given.parent)
        return 0
    except EpochwattError as error:
        log.error("%s", error)
        _tell({"error": str(error)})
        return 1


def _machine(name: str) -> Any:
    module, _, function = name.partition(":")
    return getattr(importlib.import_module(module), function)()


if __name__ == "__main__":
    sys.exit(main())
