"""Power of a module and at the plug, idle states, and clocks that a board has."""

import csv
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochwatt.errors import EpochwattError
from epochwatt.twin.inputs.numbers import Clocks
from epochwatt.twin.model.power import STATES, Load, check_clocks, idle_w, parts, socket_w

BOARDS = ("agx", "nx", "nano", "orin")
NOTHING = Load(0.0, 0.0, 0.0)
# rails of an AGX Xavier under another network, in its stock power modes; no fit has seen them
MEASURED = Path(__file__).resolve().parents[3] / (
    "data/measured/waggle_agx_xavier_power_modes/power_modes_summary.csv"
)


def top(board):
    return Clocks(board.cores, board.cpu_mhz[1], board.gpu_mhz[1], board.emc_mhz[1])


@pytest.mark.parametrize("name", BOARDS)
def test_each_load_adds_to_its_own_part_only(twin, name):
    board, p = twin.boards[name], twin.parameters
    idle = parts(board, top(board), NOTHING, p)
    for part, load in (
        ("cpu_w", NOTHING._replace(busy_cores=2.0)),
        ("gpu_w", NOTHING._replace(gpu_util=0.5)),
        ("memory_w", NOTHING._replace(bytes_per_s=1e9)),
    ):
        found = parts(board, top(board), load, p)
        assert getattr(found, part) > getattr(idle, part)
        for other in set(found._fields) - {part}:
            assert getattr(found, other) == getattr(idle, other)


def test_a_module_with_all_cores_busy_takes_the_power_of_its_equation(twin):
    board, p = twin.boards["agx"], twin.parameters
    found = parts(board, top(board), Load(8.0, 1.0, 1e9), p)
    assert found.cpu_w == pytest.approx(8 * p["agx_core_w_per_ghz_v2"] * 2.2656 * 1.06**2)
    assert found.gpu_w == pytest.approx(512e-3 * p["gpu_mw_per_ghz_v2"] * 1.377 * 1.0**2)
    moved_w = 1e-3 * p["memory_pj_per_byte"]
    assert found.memory_w == pytest.approx(p["emc_w_per_ghz"] * 2.133 + moved_w)
    assert found.module_w == pytest.approx(sum(found))


@given(
    name=st.sampled_from(BOARDS),
    clock=st.sampled_from(["cpu_mhz", "gpu_mhz", "emc_mhz"]),
    shares=st.tuples(st.floats(0, 1), st.floats(0, 1)),
    load=st.tuples(st.floats(0, 4), st.floats(0, 1), st.floats(0, 1e10)),
)
def test_a_higher_clock_under_the_same_load_never_takes_less(twin, name, clock, shares, load):
    board = twin.boards[name]
    low, high = getattr(board, clock)
    told = Load(load[0], load[1], load[2])
    slow_w, fast_w = (
        parts(board, top(board)._replace(**{clock: low + s * (high - low)}), told, twin.parameters)
        for s in sorted(shares)
    )
    assert slow_w.module_w <= fast_w.module_w + 1e-9


def test_the_plug_sees_the_carrier_and_the_adapters_loss(twin):
    p = twin.parameters
    assert socket_w(twin.boards["nx"], 10.0, p) == pytest.approx(
        (10.0 + p["nx_carrier_w"]) / p["adapter_efficiency"]
    )


# -- idle ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BOARDS)
def test_each_idle_state_takes_less_than_the_one_before(twin, name):
    board, p = twin.boards[name], twin.parameters
    found = [float(idle_w(board, state, top(board), "socket", p)) for state in STATES]
    assert found == sorted(found, reverse=True)
    assert len(set(found)) == len(found)
    for state, at_the_plug_w in zip(STATES[:3], found, strict=False):
        assert idle_w(board, state, top(board), "module", p) < at_the_plug_w


@pytest.mark.parametrize(
    ("state", "scope"), [("off", "module"), ("wol", "module"), ("wol", "wall")]
)
def test_an_idle_state_that_there_is_not(twin, state, scope):
    board = twin.boards["agx"]
    with pytest.raises(EpochwattError, match="no idle power of state"):
        idle_w(board, state, top(board), scope, twin.parameters)


# -- clocks that a board has ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"cores": 9}, r"cannot have cores 9\n  allowed: 1 to 8"),
        ({"cores": 0}, r"cores 0\n  allowed: 1 to 8"),
        ({"cpu_mhz": 3000.0}, r"cpu_mhz 3000\n  allowed: 115.2 to 2265.6"),
        ({"gpu_mhz": 10.0}, r"gpu_mhz 10\n  allowed: 114.75 to 1377"),
        ({"gpu_mhz": np.array([10.0, 1377.0])}, r"gpu_mhz 10\n"),
        ({"emc_mhz": np.array([1600.0, 9000.0])}, r"emc_mhz 9000\n  allowed: 204 to 2133"),
        ({"emc_mhz": float("nan")}, "emc_mhz nan"),
    ],
)
def test_clocks_beyond_the_boards_are_refused_with_its_limits(twin, change, said):
    board = twin.boards["agx"]
    with pytest.raises(EpochwattError, match=said):
        check_clocks(board, top(board)._replace(**change))
    if "cpu_mhz" in change:
        with pytest.raises(EpochwattError, match="Jetson AGX Xavier"):
            idle_w(board, STATES[0], top(board)._replace(**change), "module", twin.parameters)


def against_rails(board, p, row):
    """Return ln(simulated / measured) of GPU, CPU, what is left, and the module."""
    told = {k: float(v) for k, v in row.items() if k not in ("stack", "kernel")}
    cores, emc_mhz = told["cpus_online"], told["emc_mhz"]
    clocks = Clocks(cores, told["cpu_mhz_mean"], told["gpu_mhz"], emc_mhz)
    moved = 1e4 * told["emc_util"] * emc_mhz * board.emc_bytes_per_clock  # per cent, MHz
    load = Load(1e-2 * told["cpu_util_mean"] * cores, 1e-2 * told["gpu_util"], moved)
    found = parts(board, clocks, load, p)
    simulated_w = [found.gpu_w, found.cpu_w, found.soc_w + found.memory_w, found.module_w]
    rest_mw = sum(told[f"{rail}_mw"] for rail in ("SOC", "CV", "VDDRQ", "SYS5V"))
    measured_mw = [told["GPU_mw"], told["CPU_mw"], rest_mw, told["sum_rails_mw"]]
    return np.log(1e3 * np.array(simulated_w, dtype=float) / measured_mw)


def test_rails_that_no_fit_has_seen(twin):
    with MEASURED.open(encoding="utf-8") as handle:
        rows = list(csv.DictReader(handle))
    errors = [against_rails(twin.boards["agx"], twin.parameters, row) for row in rows]
    gpu, cpu, rest, module = 100 * np.median(np.abs(errors), axis=0)
    assert len(rows) == 14
    assert module < 10  # docs/explanation/simulation-limits.md says what the parts are off by
    assert cpu < 15
    assert (gpu, rest) == pytest.approx((35, 21), abs=3)
