"""Measure epochs inside a container (board side: Python 3.6 grammar).

What concerns the machine as a whole stays outside: its lock, its power mode, the receipt. Outside,
`measure_inside` starts the container; inside, this module is the program that trains.
"""

import json
import logging
import os
import sys
import threading
from typing import List, Optional

from epochwatt.board.device import container
from epochwatt.board.device.machine import Machine, open_machine
from epochwatt.board.records.run_folder import RunFolder
from epochwatt.board.records.shapes import Document
from epochwatt.board.training.exit_status import exit_status, leave
from epochwatt.columns import Factors

log = logging.getLogger(__name__)

ORPHANED = 3  # exit status: whoever started the container is gone


def measure_inside(
    folder: RunFolder,
    factors: Factors,
    epochs: List[int],
    data_root: str,
    machine: Machine,
    conditions: Document,
) -> None:
    """Start the run's container and measure epochs in it; raises TrainingError: it failed."""
    settings = container.settings_of(factors)
    assert settings is not None
    job = {
        "measured": folder.root,
        "run": folder.run,
        "factors": factors,
        "epochs": epochs,
        "data_root": data_root,
        "machine": machine.settings,
        "conditions": conditions,
        "container": container.describe(settings),
    }
    name = f"epochwatt-{os.getpid()}"
    os.makedirs(folder.root, exist_ok=True)
    command = container.command(
        settings,
        ["-m", "epochwatt.board.training.inside", json.dumps(job)],
        name,
        readable=[os.getcwd(), data_root, *([] if machine.root == "/" else [machine.root])],
        writable=[folder.root],
    )
    image = settings["image"] or settings["rootfs"]
    log.info("in a container of %s: %s", settings["engine"], image)
    container.run(settings, command, name)


def main(argv: Optional[List[str]] = None) -> int:
    """Measure the job that the only argument holds as JSON; return an exit status."""
    (text,) = sys.argv[1:] if argv is None else argv
    job = json.loads(text)
    threading.Thread(target=_end_with_the_starter, daemon=True).start()

    def measure() -> None:
        from epochwatt.board.training.job import measure_epochs

        measure_epochs(
            RunFolder(job["measured"], job["run"]),
            job["factors"],
            job["epochs"],
            job["data_root"],
            open_machine(job["machine"]),
            job["conditions"],
            job["container"],
        )

    return exit_status(job["run"], measure)


def _end_with_the_starter() -> None:
    """End this process once its standard input is closed: nothing else tells in a container."""
    while os.read(0, 1):
        pass
    os._exit(ORPHANED)


if __name__ == "__main__":
    leave(main())
