"""What holds runs back by the ceilings of their machine: results/tables/explanations.csv, shown."""

from typing import Any, NamedTuple

from epochwatt.pages.numbers import Table

WHOLE = "all"
COLUMN = {"name": "why", "title": "by its ceilings", "kind": "why"}
PARTS = {  # class of the style sheet -> columns of the table, and what the colour stands for
    "stall": (("loader_pct", "copy_pct"), ""),
    "launch": (("launches_pct",), "launches"),
    "arithmetic": (("arithmetic_pct",), "arithmetic"),
    "bandwidth": (("memory_pct",), "memory"),
    "below": (("below_the_roof_pct",), "below the roof"),
    "overhead": (("overhead_pct",), ""),
}
KEY = {name: f"compute: {title}" for name, (_, title) in PARTS.items() if title}
NOT_MEASURED = (
    "What limits computing is not known: the ceilings of this machine were not measured. Give its "
    "study the key ceilings: true in config/studies.yaml and type make run."
)


class Why(NamedTuple):
    """The explanation of a run and where it is from."""

    explanation: str
    next_mode: str
    source: str
    row: int


def place_of(table: Table | None, run: str) -> int | None:
    """Return the row of a whole run; None: it has none."""
    for place, row in enumerate(table.rows if table else ()):
        if row["run"] == run and row["operators"] == WHOLE:
            return place
    return None


def why(table: Table | None, run: str) -> Why | None:
    """Return what holds a run back, in words."""
    place = place_of(table, run)
    if table is None or place is None:
        return None
    row = table.rows[place]
    return Why(row["explanation"], row["next_mode"], table.path, place)


def bars(table: Table | None, run: str, length: float) -> list[dict[str, Any]]:
    """Return the bar of a run's time by its ceilings, alone in a list; none: it has none.

    Parameters
    ----------
    table : of explanations
    run : its id
    length : of the bar, % of the row
    """
    place = place_of(table, run)
    if table is None or place is None:
        return []
    row = table.rows[place]
    parts = {
        name: sum(float(row[column] or 0) for column in columns)
        for name, (columns, _) in PARTS.items()
    }
    return [{"length": length, "parts": parts, "title": f"by its ceilings: {', '.join(parts)}"}]
