"""`python -m epochwatt.training.sweep`: measure modes of a sweep (board side: Python 3.6 grammar).

One job is a chunk of the sweep's modes. Each mode is kept as soon as it is finished, so a job that
is started again goes on where the one before ended. torch is imported only when there is something
to measure.
"""

import argparse
import json
import logging
import os
import sys
from typing import Any, Dict, List, Optional, Sequence, Set

from epochwatt import fields
from epochwatt.device.locks import machine_lock
from epochwatt.device.machine import Machine, open_machine
from epochwatt.errors import ConfigError, DamagedError, TrainingError
from epochwatt.records import files, shapes
from epochwatt.records.mode_folder import PARTS, RECORD, SweepFolder, mode_name
from epochwatt.telemetry.settle import settle
from epochwatt.training.exit_status import exit_status
from epochwatt.training.job import log_waiting
from epochwatt.training.preparation import others_pct, put_back
from epochwatt.training.procedure import procedure_of

log = logging.getLogger(__name__)

Mode = Dict[str, Any]

MODES = [{part + "?": shapes.NUMBER for part in PARTS}]  # shape of the file of modes


def measure_modes(
    folder: SweepFolder,
    factors: Dict[str, Any],
    modes: Sequence[Mode],
    first: int,
    last: int,
    data_root: str,
    receipt: str,
    machine: Machine,
) -> None:
    """Measure those of the modes `first`..`last` that are not measured yet; write the receipt.

    Waits for the machine's lock, naming its holder. Every mode is checked before anything is set.

    Parameters
    ----------
    folder : where they are kept
    factors : all of the sweep's factors, with `recipe`
    modes : all modes of the sweep
    first, last : numbers in `modes`, both included
    data_root : folder of the storage medium that holds the data set
    receipt : file to write when all are measured
    machine : the machine at hand

    Raises
    ------
    ConfigError : the machine lacks a mode, or the numbers of the procedure cannot be
    EpochwattError : any other of the layers below; what was finished before it stays
    """
    if not 0 <= first <= last < len(modes):
        raise ConfigError(
            "there are no such modes", found=f"{first} to {last}", allowed=f"0 to {len(modes) - 1}"
        )
    chunk = list(range(first, last + 1))
    missing = [place for place in chunk if not _is_measured(folder, modes[place])]
    if missing:
        holder = {"sweep": folder.sweep, "mode": missing[0], "folder": os.path.abspath(folder.root)}
        with machine_lock().acquire(holder, on_wait=log_waiting):
            # a job whose workflow was killed may have gone on while we waited for it
            left = [place for place in missing if not _is_measured(folder, modes[place])]
            if left:
                _measure(folder, factors, modes, left, data_root, machine)
    log.info("modes %d to %d of %d are measured", first + 1, last + 1, len(modes))
    write_receipt(receipt, folder, modes, first, last)


def _measure(
    folder: SweepFolder,
    factors: Dict[str, Any],
    modes: Sequence[Mode],
    places: List[int],
    data_root: str,
    machine: Machine,
) -> None:
    _check(factors)
    with put_back(machine):
        machine.check_modes(modes, factors["dvfs"])
        try:
            from epochwatt.training.sweep_session import SweepSession
        except ImportError as error:
            raise TrainingError(
                f"{sys.executable} cannot import what training needs",
                found=str(error),
                do="name an interpreter that can under `python:` in config/devices/",
            ) from error
        busy_pct = None if machine.backend == "host" else others_pct(machine)
        with SweepSession(folder, factors, data_root, machine, busy_pct) as session:
            limits = machine.settings["settle"]
            for place in places:
                mode = modes[place]
                applied = machine.change(mode, factors["dvfs"])
                settled = None  # only after whatever was done before the job
                if limits is not None and place == places[0]:
                    settled = settle(machine.root, limits)
                result = session.measure_mode(mode, place, applied, settled)
                log.info("mode %d of %d: %s: %s", place + 1, len(modes), mode_name(mode), result)


def _check(factors: Dict[str, Any]) -> None:
    """Refuse factors that a sweep cannot have."""
    procedure_of(factors)
    if factors["gpu_timing"] != "synchronised":
        raise ConfigError(
            f"gpu_timing of a sweep is {factors['gpu_timing']!r}",
            allowed="synchronised: each mini-batch is placed against the readings of power",
        )


def _is_measured(folder: SweepFolder, mode: Mode) -> bool:
    """Return whether a mode is measured and whole; a damaged one goes to the trash."""
    if not folder.has(mode):
        return False
    try:
        folder.verify(mode)
    except DamagedError as error:
        with files.writing("the trash", folder.root):
            moved = folder.discard(mode)
        log.warning("%s\n  it was moved to %s and is measured again now", error, moved)
        return False
    return True


def write_receipt(
    path: str, folder: SweepFolder, modes: Sequence[Mode], first: int, last: int
) -> None:
    """Write what Snakemake sees of a chunk, after checking each record.

    Raises RecordError for a mode that is missing or damaged, RecordWriteError when it cannot be
    written.
    """
    entries = []
    for mode in modes[first : last + 1]:
        meta = folder.read(mode).meta
        entries.append(
            {
                "mode": mode_name(mode),
                "measured_unix_s": meta["t_start_unix_s"],
                "flags": meta["flags"],
                "record_sha256": files.sha256_of(os.path.join(folder.mode_path(mode), RECORD)),
            }
        )
    content = {"sweep": folder.sweep, "first": first, "last": last, "modes": entries}
    with files.writing("the receipt", path):
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        files.write_json(path, content)


def read_modes(path: str) -> List[Mode]:
    """Return the modes of a sweep from its file; RecordError says what is wrong with it."""
    modes: List[Mode] = files.read_json(path, MODES)
    seen: Set[str] = set()
    for mode in modes:
        odd, name = sorted(set(mode) - set(PARTS)), mode_name(mode)
        if odd or name in seen:
            fault = f"has {', '.join(odd)}" if odd else "is there twice"
            raise ConfigError(f"a mode {fault}", where=path, found=str(mode), allowed=PARTS)
        seen.add(name)
    return modes


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="epochwatt.training.sweep", description=__doc__)
    parser.add_argument("--sweep", required=True, help="id of the sweep")
    parser.add_argument("--factors", required=True, help="its canonical factors, as JSON")
    parser.add_argument("--modes", required=True, help="JSON file that lists all of its modes")
    parser.add_argument("--first", type=int, required=True, help="first mode of the chunk, from 0")
    parser.add_argument("--last", type=int, required=True, help="last mode of the chunk")
    parser.add_argument("--measured", required=True, help="folder of all measurements")
    parser.add_argument("--data-root", required=True, help="folder that holds the data sets")
    parser.add_argument("--receipt", required=True, help="file to write when all are measured")
    parser.add_argument(
        "--machine", required=True, help="what to know of the machine (device.machine), as JSON"
    )
    return parser


def main(argv: Optional[List[str]] = None) -> int:
    """Run the command; return its exit status: 1 after an error, 4 when a restart is needed."""
    arguments = _parser().parse_args(argv)

    def measure() -> None:
        measure_modes(
            SweepFolder(arguments.measured, arguments.sweep),
            fields.with_defaults(json.loads(arguments.factors)),
            read_modes(arguments.modes),
            arguments.first,
            arguments.last,
            arguments.data_root,
            arguments.receipt,
            open_machine(json.loads(arguments.machine)),
        )

    return exit_status(arguments.sweep, measure)


if __name__ == "__main__":
    sys.exit(main())
