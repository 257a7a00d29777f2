"""The benchmark of the interleaver: its rows from what was measured."""

import time

import numpy as np
import pytest

from benchmarks import interleaver
from benchmarks.interleaver import INTERLEAVED, TWO_PROCESSES, TWO_STREAMS, WITHIN, Measured
from epochwatt.schedule.interleaved import Expected

PROMISED = Expected(0.2, 0.1, 40.0, True)
LATE = (0.19, 0.22, 0.29, 0.31)


def rows_of(rows):
    return {row.what: row.values[0] for row in rows}


def test_ratios_are_those_of_goes_of_one_round():
    plan = interleaver.PLANS["lenet"]._replace(batch_size=2)
    itself = PROMISED._replace(throughput_per_s=32.0)
    steady = Measured(np.array([0.2, 0.10, 0.2, 0.12]), 30.0, PROMISED, 0.05, itself, 0.0)
    restless = Measured(np.array([0.5, 0.10, 0.5, 0.30]), 40.0, PROMISED, 0.0, itself, 0.0)
    goes = {INTERLEAVED: [steady], TWO_PROCESSES: [restless], TWO_STREAMS: [steady]}
    rows = rows_of(interleaver._rows("lenet", plan, goes))
    # of the last request of each mini-batch: 10 ms against 100 ms
    assert rows["lenet: deviation, interleaved / two processes"] == pytest.approx(0.1)
    assert rows["lenet: deviation, interleaved / two streams"] == 1.0
    assert rows["lenet: training, interleaved / two processes"] == 0.75
    assert rows["lenet: training / formula, times before"] == 0.75
    assert rows["lenet: training / formula, times of the go"] == 30 / 32
    assert rows["lenet, two processes: worst"] == 500.0


def test_long_goes_are_counted_by_the_bound_that_each_was_promised():
    goes = [
        Measured(np.array([0.1, worst]), 10.0, PROMISED, 0.05, PROMISED, 0.02) for worst in LATE
    ]
    rows = rows_of(interleaver.long_rows(goes))
    assert rows["long goes within the formula, of 4"] == 25
    assert rows["long goes within formula + longest training before, of 4"] == 50
    assert rows[f"{WITHIN}, of 4"] == 75
    assert rows[f"{WITHIN} + longest time taken away, of 4"] == 100


def test_time_without_the_cpu_is_noted():
    job = interleaver.Watched(lambda: time.sleep(0.05))
    job()
    assert job.taken_s >= 0.045
    busy = interleaver.Watched(lambda: None)
    busy()
    assert busy.taken_s < job.taken_s


def test_a_way_that_needs_a_gpu_is_named_where_there_is_none(on_the_cpu, capsys):
    ways, left_out = interleaver.competing()
    assert ways == [TWO_PROCESSES]
    assert left_out == {TWO_STREAMS: "left out: torch sees no GPU here"}
    assert "two streams: left out" in capsys.readouterr().err


def test_what_competes_trains_only_while_it_is_let(on_the_cpu):
    """A thread without a stream of its own stands for one with: here is no GPU."""
    other = interleaver.Competitor("two threads")
    with other.training() as count:
        deadline_s = time.monotonic() + 60
        while not count.value:
            assert time.monotonic() < deadline_s
            time.sleep(0.01)
    other.close()
    assert not other._runs.is_alive()


@pytest.mark.thorough
def test_the_quick_form_runs():
    result = interleaver.run(quick=True)
    assert {len(row.values) for row in result.rows} == {1}
