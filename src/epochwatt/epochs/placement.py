"""Place the stalls of an epoch on the monotonic clock, from its mini-batches' durations."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from epochwatt.board.records.shapes import Document
from epochwatt.epochs.windows import Array
from epochwatt.errors import RecordError

POOLED = "cuda_events_pooled"
BOUNDS_ONLY = "imported_bounds"  # of an epoch whose mini-batches nobody has timed


def stall_times(meta: Document, minibatch_s: ArrayLike) -> tuple[Array, Array] | None:
    """Return when the stall (wait, copy) of each mini-batch began and ended; None: not known.

    A record knows when some of the mini-batches began (`placement`, from the timer). Between two of
    these, time that belongs to no mini-batch is overhead, in equal parts after each of them.

    Older records know only where the last one ended (`tail_s`). With pooled timing that was the
    host's moment while the durations are the GPU's, which may be seconds behind: there is no
    telling when the GPU stalled. Nor is there where only the bounds of an epoch are known.

    `meta`: the epoch's record; `minibatch_s`: float (n, 3), s: wait, copy, compute

    Returns
    -------
    starts, ends : float (n,), s on the monotonic clock, in order, without overlap

    Raises RecordError: durations are not finite, or beginnings do not ascend.
    """
    placement = meta.get("placement")
    if placement is not None:
        marks = placement.get("starts", ()) if isinstance(placement, dict) else ()
        return laid_out(marks, minibatch_s)
    if meta.get("timing_method") in (POOLED, BOUNDS_ONLY) or "tail_s" not in meta:
        return None
    start_s, end_s = meta["t_start_mono_s"], meta["t_end_mono_s"]
    return stall_intervals(minibatch_s, start_s, end_s - start_s, meta["tail_s"])


def stall_intervals(
    minibatch_s: ArrayLike, start_s: float, e2e_s: float, tail_s: float = 0.0
) -> tuple[Array, Array]:
    """Rebuild when an epoch stalled from the durations kept of its mini-batches.

    ASSUME: overhead lies behind each mini-batch in equal parts; only its sum is kept. Worker
    shut-down, one piece behind the last mini-batch, belongs into `tail_s`: spread evenly it would
    shift all mini-batches against the samples.

    Parameters, returns and errors as of `stall_times`; an epoch of `e2e_s` began at `start_s`, and
    `tail_s` of it lies after the last mini-batch.
    """
    durations_s = _durations(minibatch_s)
    n = len(durations_s)
    busy_s = durations_s.sum(axis=1)
    overhead_s = (e2e_s - tail_s - busy_s.sum()) / max(n, 1)
    starts = start_s + np.append(0.0, np.cumsum(busy_s + overhead_s))[:n]
    return starts, starts + durations_s[:, :2].sum(axis=1)


def _durations(minibatch_s: ArrayLike) -> Array:
    """Return wait, copy and compute of each mini-batch: float64 seconds, (n, 3)."""
    durations_s = np.asarray(minibatch_s, dtype=np.float64)
    if durations_s.ndim != 2 or durations_s.shape[1] != 3 or not np.isfinite(durations_s).all():
        raise RecordError(f"mini-batch times {durations_s.shape} are not finite seconds (n, 3)")
    return durations_s


def laid_out(marks: Sequence[Sequence[float]], minibatch_s: ArrayLike) -> tuple[Array, Array]:
    """Return starts and ends of each stall (wait, copy), given when some mini-batches began.

    Two clocks may disagree by microseconds. Where mini-batches take longer than there is time
    between two marks they are shortened to fit it.

    `marks`: (m, 2): number of a mini-batch and when it was asked for, s; from 0 up to n
    """
    durations_s = _durations(minibatch_s)
    marked, began_s = _checked_marks(marks, len(durations_s))
    before_s = np.append(0.0, np.cumsum(durations_s.sum(axis=1)))
    busy_s, between_s = np.diff(before_s[marked]), np.diff(began_s)
    fit = np.minimum(1.0, between_s / np.where(busy_s > 0, busy_s, 1.0))
    overhead_s = (between_s - fit * busy_s) / np.diff(marked)
    span = np.repeat(np.arange(len(marked) - 1), np.diff(marked))  # of each mini-batch
    n = np.arange(len(durations_s))
    starts = began_s[span] + fit[span] * (before_s[n] - before_s[marked[span]])
    starts += (n - marked[span]) * overhead_s[span]
    ends = starts + fit[span] * durations_s[:, :2].sum(axis=1)
    return starts, np.minimum(ends, np.append(starts[1:], np.inf))


def _checked_marks(marks: Sequence[Sequence[float]], n: int) -> tuple[np.ndarray, Array]:
    """Return mini-batch numbers, int (m,), and moments, float (m,), of `placement`.

    Raises RecordError: they do not ascend from mini-batch 0 to the end of `n` mini-batches.
    """
    try:
        table = np.asarray(marks, dtype=np.float64)
    except (TypeError, ValueError):  # no numbers, or not two each
        table = np.zeros(0)
    if table.ndim == 2 and table.shape[1] == 2 and np.isfinite(table).all():
        numbers, began_s = table[:, 0].astype(int), table[:, 1]
        ascend = (np.diff(numbers) > 0).all() and (np.diff(began_s) >= 0).all()
        if ascend and numbers[0] == 0 and numbers[-1] == n > 0:
            return numbers, began_s
    raise RecordError(
        f"`placement` of a record does not say when its {n} mini-batches began",
        allowed="pairs of a number and a moment, both ascending, the numbers from 0",
        do="measure the epoch again (`epochwatt discard`)",
    )
