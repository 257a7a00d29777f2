"""Clocks that the governors choose."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochwatt.twin.inputs.numbers import Clocks
from epochwatt.twin.model.governor import governed

SHARES = st.floats(0, 1)


def test_idle_parts_fall_to_their_lowest_clock_and_busy_ones_rise_to_the_modes(twin, modes):
    board, top, p = twin.boards["agx"], modes["agx"]["g"], twin.parameters
    assert governed(board, top, 1.0, 1.0, 1.0, p) == top
    lowest = Clocks(8, board.cpu_mhz[0], board.gpu_mhz[0], board.emc_mhz[0])
    assert governed(board, top, 0.0, 0.0, 0.0, p) == lowest


def test_gpu_and_memory_get_the_clock_at_which_their_load_is_the_target(twin, modes):
    top, p = modes["agx"]["g"], twin.parameters
    half = 0.5 * p["gpu_governor_load"], 0.5 * p["emc_governor_load"]
    found = governed(twin.boards["agx"], top, 0.0, *half, p)
    assert found[2:] == pytest.approx((top.gpu_mhz / 2, top.emc_mhz / 2))


@given(st.sampled_from(["agx", "nx", "nano", "orin"]), st.tuples(SHARES, SHARES, SHARES))
def test_no_clock_leaves_the_range_between_the_boards_lowest_and_the_modes(twin, name, loads):
    board = twin.boards[name]
    for top in twin.modes[name].values():
        found = governed(board, top, *loads, twin.parameters)
        assert found.cores == top.cores
        for clock in ("cpu_mhz", "gpu_mhz", "emc_mhz"):
            low = min(getattr(board, clock)[0], getattr(top, clock))
            assert low <= getattr(found, clock) <= getattr(top, clock)
