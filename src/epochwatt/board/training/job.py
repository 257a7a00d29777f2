"""Measure a part of a run, epoch after epoch: one job (board side: Python 3.6).

torch is imported only when there is something to measure.
"""

import logging
import os
import time
from typing import Any, Callable, Iterable, List, Optional, Sequence

from epochwatt.board.device import container
from epochwatt.board.device.locks import machine_lock
from epochwatt.board.device.machine import Machine
from epochwatt.board.records import files
from epochwatt.board.records.run_folder import MeasuredFolder, RunFolder, write_receipt
from epochwatt.board.records.shapes import Document
from epochwatt.board.training.exit_status import importing
from epochwatt.board.training.inside import measure_inside
from epochwatt.board.training.preparation import prepared
from epochwatt.columns import Factors
from epochwatt.errors import DamagedError

log = logging.getLogger(__name__)


def measure_missing(
    folder: MeasuredFolder,
    first: int,
    last: int,
    receipt: str,
    measure: Callable[[List[int]], None],
    modes: Optional[Sequence[Any]] = None,
) -> None:
    """Measure what is not measured yet, and write the receipt.

    Waits for the machine's lock, naming its holder. Each epoch or mode is kept as soon as it is
    finished. Raises any EpochwattError of the layers below; what was finished before it stays.

    `first`, `last`: numbers of epochs, or of modes in `modes`; `measure`: takes the numbers that
    are missing
    """

    def missing(numbers: Iterable[int]) -> List[int]:
        keys = {number: number if modes is None else modes[number] for number in numbers}
        return [number for number, key in keys.items() if not _is_measured(folder, key)]

    numbers = missing(range(first, last + 1))
    if numbers:
        owner = "run" if modes is None else "sweep"
        holder = {owner: folder.name, folder.key: numbers[0]}
        holder["folder"] = os.path.abspath(folder.root)
        with machine_lock().acquire(holder, on_wait=log_waiting):
            # a job whose workflow was killed may have gone on while we waited for it
            numbers = missing(numbers)
            if numbers:
                measure(numbers)
    write_receipt(receipt, folder, first, last, modes)


def _is_measured(folder: MeasuredFolder, key: Any) -> bool:
    """Return whether an epoch or mode is measured and whole; a damaged one goes to the trash."""
    if not folder.has(key):
        return False
    try:
        record = folder.verify(key)
    except DamagedError as error:
        with files.writing("the trash", folder.root):
            (moved,) = folder.discard(key)
        log.warning("%s\n  it was moved to %s and is measured again now", error, moved)
        return False
    when = time.localtime(record.meta["t_start_unix_s"])
    log.info(
        "%s was measured on %s; %s",
        folder.title(key),
        time.strftime("%Y-%m-%d at %H:%M:%S", when),
        folder.again(key),
    )
    return True


def log_waiting(holder: str) -> None:
    """Log that the machine's lock is held."""
    log.warning("another measurement runs on this machine (%s); waiting for it to end", holder)


def run_part(
    folder: RunFolder,
    factors: Factors,
    first: int,
    last: int,
    data_root: str,
    receipt: str,
    machine: Machine,
) -> None:
    """Measure those of the epochs `first`..`last` that are not measured yet (`measure_missing`)."""

    def measure(epochs: List[int]) -> None:
        with prepared(machine, factors, epochs[0]) as conditions:
            is_outside = container.settings_of(factors) is None
            measure_these = measure_epochs if is_outside else measure_inside
            measure_these(folder, factors, epochs, data_root, machine, conditions)

    measure_missing(folder, first, last, receipt, measure)


def measure_epochs(
    folder: RunFolder,
    factors: Factors,
    epochs: List[int],
    data_root: str,
    machine: Machine,
    conditions: Document,
    inside: Optional[Document] = None,
) -> None:
    """Measure epochs in this process; the machine has been made ready.

    `inside` is the container that this process runs in (`device.container.describe`).

    Raises TrainingError, DataError, RecordWriteError.
    """
    with importing():  # not before: OpenMP counts the CPUs that are on once, when torch is loaded
        from epochwatt.board.training.session import Session
    with Session(folder, factors, data_root, machine, conditions, inside) as session:
        for epoch in epochs:
            session.measure(epoch)
