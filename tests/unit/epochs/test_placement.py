"""When an epoch stalled, from its durations and from when some mini-batches began."""

import numpy as np
import pytest

from epochwatt.epochs.placement import laid_out, stall_intervals, stall_times
from epochwatt.errors import RecordError

TIMES = [[2.0, 1.0, 3.0], [0.0, 1.0, 3.0], [1.0, 1.0, 4.0], [0.0, 0.5, 2.5]]  # 6, 4, 6, 3 s


def intervals(marks, times=TIMES):
    return [list(column) for column in laid_out(marks, times)]


def test_overhead_lies_behind_each_minibatch_between_two_marks():
    starts, ends = intervals([[0, 100.0], [2, 111.0], [4, 120.0]])
    assert starts == [100.0, 106.5, 111.0, 117.0]  # half a second behind each of the first two
    assert ends == [103.0, 107.5, 113.0, 117.5]


def test_minibatches_that_are_longer_than_their_time_are_shortened():
    starts, ends = intervals([[0, 100.0], [2, 105.0], [4, 114.0]])
    assert starts == pytest.approx([100.0, 103.0, 105.0, 111.0])
    assert ends == pytest.approx([101.5, 103.5, 107.0, 111.5])


def test_stalls_never_overlap_whatever_two_clocks_say():
    random = np.random.default_rng(3)
    times = random.exponential(0.01, (500, 3)).astype(np.float32)
    times[:, 2] *= random.random(500) < 0.5  # a stall may follow a stall at once
    began = np.cumsum(np.append(7.0, times.sum(axis=1))) + random.normal(0, 2e-4, 501)
    marks = [[n, t] for n, t in enumerate(np.maximum.accumulate(began))][::10]
    starts, ends = laid_out(marks, times)
    assert (starts <= ends).all()
    assert (ends[:-1] <= starts[1:]).all()


@pytest.mark.parametrize(
    "marks",
    [
        *([], [[0, 1.0]], [[0, 1.0], [3, 2.0]], [[1, 1.0], [4, 2.0]], [[0, 2.0], [4, 1.0]]),
        *([[0, 1.0], [4, float("nan")]], [[0, 1.0, 2.0], [4, 2.0, 3.0]], [[0, 1.0], [4]]),
        *([[0, "soon"], [4, 2.0]], {"0": 1.0}),
    ],
)
def test_marks_that_cannot_be_are_refused(marks):
    with pytest.raises(RecordError, match="when its 4 mini-batches began"):
        laid_out(marks, TIMES)


def meta(**changes):
    return dict(
        {"timing_method": "host_clock", "t_start_mono_s": 10.0, "t_end_mono_s": 32.0}, **changes
    )


@pytest.mark.parametrize(
    "told",
    [{"timing_method": "cuda_events_pooled", "tail_s": 0.1}, {"timing_method": "host_clock"}],
)
def test_old_records_of_pooled_timing_or_without_a_tail_cannot_say_when_it_stalled(told):
    assert stall_times(meta(**told), TIMES) is None


@pytest.mark.parametrize("method", ["host_clock", "cuda_events_synchronised", "simulated"])
def test_other_old_records_say_where_the_last_minibatch_ended(method):
    starts, _ = stall_times(meta(timing_method=method, tail_s=1.0), TIMES)
    assert list(starts) == [10.0, 16.5, 21.0, 27.5]


@pytest.mark.parametrize(("tail_s", "second_s"), [(0.0, 102.0), (0.5, 101.75)])
def test_overhead_is_spread_evenly_and_a_known_tail_lies_behind_the_last(tail_s, second_s):
    minibatch_s = np.array([[0.5, 0.25, 1.0], [0.125, 0.125, 0.5]], dtype=np.float32)
    starts, ends = stall_intervals(minibatch_s, 100.0, 3.0, tail_s)
    assert starts.tolist() == [100.0, second_s]
    assert (ends - starts).tolist() == [0.75, 0.25]
