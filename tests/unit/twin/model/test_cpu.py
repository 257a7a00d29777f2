"""CPU work: clocks, memory, the processes beside it."""

import pytest

from epochwatt.twin.model.cpu import slowdown, work_s


def test_work_on_a_core_that_waits_for_no_memory_is_cycles_by_clock(twin):
    p = {**twin.parameters, "cpu_memory_stall": 0.0}
    assert work_s(1000.0, twin.boards["agx"], 2000.0, 1.0, p) == pytest.approx(0.5e-3)


def test_the_memory_adds_cycles_of_its_own_clock(twin):
    board, p = twin.boards["agx"], {**twin.parameters, "cpu_memory_stall": 0.5}
    found_s = work_s(1000.0, board, 2000.0, 1000.0, p) - work_s(1000.0, board, 2000.0, 1e12, p)
    assert found_s == pytest.approx(0.5e-3)


def test_processes_beside_it_slow_work_the_more_the_fewer_cores(twin):
    p = twin.parameters
    assert slowdown(0, 8, p) == 1.0
    assert slowdown(3, 4, p) > slowdown(2, 4, p) > slowdown(2, 8, p) > 1.0
