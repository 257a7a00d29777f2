"""Save and load weights and optimiser of a run (board side: Python 3.6; imports torch).

A checkpoint is numpy's own archive, read without pickle: whatever somebody puts there, it is data
and never code, with every torch. Its arrays are the tensors, `tree` says how they hang together.
"""

import inspect
import json
import logging
import os
from typing import Any, List

import numpy as np
import torch

from epochwatt.board.records import files
from epochwatt.board.records.shapes import Document
from epochwatt.board.training.workloads import Trainer
from epochwatt.errors import RecordError

log = logging.getLogger(__name__)

TREE = "tree"
# torch's own form is a pickle, which runs what it holds unless torch (>= 1.13) can be told not to
_WEIGHTS_ONLY = "weights_only" in inspect.signature(torch.load).parameters


def save(path: str, trainer: Trainer) -> None:
    """Write the trainer's state as .npz; raises RecordWriteError: it cannot be written."""
    tensors: List[np.ndarray] = []
    tree = _extract_tensors(trainer.state_dict(), tensors)
    arrays: Document = {str(n): tensor for n, tensor in enumerate(tensors)}
    arrays[TREE] = np.frombuffer(json.dumps(tree).encode("utf-8"), np.uint8)
    with files.writing("the checkpoint", path, files.UNMEASURED), open(path, "wb") as handle:
        np.savez(handle, **arrays)


def _extract_tensors(value: Any, tensors: List[np.ndarray]) -> Any:
    """Append a state's tensors to `tensors`; return it for JSON, with their indices instead."""
    if isinstance(value, torch.Tensor):
        tensors.append(value.detach().cpu().numpy())
        return {"tensor": len(tensors) - 1}
    if isinstance(value, dict):  # its keys may be numbers
        return {"items": [[key, _extract_tensors(v, tensors)] for key, v in value.items()]}
    if isinstance(value, (list, tuple)):
        return [_extract_tensors(element, tensors) for element in value]
    return value


def _insert_tensors(tree: Any, archive: Any, device: torch.device) -> Any:
    """Return the state of which `_extract_tensors` made `tree`, its tensors on a device."""
    if isinstance(tree, list):
        return [_insert_tensors(element, archive, device) for element in tree]
    if not isinstance(tree, dict):
        return tree
    if "tensor" in tree:
        return torch.from_numpy(archive[str(tree["tensor"])]).to(device)
    return {key: _insert_tensors(value, archive, device) for key, value in tree["items"]}


def load(path: str, trainer: Trainer) -> bool:
    """Restore the trainer's state from a checkpoint, then drop the file from the page cache.

    Returns False, with a warning in the log, where it is missing or cannot be read.
    """
    if not os.path.exists(path):
        log.warning("no checkpoint at %s: fresh weights", path)
        return False
    try:
        if path.endswith(".npz"):
            with open(path, "rb") as handle, np.load(handle, allow_pickle=False) as archive:
                tree = json.loads(archive[TREE].tobytes().decode("utf-8"))
                state = _insert_tensors(tree, archive, trainer.device)
        elif _WEIGHTS_ONLY:  # a checkpoint from before there was .npz
            state = torch.load(path, map_location=trainer.device, weights_only=True)
        else:
            raise RecordError(
                f"torch {torch.__version__} wrote it as a pickle, which could run anything",
                do="use torch 1.13 or newer, which reads such a file safely",
            )
        trainer.load_state_dict(state)
    except Exception as error:  # noqa: BLE001  a damaged archive raises nearly anything
        log.warning("the checkpoint at %s cannot be read (%s): fresh weights", path, error)
        return False
    files.sync_file(path, drop_from_cache=True)  # the page cache belongs to the data set
    return True
