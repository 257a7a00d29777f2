"""Write the metadata of a package as JSON, for readers of Frictionless and of Croissant.

The public libraries of these formats read and validate them in the tests; to write them needs none.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from epochwatt import __version__, columns
from epochwatt.open_data import layout
from epochwatt.open_data.schema import Table

CROISSANT_TYPES = {"str": "sc:Text", "int": "sc:Integer", "float": "sc:Float", "bool": "sc:Boolean"}


class Part(NamedTuple):
    """A table of a package: a file, all of whose rows have one provenance."""

    table: Table
    provenance: str
    rows: list[list[str]]

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
        state = layout.STATEMENTS[self.provenance]
        return f"{state[0].upper()}{state[1:]}. A row is {self.table.title}."


class File(NamedTuple):
    """A file that was written: length in bytes and SHA-256."""

    size: int
    sha256: str


@dataclass(frozen=True, kw_only=True)
class Labels:
    """Description of a package; texts may be empty where nobody gave them."""

    name: str  # lower case, digits and hyphens; it says what is not measured
    title: str  # a line
    licence: str  # SPDX expression
    creator: str  # who measured or simulated
    source: str  # where the rows come from, and how to cite them
    citation: str
    created: str  # day, ISO 8601
    provenances: tuple[str, ...]  # of its rows, in the order of `columns.PROVENANCES`

    @property
    def description(self) -> str:
        """Title of a table, where its rows come from first."""
        state = layout.statement(self.provenances)
        return f"{state[0].upper()}{state[1:]}. {self.title}."


def frictionless(
    labels: Labels, parts: Sequence[Part], others: Sequence[str], files: Mapping[str, File]
) -> dict[str, Any]:
    """Return `datapackage.json`: Data Package 2.0, one resource per table and further file."""
    licence = {"name": labels.licence, "path": layout.licence_url(labels.licence)}
    return {
        "$schema": "https://datapackage.org/profiles/2.0/datapackage.json",
        "name": labels.name,
        "title": labels.title,
        "description": labels.description,
        "created": f"{labels.created}T00:00:00Z",
        "version": "1.0.0",
        "licenses": [licence],
        **({"sources": [_source(labels.source)]} if labels.source else {}),
        **({"contributors": [_contributor(labels.creator)]} if labels.creator else {}),
        **({"citation": labels.citation} if labels.citation else {}),
        "epochwatt": {
            "format": layout.FORMAT,
            "version": __version__,
            "schema_version": columns.SCHEMA_VERSION,
            "provenances": list(labels.provenances),
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
                    **_written(files[part.path]),
                    "epochwatt": {"table": part.table.name, "provenance": part.provenance},
                    "schema": part.table.descriptor(),
                }
                for part in parts
            ),
            *(
                {
                    "name": name.partition(".")[0].lower(),
                    "path": name,
                    "mediatype": "application/json",
                    "format": "json",
                    **_written(files[name]),
                }
                for name in others
            ),
        ],
    }


def _written(file: File) -> dict[str, Any]:
    return {"bytes": file.size, "hash": f"sha256:{file.sha256}"}


def _source(source: str) -> dict[str, str]:
    return {"title": source, **({"path": source} if source.startswith("http") else {})}


def _contributor(creator: str) -> dict[str, Any]:
    return {"title": creator, "roles": ["creator"]}


def croissant(labels: Labels, parts: Sequence[Part], files: Mapping[str, File]) -> dict[str, Any]:
    """Return `croissant.json`: Croissant 1.0, one record set per table."""
    return {
        "@context": _CROISSANT_CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": labels.name,
        "description": labels.description,
        "license": layout.licence_url(labels.licence),
        **({"url": labels.source} if labels.source.startswith("http") else {}),
        "citeAs": labels.citation or labels.title,
        **({"creator": _CREATOR | {"name": labels.creator}} if labels.creator else {}),
        "datePublished": labels.created,
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
            for part in parts
        ],
        "recordSet": [
            {
                "@type": "cr:RecordSet",
                "@id": part.name,
                "name": part.name,
                "description": part.description,
                "key": [{"@id": f"{part.name}/{column}"} for column in part.table.key],
                "field": [_croissant_field(part, column.field) for column in part.table.columns],
            }
            for part in parts
        ],
    }


def _croissant_field(part: Part, field: columns.Column) -> dict[str, Any]:
    unit = f" [{field.unit}]" if field.unit else ""
    return {
        "@type": "cr:Field",
        "@id": f"{part.name}/{field.name}",
        "name": field.name,
        "description": field.description + unit,
        "dataType": CROISSANT_TYPES[field.kind],
        "source": {"fileObject": {"@id": part.path}, "extract": {"column": field.name}},
    }


_CREATOR = {"@type": "sc:Organization"}
_CROISSANT_CONTEXT = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "sc": "https://schema.org/",
} | {
    name: f"cr:{name}"
    for name in (
        *("citeAs", "column", "equivalentProperty", "extract", "field", "fileProperty"),
        *("fileObject", "fileSet", "format", "includes", "isLiveDataset", "jsonPath", "key", "md5"),
        *("parentField", "path", "recordSet", "references", "regex", "repeated", "replace"),
        *("samplingRate", "separator", "source", "subField", "transform"),
    )
}
