"""Columns named after rails and thermal zones: a record refuses two of one name."""

import pytest

from epochwatt.board.telemetry.source import zone_name


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
