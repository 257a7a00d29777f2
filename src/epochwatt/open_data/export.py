"""Make a package of sweeps and of tables of runs, split by provenance."""

import csv
import datetime
import fnmatch
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from epochwatt import columns
from epochwatt.board.device.kinds import KINDS
from epochwatt.errors import ConfigError, DataError
from epochwatt.open_data import layout
from epochwatt.open_data.evidence import Records, machines, records_of
from epochwatt.open_data.metadata import Labels, Part
from epochwatt.open_data.read import find_tables
from epochwatt.open_data.schema import TABLES
from epochwatt.open_data.terms import Terms, terms_of
from epochwatt.open_data.write import write_package
from epochwatt.study.devices import DEVICES, Devices
from epochwatt.sweeps.find import names as sweep_names
from epochwatt.sweeps.mode_table import ModeTable, row_cells
from epochwatt.text import counted, first_of

RUN_TABLES = Path("results/tables")
RUN_RESULTS = Path("results/runs")
_WHOLE = re.compile(r"(-?\d+)\.0")
_NO_NUMBER = ("nan", "inf", "-inf")  # a loss that was not finite; a flag of its epoch says so
# a factor that is younger than a table had its default when the table was made
_DEFAULTS = {name: str(value) for name, value in columns.FACTOR_DEFAULTS.items()}

Rows = list[dict[str, str]]


def export(names: Sequence[str], output: Path, given: Terms) -> list[str]:
    """Write a package; return what was written, as lines of text.

    Raises ConfigError, DataError: no such name, no licence, or a cell that may not be passed on;
    RecordWriteError: it cannot be written.

    Parameters
    ----------
    names : of sweeps (whatever `find_tables` takes), studies or runs, these also as patterns
    output : folder or .zip file; its name gets what is not measured, where it does not say so
    given : what the package says of itself; public sweeps and packages have terms of their own
    """
    terms = terms_of(names, given)
    parts, facts = gather(names)
    provenances = tuple(p for p in columns.PROVENANCES if p in {part.provenance for part in parts})
    suffix = ".zip" if output.suffix == ".zip" else ""
    name = layout.marked(output.name.removesuffix(suffix), provenances)
    target = output.with_name(name + suffix)
    labels = Labels(
        name=re.sub(r"[^a-z0-9._]+", "-", name.lower()).strip("-"),
        title=terms.title or ", ".join(names),
        licence=terms.licence,
        creator=terms.creator,
        source=terms.source,
        citation=terms.citation,
        created=datetime.datetime.now(datetime.UTC).date().isoformat(),
        provenances=provenances,
    )
    write_package(target, labels, parts, facts, terms.text)
    return [
        f"{target}  {layout.statement(provenances)}; {terms.licence}",
        *(f"  {part.path}  {counted(len(part.rows), 'rows')}" for part in parts),
    ]


def gather(names: Sequence[str]) -> tuple[list[Part], dict[str, Any]]:
    """Return the tables of sweeps and runs, one per provenance, and facts about where from.

    Raises ConfigError for a name that is neither.
    """
    tables: list[ModeTable] = []
    runs: dict[str, dict[str, str]] = {}
    for name in dict.fromkeys(names):
        matching = _runs(name)
        if matching:
            runs |= matching
        else:
            tables += _sweep(name)
    parts = [*_split("sweeps", map(_row, _rows(tables)))]
    if runs:
        parts += _of_runs(runs)
    records = records_of(tables, runs)
    boards: dict[str, set[str]] = defaultdict(set)  # device -> names of its sweeps and runs
    for table in tables:
        boards[table.key.device].add(table.key.sweep)
    for run, row in runs.items():
        boards[row["device"]].add(run)
    facts = {layout.DEVICES: _devices(boards, records)}
    return parts, {**facts, layout.RECORDS: records} if records else facts


def _sweep(name: str) -> list[ModeTable]:
    try:
        return find_tables(name)
    except ConfigError as error:
        if Path(name).exists() or name in sweep_names():
            raise
        runs = first_of(sorted({row["run"] for row in _table("epochs")})) or "none"
        raise ConfigError(
            f"neither a sweep nor a run or study is called {name!r}",
            found=f"sweeps: {', '.join(sweep_names()) or 'none'}; runs: {runs}",
            do="name a sweep, a study, a run, or a pattern of runs in quotes ('host-*')",
        ) from error


def _rows(tables: Iterable[ModeTable]) -> Iterator[list[object]]:
    for table in tables:
        for row in table.rows:
            yield row_cells(row)


def _row(cells: Iterable[object]) -> dict[str, str]:
    texts = ("" if cell is None else str(cell) for cell in cells)
    return dict(zip(TABLES["sweeps"].header, texts, strict=True))


def _split(name: str, rows: Iterable[Mapping[str, str]]) -> Iterator[Part]:
    """Yield a table per provenance, in the order of `columns.PROVENANCES`."""
    table = TABLES[name]
    by: dict[str, list[list[str]]] = {provenance: [] for provenance in columns.PROVENANCES}
    for row in rows:
        by[row["provenance"]].append(
            [_cell(column.field.kind, row.get(column.name, "")) for column in table.columns]
        )
    for provenance, some in by.items():
        if some:
            yield Part(table, provenance, some)


def _cell(kind: str, cell: str) -> str:
    if kind == "int" and (whole := _WHOLE.fullmatch(cell)):
        return whole[1]  # a column of numbers with an empty cell among them
    return "" if kind == "float" and cell.lower() in _NO_NUMBER else cell


# -- runs ------------------------------------------------------------------------------------------


def _table(name: str) -> Rows:
    path = RUN_TABLES / f"{name}.csv"
    return _read(path) if path.is_file() else []


def _read(path: Path) -> Rows:
    try:
        with open(path, newline="", encoding="utf-8") as handle:
            rows = [*csv.DictReader(handle)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    if any(None in row or None in row.values() for row in rows):
        raise DataError(f"{path} has lines of different lengths", do="remove it and make it anew")
    return rows


def _runs(name: str) -> dict[str, dict[str, str]]:
    """Return the first epoch of each run of that id, pattern or study."""
    chosen: dict[str, dict[str, str]] = {}
    for row in _table("epochs"):
        if fnmatch.fnmatchcase(row["run"], name) or name in row["studies"].split():
            chosen.setdefault(row["run"], row)
    return chosen


def _of_runs(runs: Mapping[str, Mapping[str, str]]) -> Iterator[Part]:
    provenances = {
        run: layout.provenance_of(row["backend"], row["imported"]) for run, row in runs.items()
    }
    energy = [
        row
        for run in runs
        if (path := RUN_RESULTS / run / "energy.csv").is_file()
        for row in _read(path)
    ]
    for name, rows in (("epochs", _table("epochs")), ("runs", _table("runs")), ("energy", energy)):
        ours = (row for row in rows if row["run"] in runs)
        yield from _split(
            name, ({**_DEFAULTS, **row, "provenance": provenances[row["run"]]} for row in ours)
        )


# -- boards ----------------------------------------------------------------------------------------


def _devices(boards: Mapping[str, Iterable[str]], records: Records) -> dict[str, Any]:
    """Return device -> its description, with the machines on which it was measured.

    Parameters
    ----------
    boards : device -> names of its sweeps and runs
    records : of these
    """
    devices = Devices(Path())
    described = {}
    for name in sorted(boards):
        facts: dict[str, Any] = {"title": name}
        kind = name
        if name in devices.names():
            device = devices.get(name, DEVICES)
            modes = {m: p.model_dump(exclude_none=True) for m, p in device.power_modes.items()}
            facts = {"title": device.title, "power_modes": modes}
            kind = device.board
        if kind in KINDS:
            facts["board"] = _board(kind)
        places = (place for one in sorted(boards[name]) for place in records.get(one, ()))
        if here := machines(places):
            facts["machines"] = here
        described[name] = facts
    return described


def _board(kind: str) -> dict[str, Any]:
    """Return what is known of a kind of board: clocks it can run at, and rails with a sensor."""
    board = KINDS[kind]
    return {
        "kind": kind,
        "title": board.title,
        "soc": board.soc,
        "cores": board.cores,
        "cpu_mhz": [step / 1e3 for step in board.cpu_khz],
        "gpu_mhz": [step / 1e6 for step in board.gpu_hz],
        "emc_mhz": [step / 1e6 for step in board.emc_hz],
        "ram_mib": board.ram_mib,
        "rails": [rail.label for rail in board.rails],
    }
