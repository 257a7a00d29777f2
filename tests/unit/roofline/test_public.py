"""Others' micro-kernels: no point with known clocks is above the roof fitted to its board."""

from pathlib import Path

import numpy as np
import pytest

from epochwatt.roofline.ceilings import read_ceilings
from epochwatt.roofline.fits import fit_tables
from epochwatt.roofline.points import read_points
from epochwatt.roofline.public import (
    NETWORK_DEVICE,
    read_ceilings_of,
    read_kernel_points,
    read_network_points,
)

CONFIG = Path(__file__).parents[3] / "config/rooflines"
ORIGINALS = Path("/work/shared/data/sweeps/branes_orin_subgraph_rooflines")
# AGX Orin 64 GB at its modes' limits (branes-ai/graphs, scripts/nvpmodel_agx.log): GPU, memory, MHz
LIMITS = {
    "MAXN": (1300.5, 3199.0),
    "50W": (828.75, 3199.0),
    "30W": (624.75, 3199.0),
    "15W": (420.75, 2133.0),
}
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


def test_no_network_is_above_the_peak_at_the_limits_of_its_mode(points):
    networks = [p for p in points if p.device == NETWORK_DEVICE and p.precision == "fp32"]
    assert len(networks) == 140
    for point in networks:
        gpu_mhz, emc_mhz = LIMITS[point.instance]
        compute_s = point.flops / (2 * CORES * 1e6 * gpu_mhz)
        memory_s = point.bytes / (BYTES_PER_CYCLE * 1e6 * emc_mhz)
        assert max(compute_s, memory_s) <= point.time_s


def test_bandwidth_follows_the_gpu_where_its_clock_is_low(fits):
    rates = [fits["orin.nano", mode].bytes_per_s for mode in ("7W", "15W", "25W", "MAXN_SUPER")]
    assert rates[0] < 0.7 * rates[1] < 0.7 * 0.7 * rates[2]
    assert rates[3] == pytest.approx(rates[2], rel=0.01)  # 918 and 1020 MHz: now it is the memory


@pytest.mark.skipif(not ORIGINALS.is_dir(), reason=f"the originals are not here: {ORIGINALS}")
def test_the_tables_are_those_of_the_originals(points):
    blas, networks = ORIGINALS / "stream_blas_calibrations.csv", ORIGINALS / "subgraphs.csv.gz"
    again, stored = read_ceilings_of(blas), read_ceilings(CONFIG / "orin-ceilings.csv.gz")
    assert [(r.device, r.instance, r.kernel, r.size) for r in again] == [
        (r.device, r.instance, r.kernel, r.size) for r in stored
    ]
    assert np.allclose([r.time_s for r in again], [r.time_s for r in stored], rtol=1e-8)
    made = [*read_kernel_points(blas), *read_network_points(networks)]
    assert [(p.device, p.workload, p.precision) for p in made] == [
        (p.device, p.workload, p.precision) for p in points
    ]
    assert np.allclose([p.time_s for p in made], [p.time_s for p in points], rtol=1e-8)
