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
    """Measure a job's missing epochs or modes under the machine's lock, and write its receipt.

    Damaged ones are moved to the trash and measured again. Raises any EpochwattError of the layers
    below; what was finished before it stays.

    `first`, `last`: numbers of epochs, or of modes in `modes`, both included; `measure`: takes the
    numbers that are missing and keeps each as soon as it is finished
    """

    def missing(numbers: Iterable[int]) -> List[int]:
        keys = {number: number if modes is None else modes[number] for number in numbers}
        return [number for number, key in keys.items() if not _keep_or_trash(folder, key)]

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


def _keep_or_trash(folder: MeasuredFolder, key: Any) -> bool:
    """Verify an epoch or mode and trash a damaged one; return whether a whole one is there."""
    if not folder.has(key):
        return False
    try:
        record = folder.verify(key)
    except DamagedError as error:
        with files.writing("the trash", folder.root):
            (moved,) = folder.discard(key)
        log.warning("%s\n  it was moved to %s and is measured again now", error, moved)
        return False
    measured = time.localtime(record.meta["t_start_unix_s"])
    date = time.strftime("%Y-%m-%d at %H:%M:%S", measured)
    log.info("%s was measured on %s; %s", folder.title(key), date, folder.again(key))
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
            has_container = container.settings_of(factors) is not None
            measure_all = measure_inside if has_container else measure_epochs
            measure_all(folder, factors, epochs, data_root, machine, conditions)

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
    """Measure epochs in this process, on a machine that is prepared, and keep their records.

    `conditions`: of the board, as `prepared` yields them; `inside`: the container of this process
    (`device.container.describe`)

    Raises TrainingError: the network cannot be trained here; DataError: the data set is missing or
    damaged; RecordWriteError: a record cannot be written.
    """
    with importing():  # not before: OpenMP counts the CPUs that are on once, when torch is loaded
        from epochwatt.board.training.session import Session
    with Session(folder, factors, data_root, machine, conditions, inside) as session:
        for epoch in epochs:
            session.measure(epoch)
