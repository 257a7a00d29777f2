"""`python -m epochwatt.board.training.idle`: measure a board's idle power (board side: Python 3.6).

Idle state (i) of SIGMETRICS 2023, section 5.6: the monitor runs and nothing else. Measured once
per power mode and kept beside the epochs, in measured/{idle}/idle/.
"""

import argparse
import json
import logging
import os
import shutil
import sys
import time
from typing import Any, Dict, List, Optional

from epochwatt import columns
from epochwatt.board.device.locks import machine_lock
from epochwatt.board.device.machine import Machine, open_machine
from epochwatt.board.records import checksums, files
from epochwatt.board.telemetry.client import Sampler
from epochwatt.board.training.exit_status import exit_status
from epochwatt.board.training.job import log_waiting
from epochwatt.board.training.preparation import prepared
from epochwatt.errors import TrainingError

log = logging.getLogger(__name__)

RECORD = "record.json"


def measure_idle(
    machine: Machine, idle: str, settings: Dict[str, Any], seconds: float, measured: str
) -> str:
    """Measure the idle power of a board in one mode, unless it has been measured; return where.

    Raises BoardError: the mode cannot be set; TrainingError: the sampler was lost, or no power
    sensor is there.

    Parameters
    ----------
    settings : `power_mode_settings`, `dvfs` and `board_settings`, as in a run's factors
    """
    folder = os.path.join(measured, idle, "idle")
    if os.path.isdir(folder):
        log.info("measured before; to repeat it: epochwatt discard %s", idle)
        return folder
    with machine_lock().acquire({"idle": idle}, on_wait=log_waiting):
        if os.path.isdir(folder):  # another job measured it while we waited
            return folder
        attempt = folder + ".unfinished"
        shutil.rmtree(attempt, ignore_errors=True)
        with files.writing("the idle power", attempt):
            os.makedirs(attempt)
        with prepared(machine, settings, 0) as conditions:
            record = _observed(machine, attempt, seconds)
        record.update(
            machine.describe(),
            schema_version=columns.SCHEMA_VERSION,
            protocol=columns.PROTOCOL,
            backend=machine.backend,
            idle=idle,
            board=conditions,
        )
        with files.writing("the idle power", attempt):
            files.write_json(os.path.join(attempt, RECORD), record)
            checksums.write_sums(attempt)
            os.rename(attempt, folder)
    return folder


def _observed(machine: Machine, folder: str, seconds: float) -> Dict[str, Any]:
    """Sample for a while and do nothing; return the bounds and the counters of events."""
    with Sampler.start(
        os.getpid(), folder, 0, root=machine.root, power=machine.settings["power_source"]
    ) as sampler:
        sampler.begin(folder)
        before, start_s, unix_s = machine.events(), time.perf_counter(), time.time()
        time.sleep(seconds)
        end_s, after = time.perf_counter(), machine.events()
        statistics = sampler.end()
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
        "events": {"before": before, "after": after},
    }


def main(argv: Optional[List[str]] = None) -> int:
    """Run the command; return its exit status: 1 after an error, 4 when a restart is needed."""
    parser = argparse.ArgumentParser(prog="epochwatt.board.training.idle", description=__doc__)
    parser.add_argument("--idle", required=True, help="id of the measurement")
    parser.add_argument("--settings", required=True, help="mode, DVFS, board settings, as JSON")
    parser.add_argument("--seconds", type=float, required=True, help="how long")
    parser.add_argument("--measured", required=True, help="folder of all measurements")
    parser.add_argument("--machine", required=True, help="what to know of the machine, as JSON")
    parser.add_argument("--receipt", required=True, help="file to write when it is measured")
    arguments = parser.parse_args(argv)

    def measure() -> None:
        folder = measure_idle(
            open_machine(json.loads(arguments.machine)),
            arguments.idle,
            json.loads(arguments.settings),
            arguments.seconds,
            arguments.measured,
        )
        with files.writing("the receipt", arguments.receipt):
            record = os.path.join(folder, RECORD)
            receipt = {"idle": arguments.idle, "record_sha256": files.sha256_of(record)}
            files.write_json(arguments.receipt, receipt)

    return exit_status(arguments.idle, measure)


if __name__ == "__main__":
    sys.exit(main())
