"""Measure modes of a sweep: `python -m epochwatt.board.training.sweep` (board side: Python 3.6).

One job is a chunk of the sweep's modes. Each mode is kept as soon as it is finished, so a job that
is started again goes on where the one before ended. torch is imported only when there is something
to measure.
"""

import logging
from typing import Any, Callable, Dict, List, Optional, Sequence, Set

from epochwatt import columns
from epochwatt.board.device.machine import Machine, open_machine
from epochwatt.board.records import files, shapes
from epochwatt.board.records.mode_folder import ModeFolders, SweepFolder, mode_name
from epochwatt.board.training.exit_status import exit_status, importing, leave, options
from epochwatt.board.training.job import measure_missing
from epochwatt.board.training.preparation import others_pct, put_back, settle
from epochwatt.board.training.procedure import procedure_of
from epochwatt.columns import CLOCKS, Factors
from epochwatt.errors import ConfigError

log = logging.getLogger(__name__)

Mode = Dict[str, float]

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
    """Measure the missing modes of `first`..`last` of a sweep (`measure_chunk`).

    Raises ConfigError: the sweep's procedure or `gpu_timing` is not allowed, or as `measure_chunk`.
    """
    procedure_of(factors)  # raises ConfigError before anything is set
    if factors["gpu_timing"] != "synchronised":
        raise ConfigError(
            f"gpu_timing of a sweep is {factors['gpu_timing']!r}",
            allowed="synchronised: each mini-batch is placed against the readings of power",
        )

    def open_session() -> Any:
        from epochwatt.board.training.sweep_session import SweepSession

        return SweepSession(folder, factors, data_root, machine)

    measure_chunk(folder, modes, first, last, receipt, machine, factors["dvfs"], open_session)


def measure_chunk(
    folder: ModeFolders,
    modes: Sequence[Mode],
    first: int,
    last: int,
    receipt: str,
    machine: Machine,
    dvfs: str,
    open_session: Callable[[], Any],
) -> None:
    """Set and measure each mode of a chunk that is missing (`job.measure_missing`).

    Raises ConfigError: there is no such mode in `modes`, or the machine lacks one of them; all are
    checked before the first is set. The machine's settings are put back at the end.

    `first`, `last`: numbers in `modes`, both included
    `dvfs`: `on` or `off`
    `open_session`: imports torch and returns a context manager with the method `measure_mode`
    """
    if not 0 <= first <= last < len(modes):
        raise ConfigError(
            "there are no such modes", found=f"{first} to {last}", allowed=f"0 to {len(modes) - 1}"
        )

    def measure(numbers: List[int]) -> None:
        with put_back(machine):
            machine.check_modes(modes, dvfs)
            busy_pct = None if machine.backend == "host" else others_pct(machine)
            with importing():
                context = open_session()
            with context as session:
                for number in numbers:
                    mode = modes[number]
                    applied = machine.change(mode, dvfs)
                    limits, settled = machine.settings["settle"], None
                    if limits is not None and number == numbers[0]:  # warm from an earlier job
                        settled = settle(machine.root, limits)
                    conditions = {"busy_pct": busy_pct, "settled": settled}
                    result = session.measure_mode(mode, number, applied, conditions)
                    name = mode_name(mode)
                    log.info("mode %d of %d: %s: %s", number + 1, len(modes), name, result)

    measure_missing(folder, first, last, receipt, measure, modes)
    log.info("modes %d to %d of %d are measured", first + 1, last + 1, len(modes))


def read_modes(path: str) -> List[Mode]:
    """Read the modes of a sweep from its JSON file.

    Raises RecordError: it is no list of modes; ConfigError: an unknown clock, or a mode twice.
    """
    modes: List[Mode] = files.read_json(path, MODES)
    seen: Set[str] = set()
    for mode in modes:
        unknown, name = sorted(set(mode) - set(CLOCKS)), mode_name(mode)
        if unknown or name in seen:
            fault = f"has {', '.join(unknown)}" if unknown else "is there twice"
            raise ConfigError(f"a mode {fault}", where=path, found=str(mode), allowed=CLOCKS)
        seen.add(name)
    return modes


def main(argv: Optional[List[str]] = None) -> int:
    """Run the command; return its exit status: 1 after an error, 4 when a restart is needed."""
    names = "sweep factors first last modes measured data-root receipt machine"
    given = options("epochwatt.board.training.sweep", __doc__, names, argv)

    def measure() -> None:
        measure_modes(
            SweepFolder(given.measured, given.sweep),
            columns.with_defaults(given.factors),
            read_modes(given.modes),
            given.first,
            given.last,
            given.data_root,
            given.receipt,
            open_machine(given.machine),
        )

    return exit_status(given.sweep, measure)


if __name__ == "__main__":
    leave(main())
