"""The benchmark of the sampler does what it says."""

import pytest

from benchmarks import sampler
from epochwatt.errors import EpochwattError
from epochwatt.telemetry.client import Sampler


def test_each_kind_of_window_gives_cpu_time_and_deviation():
    result = sampler.run(quick=True)
    # and a board's sysfs, bare wake-ups twice, what sysfs takes more, tegrastats
    *kinds, _, _, wakes, more, _ = result.rows
    assert len(kinds) == 5 * len(sampler.KINDS)
    budgets = [row.budget.high for row in result.rows if row.budget]
    assert budgets == [0.12, 0.12, 4.0] * 2 + [0.12, 0.06]
    (beside,) = result.details["windows"]["beside"]
    per_min = 60 * beside["cpu_s"] / beside["wall_s"]
    assert more.median == pytest.approx(per_min - wakes.median)
    assert all(row.median >= 0 for row in kinds)


def test_sampler_that_does_not_run_is_an_error():
    with pytest.raises(EpochwattError, match="does not run"):
        sampler.window(Sampler(), 0.0)
