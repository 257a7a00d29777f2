"""The benchmark of the interleaver: its rows from what was measured."""

import numpy as np
import pytest

from benchmarks import interleaver
from benchmarks.interleaver import ALONE, INTERLEAVED, TWO_PROCESSES, Measured


def test_ratios_are_those_of_goes_of_one_round():
    plan = interleaver.PLANS["lenet"]._replace(batch_size=2)
    steady = Measured(np.array([0.2, 0.10, 0.2, 0.12]), 30.0, 0.2, 40.0, 0.05, 32.0)
    restless = Measured(np.array([0.5, 0.10, 0.5, 0.30]), 40.0, 0.2, 40.0, 0.0, 0.0)
    goes = {INTERLEAVED: [steady], TWO_PROCESSES: [restless], ALONE: [steady]}
    rows = {row.what: row.values[0] for row in interleaver._rows("lenet", plan, goes)}
    # of the last request of each mini-batch: 10 ms against 100 ms
    assert rows["lenet: deviation, interleaved / two processes"] == pytest.approx(0.1)
    assert rows["lenet: training, interleaved / two processes"] == 0.75
    assert rows["lenet: training / formula, times before"] == 0.75
    assert rows["lenet: worst / formula"] == pytest.approx(1.0)
    assert rows["lenet: worst / (formula + longest training)"] == pytest.approx(0.8)
    assert rows["lenet, two processes: worst"] == 500.0


@pytest.mark.thorough
def test_the_quick_form_runs():
    result = interleaver.run(quick=True)
    assert {len(row.values) for row in result.rows} == {1}
