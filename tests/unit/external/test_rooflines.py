"""Rooflines beside measurements by others: nothing above a roof, energies beside constant power."""

from dataclasses import replace

import numpy as np
import pytest

from epochwatt.external.check import AGREES, DIFFERS
from epochwatt.external.inputs import Inputs
from epochwatt.external.rooflines import (
    _by_constant_power,
    _by_costs,
    energy_findings,
    held_out_errors_pct,
    roof_findings,
)
from epochwatt.roofline.points import Point


@pytest.fixture(scope="module")
def inputs(pytestconfig):
    return Inputs(pytestconfig.rootpath, None, None)  # no simulation is needed


def test_no_kernel_of_the_orins_is_above_its_roof(inputs):
    findings = list(roof_findings(inputs))
    assert [finding.observed for finding in findings] == ["0 of 68", "0 of 119"]
    assert {finding.verdict for finding in findings} == {AGREES}


def test_counted_work_explains_the_energy_of_all_kernels_but_not_of_convolutions(inputs):
    everything, convolutions = energy_findings(inputs)
    assert everything.verdict == AGREES
    assert convolutions.verdict == DIFFERS
    assert everything.observed.startswith("34.")
    assert convolutions.observed.startswith("12.")


def test_left_out_kernels_are_predicted_exactly_where_energy_is_such_a_sum():
    random = np.random.default_rng(3)
    plain = Point(
        provenance="public",
        device="made-up",
        instance="a",
        processor="gpu",
        precision="fp32",
        workload="k",
        task="infer",
        flops=1.0,
        bytes=1.0,
        time_s=1.0,
        power_scope="gpu",
    )
    points = []
    for k in range(18):
        flops, moved, time_s = random.uniform(1, 10, 3)
        power_w = (2 * flops + 3 * moved) / time_s + 4
        place = {"workload": f"k{k}", "flops": flops, "bytes": moved, "time_s": time_s}
        points.append(replace(plain, **place, power_w=power_w))
    assert held_out_errors_pct(points, _by_costs).max() < 1e-6
    assert np.median(held_out_errors_pct(points, _by_constant_power)) > 10
