"""Micro-kernels on simulated boards: what is fitted to them is what the boards are made of."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from epochwatt.roofline.fit import Kernels, fit_kernels
from epochwatt.roofline.fits import fit_tables
from epochwatt.roofline.points import read_points
from epochwatt.sweeps.mode_table import SweepRow, tables_of, write_mode_tables
from epochwatt.twin.boards import Clocks
from epochwatt.twin.ceilings import KERNELS, simulate_ceilings, write_simulated_ceilings
from epochwatt.twin.power import Load, parts

MODES = Clocks(
    np.array([8.0, 8.0, 4.0, 2.0]),
    np.array([2265.6, 1100.0, 2265.6, 1100.0]),
    np.array([1377.0, 700.0, 1377.0, 114.75]),
    np.array([2133.0, 2133.0, 1066.0, 1066.0]),
)


@pytest.fixture(scope="module")
def fits(twin):
    rows = simulate_ceilings("agx", twin.boards["agx"], MODES, twin.parameters)
    by_mode = [rows[k : k + len(KERNELS)] for k in range(0, len(rows), len(KERNELS))]
    return [fit_kernels(Kernels.of_mode(some), n_draws=0) for some in by_mode]


def test_the_fits_are_the_boards_own_constants(twin, fits):
    board, p = twin.boards["agx"], twin.parameters
    for k, fit in enumerate(fits):
        flops = 2 * board.cuda_cores * p["dense_efficiency"] * 1e6 * MODES.gpu_mhz[k]
        moved = board.emc_bytes_per_clock * p["memory_efficiency"] * 1e6 * MODES.emc_mhz[k]
        assert fit.ceilings.flops_per_s == pytest.approx(flops, rel=0.03)
        assert fit.ceilings.bytes_per_s == pytest.approx(moved, rel=0.03)


def test_constant_power_of_a_fit_is_that_of_a_gpu_that_waits(twin):
    """Of Orin, too, whose convolutions compute faster than its cores in fp32."""
    board, p, clocks = twin.boards["orin"], twin.parameters, Clocks(12.0, 2200.0, 1300.0, 3199.0)
    rows = simulate_ceilings("orin", board, Clocks(*np.array(clocks)[:, None]), p)
    fit = fit_kernels(Kernels.of_mode(rows), n_draws=0)
    waiting = parts(board, clocks, Load(1.0 + p["monitor_cores"] / board.ipc, 1.0, 0.0, 0.0), p)
    assert fit.costs.constant_w == pytest.approx(waiting.module_w, rel=0.15)


def test_named_modes_and_those_of_a_sweep_are_written_once_each(
    tmp_path, pytestconfig, twin, workloads, inferences
):
    row = SweepRow(
        **{"sweep": "made-up", "provenance": "simulated", "device": twin.boards["agx"].kind},
        **{"workload": "lenet", "task": "infer", "batch_size": 16, "cores": 8, "cpu_mhz": 1100},
        **{"gpu_mhz": 700, "emc_mhz": 2133, "time_s": 0.01, "power_w": 20, "power_scope": "module"},
    )
    sweep, ceilings, points = (str(tmp_path / f"{name}.csv") for name in ("s", "c", "p"))
    write_mode_tables(Path(sweep), tables_of([row, replace(row, repeat=1)]))
    write_simulated_ceilings(
        [sweep], [*workloads, *inferences], ceilings, points, pytestconfig.rootpath
    )
    rows = fit_tables([ceilings])
    assert {row.provenance for row in rows} == {"simulated"}
    assert sum((row.device, row.mode) == ("agx", (8, 1100, 700, 2133)) for row in rows) == 1
    assert len(rows) > 10  # the named ones
    assert all(row.flops_per_s_low is None for row in rows)
    point = read_points(points)[0]
    assert (point.device, point.task, point.time_s) == ("agx", "infer", 0.01)
    assert 0 < point.flops < twin.works["lenet"].flops(16).sum() / 2  # the forward pass alone
