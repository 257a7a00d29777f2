"""Weights and optimiser between the processes of a run (board side: Python 3.6; imports torch)."""

import logging
import os
from typing import Optional

import torch

from epochwatt.records import files
from epochwatt.training.workloads import Trainer

log = logging.getLogger(__name__)


def save(path: str, trainer: Trainer) -> None:
    """Write the trainer's state; raises RecordWriteError when the disk does not take it."""
    state = {
        "network": trainer.network.state_dict(),
        "optimiser": trainer.optimiser.state_dict(),
    }
    with files.writing("the checkpoint", path, files.UNMEASURED):
        try:
            with open(path, "wb") as handle:
                torch.save(state, handle)
        except RuntimeError as error:  # torch's writer stumbles over its own error's clean-up
            raise _os_error(error) from error


def _os_error(error: BaseException) -> OSError:
    """Return the OSError that an exception came after, or one with its first line."""
    cause: Optional[BaseException] = error
    while cause is not None:
        if isinstance(cause, OSError):
            return cause
        cause = cause.__context__
    return OSError(None, str(error).splitlines()[0])


def load(path: str, trainer: Trainer) -> bool:
    """Restore the trainer's state; False, said in the log, when there is none that can be read.

    A lost checkpoint costs the carried weights, never the run: the epoch is flagged.
    """
    if not os.path.exists(path):
        log.warning("no checkpoint at %s: fresh weights", path)
        return False
    try:
        state = torch.load(path, map_location=trainer.device)
        trainer.network.load_state_dict(state["network"])
        trainer.optimiser.load_state_dict(state["optimiser"])
    except Exception as error:  # noqa: BLE001  a damaged pickle raises nearly anything
        log.warning("the checkpoint at %s cannot be read (%s): fresh weights", path, error)
        return False
    files.sync_file(path, drop_from_cache=True)  # the page cache belongs to the data set
    return True
