"""What glibc keeps of freed memory, what a training takes, and the largest mini-batch."""

import pytest

from epochwatt.board.training.resident import MIB, MMAP_THRESHOLD, Heap, largest


def resident(events, threshold=None):
    return Heap(threshold).replay(events)


def test_large_blocks_are_mappings_that_go_back():
    events = [(1, 40 * MIB), (1, -40 * MIB), (2, 50 * MIB), (2, -50 * MIB)]
    assert resident(events) == pytest.approx(50 * MIB, rel=1e-3)


def test_a_freed_mapping_raises_the_threshold_and_smaller_blocks_stay():
    """After that, a block that is freed below another one stays resident."""
    events = [(1, 30 * MIB), (1, -30 * MIB)]
    events += [(2, 20 * MIB), (3, 1 * MIB), (2, -20 * MIB), (4, 25 * MIB)]
    assert resident(events) == pytest.approx(46 * MIB, rel=0.01)
    assert resident(events, MMAP_THRESHOLD) == pytest.approx(30 * MIB, rel=0.01)


def test_free_neighbours_join_and_are_used_again():
    events = [(1, 30 * MIB), (1, -30 * MIB)]
    events += [(2, 10 * MIB), (3, 10 * MIB), (4, 1 * MIB), (2, -10 * MIB), (3, -10 * MIB)]
    assert resident([*events, (5, 19 * MIB)]) == pytest.approx(30 * MIB, rel=0.01)


def test_the_largest_mini_batch_is_found_to_three_per_cent():
    for slope, fixed, room in ((3, 1000, 4000), (7, 10, 100), (1, 0, 50_000), (5, 2000, 100)):
        exact = max(0, (room - fixed) // slope)
        found = largest(lambda n: fixed + slope * n, room)  # noqa: B023
        assert found <= exact
        assert found >= exact - max(1, exact // 30)
    assert largest(lambda n: n, 10**9, most=64) == 64
