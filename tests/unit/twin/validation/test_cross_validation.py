"""Validation: classes, errors, what is held out, and the words about it."""

import math
from dataclasses import replace

import pytest

from epochwatt.published.folds import fold_of
from epochwatt.published.numbers import Published
from epochwatt.twin.validation.cross_validation import (
    CLASSES,
    class_of,
    error_pct,
    summary_lines,
    validate,
)
from epochwatt.twin.validation.cross_validation_fits import FOLD, load_refits
from epochwatt.twin.validation.paper_setups import load_setups
from epochwatt.twin.validation.validate_twin import accuracy_lines, validation

ISSUE = [
    *("published_id", "class", "device", "metric", "published_value", "fitted_prediction"),
    *("fitted_error_pct", "held_out_prediction", "held_out_error_pct", "seen_by_fit"),
]


@pytest.fixture(scope="module")
def rows(evidence):
    return {row.published_id: row for row in validation(evidence)}


@pytest.fixture(scope="module")
def fact(evidence):
    return evidence.published.facts().__getitem__


@pytest.fixture(scope="module")
def refits(evidence):
    kinds, p = (FOLD, *evidence.other_folds), evidence.twin.parameters
    return {**load_refits(evidence.folder, p, kinds), **load_setups(evidence.folder, p)}


@pytest.fixture(scope="module")
def groups(evidence):
    return {kind: fold_of(own) for kind, own in evidence.other_folds.items()}


@pytest.mark.parametrize(
    ("name", "class_"),
    [
        ("S5.1.1-01", "time"),
        ("S5.3.1-01", "time"),  # ms
        ("S5.6-05", "energy_power"),
        ("RS5.1.3-02", "change"),
        ("RS5.6.4-01", "change"),
        ("RS5.6.6-02", "small_change"),
        ("S5.5.2-16", "share"),
        ("RS5.1.4-01", "share"),
        ("S5.1.6-05", "bound"),
        ("RS5.6.2-02", "bound"),
        ("S5.4.1-01", "count"),
    ],
)
def test_class_of_a_number(evidence, fact, name, class_):
    assert class_of(fact(name), evidence.rows[name].judged_as) == class_


def test_errors(fact):
    assert error_pct(fact("S5.1.3-01"), "ratio", (22 * math.exp(0.1),)) == pytest.approx(10.0)
    assert error_pct(fact("RS5.6.4-01"), "ratio", (-22.3,)) == pytest.approx(0.0)
    assert error_pct(fact("S5.5.2-16"), "points", (14.5,)) == pytest.approx(3.5)
    assert error_pct(fact("S5.1.6-05"), "bound", (14.5,)) is None


def test_each_judged_number_has_a_row_or_is_named_as_lacking(evidence, rows):
    judged = {name for name, row in evidence.rows.items() if row.is_simulable}
    lacking = judged - rows.keys()
    text = "\n".join(accuracy_lines(evidence, list(rows.values())))
    assert all(name in text for name in lacking)
    assert len(lacking) < 0.05 * len(judged)
    assert {row.class_.removeprefix("hipcw_") for row in rows.values()} <= set(CLASSES)


def test_hipcw_is_seen_by_its_own_parameter_alone(evidence, rows):
    """Without it the shared parameters say the same, whatever HiPCW prints."""
    other = [row for row in rows.values() if row.published_id.startswith(("H", "RH"))]
    assert other
    assert all(row.class_.startswith("hipcw_") and row.seen_by_fit == "yes" for row in other)
    assert not any(fact.paper == "hipcw2021" for fact in evidence.facts)
    nx = [row for row in other if row.device == "nx" and row.takeaway == "H-III.A"]
    assert any(row.fitted_prediction != row.held_out_prediction for row in nx)
    agx = [row for row in other if row.device == "agx"]  # everything is cached there anyway
    assert all(row.fitted_prediction == row.held_out_prediction for row in agx)


def test_fold_changes_its_own_rows_only(evidence, refits, groups, rows):
    slower = {n: 1.5 * v for n, v in refits["5.1.3"].items()}
    found = validate(
        evidence.published, evidence.rows, evidence.twin,
        {**refits, "5.1.3": slower}, groups,
    )  # fmt: skip
    changed = {
        row.published_id
        for row in found
        if row.held_out_prediction != rows[row.published_id].held_out_prediction
    }
    assert changed == {row.published_id for row in found if row.takeaway == "5.1.3"}


def test_published_value_reaches_no_prediction(evidence, refits, groups, rows):
    """But through fitted parameters, which stay as committed here."""
    published = evidence.published
    other = Published(
        {n: replace(m, value=2 * m.value) for n, m in published.measurements.items()},
        {
            n: replace(r, value=0.9 * r.value, value_hi=r.value_hi and 0.9 * r.value_hi)
            for n, r in published.relations.items()
        },
    )
    found = validate(other, evidence.rows, evidence.twin, refits, groups)
    assert {row.published_id for row in found} == rows.keys()
    for row in found:
        before = rows[row.published_id]
        assert row.fitted_prediction == before.fitted_prediction
        assert row.held_out_prediction == before.held_out_prediction


class TestSummary:
    """The accuracy in words."""

    @pytest.fixture
    def three(self, rows):
        first = rows["S5.1.3-01"]
        return [
            replace(first, published_id=f"S{error:g}", held_out_error_pct=error)
            for error in (4.0, 12.0, 30.0)
        ]

    def test_median_worst_and_goal(self, three):
        lines = summary_lines(three, 25, [])
        assert (
            "time: median held-out error 12.0 % (n = 3, worst 30.0 %); the goal of 10 % is missed"
            in lines
        )
        assert any("S30 30.0, S12 12.0, S4 4.0" in line for line in lines)
        over = lines[lines.index("Times, energies and powers with a held-out error over 10 %:") :]
        assert [line.split()[0] for line in over[1:]] == ["S30", "S12"]

    def test_goal_that_is_met(self, three):
        lines = summary_lines(three[:1], 25, [])
        assert any(line.endswith("the goal of 10 % is met") for line in lines)
        assert lines[-1] == "  none"

    def test_bounds_are_counted(self, rows):
        bound = rows["S5.1.6-05"]
        told = [
            replace(bound, published_id="a", met="yes"),
            replace(bound, published_id="b", met="no"),
        ]
        assert any("1 met; not: b" in line for line in summary_lines(told, 25, []))
