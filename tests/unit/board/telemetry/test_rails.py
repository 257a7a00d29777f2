"""What the module's power is made of on each board, and when there is none."""

import math
from typing import NamedTuple

import pytest

from epochwatt.board.device.kinds import KINDS
from epochwatt.board.telemetry.rails import ModulePower, is_connected

ORIN = {"VDD_GPU_SOC": 3.15, "VDD_CPU_CV": 14.312, "VIN_SYS_5V0": 4.968, "VDDQ_VDD2_1V8AO": 1.091}
XAVIER = {"GPU": 18.24, "CPU": 3.68, "SOC": 4.6, "CV": 0.0, "VDDRQ": 2.913, "SYS5V": 4.592}


class Total(NamedTuple):
    """The module's power out of one reading, W; the rule; what is wrong with it."""

    power_w: float
    rule: str
    complaint: str | None


def module_power(kind, watts):
    """Return the total of one reading of a board's rails, W by label."""
    labels = [label for label in watts if is_connected(label)]
    power = ModulePower(kind, labels)
    row = power.row([watts[label] for label in labels])
    power_w = row[-1] if power.total else math.nan
    return Total(power_w, power.rule, power.no_total or power.contradiction)


@pytest.mark.parametrize(
    ("kind", "watts", "power_w"),
    [
        ("nano", {"POM_5V_IN": 2.746, "POM_5V_GPU": 0.159, "POM_5V_CPU": 0.796}, 2.746),
        ("xavier_nx", {"VDD_IN": 14.703, "VDD_CPU_GPU_CV": 10.874, "VDD_SOC": 1.405}, 14.703),
        ("agx_xavier", XAVIER, 34.025),
        ("agx_orin", ORIN, 3.15 + 14.312 + 4.968),
        ("agx_orin", {k: v for k, v in ORIN.items() if k != "VDDQ_VDD2_1V8AO"}, 22.43),
        ("orin_nx", {"VDD_IN": 5.299, "VDD_CPU_GPU_CV": 0.773, "VDD_SOC": 1.424}, 5.299),
        ("orin_nano", {"VDD_IN": 6.417, "VDD_CPU_GPU_CV": 1.74, "VDD_SOC": 1.505}, 6.417),
    ],
)
def test_total_of_each_board(kind, watts, power_w):
    total = module_power(kind, watts)
    assert total.power_w == pytest.approx(power_w)
    assert total.complaint is None
    assert total.rule == KINDS[kind].total_rule


def test_part_that_cannot_be_read_makes_the_total_nan():
    power = ModulePower("agx_orin", list(ORIN))
    row = power.row([1.0, math.nan, 2.0, 0.5])
    assert math.isnan(row[-1])
    assert row[0] == 1.0
    assert power.n_contradictions == 0
    # the rail that is not added may fail
    assert power.row([1.0, 1.0, 2.0, math.nan])[-1] == 4.0


def test_rail_far_below_zero_leaves_no_power_and_noise_about_zero_is_added():
    power = ModulePower("agx_xavier", list(XAVIER))
    watts = list(XAVIER.values())
    noisy = [-0.155 if label == "CV" else watt for label, watt in XAVIER.items()]
    assert power.row(noisy)[-1] == pytest.approx(34.025 - 0.155)
    assert power.row(noisy)[:-1] == noisy
    broken = [-2.0 if label == "SOC" else watt for label, watt in XAVIER.items()]
    assert power.row(broken)[-1] == -2.0  # the sampler counts it and keeps no total
    assert power.row(watts)[-1] == pytest.approx(34.025)


def test_rail_above_the_one_that_feeds_it_is_counted():
    power = ModulePower("nano", ["POM_5V_GPU", "POM_5V_IN", "POM_5V_CPU"])
    power.row([8.949, 3.227, 3.148])
    power.row([8.791, 3.075, 3.109])
    power.row([0.1, 3.0, 1.0])
    about = power.settings()
    assert about["contradictions"] == 2
    assert "POM_5V_IN shows 3.227 W, and POM_5V_GPU" in about["contradiction"]
    power.start()
    assert power.settings()["contradictions"] == 0
    assert power.settings()["contradiction"] is None
    assert "POM_5V_GPU" in module_power("nano", {"POM_5V_IN": 1.0, "POM_5V_GPU": 2.0}).complaint
