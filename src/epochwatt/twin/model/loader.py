"""Play the input pipeline: workers prepare mini-batches ahead, and the loop consumes them.

As torch's DataLoader works: mini-batch i is prepared by worker i mod w; at the start each worker is
given `prefetch_factor` mini-batches, and one of them another whenever the loop has taken one; the
loop takes them in order. With F_i the moment mini-batch i is prepared, T_i the moment the loop asks
for it, A_i the moment it has it, and s_i the worker's time,

    F_i     = max(F_(i-w), A_(i - prefetch w)) + s_i
    A_i     = max(T_i, F_i) + h_i
    T_(i+1) = A_i + c_i + o_i

with h the hand-over, c copy and compute, o the rest of the loop; s holds the waiting for a medium
that the workers share (`storage.response_s`). In the long run the loop takes a mini-batch every
max(h + c + o, s / w) seconds. Without workers everything is in line.

Sources: torch/utils/data/dataloader.py, `_MultiProcessingDataLoaderIter`; SIGMETRICS 2023, 5.1.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from epochwatt.twin.inputs.numbers import Array


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
    """Return the wait for each mini-batch, s, event by event: shape (mini-batches, epochs).

    Parameters
    ----------
    stages : each of shape (mini-batches, epochs)
    num_workers, prefetch_factor : the loader's; 0 workers: in line
    first_s : when the workers are ready to begin, after the loop has asked; shape (epochs,)
    """
    prepared_s = np.asarray(stages.fetch_s + stages.preprocess_s)
    if num_workers == 0:
        return prepared_s
    taken = np.asarray(stages.handover_s)
    rest = np.asarray(stages.copy_s + stages.compute_s + stages.loop_s)
    ahead = num_workers * prefetch_factor
    done, requested, waits = (np.empty_like(prepared_s) for _ in range(3))
    now = np.zeros(prepared_s.shape[1:])
    for i in range(len(prepared_s)):
        start = first_s if i < num_workers else done[i - num_workers]
        if i >= ahead:
            start = np.maximum(start, requested[i - ahead])
        done[i] = start + prepared_s[i]
        waits[i] = np.maximum(done[i] - now, 0.0) + taken[i]
        requested[i] = now + waits[i]
        now = requested[i] + rest[i]
    return waits
