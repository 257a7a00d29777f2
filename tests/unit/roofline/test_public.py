"""Others' micro-kernels: no point with known clocks is above the roof fitted to its board."""

from pathlib import Path

import pytest

from epochwatt.roofline.fits import fit_tables
from epochwatt.roofline.points import read_points

CONFIG = Path(__file__).parents[3] / "config/rooflines"
CORES, BYTES_PER_CYCLE = 2048, 64


@pytest.fixture(scope="module")
def fits():
    return {
        (row.device, row.instance): row
        for row in fit_tables([CONFIG / "orin-ceilings.csv.gz"], n_draws=5)
    }


@pytest.fixture(scope="module")
def points():
    return read_points(CONFIG / "orin-points.csv.gz")


def test_no_kernel_is_above_the_roof_that_it_was_not_fitted_to(fits, points):
    known = [point for point in points if (point.device, point.instance) in fits]
    shares = [
        float(fits[p.device, p.instance].ceilings.roof_s(p.flops, p.bytes)) / p.time_s
        for p in known
    ]
    assert len(shares) == 187
    assert max(shares) <= 1
    assert max(shares) > 0.9  # and the roof is no idle one


def test_bandwidth_follows_the_gpu_where_its_clock_is_low(fits):
    rates = [fits["orin.nano", mode].bytes_per_s for mode in ("7W", "15W", "25W", "MAXN_SUPER")]
    assert rates[0] < 0.7 * rates[1] < 0.7 * 0.7 * rates[2]
    assert rates[3] == pytest.approx(rates[2], rel=0.01)  # 918 and 1020 MHz: now it is the memory
