"""Name columns after a board's rails and zones (board side: Python 3.6 grammar)."""

import re
from typing import List, Sequence, Tuple

OFFLINE_C = -200.0  # a thermal zone whose unit is switched off reports -256 degrees


def column_names(stem: str, names: Sequence[str], unit: str) -> Tuple[str, ...]:
    """Return `stem_name_unit` in small letters for each name; equal ones are numbered from 2 on.

    >>> column_names("rail", ["VDD_IN", "vdd-in"], "w")
    ('rail_vdd_in_w', 'rail_vdd_in_2_w')
    """
    columns: List[str] = []
    for name in names:
        short = "{}_{}".format(stem, re.sub("[^a-z0-9]+", "_", name.strip().lower()))
        column, n = f"{short}_{unit}", 2
        while column in columns:
            column, n = f"{short}_{n}_{unit}", n + 1
        columns.append(column)
    return tuple(columns)


def zone_name(kind: str) -> str:
    """Return the part of a thermal zone: `CPU-therm`, `cpu-thermal` and `CPU` are all `cpu`.

    Empty for the power chip's: its constant (100 or 50 degrees) is not a temperature.
    """
    name = re.sub(r"[-_](therm|thermal|tegra)$", "", kind.strip().lower())
    return "" if name.startswith("pmic") else name
