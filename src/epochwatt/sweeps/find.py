"""Find sweeps by name, and print those that are known for `epochwatt sweeps`.

They are public, in results/sweeps/, or files of mode tables. Folders of open data, and tables that
others made, come in by `epochwatt.open_data`, which asks here for everything else.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from epochwatt import columns
from epochwatt.errors import ConfigError
from epochwatt.sweeps.mode_table import ModeTable, Numbers, read_mode_tables
from epochwatt.sweeps.public.registry import (
    FOLDER,
    OPTION,
    VARIABLE,
    converted,
    load_registry,
    originals,
    public_folder,
    shipped_path,
)
from epochwatt.text import aligned, counted, first_of

RESULTS = "results/sweeps"  # {sweep}.csv: measured or simulated by the workflow
SCORES = "scores.csv"  # beside them: how well methods predict sweeps
ENDINGS = (".csv", ".csv.gz")
HEADINGS = ["sweep", "device", "workloads", "modes", "of", "repeats", "power"]
HEADINGS += ["provenance", "licence", "where"]
NOT_HERE = "not here"
KNOBS = dict(
    zip(columns.MODE_PARTS, ("cores", "cpu", "gpu", "memory", "gpu share", "limit"), strict=True)
)


def find_tables(
    name: str | Path, root: Path = Path(), public_data: Path | None = None
) -> list[ModeTable]:
    """Read the mode tables of a public sweep, of one in results/sweeps/, or of a file.

    Raises ConfigError: nothing has this name, or its files are not here or cannot be read.
    `public_data`: folder of others' repositories (`public_folder`).
    """
    registry = load_registry(root)
    if str(name) in registry.sweeps:
        if registry.is_shipped(str(name)):
            return read_mode_tables(shipped_path(str(name), root))
        return converted(str(name), registry, public_folder(public_data)).tables
    paths = [root / RESULTS / f"{name}{ending}" for ending in ENDINGS]
    for path in (*paths, Path(name)):
        if path.is_file():
            return read_mode_tables(path)
    raise ConfigError(
        "no such sweep",
        found=str(name),
        allowed=", or ".join(filter(None, ["a file of mode tables", ", ".join(names(root))])),
        do="epochwatt sweeps lists them",
    )


def names(root: Path = Path()) -> list[str]:
    """Return the names of the sweeps in results/sweeps/ and of the public ones."""
    paths = sorted(path for path in (root / RESULTS).glob("*.csv*") if path.name != SCORES)
    made = [path.name.partition(".csv")[0] for path in paths if path.name.endswith(ENDINGS)]
    return [*dict.fromkeys(made), *load_registry(root).sweeps]


# -- lines for the terminal ------------------------------------------------------------------------


def listing(root: Path, public_data: Path | None) -> list[str]:
    """Write the table of sweeps for a terminal, and below it how to get the missing ones.

    `public_data`: folder of others' repositories, else the one that the environment names.
    """
    folder, registry = public_folder(public_data), load_registry(root)
    rows = [HEADINGS]
    for name in names(root):
        where, licence = "results/sweeps", "-"
        if name in registry.sweeps:
            licence = registry.source(name).licence
            is_here = folder is not None and originals(registry.sweeps[name], folder)
            where = FOLDER if registry.is_shipped(name) else str(folder) if is_here else NOT_HERE
        if where == NOT_HERE:
            rows.append([name, *[""] * 6, "public", licence, where])
            continue
        tables = find_tables(name, root, folder)
        rows.append(
            [
                name,
                first_of(_distinct(table.key.device for table in tables), 2),
                str(len(tables)),
                _range([_n_modes(table) for table in tables]),
                ", ".join(
                    knob for part, knob in KNOBS.items() if any(part in t.varied() for t in tables)
                ),
                _range([1 + max(row.repeat for row in table.rows) for table in tables]),
                ", ".join(_distinct(t.power_scope for t in tables if t.power_scope)) or "none",
                first_of(_distinct(table.key.provenance for table in tables)),
                licence,
                where,
            ]
        )
    lines = aligned(rows)
    if any(row[-1] == NOT_HERE for row in rows):
        lines.append(
            f"{NOT_HERE}: the licence does not let epochwatt pass it on. `epochwatt sweeps NAME` "
            f"says where to get it; then name the folder with {OPTION} or {VARIABLE}"
        )
    return lines


def _n_modes(table: ModeTable) -> int:
    return len(np.unique(np.nan_to_num(table.modes), axis=0))


def _range(numbers: Sequence[int]) -> str:
    least, most = min(numbers), max(numbers)
    return str(most) if least == most else f"{least}-{most}"


def _distinct(words: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(words))


def details(name: str, root: Path, public_data: Path | None) -> list[str]:
    """Write lines for a terminal: a sweep's authors, licence, caveats, and each of its workloads.

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
    """Write a line for each flag of rows without power: how many, and what the flag means."""
    powerless = [row for table in tables for row in table.rows if row.power_w is None]
    flags = Counter(flag for row in powerless for flag in row.flags.split() if "power" in flag)
    known = {flag: columns.FLAGS[flag].meaning for flag in flags if flag in columns.FLAGS}
    return [
        f"no power of {counted(n, 'rows')}: {flag} ({known.get(flag, 'not known')})"
        for flag, n in flags.items()
    ]


def _workloads(tables: Sequence[ModeTable]) -> list[str]:
    """Write a table with a line per workload: modes, rows, and the ranges of time and power."""
    rows = [
        ["device", "workload", "batch", "task", "modes", "rows", "valid", "work", "time", "power"]
    ]
    for table in tables:
        key, valid = table.key, table.valid()
        rows.append(
            [
                *(key.device, key.workload, str(key.batch_size or ""), key.task),
                *(str(_n_modes(table)), str(len(table.rows)), str(len(valid.rows)), key.work),
                _from_to(valid.column("time_s"), "s"),
                _from_to(valid.column("power_w"), f"W ({table.power_scope})"),
            ]
        )
    return aligned(rows)


def _from_to(values: Numbers, unit: str) -> str:
    if not np.isfinite(values).any():
        return "-"
    return f"{np.nanmin(values):.4g} to {np.nanmax(values):.4g} {unit}"


def conversion_lines(tables: Sequence[ModeTable], left_out: Sequence[str], path: Path) -> list[str]:
    """Write lines: what was converted to `path`, what was left out and why, what is not valid."""
    rows = [row for table in tables for row in table.rows]
    lines = [f"{path}: {counted(len(tables), 'workloads')}, {counted(len(rows), 'rows')}"]
    if invalid := [row for row in rows if not row.valid]:
        flags = first_of(_distinct(flag for row in invalid for flag in row.flags.split()))
        lines.append(f"{counted(len(invalid), 'rows')} do not count: {flags}")
    if left_out:
        lines += [
            f"{counted(len(left_out), 'lines')} left out:",
            *(f"  {reason}" for reason in left_out[:5]),
        ]
        lines += ["  ..."] if len(left_out) > 5 else []
    lines += [*_without_power(tables), *_workloads(tables[:20])]
    return [*lines, "..."] if len(tables) > 20 else lines
