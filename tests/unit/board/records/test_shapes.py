"""Shapes of JSON values: what fits, and which place a message names."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochwatt.board.records import record_shapes
from epochwatt.board.records.shapes import (
    AMOUNT,
    ANY,
    ANY_KEY,
    COUNT,
    NUMBER,
    OBJECT,
    TEXT,
    TRUTH,
    WHOLE,
    WORD,
    problem,
)

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@pytest.mark.parametrize(
    ("shape", "good", "bad"),
    [
        (NUMBER, [0, -1.5, 1e299], [True, "1", None, float("nan"), float("inf"), 10**400]),
        (AMOUNT, [0, 2.5], [-1e-9, [1]]),
        (WHOLE, [-3, 0], [1.0, False, 2**63]),
        (COUNT, [0, 7], [-1, 0.5]),
        (TEXT, ["", "a\nb"], [1, None]),
        (WORD, ["", "maxn 15W"], ["a\nb", "\0"]),
        (TRUTH, [True, False], [0, 1, "true"]),
        (OBJECT, [{}, {"a": 1}], [[], "a"]),
        ((None, NUMBER), [None, 1], ["1"]),
        ([NUMBER], [[], [1, 2]], [1, [1, "2"], {}]),
        ({"a": NUMBER, "b?": TEXT}, [{"a": 1}, {"a": 1, "b": "x", "c": []}], [{}, {"a": "1"}, []]),
        ({ANY_KEY: COUNT}, [{}, {"x": 1}], [{"x": -1}, []]),
    ],
)
def test_what_fits(shape, good, bad):
    assert [problem(value, shape) for value in good] == [None] * len(good)
    assert all(problem(value, shape) for value in bad)


def test_a_message_names_the_place_and_what_is_needed():
    shape = {"sources": {ANY_KEY: {"steps": [(None, NUMBER)]}}}
    value = {"sources": {"ina": {"steps": [1, None, "fast"]}}}
    told = problem(value, shape)
    assert told == "sources.ina.steps[2] is 'fast', needed: null or a finite number"
    assert problem({"sources": {"ina": {}}}, shape) == "sources.ina lacks steps"
    assert problem([], shape) == "the file is [], needed: an object"


@given(JSON)
def test_any_value_is_judged_by_any_shape(value):
    for shape in (record_shapes.RECORD, record_shapes.TELEMETRY, [WORD], (None, AMOUNT), ANY):
        told = problem(value, shape)
        assert told is None or (told and told.isprintable())
