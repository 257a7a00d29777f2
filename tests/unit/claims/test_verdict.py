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


def part(holds, margin):
    comparison = Comparison(f"{margin}", "", 1.0, "<", 2.0, holds, margin)
    return Judgement(holds, margin, (comparison,))


parts = st.lists(
    st.floats(-50, 50).filter(bool).map(lambda margin: part(margin > 0, margin)), min_size=1
)


@pytest.mark.parametrize(
    ("less", "more", "margin"),
    [
        (3.0, 4.0, 25.0),  # relative to the larger side
        (0.0, 0.0, 0.0),
        (Percentage(20), 23.0, 3.0),  # in points
        (-Percentage(20), abs(Percentage(-3)), 23.0),
        (31, 33, None),  # counts
    ],
)
def test_margin_between_two_sides(less, more, margin):
    assert margin_pct(less, more) == margin


@given(parts)
def test_all_holds_with_the_least_margin_and_any_with_the_largest(given_parts):
    margins = [p.margin_pct for p in given_parts]
    assert all_of(given_parts)[:2] == (all(m > 0 for m in margins), min(margins))
    assert any_of(given_parts)[:2] == (any(m > 0 for m in margins), max(margins))
    assert negated(all_of(given_parts))[:2] == any_of([negated(p) for p in given_parts])[:2]


@pytest.mark.parametrize(
    ("combined", "given_parts", "deciding"),
    [
        (all_of, [(True, 5), (False, -1), (False, -2)], ["-1", "-2"]),  # what fails
        (all_of, [(True, 5), (True, 1)], ["1"]),  # else the nearest
        (all_of, [(True, None), (True, 9)], ["9"]),
        (all_of, [(True, None)], ["None"]),
        (any_of, [(True, 1), (True, 5), (False, -1)], ["5"]),  # what holds best
        (any_of, [(False, -1), (False, -2)], ["-1", "-2"]),  # else all
    ],
)
def test_which_comparisons_decide(combined, given_parts, deciding):
    judgement = combined([part(*told) for told in given_parts])
    assert [comparison.text for comparison in judgement.comparisons] == deciding
