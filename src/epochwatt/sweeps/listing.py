"""Print the sweeps that are known, or one of them in detail, for `epochwatt sweeps`."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from epochwatt import columns
from epochwatt.errors import ConfigError
from epochwatt.sweeps.find import find_tables, names
from epochwatt.sweeps.mode_table import ModeTable, Numbers
from epochwatt.sweeps.public.registry import (
    FOLDER,
    OPTION,
    VARIABLE,
    load_registry,
    originals,
    public_folder,
)
from epochwatt.text import aligned, counted, first_of

HEADINGS = (
    *("sweep", "device", "workloads", "modes", "of", "repeats", "power"),
    *("provenance", "licence", "where"),
)
NOT_HERE = "not here"
KNOBS = dict(
    zip(columns.MODE_PARTS, ("cores", "cpu", "gpu", "memory", "gpu share", "limit"), strict=True)
)


def listing(root: Path, public_data: Path | None) -> list[str]:
    """Return a line per sweep, aligned, and below them where the missing ones come from.

    Parameters
    ----------
    root : the checkout
    public_data : folder of others' repositories, else the one that the environment names
    """
    folder = public_folder(public_data)
    rows = [_row(name, root, folder) for name in names(root)]
    lines = aligned([HEADINGS, *rows])
    if any(row[-1] == NOT_HERE for row in rows):
        lines.append(
            f"{NOT_HERE}: the licence does not let epochwatt pass it on. `epochwatt sweeps NAME` "
            f"says where to get it; then name the folder with {OPTION} or {VARIABLE}"
        )
    return lines


def _row(name: str, root: Path, folder: Path | None) -> tuple[str, ...]:
    registry, where = load_registry(root), _where(name, root, folder)
    licence = registry.source(name).licence if name in registry.sweeps else "-"
    if where == NOT_HERE:
        return (name, *[""] * (len(HEADINGS) - 4), "public", licence, where)
    tables = find_tables(name, root, folder)
    return (
        name,
        *_summary(tables),
        first_of(_distinct(t.key.provenance for t in tables)),
        licence,
        where,
    )


def _where(name: str, root: Path, folder: Path | None) -> str:
    registry = load_registry(root)
    if name not in registry.sweeps:
        return "results/sweeps"
    if registry.is_shipped(name):
        return FOLDER
    has_files = folder is not None and originals(registry.sweeps[name], folder)
    return str(folder) if has_files else NOT_HERE


def _summary(tables: Sequence[ModeTable]) -> tuple[str, ...]:
    """Return devices, number of workloads, modes and knobs, repeats, and scope of the power."""
    knobs = [part for part in KNOBS if any(part in table.varied() for table in tables)]
    scopes = _distinct(table.power_scope for table in tables if table.power_scope)
    return (
        first_of(_distinct(table.key.device for table in tables), 2),
        str(len(tables)),
        _range([n_modes(table) for table in tables]),
        ", ".join(KNOBS[part] for part in knobs),
        _range([repeats(table) for table in tables]),
        ", ".join(scopes) or "none",
    )


def n_modes(table: ModeTable) -> int:
    """Return how many distinct modes a table has."""
    return len(np.unique(np.nan_to_num(table.modes), axis=0))


def repeats(table: ModeTable) -> int:
    """Return how often the mode that was measured most often was."""
    return 1 + max(row.repeat for row in table.rows)


def _range(numbers: Sequence[int]) -> str:
    least, most = min(numbers), max(numbers)
    return str(most) if least == most else f"{least}-{most}"


def _distinct(words: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(words))


def details(name: str, root: Path, public_data: Path | None) -> list[str]:
    """Return who measured a sweep, on which terms, what to know of it, and a line per workload.

    Raises ConfigError: there is no such sweep.
    """
    registry, lines = load_registry(root), []
    if is_public := name in registry.sweeps:
        sweep, source = registry.sweeps[name], registry.source(name)
        is_free = source.licence != "none"
        facts = {
            "what": sweep.title,
            "authors": source.authors,
            "paper": source.citation,
            "source": f"{source.repository} @ {source.commit}",
            "licence": source.licence if is_free else "none: not passed on with epochwatt",
        }
        lines += aligned([(key, text) for key, text in facts.items() if text])
        lines += [f"caveat   {caveat}" for caveat in sweep.caveats]
    try:
        tables = find_tables(name, root, public_data)
        return [*lines, "", *_workloads(tables), *_without_power(tables)]
    except ConfigError as error:
        if not is_public:
            raise
        return [*lines, "", str(error)]


def _without_power(tables: Sequence[ModeTable]) -> list[str]:
    """Return of how many rows the power was left out, and why."""
    flags = Counter(
        flag
        for table in tables
        for row in table.rows
        if row.power_w is None
        for flag in row.flags.split()
        if "power" in flag
    )
    return [
        f"no power of {counted(n, 'rows')}: {flag} ({columns.FLAGS[flag].meaning})"
        for flag, n in flags.items()
    ]


def _workloads(tables: Sequence[ModeTable]) -> list[str]:
    heading = (
        "device",
        "workload",
        "batch",
        "task",
        "modes",
        "rows",
        "valid",
        "work",
        "time",
        "power",
    )
    return aligned([heading, *map(_workload, tables)])


def _workload(table: ModeTable) -> tuple[str, ...]:
    kind, valid = table.key, table.valid()
    return (
        kind.device,
        kind.workload,
        str(kind.batch_size or ""),
        kind.task,
        str(n_modes(table)),
        str(len(table.rows)),
        str(len(valid.rows)),
        kind.work,
        _from_to(valid.column("time_s"), "s"),
        _from_to(valid.column("power_w"), f"W ({table.power_scope})"),
    )


def _from_to(values: Numbers, unit: str) -> str:
    if not np.isfinite(values).any():
        return "-"
    return f"{np.nanmin(values):.4g} to {np.nanmax(values):.4g} {unit}"


def conversion_lines(tables: Sequence[ModeTable], left_out: Sequence[str], path: Path) -> list[str]:
    """Return what was converted, what was not and why, and which rows do not count."""
    rows = sum(len(table.rows) for table in tables)
    invalid = [row for table in tables for row in table.rows if not row.valid]
    lines = [f"{path}: {counted(len(tables), 'workloads')}, {counted(rows, 'rows')}"]
    if invalid:
        flags = first_of(_distinct(flag for row in invalid for flag in row.flags.split()))
        lines.append(f"{counted(len(invalid), 'rows')} do not count: {flags}")
    if left_out:
        lines += [f"{counted(len(left_out), 'lines')} left out:", *(f"  {r}" for r in left_out[:5])]
        lines += ["  ..."] if len(left_out) > 5 else []
    lines += _without_power(tables)
    return [*lines, *_workloads(tables[:20]), *(["..."] if len(tables) > 20 else [])]
