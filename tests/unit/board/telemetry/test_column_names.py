"""Columns named after rails and thermal zones: a record refuses two of one name."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochwatt.board.telemetry.source import column_names, zone_name


@given(st.lists(st.text(max_size=6)))
def test_columns_are_plain_and_each_of_its_own(names):
    found = column_names("rail", names, "w")
    assert len(set(found)) == len(names)
    assert all(re.fullmatch("rail_[a-z0-9_]*_w", column) for column in found)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("CPU-therm", "cpu"),
        ("cpu-thermal", "cpu"),
        ("CPU", "cpu"),
        ("Tboard_tegra", "tboard"),
        ("thermal-fan-est", "thermal-fan-est"),
        ("thermal", "thermal"),
        ("PMIC-Die", ""),
        ("PMIC", ""),
    ],
)
def test_zone_has_one_name_on_all_releases(kind, name):
    assert zone_name(kind) == name
