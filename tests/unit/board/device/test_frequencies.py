"""Nominal clocks find the step they stand for, or are refused with the nearest named."""

import csv
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from epochwatt.board.device.frequencies import resolve
from epochwatt.errors import ConfigError

DATA = Path(__file__).resolve().parents[3] / "data"

# SOURCE: steps of an AGX Xavier (Hazem Abdelhafez, variability; scaling_available_frequencies)


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
