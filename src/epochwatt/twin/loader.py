"""Compute the input pipeline: files from a medium or the page cache, workers, waits for them.

**A medium** serves q readers at once in

    t(q) = access (1 - gain (1 - 1/q)) + bytes / bandwidth

per file: `access` is what one reader waits for the medium to find the file, and `gain` the part of
it that a queue saves, by sorting (a disk's head) or by working in parallel (flash). It serves its
files one after another, so q readers that each read a file, work on it for a time D and read the
next wait for each other. That is a closed queueing network of q customers; with service times as
irregular as a disk's, mean value analysis solves it exactly (Reiser and Lavenberg, JACM 27(2),
1980):

    R(n) = t (1 + Q(n-1)),  X(n) = n / (R(n) + D),  Q(n) = X(n) R(n),  Q(0) = 0

**The page cache** has the memory that is left over: RAM less the system, the CUDA context with its
libraries, the network and the loader's workers. Files come in random order without replacement, and
the least recently used one goes first. Between a file's place x in the last epoch and its place y
in this one (0 to 1) a share (1 - x) + x y of all files was read: those after it, and of those
before it the ones that have come again. The file is still there where that is below the cached
share c:

    hits = integral over y from 0 to c of 1 - (1 - c) / (1 - y) = c + (1 - c) ln(1 - c)

**The loader** works as torch's DataLoader: mini-batch i is prepared by worker i mod w; at the start
each worker is given `prefetch_factor` mini-batches, and one of them another whenever the loop has
taken one; the loop takes them in order. With F_i the moment mini-batch i is prepared, T_i the
moment the loop asks for it, A_i the moment it has it, and s_i the worker's time,

    F_i     = max(F_(i-w), A_(i - prefetch w)) + s_i
    A_i     = max(T_i, F_i) + h_i
    T_(i+1) = A_i + c_i + o_i

with h the hand-over, c copy and compute, o the rest of the loop; s holds the waiting for a medium
that the workers share (`response_s`). In the long run the loop takes a mini-batch every
max(h + c + o, s / w) seconds. Without workers everything is in line.

Sources: torch/utils/data/dataloader.py, `_MultiProcessingDataLoaderIter`; SIGMETRICS 2023, 5.1.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from epochwatt.twin.boards import Array, Board, Values

MEDIA = ("ssd", "hdd", "sd", "emmc")
BLOCK_BYTES = 131072.0  # of one read request: the kernel's read-ahead


def file_s(file_bytes: float, medium: str, readers: Array, p: Values) -> Array:
    """Return the medium's service time of a file, from one served to the next, s.

    `readers`: processes that read at once, at least 1.
    """
    saved = p[f"{medium}_queue_gain"] * (1.0 - 1.0 / readers)
    access_s = 1e-3 * p[f"{medium}_access_ms"] * (1.0 - saved)
    return access_s + 1e-6 * file_bytes / p[f"{medium}_mb_per_s"]


def response_s(service_s: Array, think_s: Array, readers: Array) -> Array:
    """Return how long a reader waits for a file, the others' files before it included, s.

    The mean value analysis of the module's head: R(n) from Q(n-1), up to each configuration's own
    number of readers.

    `service_s`: time of the medium for one file
    `think_s`: time that a reader works on a file before it wants the next
    `readers`: at least 1; a number or of shape (configurations,), like the others
    """
    service_s, think_s, readers = np.broadcast_arrays(service_s, think_s, readers)
    queue: Array = 0.0  # mean number of readers at the medium, Q(n-1)
    own_response_s = service_s  # R(readers)
    for n in range(1, int(np.max(readers)) + 1):
        time_s = service_s * (1.0 + queue)
        cycle_s = np.maximum(time_s + think_s, 1e-12)
        queue = n * time_s / cycle_s
        own_response_s = np.where(readers == n, time_s, own_response_s)
    return own_response_s


def capacity_mib(board: Board, num_workers: Array, model_mib: float, p: Values) -> Array:
    """Return the memory that the page cache may use, MiB, not below 0.

    `model_mib`: weights, gradients, momentum and activations of the network.
    """
    used = p["system_mib"] + p["cuda_mib"] + p["worker_mib"] * np.asarray(num_workers) + model_mib
    return np.maximum(0.0, board.ram_mib - used)


def hit_share(cached: Array) -> Array:
    """Return the share of an epoch's reads that find their file in the page cache.

    `cached`: share of the data set that the cache has room for, 0 to 1.
    """
    missing = 1.0 - np.asarray(cached, dtype=float)
    return cached + missing * np.log(np.maximum(missing, np.finfo(float).tiny))


class Stages(NamedTuple):
    """Times of one mini-batch, s."""

    fetch_s: Array  # one worker gets the files, while the others want theirs
    preprocess_s: Array  # one worker decodes and transforms
    handover_s: Array  # the loop takes the mini-batch from its queue; 0 without workers
    copy_s: Array  # the loop copies it to the GPU
    compute_s: Array  # as in `compute`
    loop_s: Array  # the rest of the loop


def steady_wait_s(stages: Stages, num_workers: Array) -> Array:
    """Return how long the loop waits for each mini-batch in the long run, hand-over included, s."""
    prepared_s = stages.fetch_s + stages.preprocess_s
    own_s = stages.handover_s + stages.copy_s + stages.compute_s + stages.loop_s
    workers = np.maximum(num_workers, 1)
    late_s = np.maximum(prepared_s / workers - own_s, 0.0)
    return np.where(np.asarray(num_workers) == 0, prepared_s, late_s + stages.handover_s)


def waits_s(
    stages: Stages, num_workers: int, prefetch_factor: int, first_s: Array
) -> NDArray[np.floating]:
    """Play the loader event by event; return each mini-batch's wait, s, (mini-batches, epochs).

    `stages`: each of shape (mini-batches, epochs)
    `num_workers`, `prefetch_factor`: the loader's; 0 workers: in line
    `first_s`: when the workers are ready to begin, after the loop has asked; shape (epochs,)
    """
    prepared_s = np.asarray(stages.fetch_s + stages.preprocess_s)
    if num_workers == 0:
        return prepared_s
    handover_s = np.asarray(stages.handover_s)
    rest_s = np.asarray(stages.copy_s + stages.compute_s + stages.loop_s)
    ahead = num_workers * prefetch_factor
    # F, A and A - T of the module's head
    done, obtained, waits = (np.empty_like(prepared_s) for _ in range(3))
    requested = np.zeros(prepared_s.shape[1:])  # T
    for i in range(len(prepared_s)):
        start = first_s if i < num_workers else done[i - num_workers]
        if i >= ahead:
            start = np.maximum(start, obtained[i - ahead])
        done[i] = start + prepared_s[i]
        waits[i] = np.maximum(done[i] - requested, 0.0) + handover_s[i]
        obtained[i] = requested + waits[i]
        requested = obtained[i] + rest_s[i]
    return waits
