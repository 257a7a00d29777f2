"""The benchmark of the interleaver: its rows from what was measured."""

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


@pytest.mark.thorough
def test_the_quick_form_runs():
    result = interleaver.run(quick=True)
    assert {len(row.values) for row in result.rows} == {1}
