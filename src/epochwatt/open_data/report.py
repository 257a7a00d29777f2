"""Print what `epochwatt validate` saw in a package or a plain table of modes."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from epochwatt import columns
from epochwatt.errors import EpochwattError
from epochwatt.open_data import layout
from epochwatt.open_data.check import check_folder
from epochwatt.open_data.read import check_plain, modes_in, read_plain, unpacked
from epochwatt.sweeps.mode_table import ModeTable
from epochwatt.text import counted

MOST = 20  # problems that are printed


def report_lines(path: Path) -> tuple[list[str], bool]:
    """Return the lines to print of a folder, .zip or .csv file, and whether it is valid."""
    is_package = not path.name.endswith((".csv", ".csv.gz"))
    try:
        tables, problems = _package(path) if is_package else _table(path)
    except EpochwattError as error:  # what holds of a row or a workload as a whole
        tables, problems = [], [error]
    if not problems:
        return [f"{path}: valid", *_described(tables, is_package)], True
    more = len(problems) - MOST
    return [
        f"{path}: {counted(len(problems), 'problems')}",
        *map(str, problems[:MOST]),
        *([f"... and {more} more"] if more > 0 else []),
    ], False


def _table(path: Path) -> tuple[list[ModeTable], Sequence[EpochwattError]]:
    problems = check_plain(path)
    return [] if problems else read_plain(path), problems


def _package(path: Path) -> tuple[list[ModeTable], Sequence[EpochwattError]]:
    with unpacked(path) as folder:
        problems = check_folder(folder)
        return [] if problems else modes_in(folder), problems


def _described(tables: Sequence[ModeTable], is_package: bool) -> list[str]:
    """Return a line for all workloads of a sweep on a device in which the same was varied."""
    alike: dict[tuple[str, ...], list[ModeTable]] = defaultdict(list)
    for table in tables:
        knobs = ", ".join(table.varied()) or "nothing"
        alike[table.key.sweep, table.key.device, knobs, table.key.provenance].append(table)
    lines = []
    for (sweep, device, knobs, provenance), some in alike.items():
        work = some[0].key.workload if len(some) == 1 else counted(len(some), "workloads")
        rows = counted(sum(len(table.rows) for table in some), "rows")
        state = layout.STATEMENTS[provenance]
        lines.append(f"  {sweep}: {work} on {device}, {rows}; varied: {knobs}; {state}")
        if not is_package:  # which states its units
            lines.append(f"    {_ends(some)}")
    return lines


def _ends(tables: Sequence[ModeTable]) -> str:
    """Return from where to where the numbers go that vary, with units: are these what was meant?"""
    units = {field.name: field.unit for field in columns.SWEEP_COLUMNS}
    names = dict.fromkeys(name for table in tables for name in table.varied())
    texts = []
    for name in (*names, "time_s", "power_w"):
        values = np.concatenate([table.column(name) for table in tables])
        if np.isfinite(values).any():
            ends = f"{np.nanmin(values):.4g} to {np.nanmax(values):.4g} {units[name]}"
            texts.append(f"{name} {ends}".strip())
    return ", ".join(texts)
