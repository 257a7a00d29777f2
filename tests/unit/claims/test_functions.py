"""What predicates may call."""

import statistics

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochwatt.claims import functions
from epochwatt.claims.functions import Front
from epochwatt.claims.verdict import Percentage

positive = st.floats(0.1, 1e4)
TOLERANT = functions.tolerant({"NEAR": 15.0, "NEAR_PP": 3.0, "SIMILAR": 15.0})


def test_percentages():
    assert functions.pct(200.0, 150.0) == -25.0
    assert functions.share(1.0, 4.0) == 25.0
    assert functions.spread([22.0, 33.8, 42.6]) == pytest.approx(60.95, abs=0.01)  # section 5.1.5
    assert functions.maxdev([10.0, 11.0, 9.5]) == 10.0
    kinds = (functions.pct(1, 2), functions.spread([1, 2]), functions.mean([Percentage(1), 3.0]))
    assert all(isinstance(value, Percentage) for value in kinds)
    assert not isinstance(functions.median([1.0, 3.0]), Percentage)


@pytest.mark.parametrize(
    ("name", "values", "margin"),
    [
        ("near", (110.0, 100.0), 5.0),  # the way to the edge of the tolerance
        ("near", (-84.0, -100.0), -1.0),
        ("near_pp", (9.6, 6.7), 0.1),
        ("near_pp", (3.6, 6.7), -0.1),
        ("similar", (14.0, 13.0), 15 - 100 / 13.5),
        ("similar", ([1.0, 1.0, 1.2],), -5.0),
    ],
)
def test_tolerances(name, values, margin):
    judgement = TOLERANT[name](*values)
    assert judgement.holds == (margin > 0)
    assert judgement.margin_pct == pytest.approx(margin)


@given(st.lists(st.tuples(positive, positive), min_size=3, max_size=20, unique=True))
def test_spearman_is_that_of_the_ranks(pairs):
    x, y = zip(*pairs, strict=True)
    if len(set(x)) < 2 or len(set(y)) < 2:
        with pytest.raises(statistics.StatisticsError):
            functions.spearman(x, y)
    else:
        expected = statistics.correlation(pd.Series(x).rank(), pd.Series(y).rank())
        assert functions.spearman(x, y) == pytest.approx(expected)


costs = st.dictionaries(
    st.sampled_from("abcdefgh"), st.tuples(positive, positive), min_size=1, max_size=8
)


def front_of(costs):
    return Front({m: e for m, (e, _) in costs.items()}, {m: t for m, (_, t) in costs.items()})


def test_front_walks_right_and_adds_what_is_faster():
    front = front_of({"a": (1, 9), "b": (2, 10), "c": (3, 5), "d": (4, 5), "g": (9, 1)})
    assert (str(front), len(front), "d" in front) == ("front a c g", 3, False)


@given(costs)
def test_no_mode_on_the_front_is_beaten_and_a_margin_has_the_sign_of_its_side(costs):
    front = front_of(costs)
    for mode, (energy, time) in costs.items():
        others = [cost for name, cost in costs.items() if name != mode]
        if mode in front:
            assert not any(e < energy and t < time for e, t in others)
        else:
            assert any(e <= energy and t <= time for e, t in others)
        margin = front.margin_pct(mode)
        assert margin is None if not others else (margin >= 0 if mode in front else margin <= 0)
