"""Energy of load and rest that an H100's sensor saw: tests/data/measured/h100_nvml."""

import json

import numpy as np
import pandas as pd
import pytest

from benchmarks.gpu_check import Epoch, Sampled, renewals, stall_rows
from benchmarks.results import REPOSITORY
from epochwatt.board.training.loop import Bounds
from epochwatt.epochs.telemetry import scope_energy

FOLDER = REPOSITORY / "tests/data/measured/h100_nvml"
TABLE = {k: v.to_numpy() for k, v in pd.read_csv(FOLDER / "samples.csv").items()}
RECORDED = json.loads((FOLDER / "samples.json").read_text("utf-8"))
ABOUT, LOADS = (
    RECORDED["about"],
    RECORDED["loads"],
)  # planned s, s; began, worked until, rested until


def power_w(begin_s, end_s):
    """Return the mean power by the card's counter, of its renewals alone."""
    t_s, energy_j = renewals(TABLE, begin_s, end_s)
    return (energy_j[-1] - energy_j[0]) / (t_s[-1] - t_s[0])


def test_idle_and_busy_power_of_the_counter_are_those_of_the_sensor():
    _, _, began_s, worked_s, rested_s = LOADS[-1]  # two seconds each
    for begin_s, end_s, expected_w in ((began_s, worked_s, 656.0), (worked_s, rested_s, 135.0)):
        within = (TABLE["t_mono_s"] > begin_s + 0.3) & (TABLE["t_mono_s"] <= end_s)
        assert np.median(TABLE["power_gpu_w"][within]) == pytest.approx(expected_w, rel=0.02)
        assert power_w(begin_s + 0.3, end_s) == pytest.approx(expected_w, rel=0.05)


def test_energy_of_seconds_agrees_with_work_and_rest_within_its_bound():
    for _, _, began_s, worked_s, rested_s in (LOADS[2], LOADS[-1]):
        window = began_s, rested_s
        energy = scope_energy(window, TABLE, ABOUT, (np.empty(0), np.empty(0)))
        expected_j = 653.0 * (worked_s - began_s) + 136.0 * (rested_s - worked_s)
        assert "power_part_time" in energy.flags
        assert abs(energy.energy_j / expected_j - 1.0) < energy.error_pct / 100.0 < 0.2


def test_reference_of_the_gpu_check_for_stalls_is_an_idle_card():
    """The counter's difference over a stall, a renewal late at both ends, is a third too much."""
    works, rests = np.array(LOADS)[1:4], np.array(LOADS)[:3]
    waits_s, computes_s = rests[:, 4] - rests[:, 3], works[:, 3] - works[:, 2]
    minibatch_s = np.column_stack([waits_s, np.zeros(3), computes_s])
    starts = [[i, float(t_s)] for i, t_s in enumerate([*rests[:, 3], works[-1, 3]])]
    placement = {"clock": "host", "error_s": 0.0, "starts": starts}
    bounds = Bounds(rests[0, 3], works[-1, 3], 0.0, float(works[-1, 3] - rests[0, 3]))
    epoch = Epoch(bounds, minibatch_s, placement, waits_s, rests[:, 4])
    found = stall_rows("recorded", Sampled(TABLE, ABOUT), epoch).details
    assert found["counted_j"] == pytest.approx(133.0 * waits_s.sum(), rel=0.03)
    # three stalls are too few for such a sensor, and the tool says so
    assert found["stall_energy_j"] is None
    assert "stall_power_unresolved" in found["flags"]
