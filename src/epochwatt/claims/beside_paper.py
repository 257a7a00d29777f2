"""A paper's numbers with ours beside them: `results/powertrain/numbers.csv`.

Ours are medians and quartiles over the draws of profiled modes. No number of the paper is used to
make one. What ours were made on (`provenance`) differs from the paper's board: it stands beside.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from epochwatt.claims.table_claims import read_rows
from epochwatt.published.paper_numbers import PaperNumber, load_paper_numbers
from epochwatt.tables import write_table

Row = Mapping[str, str]
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


class Beside(NamedTuple):
    """One number of the paper, and ours of one provenance.

    Attributes
    ----------
    published, ours, low, high : in `unit`; ours is the median over `n_draws`, low and high its
        quartiles; empty: we have none
    missing : why ours is not there
    """

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
    published: str
    provenance: str
    ours: str
    low: str
    high: str
    n_draws: str
    missing: str
    note: str


def compare_numbers(numbers: str, tables: Iterable[str], path: str) -> None:
    """Write a paper's numbers with ours beside them.

    Raises ConfigError: a row of `numbers` is wrong.

    Parameters
    ----------
    numbers : config/published/{paper}/numbers.csv
    tables : paths of errors.csv, penalties.csv, example.csv; one that is missing has no rows
    path : where to write
    """
    rows = {Path(table).stem: read_rows(table) for table in tables}
    pairs = beside(load_paper_numbers(Path(numbers)), rows)
    write_table(Path(path), "the paper's numbers beside ours", Beside._fields, pairs)


def beside(numbers: Iterable[PaperNumber], tables: Mapping[str, Sequence[Row]]) -> list[Beside]:
    """Return a row for each number and each provenance that has one of ours, else one without."""
    pairs = []
    for number in numbers:
        groups: dict[str, list[float]] = {}
        rows = each_draw_once(tables.get(TABLES.get(number.statistic, EXAMPLE), ()))
        for row in rows:
            if _is_meant(number, row) and row.get(number.statistic) not in (None, "", "nan"):
                values = groups.setdefault(row["provenance"], [])
                values.append(float(row[number.statistic]))
        pairs += [_pair(number, name, values) for name, values in groups.items()] or [
            _pair(number, "", [])
        ]
    return pairs


def each_draw_once(rows: Iterable[Row]) -> list[Row]:
    """Return rows without those of the same draw in another group, such as of another reference."""
    kept: dict[tuple[str, ...], Row] = {}
    for row in rows:
        kept.setdefault(tuple(row.get(name, "") for name in DRAW), row)
    return list(kept.values())


def _is_meant(number: PaperNumber, row: Row) -> bool:
    wanted = {"workload": number.workload, "method": number.method}
    if number.target in ("time_s", "power_w"):
        wanted["target"] = number.target
    if number.n_profiled:
        wanted["n_profiled"] = number.n_profiled
    if number.reference and row.get("reference"):  # methods without one have none
        wanted["reference"] = number.reference
    return bool(number.workload) and all(row.get(name) == cell for name, cell in wanted.items())


def _pair(number: PaperNumber, provenance: str, values: Sequence[float]) -> Beside:
    low, middle, high = np.percentile(values, QUARTILES) if values else (np.nan,) * 3
    shared = {name: str(getattr(number, name)) for name in Beside._fields if hasattr(number, name)}
    return Beside(
        **shared,
        published=f"{number.value:g}",
        provenance=provenance,
        ours=f"{middle:.5g}" if values else "",
        low=f"{low:.5g}" if len(values) > 1 else "",
        high=f"{high:.5g}" if len(values) > 1 else "",
        n_draws=str(len(values)) if values else "",
        missing=_missing(number, values),
    )


def _missing(number: PaperNumber, values: Sequence[float]) -> str:
    if values:
        return ""
    return "no row of ours" if number.workload else "no workload of ours on this board"
