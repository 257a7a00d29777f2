"""Measure a part of a run, epoch after epoch: one job (board side: Python 3.6).

torch is imported only when there is something to measure.
"""

import logging
import os
import time
from typing import List, Optional

from epochwatt.board.device import container
from epochwatt.board.device.locks import machine_lock
from epochwatt.board.device.machine import Machine
from epochwatt.board.records import files
from epochwatt.board.records.run_folder import RunFolder, write_receipt
from epochwatt.board.records.shapes import Document
from epochwatt.board.training.exit_status import importing
from epochwatt.board.training.inside import measure_inside
from epochwatt.board.training.preparation import prepared
from epochwatt.columns import Factors
from epochwatt.errors import DamagedError

log = logging.getLogger(__name__)


def run_part(
    folder: RunFolder,
    factors: Factors,
    first: int,
    last: int,
    data_root: str,
    receipt: str,
    machine: Machine,
) -> None:
    """Measure those of the epochs `first`..`last` that are not measured yet; write the receipt.

    Waits for the machine's lock, naming its holder. Each epoch is kept as soon as it is finished.
    Raises any EpochwattError of the layers below; what was finished before it stays.
    """
    missing = [epoch for epoch in range(first, last + 1) if not _is_measured(folder, epoch)]
    if missing:
        holder = {"run": folder.run, "epoch": missing[0], "folder": os.path.abspath(folder.root)}
        with machine_lock().acquire(holder, on_wait=log_waiting):
            # a job whose workflow was killed may have gone on while we waited for it
            missing = [epoch for epoch in missing if not _is_measured(folder, epoch)]
            _measure(folder, factors, missing, data_root, machine)
    write_receipt(receipt, folder, first, last)


def _measure(
    folder: RunFolder,
    factors: Factors,
    epochs: List[int],
    data_root: str,
    machine: Machine,
) -> None:
    if not epochs:
        return
    with prepared(machine, factors, epochs[0]) as conditions:
        measure = measure_epochs if container.settings_of(factors) is None else measure_inside
        measure(folder, factors, epochs, data_root, machine, conditions)


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

    Parameters
    ----------
    inside : the container that this process runs in (`device.container.describe`)

    Raises TrainingError, DataError, RecordWriteError.
    """
    with importing():  # not before: OpenMP counts the CPUs that are on once, when torch is loaded
        from epochwatt.board.training.session import Session
    session = Session(folder, factors, data_root, machine, conditions, inside)
    with session:
        for epoch in epochs:
            session.measure(epoch)


def _is_measured(folder: RunFolder, epoch: int) -> bool:
    """Return whether an epoch is measured and whole; a damaged one goes to the trash."""
    if not folder.has(epoch):
        return False
    try:
        record = folder.verify(epoch)
    except DamagedError as error:
        with files.writing("the trash", folder.root):
            (moved,) = folder.discard(epoch)
        log.warning("%s\n  it was moved to %s and is measured again now", error, moved)
        return False
    when = time.localtime(record.meta["t_start_unix_s"])
    log.info(
        "epoch %d was measured on %s; to repeat it: epochwatt discard %s %d",
        epoch,
        time.strftime("%Y-%m-%d at %H:%M:%S", when),
        folder.run,
        epoch,
    )
    return True


def log_waiting(holder: str) -> None:
    """Log that the machine's lock is held."""
    log.warning("another measurement runs on this machine (%s); waiting for it to end", holder)
