"""Findings: when a value agrees, and how a table of checks is written."""

import csv

import pytest

from epochwatt.external.check import (
    AGREES,
    COLUMNS,
    DIFFERS,
    SIMULATED,
    Check,
    at_most,
    held_by,
    near,
    show,
    write_checks,
)


@pytest.mark.parametrize(
    ("observed", "verdict"), [(100.9, AGREES), (99.1, AGREES), (101.1, DIFFERS), (98.9, DIFFERS)]
)
def test_near_is_within_some_per_cent_on_both_sides(observed, verdict):
    found = near("a", "kJ", 100.0, observed, 1.0)
    assert found.verdict == verdict
    assert found.deviation_pct == pytest.approx(observed - 100)


def test_a_limit_may_be_reached():
    assert at_most("a", "%", 5.0, 5.0).verdict == AGREES
    assert at_most("a", "%", 5.0, 5.1).verdict == DIFFERS


@pytest.mark.parametrize(
    ("measured", "verdict"), [(0.15, AGREES), (0.45, AGREES), (0.14, DIFFERS), (0.46, DIFFERS)]
)
def test_a_measured_value_lies_in_the_widened_range_of_simulated_ones(measured, verdict):
    found = held_by("a", "", measured, [0.3, 0.2, 0.4], 0.0501)
    assert found.verdict == verdict
    assert (found.expected, found.observed) == (show(measured), "0.200 to 0.400")
    assert found.provenance == SIMULATED


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (5.8714, "5.87"),
        (1234.5, "1234"),
        (0.00041, "0.000"),
        (-0.0001, "0.000"),
        (-0.342, "-0.342"),
    ],
)
def test_numbers_have_three_figures_and_no_exponent(value, text):
    assert show(value) == text


def test_the_table_has_a_row_per_check(tmp_path):
    words = ("a question", "a mode", "kJ", "5.87", "5.93")
    check = Check(*words, 1.0234, DIFFERS, "public", "somebody", "MIT", "")
    path = tmp_path / "external.csv"
    write_checks(path, [check, check])
    with path.open(newline="", encoding="utf-8") as handle:
        rows = list(csv.DictReader(handle))
    assert tuple(rows[0]) == COLUMNS
    assert [row["deviation_pct"] for row in rows] == ["1.0", "1.0"]
