"""Make a package of sweeps and of tables of runs, split by provenance, with their records."""

import datetime
import fnmatch
import hashlib
import json
import os
import re
import shutil
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import pandas as pd

from epochwatt import columns
from epochwatt.board.device.kinds import KINDS
from epochwatt.board.records import files
from epochwatt.board.records.checksums import SUMS, write_sums
from epochwatt.board.records.mode_folder import RECORD as MODE
from epochwatt.board.records.mode_folder import SweepFolder
from epochwatt.board.records.shapes import Document
from epochwatt.errors import ConfigError, DataError
from epochwatt.open_data import package
from epochwatt.open_data.check import check_folder
from epochwatt.open_data.package import File, Package, Part, Terms
from epochwatt.open_data.read import find_tables, is_package, unpacked
from epochwatt.open_data.schema import TABLES
from epochwatt.study.devices import DEVICES, Devices
from epochwatt.sweeps.find import names as sweep_names
from epochwatt.sweeps.mode_table import ModeTable, Workload, row_cells
from epochwatt.sweeps.public.registry import licence_path, load_registry
from epochwatt.tables import read_cells, write_frame
from epochwatt.text import counted, first_of

MEASURED = Path("measured")
EPOCH = "record.json"
RESULTS = Path("results")
NO_LICENCE = "none"  # of a public sweep
_NO_NUMBER = ("nan", "inf", "-inf")  # a loss that was not finite; a flag of its epoch says so
_EPOCH = (1980, 1, 1, 0, 0, 0)  # time of each file in a .zip, so that equal packages are equal

Records = dict[str, dict[str, str]]  # sweep or run -> folder below `measured/` -> SHA-256


def export(
    names: Sequence[str],
    output: Path,
    given: Terms,
    results: Path = RESULTS,
    measured: Path = MEASURED,
) -> list[str]:
    """Write a package of sweeps, studies and runs; return lines that say what was written.

    Raises ConfigError, DataError: no such name, no licence, or a cell that may not be passed on;
    RecordWriteError: it cannot be written.

    `names`: of sweeps (whatever `find_tables` takes), studies or runs, these also as patterns
    `output`: folder or .zip file; its name gets what is not measured, where it does not say so
    `given`: what the package says of itself; public sweeps and packages have terms of their own
    `results`, `measured`: folders with the tables and the records of runs
    """
    terms = terms_of(names, given)
    parts, facts = gather(names, results, measured)
    provenances = {part.provenance for part in parts}
    suffix = ".zip" if output.suffix == ".zip" else ""
    name = package.marked(output.name.removesuffix(suffix), provenances)
    target = output.with_name(name + suffix)
    made = Package(
        name=re.sub(r"[^a-z0-9._]+", "-", name.lower()).strip("-"),
        terms=terms,
        created=datetime.datetime.now(datetime.UTC).date().isoformat(),
        parts=parts,
    )
    _write(target, made, facts)
    return [
        f"{target}  {package.statement(provenances)}; {terms.licence}",
        *(f"  {part.path}  {counted(len(part.rows), 'rows')}" for part in parts),
    ]


def gather(
    names: Sequence[str], results: Path = RESULTS, measured: Path = MEASURED
) -> tuple[list[Part], Document]:
    """Collect the tables of sweeps and runs, split by provenance, and facts for further files.

    The facts are devices.json, and records.json where something is measured. Raises ConfigError: a
    name is neither a sweep nor a study, run or pattern of runs.
    """
    epochs = _read_rows(results / "tables/epochs.csv")
    tables: list[ModeTable] = []
    chosen: list[pd.DataFrame] = []  # the first epoch of each run of that id, pattern or study
    for name in dict.fromkeys(names):
        is_chosen = [
            name in studies.split() or fnmatch.fnmatchcase(run, name)
            for studies, run in zip(epochs["studies"], epochs["run"], strict=True)
        ]
        if any(is_chosen):
            chosen.append(epochs[is_chosen])
        else:
            tables += _find_sweep(name, sorted(set(epochs["run"])))
    cells = [
        ["" if cell is None else str(cell) for cell in row_cells(row)]
        for table in tables
        for row in table.rows
    ]
    parts = _split("sweeps", pd.DataFrame(cells, columns=TABLES["sweeps"].header))
    runs = pd.concat([epochs[:0], *chosen]).drop_duplicates("run").set_index("run")
    runs["provenance"] = [
        package.provenance_of(*pair) for pair in zip(runs["backend"], runs["imported"], strict=True)
    ]
    if len(runs):
        energy = [_read_rows(results / "runs" / run / "energy.csv") for run in runs.index]
        sources = {
            "epochs": epochs,
            "runs": _read_rows(results / "tables/runs.csv"),
            "energy": pd.concat(energy),
        }
        for name, rows in sources.items():
            selected = rows[rows["run"].isin(runs.index)]
            provenance = selected["run"].map(runs["provenance"])
            parts += _split(name, selected.assign(provenance=provenance))
    records = find_records(tables, runs["provenance"], measured)
    boards: dict[str, set[str]] = defaultdict(set)  # device -> names of its sweeps and runs
    for table in tables:
        boards[table.key.device].add(table.key.sweep)
    for run, device in runs["device"].items():
        boards[device].add(str(run))
    facts: Document = {package.DEVICES: _describe_devices(boards, records, measured)}
    return parts, {**facts, package.RECORDS: records} if records else facts


def _read_rows(path: Path) -> pd.DataFrame:
    """Read a table of runs as text; a factor that is younger than the table gets its default."""
    frame = pd.DataFrame(read_cells(path) if path.is_file() else [], dtype=object)
    needed = ("run", "studies", *columns.FACTOR_NAMES)
    missing = {k: str(columns.FACTOR_DEFAULTS.get(k, "")) for k in needed if k not in frame}
    return frame.assign(**missing).astype(object)


def _find_sweep(name: str, runs: Sequence[str]) -> list[ModeTable]:
    """Read the tables of a sweep; ConfigError names sweeps and `runs` where it is none."""
    try:
        return find_tables(name)
    except ConfigError as error:
        if Path(name).exists() or name in sweep_names():
            raise
        found = f"sweeps: {', '.join(sweep_names()) or 'none'}; runs: {first_of(runs) or 'none'}"
        raise ConfigError(
            f"neither a sweep nor a run or study is called {name!r}",
            found=found,
            do="name a sweep, a study, a run, or a pattern of runs in quotes ('host-*')",
        ) from error


def _split(name: str, rows: pd.DataFrame) -> list[Part]:
    """Split rows into a table per provenance, with the columns and empty cells of open data.

    In the order of `columns.PROVENANCES`. `name`: of the table, a key of `TABLES`
    """
    if rows.empty:
        return []
    table = TABLES[name]
    rows = rows.reindex(columns=table.header).fillna("").astype(object)
    for column in table.columns:
        cells = rows[column.name]
        if column.field.kind == "int":  # a column of numbers with an empty cell among them
            rows[column.name] = cells.str.replace(r"^(-?\d+)\.0$", r"\1", regex=True)
        elif column.field.kind == "float":
            rows[column.name] = cells.mask(cells.str.lower().isin(_NO_NUMBER), "")
    by_provenance = {p: rows[rows["provenance"] == p] for p in columns.PROVENANCES}
    return [Part(table, p, its_rows) for p, its_rows in by_provenance.items() if len(its_rows)]


def _describe_devices(
    boards: Mapping[str, Iterable[str]], records: Records, measured: Path
) -> Document:
    """Describe each device: title, power modes, clocks, and the machines that measured.

    `boards`: device -> names of its sweeps and runs; `records`: of these.
    """
    devices = Devices(Path())
    described = {}
    for name in sorted(boards):
        facts: Document = {"title": name}
        kind = name
        if name in devices.names():
            device = devices.get(name, DEVICES)
            modes = {m: p.model_dump(exclude_none=True) for m, p in device.power_modes.items()}
            facts = {"title": device.title, "power_modes": modes}
            kind = device.board
        if kind in KINDS:  # clocks it can run at, and rails with a sensor
            board = KINDS[kind]
            facts["board"] = {
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
        machines: dict[str, Document] = {}  # the different ones, with their software
        for folder in (f for owner in sorted(boards[name]) for f in records.get(owner, ())):
            path = next(p for file in (EPOCH, MODE) if (p := measured / folder / file).is_file())
            record = files.read_json(str(path))
            known = {key: record[key] for key in ("machine", "software") if key in record}
            machines[json.dumps(known, sort_keys=True)] = known
        if machines:
            facts["machines"] = list(machines.values())
        described[name] = facts
    return described


# -- records behind what is called measured --------------------------------------------------------


def find_records(
    tables: Sequence[ModeTable], runs: Mapping[str, str] | pd.Series, measured: Path = MEASURED
) -> Records:
    """Find the record folders of measured sweeps and runs, with the SHA-256 of their checksums.

    `runs`: id -> provenance. Raises DataError: something is measured, and its records are not in
    this checkout.
    """
    records: Records = {}

    def add(name: str, folders: Sequence[Path], is_measured: bool) -> None:
        """Add the folders of a sweep or run to `records`; DataError if measured without any."""
        if is_measured and not folders:
            raise DataError(
                f"no record of {name} is in {measured}/, and it is called measured",
                do="export it in the checkout that measured it",
            )
        for folder in folders:
            # records from before there were checksums have no list of them
            path = next(p for p in (folder / SUMS, folder / EPOCH, folder / MODE) if p.is_file())
            key = str(folder.relative_to(measured))
            records.setdefault(name, {})[key] = files.sha256_of(str(path))

    for run, provenance in runs.items():
        folders = sorted(path.parent for path in (measured / str(run)).glob(f"epoch-*/{EPOCH}"))
        add(str(run), folders, provenance == "measured")
    for table in tables:
        if table.key.provenance == "measured":
            add(table.key.sweep, _find_mode_folders(table.key), True)
    return records


def _find_mode_folders(workload: Workload) -> list[Path]:
    """Find the record folders of a workload's modes in all sweeps whose factors are its own."""
    folders: list[Path] = []
    for path in sorted(MEASURED.glob("*")):
        here = [path / name for name in SweepFolder(str(MEASURED), path.name).measured()]
        if here:
            factors = files.read_json(str(here[0] / MODE)).get("factors", {})
            recorded = {**columns.FACTOR_DEFAULTS, **factors}
            wanted = {
                "model": workload.workload,
                "instance": workload.instance,
                "batch_size": workload.batch_size,
                "task": workload.task,
                "precision": workload.precision or recorded["precision"],
            }
            if all(recorded.get(name) == value for name, value in wanted.items()):
                folders += here
    return folders


# -- terms: the licence of public sweeps and packages stays theirs ---------------------------------


def terms_of(names: Iterable[str], given: Terms) -> Terms:
    """Complete the given terms of a package by those of the public sweeps and packages in it.

    Raises ConfigError: no licence, one that SPDX does not list, or another than theirs.
    """
    theirs = {name: terms for name in names if (terms := _known_terms(name))}
    for name, terms in theirs.items():
        if terms.licence == NO_LICENCE:
            raise ConfigError(
                f"{name} may not be passed on: its authors gave it no licence",
                where=terms.source,
                do="ask them; until then others can read it from the authors' own files",
            )
    licence = given.licence or next((terms.licence for terms in theirs.values()), "")
    for name, terms in theirs.items():
        if terms.licence != licence:
            raise ConfigError(
                f"the licence of {name} is {terms.licence}, and stays so",
                found=licence,
                allowed=terms.licence,
                do="make a package per licence",
            )
    if wrong := package.licence_problem(licence) if licence else "is missing":
        raise ConfigError(
            f"the licence {wrong}",
            found=licence or None,
            allowed="a name of https://spdx.org/licenses, such as CC-BY-4.0 or Apache-2.0",
            do="add --licence: without one nobody may use the data",
        )
    texts = {}
    for field in fields(Terms):
        known = dict.fromkeys(filter(None, (getattr(t, field.name) for t in theirs.values())))
        separator = "\n\n" if field.name == "text" else "; "
        texts[field.name] = getattr(given, field.name) or separator.join(known)
    texts["title"] = texts["title"] or ", ".join(names)
    return Terms(**texts)


def _known_terms(name: str) -> Terms | None:
    """Read the terms of a public sweep or of a package; None: `name` is neither."""
    registry = load_registry()
    if sweep := registry.sweeps.get(name):
        source, path = registry.source(name), licence_path(sweep.source)
        return Terms(
            source.licence,
            sweep.title,
            source.authors,
            f"{source.repository}/tree/{source.commit}",
            source.citation,
            path.read_text("utf-8") if path.is_file() else "",
        )
    if not is_package(name):
        return None
    with unpacked(Path(name)) as folder:
        if not (folder / package.DESCRIPTOR).is_file():
            return None
        stated = files.read_json(str(folder / package.DESCRIPTOR))
        text = folder / package.LICENCE
        creators, sources = (
            "; ".join(dict.fromkeys(filter(None, (s.get("title") for s in stated.get(key, [])))))
            for key in ("contributors", "sources")
        )
        return Terms(
            next((licence["name"] for licence in stated.get("licenses", [])), ""),
            stated.get("title", ""),
            creators,
            sources,
            stated.get("citation", ""),
            text.read_text("utf-8") if text.is_file() else "",
        )


# -- writing ---------------------------------------------------------------------------------------


def _write(output: Path, made: Package, facts: Document) -> None:
    """Write a package to a scratch folder, check it, and rename it to `output`.

    `facts`: name of a further JSON file -> what it holds.

    Raises DataError: a cell may not be passed on: file, line, column, what is allowed;
    RecordWriteError: the disk is full, or may not be written to.
    """
    if output.exists():
        raise DataError(f"{output} exists already", do="remove it, or choose another name")
    # on the same disk as the package; the last part is its name, which the check looks at
    scratch = output.with_name(f"{output.name}.{os.getpid()}.tmp")
    folder = scratch / made.name

    def write_json(name: str, content: Any) -> None:
        text = json.dumps(content, indent=1, allow_nan=False, ensure_ascii=False)
        (folder / name).write_text(text + "\n", "utf-8")

    with files.writing("a package", str(output)):
        try:
            folder.mkdir(parents=True)
            if made.terms.text:
                (folder / package.LICENCE).write_text(made.terms.text, "utf-8")
            for part in made.parts:
                write_frame(folder / part.path, "a package", part.rows)
            for name, content in facts.items():
                write_json(name, content)
            written = {
                path.name: File(path.stat().st_size, hashlib.sha256(path.read_bytes()).hexdigest())
                for path in folder.iterdir()
            }
            write_json(package.DESCRIPTOR, made.frictionless([*facts], written))
            write_json(package.CROISSANT, made.croissant(written))
            (folder / package.README).write_text(made.readme(), "utf-8")
            write_sums(str(folder), durable=False)
            if problems := check_folder(folder):
                raise problems[0]
            if output.suffix == ".zip":
                # the metadata at its top, and equal for equal content
                with zipfile.ZipFile(scratch / "package.zip", "w") as archive:
                    for file in sorted(folder.iterdir()):
                        entry = zipfile.ZipInfo(file.name, _EPOCH)
                        entry.compress_type = zipfile.ZIP_DEFLATED
                        entry.external_attr = 0o644 << 16
                        archive.writestr(entry, file.read_bytes())
                os.rename(scratch / "package.zip", output)
            else:
                os.rename(folder, output)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
