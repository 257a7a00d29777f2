"""Names beside marks: clear of each other, of marks, and not to be taken for another's."""

import math

from hypothesis import given
from hypothesis import strategies as st

from epochwatt.figures.common.names import EDGE_PT, FAR_PT, MARK_PT, NEAR_PT, NEARER, free_place

SIZE = (5.0, 8.0)


def marks(low, high, **sizes):
    return st.lists(st.tuples(st.floats(low, high), st.floats(low, high)), **sizes)


def gap(a, size, b, other):
    """Return how far two boxes are apart, at most in one direction; below 0: they overlap."""
    return max(abs(a[k] - b[k]) - (size[k] + other[k]) / 2 for k in (0, 1))


@given(marks(80, 120, max_size=3))
def test_a_name_is_clear_of_few_other_marks(others):
    own = (100.0, 100.0)
    distance, (x, y) = free_place(own, SIZE, [(*m, MARK_PT, MARK_PT) for m in (own, *others)])
    assert distance <= NEAR_PT[-1]
    at = (own[0] + x, own[1] + y)
    assert all(gap(at, SIZE, other, (MARK_PT, MARK_PT)) >= -0.01 for other in (own, *others))
    if not others:
        assert (distance, y) == (NEAR_PT[0], 0.0)


@given(marks(20, 80, min_size=14, max_size=14))
def test_names_of_a_field_do_not_collide(points):
    taken, placed, room = [(*p, MARK_PT, MARK_PT) for p in points], [], (-60.0, -60.0, 160.0, 220.0)
    for point in points:
        _, (x, y) = free_place(point, SIZE, taken, room)
        placed.append((point[0] + x, point[1] + y))
        taken.append((*placed[-1], *SIZE))
    pairs = [(a, b) for n, a in enumerate(placed) for b in placed[:n]]
    assert all(gap(a, SIZE, b, SIZE) >= -0.01 for a, b in pairs)
    assert all(room[k] + EDGE_PT <= at[k] <= room[k + 2] - EDGE_PT for at in placed for k in (0, 1))


@given(marks(70, 130, min_size=1, max_size=3))
def test_a_name_without_a_line_is_clearly_nearer_to_its_own_mark(others):
    own = (100.0, 100.0)
    apart = [other for other in others if math.dist(own, other) > MARK_PT]
    taken = [(*other, MARK_PT, MARK_PT) for other in apart]
    distance, (x, y) = free_place(own, SIZE, taken, other_marks=apart)
    if distance < FAR_PT:
        at = (100.0 + x, 100.0 + y)
        beside = [[max(abs(at[k] - o[k]) - SIZE[k] / 2, 0.0) for k in (0, 1)] for o in apart]
        assert all(math.hypot(*gaps) >= NEARER * distance - 0.02 for gaps in beside)
