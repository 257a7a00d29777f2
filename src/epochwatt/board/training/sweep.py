"""Measure modes of a sweep: `python -m epochwatt.board.training.sweep` (board side: Python 3.6).

One job is a chunk of the sweep's modes. Each mode is kept as soon as it is finished, so a job that
is started again goes on where the one before ended. torch is imported only when there is something
to measure.
"""

import json
import logging
import os
import sys
from typing import Any, Callable, Dict, List, Optional, Sequence, Set

from epochwatt import columns
from epochwatt.board.device.locks import machine_lock
from epochwatt.board.device.machine import Machine, open_machine
from epochwatt.board.records import files, shapes
from epochwatt.board.records.mode_folder import RECORD, ModeFolders, SweepFolder, mode_name
from epochwatt.board.telemetry.settle import settle
from epochwatt.board.training.exit_status import exit_status, importing, measuring_parser
from epochwatt.board.training.job import log_waiting
from epochwatt.board.training.preparation import others_pct, put_back
from epochwatt.board.training.procedure import procedure_of
from epochwatt.columns import CLOCKS, Factors
from epochwatt.errors import ConfigError, DamagedError

log = logging.getLogger(__name__)

Mode = Dict[str, Any]

MODES = [{part + "?": shapes.NUMBER for part in CLOCKS}]  # shape of the file of modes


def measure_modes(
    folder: SweepFolder,
    factors: Factors,
    modes: Sequence[Mode],
    first: int,
    last: int,
    data_root: str,
    receipt: str,
    machine: Machine,
) -> None:
    """Measure those of the modes `first`..`last` that are not measured yet; write the receipt.

    Waits for the machine's lock, naming its holder. Every mode is checked before anything is set.

    Raises ConfigError: the machine lacks a mode, or the numbers of the procedure cannot be;
    EpochwattError: any other of the layers below; what was finished before it stays.

    Parameters
    ----------
    folder : where they are kept
    factors : all of the sweep's factors, with `recipe`
    first, last : numbers in `modes`, both included
    data_root : folder of the storage medium that holds the data set
    """

    def opened(busy_pct: Optional[float]) -> Any:
        from epochwatt.board.training.sweep_session import SweepSession

        return SweepSession(folder, factors, data_root, machine, busy_pct)

    _check(factors)
    measure_chunk(folder, modes, first, last, receipt, machine, factors["dvfs"], opened)


def measure_chunk(
    folder: ModeFolders,
    modes: Sequence[Mode],
    first: int,
    last: int,
    receipt: str,
    machine: Machine,
    dvfs: str,
    opened: Callable[[Optional[float]], Any],
) -> None:
    """Measure those modes of a chunk that are not measured yet; write the receipt.

    Parameters
    ----------
    dvfs : `on` or `off`
    opened : takes the load of other programs, %, None where it is not looked at, and gives what
        measures a mode, a context with a method `measure_mode`; it may import what training needs
    others : as of `measure_modes`, which also says what is raised
    """
    if not 0 <= first <= last < len(modes):
        raise ConfigError(
            "there are no such modes", found=f"{first} to {last}", allowed=f"0 to {len(modes) - 1}"
        )
    chunk = list(range(first, last + 1))
    missing = [number for number in chunk if not _is_measured(folder, modes[number])]
    if missing:
        holder = {"sweep": folder.name, "mode": missing[0], "folder": os.path.abspath(folder.root)}
        with machine_lock().acquire(holder, on_wait=log_waiting):
            # a job whose workflow was killed may have gone on while we waited for it
            missing = [number for number in missing if not _is_measured(folder, modes[number])]
            if missing:
                _measure(modes, missing, machine, dvfs, opened)
    log.info("modes %d to %d of %d are measured", first + 1, last + 1, len(modes))
    write_receipt(receipt, folder, modes, first, last)


def _measure(
    modes: Sequence[Mode],
    numbers: List[int],
    machine: Machine,
    dvfs: str,
    opened: Callable[[Optional[float]], Any],
) -> None:
    with put_back(machine):
        machine.check_modes(modes, dvfs)
        busy_pct = None if machine.backend == "host" else others_pct(machine)
        with importing():
            measuring = opened(busy_pct)
        with measuring as session:
            limits = machine.settings["settle"]
            for number in numbers:
                mode = modes[number]
                applied = machine.change(mode, dvfs)
                settled = None  # only after whatever was done before the job
                if limits is not None and number == numbers[0]:
                    settled = settle(machine.root, limits)
                result = session.measure_mode(mode, number, applied, settled)
                log.info("mode %d of %d: %s: %s", number + 1, len(modes), mode_name(mode), result)


def _check(factors: Factors) -> None:
    """Refuse factors that a sweep cannot have."""
    procedure_of(factors)
    if factors["gpu_timing"] != "synchronised":
        raise ConfigError(
            f"gpu_timing of a sweep is {factors['gpu_timing']!r}",
            allowed="synchronised: each mini-batch is placed against the readings of power",
        )


def _is_measured(folder: ModeFolders, mode: Mode) -> bool:
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
    path: str, folder: ModeFolders, modes: Sequence[Mode], first: int, last: int
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
    content = {"sweep": folder.name, "first": first, "last": last, "modes": entries}
    with files.writing("the receipt", path):
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        files.write_json(path, content)


def read_modes(path: str) -> List[Mode]:
    """Return the modes of a sweep from its file; RecordError says what is wrong with it."""
    modes: List[Mode] = files.read_json(path, MODES)
    seen: Set[str] = set()
    for mode in modes:
        odd, name = sorted(set(mode) - set(CLOCKS)), mode_name(mode)
        if odd or name in seen:
            fault = f"has {', '.join(odd)}" if odd else "is there twice"
            raise ConfigError(f"a mode {fault}", where=path, found=str(mode), allowed=CLOCKS)
        seen.add(name)
    return modes


def main(argv: Optional[List[str]] = None) -> int:
    """Run the command; return its exit status: 1 after an error, 4 when a restart is needed."""
    parser = measuring_parser("epochwatt.board.training.sweep", __doc__, "sweep", "mode, from 0")
    parser.add_argument("--modes", required=True, help="JSON file that lists all of its modes")
    arguments = parser.parse_args(argv)

    def measure() -> None:
        measure_modes(
            SweepFolder(arguments.measured, arguments.sweep),
            columns.with_defaults(json.loads(arguments.factors)),
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
