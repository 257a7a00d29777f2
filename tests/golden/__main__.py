"""Compare the tables of results/ with those that are frozen in tests/golden/tables.csv.

    python -m tests.golden                     `make golden`: exit status 1 where one differs
    python -m tests.golden --than OLD/results  shows the first cells that differ, too
    python -m tests.golden --update            freezes what is there

Compared are tables, claims, scores and the numbers of every panel, as `make run` makes them.
Simulated rows are compared cell by cell, numbers to nine digits. Measured rows change with each
run: of them, the names of the columns are compared. On another kind of processor (frozen: with
AVX-512) last digits differ, and of many numbers some are then rounded otherwise: compare there with
what the code before made there (`--than`).
"""

import argparse
import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

FROZEN = Path(__file__).with_name("tables.csv")
PATTERNS = (
    "claims.csv",
    "tables/*.csv",
    "figures/*/*.csv",
    "models/*/*.csv",
    "roofline/*.csv",
    "twin/*.csv",
)
ORIGINS = {"backend": ("host",), "provenance": ("measured",)}  # column -> cells of measured rows
DIGITS = 9


def tables(results: Path) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield name and simulated rows of each table, cells as text."""
    for path in sorted(path for pattern in PATTERNS for path in results.glob(pattern)):
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
        for column, measured in ORIGINS.items():
            if column in table:
                table = table[~table[column].isin(measured)]
        if "run" in table:  # its id begins with the backend
            table = table[~table["run"].str.startswith("host-")]
        yield str(path.relative_to(results)), table.map(canonical)


def canonical(cell: str) -> str:
    """Return a cell with its number, if it is one, rounded: other processors round otherwise."""
    try:
        return f"{float(cell):.{DIGITS}g}"
    except ValueError:
        return cell


def digests(results: Path) -> pd.DataFrame:
    """Return a row for each column of each table: how many simulated cells, and their digest."""
    rows = [
        (name, column, len(table), hashlib.sha256("\n".join(table[column]).encode()).hexdigest())
        for name, table in tables(results)
        for column in table
    ]
    frame = pd.DataFrame(rows, columns=["table", "column", "n_cells", "digest"])
    return frame.assign(digest=frame.digest.str[:12].where(frame.n_cells > 0, ""))


def differences(old: pd.DataFrame, new: pd.DataFrame) -> list[str]:
    """Return a line for each table or column that is gone, new, or has other cells."""
    keys = ["table", "column"]
    both = old.merge(new, on=keys, how="outer", suffixes=("_old", "_new"), indicator=True)
    lines = []
    for name, table in both.groupby("table"):
        if (table._merge == "left_only").all() or (table._merge == "right_only").all():
            lines.append(f"{name}: {'gone' if name in set(old.table) else 'new'}")
            continue
        for row in table.rename(columns={"_merge": "side"}).itertuples():
            if row.side != "both":
                state = "gone" if row.side == "left_only" else "new"
                lines.append(f"{name}: column {row.column} is {state}")
            elif row.n_cells_old != row.n_cells_new:
                lines.append(
                    f"{name}: {row.column}: {row.n_cells_old:g} -> {row.n_cells_new:g} rows"
                )
            elif row.digest_old != row.digest_new:
                lines.append(f"{name}: {row.column}: other values")
    return lines


def first_cells(old: Path, new: Path) -> Iterator[str]:
    """Yield the first cell of each column that differs between two folders of results."""
    before = dict(tables(old))
    for name, table in tables(new):
        if name not in before or len(before[name]) != len(table):
            continue
        for column in table.columns.intersection(before[name].columns):
            a, b = before[name][column].to_numpy(), table[column].to_numpy()
            if len(rows := (a != b).nonzero()[0]):
                n = rows[0]
                cells = f"{a[n]!r} -> {b[n]!r} ({len(rows)} of {len(a)})"
                yield f"{name}: {column}, row {n + 1}: {cells}"


def main() -> int:
    """Run what the command line asks for; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.golden")
    parser.add_argument("results", type=Path, nargs="?", default=Path("results"))
    parser.add_argument("--update", action="store_true")
    parser.add_argument("--than", type=Path, metavar="OLD", help="results of another checkout")
    options = parser.parse_args()
    new = digests(options.results)
    if new.empty:
        print(f"{options.results} has no tables: `make run` makes them")
        return 1
    if options.update:
        new.to_csv(FROZEN, index=False, lineterminator="\n")
        print(f"{FROZEN}: {len(new)} columns of {new.table.nunique()} tables are frozen")
        return 0
    lines = differences(pd.read_csv(FROZEN, keep_default_na=False), new)
    if options.than:
        lines += first_cells(options.than, options.results)
    print("\n".join([*lines, f"{new.table.nunique()} tables compared, {len(lines)} differences"]))
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
