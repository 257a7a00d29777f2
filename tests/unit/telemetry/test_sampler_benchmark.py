"""The benchmark of the sampler does what it says."""

import pytest

from benchmarks import sampler
from epochwatt.errors import EpochwattError
from epochwatt.telemetry.client import Sampler


def test_each_kind_of_window_gives_cpu_time_and_deviation():
    result = sampler.run(quick=True)
    # and a board's sysfs, its tegrastats, and the floor beside them
    assert len(result.rows) == 5 * len(sampler.KINDS) + 3
    assert [row.budget.high for row in result.rows if row.budget] == [0.12, 0.12, 4.0] * 2 + [0.12]
    assert all(row.median >= 0 for row in result.rows)


def test_sampler_that_does_not_run_is_an_error():
    with pytest.raises(EpochwattError, match="does not run"):
        sampler.window(Sampler(), 0.0)
