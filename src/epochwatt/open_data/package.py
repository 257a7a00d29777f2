"""Name the files of a package of tables, and write its metadata for Frictionless and Croissant.

The public libraries of these formats read and validate them in the tests; to write them needs none.
"""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pandas as pd
from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

from epochwatt import __version__, columns
from epochwatt.board.records.checksums import SUMS
from epochwatt.board.records.shapes import Document
from epochwatt.open_data.schema import Table
from epochwatt.study.imported import OWN_LOOP
from epochwatt.text import counted

# of the package; a reader refuses those that are younger than itself. 1 had an RO-Crate and a
# checksum of each line and column as well; they stay in it, and SHA256SUMS covers them
FORMAT = 2
DESCRIPTOR = "datapackage.json"
CROISSANT = "croissant.json"
DEVICES = "devices.json"
RECORDS = "records.json"
README = "README.md"
LICENCE = "LICENSE"
FOLDER = "its folder"  # where a problem is that the folder's name has
NEEDED = (DESCRIPTOR, CROISSANT, README, SUMS)

NOT_MEASURED = ("fake", "simulated")  # provenances that a name has to say
STATEMENTS = {
    "measured": "measured with epochwatt",
    "public": "measured by others",
    "simulated": "SIMULATED, not measured",
    "fake": "FROM A FAKE BOARD, not measured",
}
CONTEXT = Path(__file__).with_name("croissant_context.json")  # of Croissant 1.0
_WORDS = re.compile(r"[^a-z0-9]+")


def provenance_of(backend: str, imported: str) -> str:
    """Derive the provenance of a run from two of its factors; logs of other programs are public."""
    if backend in ("host", "jetson"):
        return "measured" if imported in ("", OWN_LOOP) else "public"
    return {"twin": "simulated"}.get(backend, "fake")


def statement(provenances: Collection[str]) -> str:
    """Return in words where the rows of a package come from, what is not measured first."""
    order = (*NOT_MEASURED, *columns.PROVENANCES)
    return "; ".join(STATEMENTS[p] for p in dict.fromkeys(order) if p in provenances)


def describe(provenances: Collection[str], title: str) -> str:
    """Return a title behind a sentence on where the rows come from."""
    state = statement(provenances)
    return f"{state[0].upper()}{state[1:]}. {title}."


def marked(name: str, provenances: Collection[str]) -> str:
    """Append to a package's name what in it is not measured.

    `tx2` becomes `tx2-simulated`, or `tx2-partly-simulated` where other rows are there, too; a name
    that says so already stays.
    """
    words = [word for word in NOT_MEASURED if word in provenances]
    partly = ["partly"] if words and set(provenances) - set(words) else []
    missing = [word for word in (*partly, *words) if word not in _WORDS.split(name.lower())]
    return "-".join((name, *missing))


def unmarked(name: str, provenances: Collection[str]) -> list[str]:
    """Return the provenances that a name has to say and does not: fake, simulated."""
    present = _WORDS.split(name.lower())
    return [word for word in NOT_MEASURED if word in provenances and word not in present]


def licence_problem(licence: str) -> str:
    """Check a licence against the SPDX list; return what is wrong with it, empty if nothing."""
    try:
        return "" if canonicalize_license_expression(licence) == licence else "is written otherwise"
    except InvalidLicenseExpression as error:
        return f"is no licence of the SPDX list ({error})"


def licence_url(licence: str) -> str:
    """Return the SPDX page of a licence; of an expression of several, the page of the list."""
    single = re.fullmatch(r"[\w.+-]+", licence) and not licence.startswith("LicenseRef-")
    return f"https://spdx.org/licenses/{licence}.html" if single else "https://spdx.org/licenses/"


@dataclass(frozen=True)
class Terms:
    """Who made the rows of a package, and what others may do with them; texts may be empty."""

    licence: str = ""  # SPDX expression
    title: str = ""
    creator: str = ""
    source: str = ""
    citation: str = ""
    text: str = ""  # of the licence, with its copyright line


class Part(NamedTuple):
    """A table of a package: a file, all of whose rows have one provenance."""

    table: Table
    provenance: str
    rows: pd.DataFrame  # cells as text, in the columns of the table

    @property
    def name(self) -> str:
        """Its name, which says the provenance."""
        return f"{self.table.name}-{self.provenance}"

    @property
    def path(self) -> str:
        """Its file."""
        return f"{self.name}.csv"

    @property
    def description(self) -> str:
        """Title of its content, the provenance first."""
        return describe([self.provenance], f"A row is {self.table.title}")


class File(NamedTuple):
    """A file that was written: length in bytes and SHA-256."""

    size: int
    sha256: str


@dataclass(frozen=True, kw_only=True)
class Package:
    """Tables and what they say of themselves."""

    name: str  # lower case, digits and hyphens; it says what is not measured
    terms: Terms
    created: str  # day, ISO 8601
    parts: Sequence[Part]  # none of them empty

    @property
    def provenances(self) -> list[str]:
        """Provenances of its rows, in the order of `columns.PROVENANCES`."""
        present = {part.provenance for part in self.parts}
        return [p for p in columns.PROVENANCES if p in present]

    @property
    def description(self) -> str:
        """Its title, where its rows come from first."""
        return describe(self.provenances, self.terms.title)

    def frictionless(self, others: Sequence[str], files: Mapping[str, File]) -> Document:
        """Build `datapackage.json`: Data Package 2.0, one resource per table and further file.

        `others`: names of further JSON files; `files`: every written file by name
        """
        terms = self.terms

        def size_and_hash(name: str) -> Document:
            return {"bytes": files[name].size, "hash": f"sha256:{files[name].sha256}"}

        source = {"title": terms.source}
        if terms.source.startswith("http"):
            source["path"] = terms.source
        optional = {
            "sources": [source] if terms.source else None,
            "contributors": [{"title": terms.creator, "roles": ["creator"]}]
            if terms.creator
            else None,
            "citation": terms.citation or None,
        }
        return {
            "$schema": "https://datapackage.org/profiles/2.0/datapackage.json",
            "name": self.name,
            "title": terms.title,
            "description": self.description,
            "created": f"{self.created}T00:00:00Z",
            "version": "1.0.0",
            "licenses": [{"name": terms.licence, "path": licence_url(terms.licence)}],
            **{key: value for key, value in optional.items() if value},
            "epochwatt": {
                "format": FORMAT,
                "version": __version__,
                "schema_version": columns.SCHEMA_VERSION,
                "provenances": self.provenances,
            },
            "resources": [
                *(
                    {
                        "name": part.name,
                        "type": "table",
                        "title": part.description,
                        "path": part.path,
                        "format": "csv",
                        "mediatype": "text/csv",
                        "encoding": "utf-8",
                        **size_and_hash(part.path),
                        "epochwatt": {"table": part.table.name, "provenance": part.provenance},
                        "schema": part.table.descriptor(),
                    }
                    for part in self.parts
                ),
                *(
                    {
                        "name": name.partition(".")[0].lower(),
                        "path": name,
                        "mediatype": "application/json",
                        "format": "json",
                        **size_and_hash(name),
                    }
                    for name in others
                ),
            ],
        }

    def croissant(self, files: Mapping[str, File]) -> Document:
        """Build `croissant.json`: Croissant 1.0, one record set per table; `files`: by name."""
        terms = self.terms
        creator = {"@type": "sc:Organization", "name": terms.creator}
        return {
            "@context": json.loads(CONTEXT.read_text("utf-8")),
            "@type": "sc:Dataset",
            "conformsTo": "http://mlcommons.org/croissant/1.0",
            "name": self.name,
            "description": self.description,
            "license": licence_url(terms.licence),
            **({"url": terms.source} if terms.source.startswith("http") else {}),
            "citeAs": terms.citation or terms.title,
            **({"creator": creator} if terms.creator else {}),
            "datePublished": self.created,
            "version": "1.0.0",
            "distribution": [
                {
                    "@type": "cr:FileObject",
                    "@id": part.path,
                    "name": part.path,
                    "description": part.description,
                    "contentUrl": part.path,
                    "contentSize": f"{files[part.path].size} B",
                    "encodingFormat": "text/csv",
                    "sha256": files[part.path].sha256,
                }
                for part in self.parts
            ],
            "recordSet": [
                {
                    "@type": "cr:RecordSet",
                    "@id": part.name,
                    "name": part.name,
                    "description": part.description,
                    "key": [{"@id": f"{part.name}/{column}"} for column in part.table.key],
                    "field": [
                        {
                            "@type": "cr:Field",
                            "@id": f"{part.name}/{field.name}",
                            "name": field.name,
                            "description": field.description
                            + (f" [{field.unit}]" if field.unit else ""),
                            "dataType": CROISSANT_TYPES[field.kind],
                            "source": {
                                "fileObject": {"@id": part.path},
                                "extract": {"column": field.name},
                            },
                        }
                        for field in (column.field for column in part.table.columns)
                    ],
                }
                for part in self.parts
            ],
        }

    def readme(self) -> str:
        """Write README.md: where the rows come from, terms, and a table of the tables."""
        terms = self.terms
        facts = {
            "Licence": f"{terms.licence}, {licence_url(terms.licence)}",
            "By": terms.creator,
            "Source": terms.source,
            "Please cite": terms.citation,
        }
        lines = "".join(f"* {name}: {text}\n" for name, text in facts.items() if text)
        tables = "".join(
            f"| `{part.path}` | {counted(len(part.rows), 'rows')} | {part.description} |\n"
            for part in self.parts
        )
        return (
            f"# {self.name}\n\n**{statement(self.provenances)}**\n\n{terms.title}\n\n{lines}\n"
            f"| table | rows | what it holds |\n| --- | --- | --- |\n{tables}\n"
            "Columns, units and what a cell may hold: `datapackage.json`. To check that nothing "
            "was altered: `epochwatt validate`, or `sha256sum -c SHA256SUMS`.\n"
        )


CROISSANT_TYPES = {"str": "sc:Text", "int": "sc:Integer", "float": "sc:Float", "bool": "sc:Boolean"}
