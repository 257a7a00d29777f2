"""What glibc keeps of freed memory, what a training takes, and the largest mini-batch."""

import pytest

from epochwatt.board.training import resident
from epochwatt.board.training.resident import MIB, MMAP_THRESHOLD, Heap, largest, resident_bytes


def peak_of(events, threshold=None):
    heap = Heap(threshold)
    for key, n_bytes in events:
        if n_bytes > 0:
            heap.allocate(key, n_bytes)
        else:
            heap.free(key)
    return heap.peak


def test_large_blocks_are_mappings_that_go_back():
    events = [(1, 40 * MIB), (1, -40 * MIB), (2, 50 * MIB), (2, -50 * MIB)]
    assert peak_of(events) == pytest.approx(50 * MIB, rel=1e-3)


def test_a_freed_mapping_raises_the_threshold_and_smaller_blocks_stay():
    """After that, a block that is freed below another one stays resident."""
    events = [(1, 30 * MIB), (1, -30 * MIB)]
    events += [(2, 20 * MIB), (3, 1 * MIB), (2, -20 * MIB), (4, 25 * MIB)]
    assert peak_of(events) == pytest.approx(46 * MIB, rel=0.01)
    assert peak_of(events, MMAP_THRESHOLD) == pytest.approx(30 * MIB, rel=0.01)


def test_free_neighbours_join_and_are_used_again():
    events = [(1, 30 * MIB), (1, -30 * MIB)]
    events += [(2, 10 * MIB), (3, 10 * MIB), (4, 1 * MIB), (2, -10 * MIB), (3, -10 * MIB)]
    assert peak_of([*events, (5, 19 * MIB)]) == pytest.approx(30 * MIB, rel=0.01)


def test_a_heap_of_many_steps_keeps_more_than_one_unless_the_threshold_is_fixed():
    step = [(n, 12 * MIB) for n in range(8)] + [(n, -12 * MIB) for n in range(8)]
    allocated = 8 * 12 * MIB
    assert 1.0 < resident_bytes(step, step) / allocated < 2.0
    assert resident_bytes(step, step, MMAP_THRESHOLD) == pytest.approx(allocated, rel=0.01)


def test_small_objects_live_as_long_as_the_tensors_of_a_step():
    """Counted in allocations; what outlives the step counts all of them."""
    step = [(1, 8), (2, 8), (1, -8), (3, 8), (4, 8), (2, -8), (9, -8), (4, -8)]
    assert resident._lifetimes(step) == [1, 2, 0, 4]
    assert resident._lifetimes([]) == [0]


def test_the_largest_mini_batch_is_found_to_three_per_cent():
    for slope, fixed, room in ((3, 1000, 4000), (7, 10, 100), (1, 0, 50_000), (5, 2000, 100)):
        exact = max(0, (room - fixed) // slope)
        found = largest(lambda n: fixed + slope * n, room)  # noqa: B023
        assert found <= exact
        assert found >= exact - max(1, exact // 30)
    assert largest(lambda n: n, 10**9, most=64) == 64
