"""Compute the time that a storage medium takes for a file.

    t(q) = access (1 - gain (1 - 1/q)) + bytes / bandwidth

per file, with q readers at once: `access` is what one reader waits for the medium to find the file,
and `gain` the part of it that a queue saves, by sorting (a disk's head) or by working in parallel
(flash). One medium serves its files one after another, so q readers that each read a file, work on
it for a time D and read the next wait for each other. That is a closed queueing network of q
customers; with service times as irregular as a disk's, mean value analysis solves it exactly
(Reiser and Lavenberg, JACM 27(2) 1980):

    R(n) = t (1 + Q(n-1)),  X(n) = n / (R(n) + D),  Q(n) = X(n) R(n),  Q(0) = 0
"""

import numpy as np

from epochwatt.twin.inputs.numbers import Array, Values

MEDIA = ("ssd", "hdd", "sd", "emmc")
BLOCK_BYTES = 131072.0  # of one read request: the kernel's read-ahead


def file_s(file_bytes: float, medium: str, readers: Array, p: Values) -> Array:
    """Return the time from one file served to the next, s.

    `readers`: processes that read at once, at least 1.
    """
    saved = p[f"{medium}_queue_gain"] * (1.0 - 1.0 / readers)
    access_s = 1e-3 * p[f"{medium}_access_ms"] * (1.0 - saved)
    return access_s + 1e-6 * file_bytes / p[f"{medium}_mb_per_s"]


def response_s(service_s: Array, think_s: Array, readers: Array) -> Array:
    """Return how long a reader waits for a file, the others' files before it included, s.

    Parameters
    ----------
    service_s : of one file, s
    think_s : what a reader does with a file before it wants the next, s
    readers : at least 1, a number or of shape (configurations,)
    """
    waiting: Array = 0.0  # mean number of readers at the medium
    responses = np.asarray(service_s + 0.0 * think_s + 0.0 * np.asarray(readers))
    for n in range(1, int(np.max(readers)) + 1):
        response = service_s * (1.0 + waiting)
        cycle_s = np.maximum(response + think_s, 1e-12)
        waiting = n * response / cycle_s
        responses = np.where(np.asarray(readers) == n, response, responses)
    return responses
