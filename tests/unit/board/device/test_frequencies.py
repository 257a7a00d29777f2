"""Nominal clocks find the step they stand for, or are refused with the nearest named."""

import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochwatt.board.device.frequencies import resolve
from epochwatt.errors import ConfigError

DATA = Path(__file__).resolve().parents[3] / "data"

# SOURCE: steps of an AGX Xavier (Hazem Abdelhafez, variability; scaling_available_frequencies)
CPU = [1036.8, 1113.6, 1190.4, 1267.2, 2035.2, 2112.0, 2188.8, 2265.6]
GPU = [420.75, 522.75, 675.75, 905.25, 1032.75, 1377.0]
EMC = [204.0, 408.0, 665.6, 800.0, 1065.6, 1331.2, 1600.0, 1866.0, 2133.0]


@pytest.mark.parametrize(
    ("nominal", "steps", "step"),
    [
        (1200, CPU, 1190.4),
        (2100, CPU, 2112.0),
        (2265, CPU, 2265.6),
        (900, GPU, 905.25),
        (670, GPU, 675.75),
        (1333, EMC, 1331.2),
        (1066, EMC, 1065.6),
        (665.6, EMC, 665.6),
    ],
)
def test_the_papers_round_numbers_stand_for_steps(nominal, steps, step):
    assert resolve("clock", nominal, steps) == step


def test_what_lies_between_two_steps_is_refused_with_both_named():
    with pytest.raises(ConfigError) as raised:
        resolve("cpu_mhz", 1230, CPU)
    assert "1230 MHz" in raised.value.problem
    assert raised.value.allowed == "within 2 % of a step; the nearest are 1190.4 and 1267.2 MHz"


@given(st.floats(1, 5000), st.lists(st.floats(50, 4000), min_size=1))
def test_an_answer_is_always_a_step_within_two_per_cent_and_none_is_nearer(nominal, steps):
    try:
        step = resolve("clock", nominal, steps)
    except ConfigError:
        nearest = min(steps, key=lambda step: abs(step - nominal))
        assert abs(nominal - nearest) > 0.02 * nearest
    else:
        assert step in steps
        assert abs(nominal - step) <= 0.02 * step
        assert all(abs(nominal - step) <= abs(nominal - other) for other in steps)


def test_all_power_modes_of_the_paper_are_steps_of_their_boards():
    kinds = {"agx": "agx_xavier", "nx": "xavier_nx", "nano": "nano", "orin": "agx_orin"}
    steps = {}
    with (DATA / "frequencies.csv").open(encoding="utf-8") as handle:
        for row in csv.DictReader(handle):
            steps.setdefault((row["device"], row["resource"]), []).append(
                int(row["freq_khz"]) / 1000
            )
    with (DATA / "published/power_modes.csv").open(encoding="utf-8") as handle:
        modes = list(csv.DictReader(handle))
    for mode in modes:
        for resource in ("cpu", "gpu", "emc"):
            table = steps[kinds[mode["device"]], resource]
            assert resolve(mode["id"], float(mode[f"{resource}_mhz"]), table) in table
    assert len(modes) >= 17
