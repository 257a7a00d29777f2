"""Margins: positive where a comparison holds, and how those of parts become one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochwatt.claims.verdict import (
    Comparison,
    Judgement,
    Percentage,
    all_of,
    any_of,
    margin_pct,
    negated,
)

finite = st.floats(-1e6, 1e6)


def part(holds, margin):
    comparison = Comparison(f"{margin}", "", 1.0, "<", 2.0, holds, margin)
    return Judgement(holds, margin, (comparison,))


def texts(judgement):
    return [comparison.text for comparison in judgement.comparisons]


parts = st.lists(
    st.floats(-50, 50).filter(bool).map(lambda margin: part(margin > 0, margin)), min_size=1
)


def test_margin_is_relative_to_the_larger_side():
    assert margin_pct(3.0, 4.0) == 25.0
    assert margin_pct(4.0, 3.0) == -25.0
    assert margin_pct(0.0, 0.0) == 0.0


def test_margin_between_percentages_is_in_points():
    assert margin_pct(Percentage(20), 23.0) == 3.0
    assert margin_pct(-Percentage(20), abs(Percentage(-3))) == 23.0


def test_counts_have_no_margin():
    assert margin_pct(31, 33) is None


@given(finite, finite)
def test_margin_is_positive_exactly_where_less_is_less(less, more):
    assert (margin_pct(less, more) > 0) == (less < more)
    assert margin_pct(less, more) == -margin_pct(more, less)


@given(parts)
def test_all_holds_with_the_least_margin_and_any_with_the_largest(given_parts):
    margins = [p.margin_pct for p in given_parts]
    assert all_of(given_parts)[:2] == (all(m > 0 for m in margins), min(margins))
    assert any_of(given_parts)[:2] == (any(m > 0 for m in margins), max(margins))


@given(parts)
def test_de_morgan(given_parts):
    assert negated(all_of(given_parts))[:2] == any_of([negated(p) for p in given_parts])[:2]


def test_all_is_decided_by_what_fails_else_by_the_nearest():
    assert texts(all_of([part(True, 5), part(False, -1), part(False, -2)])) == ["-1", "-2"]
    assert texts(all_of([part(True, 5), part(True, 1)])) == ["1"]
    assert texts(all_of([part(True, None), part(True, 9)])) == ["9"]
    assert texts(all_of([part(True, None)])) == ["None"]


def test_any_is_decided_by_what_holds_best_else_by_all():
    assert texts(any_of([part(True, 1), part(True, 5), part(False, -1)])) == ["5"]
    assert texts(any_of([part(False, -1), part(False, -2)])) == ["-1", "-2"]


@pytest.mark.parametrize(
    ("side", "told"),
    [
        (12.34567, "12.35"),
        (Percentage(6.7), "6.7 %"),
        ((1.0, 2.0), "(1, 2)"),
        ("efij", "efij"),
        (3, "3"),
    ],
)
def test_sides_are_told_shortly(side, told):
    assert str(Comparison("t", "", side, "<", 1, True, None)) == f"t: {told} < 1"
