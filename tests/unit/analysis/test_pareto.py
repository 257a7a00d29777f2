"""The Pareto front: the paper's rule, which is that none on it is beaten in both costs."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from epochwatt.analysis.pareto import pareto_front


def test_a_place_is_added_when_it_is_below_the_last_one_added():
    energy = np.array([9.0, 1.0, 2.0, 3.0, 4.0])
    time = np.array([1.0, 9.0, 10.0, 5.0, 5.0])
    assert pareto_front(energy, time).tolist() == [1, 3, 0]


@given(
    st.integers(1, 30).flatmap(
        lambda n: arrays(float, (2, n), elements=st.integers(0, 5).map(float))
    )
)
def test_front_equals_comparing_each_with_each(points):
    first, second = points
    found = pareto_front(first, second)
    beaten = [
        ((first <= x) & (second <= y) & ((first < x) | (second < y))).any()
        for x, y in zip(first, second, strict=True)
    ]
    expected = {(first[n], second[n]) for n in range(len(first)) if not beaten[n]}
    assert {(first[n], second[n]) for n in found} == expected
    assert len(found) == len(expected)
    assert (np.diff(first[found]) > 0).all()
