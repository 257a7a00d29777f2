"""`python -m epochwatt.board.training.idle`: measure a board's idle power (board side: Python 3.6).

Idle state (i) of SIGMETRICS 2023, section 5.6: the monitor runs and nothing else. Measured once
per power mode and kept beside the epochs, in measured/{idle}/idle/.
"""

import logging
import os
import sys
import time
from typing import List, Optional

from epochwatt import columns
from epochwatt.board.device.locks import machine_lock
from epochwatt.board.device.machine import Machine, open_machine
from epochwatt.board.records import files
from epochwatt.board.records.run_folder import RECORD, MeasuredFolder
from epochwatt.board.records.shapes import Document
from epochwatt.board.training.exit_status import exit_status, options
from epochwatt.board.training.job import log_waiting
from epochwatt.board.training.observation import Observer
from epochwatt.board.training.preparation import prepared
from epochwatt.columns import Factors
from epochwatt.errors import TrainingError

log = logging.getLogger(__name__)

KEY = "idle"


def measure_idle(
    machine: Machine, idle: str, settings: Factors, seconds: float, measured: str
) -> str:
    """Measure a board's idle power in one mode, unless that is done; return the record's folder.

    Sets the mode, under the machine's lock, and puts it back. `idle`: id of the measurement;
    `settings`: `power_mode_settings`, `dvfs` and `board_settings`, as in a run's factors

    Raises BoardError: the mode cannot be set; TrainingError: the sampler was lost, or there is no
    power sensor.
    """
    folder = MeasuredFolder(measured, idle)
    if folder.has(KEY):
        log.info("measured before; to repeat it: epochwatt discard %s", idle)
        return folder.path_of(KEY)
    with machine_lock().acquire({"idle": idle}, on_wait=log_waiting):
        if folder.has(KEY):  # another job measured it while we waited
            return folder.path_of(KEY)
        attempt = folder.open_attempt(KEY)
        with prepared(machine, settings, 0) as conditions:
            record = _observe(machine, attempt, seconds)
        record.update(
            machine.describe(),
            schema_version=columns.SCHEMA_VERSION,
            protocol=columns.PROTOCOL,
            backend=machine.backend,
            idle=idle,
            board=conditions,
        )
        folder.complete(KEY, lambda path: files.write_json(os.path.join(path, RECORD), record))
    return folder.path_of(KEY)


def _observe(machine: Machine, folder: str, seconds: float) -> Document:
    """Sample an idle board into `folder` for some seconds; return begin, end and event counters.

    Raises TrainingError: the sampler was lost, or no source reads power.
    """
    with Observer(machine, folder) as observer:
        observer.begin(folder)
        start_s, unix_s = time.perf_counter(), time.time()
        time.sleep(seconds)
        end_s = time.perf_counter()
        observed, statistics = observer.end(), observer.statistics
    if statistics["lost"]:
        raise TrainingError("no telemetry, so nothing was measured", found=statistics["reason"])
    if not any(source["scope"] for source in statistics["sources"].values()):
        raise TrainingError(
            "this board reports no power, so there is no idle power to measure",
            do="`epochwatt doctor` says why; `idle_s: 0` in config/devices/ leaves it out",
        )
    return {
        "t_start_mono_s": start_s,
        "t_end_mono_s": end_s,
        "t_start_unix_s": unix_s,
        "events": observed["events"],
    }


def main(argv: Optional[List[str]] = None) -> int:
    """Run the command; return its exit status: 1 after an error, 4 when a restart is needed."""
    names = "idle settings seconds measured machine receipt"
    given = options("epochwatt.board.training.idle", __doc__, names, argv)

    def measure() -> None:
        machine = open_machine(given.machine)
        folder = measure_idle(machine, given.idle, given.settings, given.seconds, given.measured)
        digest = files.sha256_of(os.path.join(folder, RECORD))
        with files.writing("the receipt", given.receipt):
            files.write_json(given.receipt, {"idle": given.idle, "record_sha256": digest})

    return exit_status(given.idle, measure)


if __name__ == "__main__":
    sys.exit(main())
