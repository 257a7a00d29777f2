"""Check a package: every file as it was written, every cell allowed, every statement the same."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from epochwatt.board.records import shapes
from epochwatt.board.records.checksums import SUMS, fault, read_sums
from epochwatt.errors import DamagedError, DataError
from epochwatt.open_data import layout
from epochwatt.open_data.check_table import check_table, read_metadata, wrong_at
from epochwatt.tables import LARGEST

DESCRIPTOR_SHAPE = {
    "name": shapes.WORD,
    "description": shapes.TEXT,
    "licenses?": [{"name": shapes.WORD}],
    "epochwatt": {"format": shapes.COUNT, "provenances": [shapes.WORD]},
    "resources": [{"name": shapes.WORD, "path": shapes.WORD}],
}
TABLE_SHAPE = {
    "epochwatt": {"table": shapes.WORD, "provenance": shapes.WORD},
    "hash": shapes.WORD,
    "schema": {"fields": [{"name": shapes.WORD, "type": shapes.WORD, "unit?": shapes.WORD}]},
}
CROISSANT_SHAPE = {
    "name": shapes.WORD,
    "description": shapes.TEXT,
    "license": shapes.WORD,
    "distribution": [{"contentUrl": shapes.WORD, "sha256": shapes.WORD}],
}


def check_folder(folder: Path) -> list[DataError]:
    """Return what is wrong with a package; nothing: it may be relied upon.

    A problem says file, line, column, what was there and what is allowed. The name of the folder
    has to say what is not measured, like the name inside it.
    """
    if not_read := [*_not_to_read(folder)]:
        return not_read
    try:
        descriptor = read_metadata(folder, layout.DESCRIPTOR, DESCRIPTOR_SHAPE)
    except DataError as error:
        return [error]
    if descriptor["epochwatt"]["format"] > layout.FORMAT:
        return [
            DataError(
                "a format that this version does not know",
                where=layout.DESCRIPTOR,
                found=f"format {descriptor['epochwatt']['format']}",
                allowed=f"up to {layout.FORMAT}",
                do="read it with a newer epochwatt",
            )
        ]
    problems = list(_check_files(folder))
    altered = {str(problem.where) for problem in problems}
    resources = [r for r in descriptor["resources"] if "schema" in r]
    if not resources:
        problems.append(DataError("no table", where=layout.DESCRIPTOR, allowed="one or more"))
    seen = set()
    for resource in resources:
        if wrong := shapes.problem(resource, TABLE_SHAPE):
            problems.append(DataError(f"{resource['name']}: {wrong}", where=layout.DESCRIPTOR))
            return problems
        problems += check_table(folder, resource, altered)
        seen.add(resource["epochwatt"]["provenance"])
    return problems + list(_check_statements(folder, descriptor, seen))


# -- files -----------------------------------------------------------------------------------------


def _not_to_read(folder: Path) -> Iterator[DataError]:
    """Yield files that must not be read: pipes, which never end, and what fills the memory."""
    for path in sorted(folder.iterdir()):
        if path.is_fifo() or path.is_socket() or path.is_char_device() or path.is_block_device():
            yield DataError("a package has plain files only", where=path.name, do="remove it")
        elif path.is_file() and path.stat().st_size > LARGEST:
            allowed = f"{LARGEST >> 20} MiB"
            yield DataError("too large for a file of a package", where=path.name, allowed=allowed)


def _check_files(folder: Path) -> Iterator[DataError]:
    """Yield what is wrong with the files as such; of wrong cells `check_table` tells."""
    present = {path.name for path in folder.iterdir()}
    for name in layout.NEEDED:
        if name not in present:
            yield DataError(f"{name} is missing", where=name)
    try:
        sums = read_sums(str(folder)) or {}
    except DamagedError as error:
        yield DataError(str(error), where=SUMS)
        return
    for name in sorted(sums.keys() - present - set(layout.NEEDED)):
        yield DataError(f"{name} is missing", where=name, do="get the whole package again")
    for name in sorted(present - {SUMS}):
        if SUMS not in present:
            return
        if not (folder / name).is_file():
            yield DataError("a package has no folders", where=name)
        elif wrong := fault(str(folder / name), sums):
            yield DataError(wrong.partition("was altered: ")[2], where=name)


# -- statements ------------------------------------------------------------------------------------


def _check_statements(
    folder: Path, descriptor: Mapping[str, Any], provenances: set[str]
) -> Iterator[DataError]:
    """Yield what name, provenance, licence and both files of metadata disagree on."""
    stated = descriptor["epochwatt"]["provenances"]
    if set(stated) != provenances:
        what = "the provenances of the package are not those of its tables"
        yield wrong_at(layout.DESCRIPTOR, what, ", ".join(stated), sorted(provenances))
    if not descriptor["description"].lower().startswith(layout.statement(provenances).lower()):
        what = "the description does not begin with where the rows come from"
        allowed = [layout.statement(provenances)]
        yield wrong_at(layout.DESCRIPTOR, what, descriptor["description"], allowed)
    for where, name in ((layout.DESCRIPTOR, descriptor["name"]), (layout.FOLDER, folder.name)):
        if missing := layout.unmarked(name, provenances):
            what = f"rows are {' and '.join(missing)}, and the name of the package does not say so"
            yield wrong_at(where, what, name, [layout.marked(name, provenances)])
    licences = [licence["name"] for licence in descriptor.get("licenses", [])]
    if not licences:
        do = "add `licenses`: without one nobody may use the data"
        yield DataError("no licence", where=layout.DESCRIPTOR, do=do)
    for licence in licences:
        if wrong := layout.licence_problem(licence):
            allowed = ["a name of https://spdx.org/licenses, such as CC-BY-4.0"]
            yield wrong_at(layout.DESCRIPTOR, f"the licence {wrong}", licence, allowed)
    yield from _check_croissant(folder, descriptor, licences)


def _check_croissant(
    folder: Path, descriptor: Mapping[str, Any], licences: Sequence[str]
) -> Iterator[DataError]:
    """Yield where `croissant.json` says otherwise than `datapackage.json`."""
    try:
        croissant = read_metadata(folder, layout.CROISSANT, CROISSANT_SHAPE)
    except DataError as error:
        yield error
        return
    for key in ("name", "description"):
        if croissant[key] != descriptor[key]:
            yield _otherwise(layout.CROISSANT, key, croissant[key], descriptor[key])
    if licences and croissant["license"] not in map(layout.licence_url, licences):
        yield _otherwise(layout.CROISSANT, "license", croissant["license"], licences[0])
    hashes = {file["contentUrl"]: f"sha256:{file['sha256']}" for file in croissant["distribution"]}
    expected = {r["path"]: r.get("hash") for r in descriptor["resources"] if "schema" in r}
    for path in expected.keys() | hashes.keys():
        if hashes.get(path) != expected.get(path):
            what = f"checksum of {path}"
            yield _otherwise(layout.CROISSANT, what, hashes.get(path), expected.get(path))


def _otherwise(where: str, what: str, value: object, expected: object) -> DataError:
    allowed = [f"{expected}, as in {layout.DESCRIPTOR}"]
    return wrong_at(where, f"another {what}", str(value), allowed)
