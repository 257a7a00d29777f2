"""The benchmark of predictions: what it counts, and what it says of measured modes."""

import numpy as np
import pytest

from benchmarks import measured
from benchmarks.results import REPOSITORY
from epochwatt.prediction.data.modes import Mode
from epochwatt.twin.twin import load_twin


@pytest.fixture(scope="module")
def folder():
    return measured.FOLDER


@pytest.fixture(scope="module")
def twin():
    return load_twin(REPOSITORY / "config/twin", [])


def test_measured_modes_have_the_numbers_of_their_tables(folder):
    """Mode 0 of the generic kernel: 8 cores, MAXN, 0.12687 s, 32,986.6 mW."""
    yolo = measured.yolo(folder)["YOLOv3, generic kernel"]
    assert yolo.distinct()[0] == Mode(8, 2265.6, 1377.0, 2133.0)
    assert (yolo.time_s[0], yolo.power_w[0]) == (0.12687, 32986.6 / 1e3)
    assert len(yolo.distinct()) == 7
    assert yolo.processes == 1
    assert {of.processes for of in measured.krai(folder).values()} == {8}
    assert {len(of.distinct()) for of in measured.krai(folder).values()} == {5}


def test_simulated_power_of_a_busy_gpu_has_the_shape_of_the_measured_one(folder, twin):
    """The calibration has not seen the table: no level is asked of it, only the order."""
    prior = measured.busy_power(twin.boards["agx"], twin.parameters)
    for of in measured.without_gated_mode(measured.yolo(folder)).values():
        expected = prior(of.modes)
        assert np.corrcoef(np.log(expected), np.log(of.power_w))[0, 1] > 0.9
