"""Kernels of a mini-batch: rooflines, the launch queue, and which networks follow which."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochwatt.counting.kernel_counts import generic_kernel_counts
from epochwatt.twin.model.compute import kernels_s, last_end_s
from epochwatt.twin.model.epoch import epoch

KERNELS = st.integers(1, 30).flatmap(
    lambda n: st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=n, max_size=n)
)


def ends_s(exec_s, launch_s, front_s):
    """Return when the last kernel ends, kernel by kernel."""
    launched = ready = end = 0.0
    for execution, launch in zip(exec_s, launch_s, strict=True):
        launched += launch
        ready = max(ready, launched) + front_s
        end = max(end, ready) + execution
    return end


@given(st.lists(KERNELS, min_size=1, max_size=3), st.floats(0, 1))
def test_the_last_end_is_that_of_the_recursion(rows, front_s):
    for row in rows:
        exec_s, launch_s = np.array(row).T[:, None]
        found = last_end_s(exec_s, launch_s, np.array([front_s]))
        assert found == pytest.approx([ends_s(exec_s[0], launch_s[0], front_s)], abs=1e-12)


def test_configurations_side_by_side_are_those_one_by_one():
    random = np.random.default_rng(1)
    exec_s, launch_s = random.random((2, 5, 40))
    front_s = random.random(5)
    found = last_end_s(exec_s, launch_s, front_s)
    assert found == pytest.approx(
        [ends_s(*row) for row in zip(exec_s, launch_s, front_s, strict=True)]
    )


# -- the roofline --------------------------------------------------------------------------------


def generic(flops, moved_bytes):
    return generic_kernel_counts(
        flops, moved_bytes, launches=10, parameters=1000, sample_bytes=4000
    )


@pytest.fixture
def no_gap(twin):
    return {**twin.parameters, "kernel_gap_kcycles": 0.0}


def test_a_kernel_of_many_operations_follows_the_gpus_clock_alone(twin, no_gap):
    work, board = generic(1e12, 1e6), twin.boards["agx"]
    base, gpu, emc = kernels_s(
        work,
        16,
        board,
        np.array([500.0, 1000.0, 500.0]),
        np.array([1000.0, 1000.0, 2000.0]),
        no_gap,
    )
    assert gpu == pytest.approx(base / 2)
    assert emc == pytest.approx(base)


def test_a_kernel_of_many_bytes_follows_the_memorys_clock_alone(twin, no_gap):
    work, board = generic(1e3, 1e9), twin.boards["agx"]
    base, gpu, emc = kernels_s(
        work,
        16,
        board,
        np.array([500.0, 1000.0, 500.0]),
        np.array([1000.0, 1000.0, 2000.0]),
        no_gap,
    )
    assert gpu == pytest.approx(base)
    assert emc == pytest.approx(base / 2)


def test_no_kernel_is_faster_than_the_data_sheet(twin):
    board = twin.boards["agx"]
    for work in twin.works.values():
        exec_s = kernels_s(work, 16, board, 1377.0, 2133.0, twin.parameters)[0]
        assert (exec_s >= work.flops(16) / (2 * board.cuda_cores * 1377e6)).all()
        assert (exec_s >= work.bytes(16) / (board.emc_bytes_per_clock * 2133e6)).all()


# -- regimes that come out by themselves ---------------------------------------------------------


def share_gained(setting, p, **clocks):
    """Return by how much compute shrinks when clocks are raised by these factors, of 1."""
    own = setting.clocks._asdict()
    raised = {name: factor * own[name] for name, factor in clocks.items()}
    lower_s = epoch(setting, p).compute_s[0]
    higher = type(setting)(**{**vars(setting), "clocks": setting.clocks._replace(**raised)})
    return 1.0 - epoch(higher, p).compute_s[0] / lower_s


def test_lenet_is_launch_bound_and_insensitive_to_the_gpus_clock(setting, twin):
    p = twin.parameters
    slow, fast = (epoch(setting(model="lenet", mode=mode), p) for mode in ("m", "g"))
    assert fast.clocks.gpu_mhz > 3 * slow.clocks.gpu_mhz
    assert fast.compute_s[0] == pytest.approx(slow.compute_s[0], rel=0.02)
    assert fast.work.launch_s[0] > 0.5 * fast.work.compute_s[0]
    assert fast.gpu_busy_s[0] < 0.5 * fast.compute_s[0]
    low = setting(model="lenet", mode="l")
    assert share_gained(low, p, cpu_mhz=2) > 10 * share_gained(low, p, gpu_mhz=2)


def memory_limited_share(setting, p):
    """Return the share of kernel time in kernels that a slower memory makes longer."""
    c = setting.clocks
    emc_mhz = np.array([c.emc_mhz, 0.99 * c.emc_mhz])
    exec_s, slower_s = kernels_s(setting.work, 16, setting.board, c.gpu_mhz, emc_mhz, p)
    return exec_s[slower_s > 1.005 * exec_s].sum() / exec_s.sum()
