"""Compute the share of a data set that the page cache holds, and the reads that it saves.

The cache has the memory that is left over: RAM less the system, the CUDA context with its
libraries, the network and the loader's workers. Files come in random order without replacement, and
the least recently used one goes first. Between a file's place x in the last epoch and its place y
in this one (0 to 1) a share (1 - x) + x y of all files was read: those after it, and of those
before it the ones that have come again. The file is still there where that is below the cached
share c:

    hits = integral over y from 0 to c of 1 - (1 - c) / (1 - y) = c + (1 - c) ln(1 - c)
"""

import numpy as np

from epochwatt.twin.inputs.boards import Board
from epochwatt.twin.inputs.numbers import Array, Values


def capacity_mib(board: Board, num_workers: Array, model_mib: float, p: Values) -> Array:
    """Return the memory that the page cache may use, MiB, not below 0.

    `model_mib`: weights, gradients, momentum and activations of the network.
    """
    used = p["system_mib"] + p["cuda_mib"] + p["worker_mib"] * np.asarray(num_workers) + model_mib
    return np.maximum(0.0, board.ram_mib - used)


def hit_share(cached: Array) -> Array:
    """Return the share of reads that find their file in the cache, of a whole epoch.

    `cached`: share of the data set that the cache has room for, 0 to 1.
    """
    missing = 1.0 - np.asarray(cached, dtype=float)
    return cached + missing * np.log(np.maximum(missing, np.finfo(float).tiny))
