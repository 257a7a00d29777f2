"""The language of predicates: as Python where it is allowed, refused where it is not."""

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from epochwatt.claims import expression
from epochwatt.claims.functions import PLAIN
from epochwatt.claims.verdict import NotEvaluable
from epochwatt.errors import ConfigError

NAMES = {**PLAIN, "A": 3, "B": -2.5, "LIST": (4, 1, 7), "WORDS": ("x", "y"), "MAP": {"x": 1}}


def judged(text, names=NAMES):
    return expression.judge(expression.parse(text, "test", names), names)


def holds(text):
    """Whether a predicate holds; None where something is missing."""
    judgement, missing = judged(text)
    assert (judgement is None) == bool(missing)
    return judgement and judgement.holds


numbers = st.one_of(
    st.integers(0, 50).map(str),
    st.floats(0, 50, allow_nan=False).map(lambda x: repr(round(x, 3))),
    st.sampled_from(["A", "B"]),
)


def larger_numbers(inner):
    return st.one_of(
        st.tuples(inner, st.sampled_from("+-*/"), inner).map(lambda p: f"({p[0]} {p[1]} {p[2]})"),
        inner.map(lambda x: f"-{x}"),
        inner.map(lambda x: f"abs({x})"),
        st.lists(inner, min_size=1, max_size=3).map(lambda xs: f"max([{', '.join(xs)}])"),
        st.tuples(inner, inner).map(
            lambda p: with_new_names(*p, "sum([v * {} for v in LIST if v > {}])")
        ),
    )


def with_new_names(*parts_and_form):
    """Put parts into a loop whose variables no loop in them has: shadowing is refused."""
    *parts, form = parts_and_form
    n = "".join(parts).count(" for ")
    return re.sub(r"\b([uvw])\b", rf"\g<1>{n}", form).format(*parts)


arithmetic = st.recursive(numbers, larger_numbers, max_leaves=8)
comparisons = st.tuples(
    arithmetic,
    st.sampled_from(["<", "<=", ">", ">=", "==", "!="]),
    arithmetic,
    st.sampled_from(["", " < 7", " >= A"]),
).map(lambda p: f"{p[0]} {p[1]} {p[2]}{p[3]}")


def larger_truths(inner):
    return st.one_of(
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(lambda p: f"({' '.join(p)})"),
        inner.map(lambda x: f"(not ({x}))"),
        st.tuples(st.sampled_from(["all", "any"]), inner).map(
            lambda p: with_new_names(
                *p, "{}({} for u, w in [(1, 2), (3, 4)] for v in LIST if v + u != w)"
            )
        ),
    )


truths = st.recursive(comparisons, larger_truths, max_leaves=5)


def as_python(text):
    try:
        python = {"all": all, "any": any, "abs": abs, "max": max, "sum": sum}
        return eval(text, {**NAMES, **python, "__builtins__": {}})
    except ZeroDivisionError:
        return None


@given(arithmetic)
def test_arithmetic_agrees_with_python(text):
    value = as_python(text)  # None: it divides by zero
    text = f"{text} == {0 if value is None else value}"
    assume(len(text) <= expression.MAX_CHARACTERS)
    assert holds(text) is (None if value is None else True)


@given(truths)
def test_truth_agrees_with_python(text):
    assume(len(text) <= expression.MAX_CHARACTERS)
    # all parts are evaluated: a division by zero counts even where Python would not reach it
    if (result := holds(text)) is None:
        assert "/" in text
    else:
        assert result == as_python(text)


REFUSED = """
A.real | WORDS[0].upper() | (A).__class__ | lambda: A | min(LIST, key=lambda x: x)
__import__('os') | f'{A}' | A if A > 1 else B | A ** 9 | A // 2 | A % 2 | ~A | LIST[1:] | LIST[:]
max(*LIST) | max(**MAP) | [*LIST] | {1, 2} | {'a': 1} | {x: 1 for x in LIST} | {x for x in LIST}
[x := 1] | [x for x.real in LIST] | [x for [x] in LIST] | [x async for x in LIST] | (yield)
await A | True | None | ... | 1j | b'x' | _A | __builtins__ | [_ for _ in LIST] | A is A | import os
A = 1 | print(A) | open('x') | eval('A') | A(1) | abs | [A for A in LIST]
[[x for x in LIST] for x in LIST] | [x for x in LIST for x in LIST] | [abs for abs in LIST]
[f(1) for f in LIST] | max(LIST)(1) | UNKNOWN | A +
"""


@pytest.mark.parametrize(
    "text", [*REFUSED.strip().replace("\n", " | ").split(" | "), "", "A | 2", "A\x00"]
)
def test_everything_else_is_refused_with_its_place(text):
    with pytest.raises(ConfigError) as caught:
        expression.parse(text, "test", NAMES)
    assert caught.value.where.startswith("test, character ")
    assert caught.value.allowed


def test_error_has_the_place_and_the_known_names():
    for text, place, allowed in (
        ("A + 1 + B.real", 9, None),
        ("A + C", 5, ["A", "B", "LIST", "MAP", "WORDS"]),
        ("open('x')", 1, sorted(PLAIN)),
    ):
        with pytest.raises(ConfigError) as caught:
            expression.parse(text, "test", NAMES)
        assert caught.value.where == f"test, character {place}"
        assert allowed in (None, caught.value.allowed)


FAILING = """
MAP['__class__'] | MAP['y'] | LIST[9] | 'x' * 9 | LIST * 2 | WORDS + LIST | -LIST | 'x' < 1
A and B | not A | (A < 1) < 2 | (A < 1) + 1 | all([A, B]) | [x for x in LIST if x] | [x for x in A]
[x for x, y in LIST] | max('x', 1) | max(LIST, word=1)
"""


@pytest.mark.parametrize("text", FAILING.strip().replace("\n", " | ").split(" | "))
def test_computation_that_fails_is_an_error_with_its_place(text):
    with pytest.raises(ConfigError) as caught:
        judged(f"({text}) == 1")
    assert caught.value.where == "test"


# --- what is missing


@pytest.fixture
def names():
    def lacking(name):
        raise NotEvaluable(f"run {name}")

    return {**NAMES, "lacking": lacking}


@pytest.mark.parametrize(
    "text",
    [
        "1 > 2 and lacking('a') > 1",
        "[1, lacking('a')] == [1, 2]",
        "max([lacking('a')]) < 1",
        "1 in lacking('a')",
        "not lacking('a') < 1",
        "all(x > 1 for x in lacking('a'))",
        "all(x > 9 for x in LIST if x < lacking('a'))",
        "MAP[lacking('a')] > 1",
        "(1, -lacking('a')) == (1, 2)",
    ],
)
def test_missing_number_is_all_that_is_missing_of_whatever_rests_on_it(text, names):
    assert judged(text, names) == (None, ("run a",))


def test_division_by_zero_and_all_of_nothing_are_missing_not_errors():
    assert judged("A / (A - 3) > 1") == (None, ("A / (A - 3): division by zero",))
    assert judged("all(x > 1 for x in LIST if x > 99)") == (None, ("two things to compare",))
