"""Write a package: tables, schema, provenance, licence, boards and checksums of every file."""

import csv
import hashlib
import io
import json
import os
import shutil
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from epochwatt.board.records import files
from epochwatt.board.records.checksums import write_sums
from epochwatt.errors import DataError
from epochwatt.open_data import layout, metadata
from epochwatt.open_data.check import check_folder
from epochwatt.open_data.metadata import File, Labels, Part
from epochwatt.text import counted

_EPOCH = (1980, 1, 1, 0, 0, 0)  # time of each file in a .zip, so that equal packages are equal


def write_package(
    output: Path, labels: Labels, parts: Sequence[Part], facts: Mapping[str, Any], licence: str = ""
) -> None:
    """Write a package whole or not at all, checked.

    Raises DataError: a cell may not be passed on: file, line, column, what is allowed;
    RecordWriteError: the disk is full, or may not be written to.

    Parameters
    ----------
    output : a folder, or a .zip file, that does not exist yet
    labels : what it says of itself
    parts : its tables, none of them empty
    facts : name of a further JSON file -> what it holds
    licence : its text; empty: its name only
    """
    if output.exists():
        raise DataError(f"{output} exists already", do="remove it, or choose another name")
    # on the same disk as the package; the last part is its name, which the check looks at
    scratch = output.with_name(f"{output.name}.{os.getpid()}.tmp")
    folder = scratch / labels.name
    with files.writing("a package", str(output)):
        try:
            folder.mkdir(parents=True)
            if licence:
                (folder / layout.LICENCE).write_text(licence, "utf-8")
            _fill(folder, labels, parts, facts)
            problems = check_folder(folder)
            if problems:
                raise problems[0]
            if output.suffix == ".zip":
                _pack(folder, scratch / "package.zip")
                os.rename(scratch / "package.zip", output)
            else:
                os.rename(folder, output)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


def _fill(folder: Path, labels: Labels, parts: Sequence[Part], facts: Mapping[str, Any]) -> None:
    for part in parts:
        (folder / part.path).write_bytes(_csv(part))
    for name, content in facts.items():
        _write_json(folder / name, content)
    written = {path.name: _file(path) for path in folder.iterdir()}
    _write_json(folder / layout.DESCRIPTOR, metadata.frictionless(labels, parts, [*facts], written))
    _write_json(folder / layout.CROISSANT, metadata.croissant(labels, parts, written))
    (folder / layout.README).write_text(_readme(labels, parts), "utf-8")
    write_sums(str(folder), durable=False)


def _csv(part: Part) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(part.table.header)
    writer.writerows(part.rows)
    return text.getvalue().encode()


def _write_json(path: Path, content: Any) -> None:
    text = json.dumps(content, indent=1, allow_nan=False, ensure_ascii=False)
    path.write_text(text + "\n", "utf-8")


def _file(path: Path) -> File:
    content = path.read_bytes()
    return File(len(content), hashlib.sha256(content).hexdigest())


def _readme(labels: Labels, parts: Sequence[Part]) -> str:
    """Return the page that a reader opens first."""
    tables = "".join(
        f"| `{part.path}` | {counted(len(part.rows), 'rows')} | {part.description} |\n"
        for part in parts
    )
    facts = {
        "Licence": f"{labels.licence}, {layout.licence_url(labels.licence)}",
        "By": labels.creator,
        "Source": labels.source,
        "Please cite": labels.citation,
    }
    lines = "".join(f"* {name}: {text}\n" for name, text in facts.items() if text)
    return (
        f"# {labels.name}\n\n**{layout.statement(labels.provenances)}**\n\n{labels.title}\n\n"
        f"{lines}\n"
        f"| table | rows | what it holds |\n| --- | --- | --- |\n{tables}\n"
        "Columns, units and what a cell may hold: `datapackage.json`. To check that nothing was "
        "altered: `epochwatt validate`, or `sha256sum -c SHA256SUMS`.\n"
    )


def _pack(folder: Path, path: Path) -> None:
    """Make a .zip file of a folder, the metadata at its top, equal for equal content."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(folder.iterdir()):
            entry = zipfile.ZipInfo(file.name, _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, file.read_bytes())
