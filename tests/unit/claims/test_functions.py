"""What predicates may call."""

import statistics

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochwatt.claims import functions
from epochwatt.claims.functions import Front
from epochwatt.claims.verdict import NotEvaluable, Percentage

positive = st.floats(0.1, 1e4)
near = functions.tolerant({"NEAR": 15.0, "NEAR_PP": 3.0, "SIMILAR": 15.0})


def test_percentages():
    assert functions.pct(200.0, 150.0) == -25.0
    assert functions.share(1.0, 4.0) == 25.0
    assert functions.spread([22.0, 33.8, 42.6]) == pytest.approx(60.95, abs=0.01)  # section 5.1.5
    assert functions.maxdev([10.0, 11.0, 9.5]) == 10.0
    assert all(isinstance(v, Percentage) for v in (functions.pct(1, 2), functions.spread([1, 2])))


def test_spread_of_equal_values_is_none_even_of_zeros():
    assert functions.spread([0.0, 0.0]) == 0.0
    with pytest.raises(ZeroDivisionError):
        functions.spread([0.0, 0.0, 1.0])


def test_mean_of_percentages_is_one():
    assert isinstance(functions.mean([Percentage(1), Percentage(3)]), Percentage)
    assert not isinstance(functions.median([1.0, 3.0]), Percentage)


@pytest.mark.parametrize(
    ("value", "holds"), [(100, True), (114.9, True), (115.2, False), (84, False)]
)
def test_near(value, holds):
    assert near["near"](value, 100).holds is holds
    assert near["near"](-value, -100).holds is holds


@pytest.mark.parametrize(("value", "holds"), [(6.7, True), (9.6, True), (9.8, False), (3.6, False)])
def test_near_pp(value, holds):
    assert near["near_pp"](value, 6.7).holds is holds


def test_similar_takes_values_or_a_list():
    assert near["similar"](14.0, 13.0).holds
    assert near["similar"]([317.0, 311.0, 309.0]).holds
    assert not near["similar"]([1.0, 1.0, 1.2]).holds


def test_margin_of_near_is_the_way_to_the_edge_of_the_tolerance():
    assert near["near"](110.0, 100.0).margin_pct == pytest.approx(5.0)
    assert near["near_pp"](10.0, 5.0).margin_pct == pytest.approx(-2.0)


def test_all_and_any_over_nothing_say_nothing():
    for function in (functions.every, functions.some):
        with pytest.raises(NotEvaluable):
            function([])


@given(st.lists(st.tuples(positive, positive), min_size=3, max_size=20, unique=True))
def test_spearman_is_that_of_the_ranks(pairs):
    x, y = zip(*pairs, strict=True)
    if len(set(x)) < 2 or len(set(y)) < 2:
        with pytest.raises(statistics.StatisticsError):
            functions.spearman(x, y)
    else:
        expected = statistics.correlation(pd.Series(x).rank(), pd.Series(y).rank())
        assert functions.spearman(x, y) == pytest.approx(expected)


# --- the Pareto front

costs = st.dictionaries(
    st.sampled_from("abcdefgh"), st.tuples(positive, positive), min_size=1, max_size=8
)


def front_of(costs):
    return Front({m: e for m, (e, _) in costs.items()}, {m: t for m, (_, t) in costs.items()})


def test_front_walks_right_and_adds_what_is_faster():
    front = front_of({"a": (1, 9), "b": (2, 10), "c": (3, 5), "d": (4, 5), "g": (9, 1)})
    assert front.modes == ["a", "c", "g"]
    assert ("c" in front, "d" in front, len(front)) == (True, False, 3)
    assert str(front) == "front a c g"


@given(costs)
def test_no_mode_on_the_front_is_beaten_in_both(costs):
    front = front_of(costs)
    for mode in front.modes:
        energy, time = costs[mode]
        assert not any(e < energy and t < time for e, t in costs.values())
    for mode in costs.keys() - set(front.modes):
        energy, time = costs[mode]
        assert any(e <= energy and t <= time for m, (e, t) in costs.items() if m != mode)


@given(costs)
def test_margin_of_a_mode_has_the_sign_of_its_side(costs):
    front = front_of(costs)
    for mode in costs if len(costs) > 1 else ():
        margin = front.margin_pct(mode)
        assert margin >= 0 if mode in front else margin <= 0


def test_margin_of_a_mode_is_its_least_lead():
    front = front_of({"a": (1.0, 10.0), "g": (10.0, 9.9)})
    assert front.margin_pct("g") == pytest.approx(1.0)  # 1 % faster than a
    assert front_of({"a": (1.0, 1.0)}).margin_pct("a") is None


def test_all_missing_modes_are_named():
    def number(mode):
        if mode in "bc":
            raise NotEvaluable(f"run {mode}")
        return 1.0

    with pytest.raises(NotEvaluable) as error:
        functions.collected("abc", number)
    assert error.value.needed == ("run b", "run c")
