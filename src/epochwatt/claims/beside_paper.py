"""A paper's numbers with ours beside them: `results/powertrain/numbers.csv`.

Ours are medians and quartiles over the draws of profiled modes. No number of the paper is used to
make one. What ours were made on (`provenance`) differs from the paper's board: it stands beside.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from epochwatt.claims.table_claims import read_rows
from epochwatt.published.numbers import PaperNumber, load_paper_numbers
from epochwatt.tables import write_entries

TABLES = {  # statistic of a number -> our table that has it as a column; of others EXAMPLE
    "mape_pct": "errors",
    "penalty_pct": "penalties",
    "over_1w_pct": "penalties",
}
EXAMPLE = "example"
DRAW = (  # columns that tell rows apart, whatever their group
    *("provenance", "workload", "device", "reference", "method", "n_profiled", "draw"),
    *("target", "limit_w"),
)
QUARTILES = (25, 50, 75)

Row = Mapping[str, str]


class Beside(NamedTuple):
    """One number of the paper, and ours of one provenance."""

    id: str
    place: str
    exactness: str
    paper_workload: str
    device: str
    workload: str
    reference: str
    method: str
    n_profiled: str
    target: str
    statistic: str
    unit: str
    qualifier: str
    published: str  # in `unit`, as ours
    provenance: str
    ours: str  # median over `n_draws`; empty: we have none
    low: str  # and its quartiles
    high: str
    n_draws: str
    missing: str  # why ours is not there
    note: str


def compare_numbers(numbers: str, tables: Iterable[str], path: str) -> None:
    """Write a table of a paper's numbers with the medians and quartiles of ours beside them.

    Raises ConfigError: a row of `numbers` is wrong.

    `numbers`: config/published/{paper}/numbers.csv
    `tables`: paths of errors.csv, penalties.csv, example.csv; a missing file is an empty table
    `path`: where to write
    """
    rows = {Path(table).stem: read_rows(table) for table in tables}
    pairs = beside(load_paper_numbers(Path(numbers)), rows)
    write_entries(path, "the paper's numbers beside ours", Beside, pairs)


def beside(numbers: Iterable[PaperNumber], tables: Mapping[str, Sequence[Row]]) -> list[Beside]:
    """Pair each published number with our median of each provenance.

    A number that none of our rows has is one row, whose `missing` says why.
    """
    pairs = []
    for number in numbers:
        wanted = {"workload": number.workload, "method": number.method}
        if number.target in ("time_s", "power_w"):
            wanted["target"] = number.target
        if number.n_profiled:
            wanted["n_profiled"] = number.n_profiled
        groups: dict[str, list[float]] = {}
        for row in each_draw_once(tables.get(TABLES.get(number.statistic, EXAMPLE), ())):
            matches = all(row.get(name) == cell for name, cell in wanted.items())
            # methods without a reference have none
            matches &= not number.reference or row.get("reference") in (None, "", number.reference)
            cell = row.get(number.statistic)
            if number.workload and matches and cell not in (None, "", "nan"):
                groups.setdefault(row["provenance"], []).append(float(cell))
        lacking = "no row of ours" if number.workload else "no workload of ours on this board"
        shared = {k: str(getattr(number, k)) for k in Beside._fields if hasattr(number, k)}
        shared["published"] = f"{number.value:g}"
        for provenance, values in groups.items():
            low, median, high = (f"{q:.5g}" for q in np.percentile(values, QUARTILES))
            if len(values) == 1:
                low = high = ""
            ours = {"ours": median, "low": low, "high": high, "missing": ""}
            pairs.append(Beside(**shared, provenance=provenance, **ours, n_draws=str(len(values))))
        if not groups:
            empty = dict.fromkeys(("provenance", "ours", "low", "high", "n_draws"), "")
            pairs.append(Beside(**shared, **empty, missing=lacking))
    return pairs


def each_draw_once(rows: Iterable[Row]) -> list[Row]:
    """Drop rows that repeat a draw in another group, such as of another reference."""
    kept: dict[tuple[str, ...], Row] = {}
    for row in rows:
        kept.setdefault(tuple(row.get(name, "") for name in DRAW), row)
    return list(kept.values())
