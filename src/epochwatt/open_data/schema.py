"""The schema of every table that is passed on: what a column is called, counts and may hold.

Written once, from `fields` and the types of `SweepRow` and `FactorValues`: the checker reads cells
by it, and `datapackage.json` shows it to other programs as a Frictionless Table Schema.
"""

import re
import typing
from collections.abc import Iterable
from dataclasses import MISSING, dataclass
from dataclasses import fields as attributes
from functools import cached_property
from typing import Any

from epochwatt.board.records.shapes import Document
from epochwatt.columns import (
    FACTORS,
    MODE_PARTS,
    REQUIRED,
    RUN_ENERGY_COLUMNS,
    RUN_EPOCH_COLUMNS,
    RUNS_COLUMNS,
    STATISTICS,
    STUDIES_COLUMN,
    SWEEP_COLUMNS,
)
from epochwatt.columns import (
    Column as OurColumn,
)
from epochwatt.study.config import FactorValues
from epochwatt.sweeps.mode_table import POSITIVE, SweepRow
from epochwatt.text import CELL_TEXT, ORIGINS

TYPES = {"str": "string", "int": "integer", "float": "number", "bool": "boolean"}
TRUE, FALSE = ("true", "True", "TRUE", "1"), ("false", "False", "FALSE", "0")
_FORMS = {
    "str": (CELL_TEXT, "text"),
    "int": (r"[+-]?\d+", "a whole number"),
    "float": (r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", "a finite number"),
    "bool": ("|".join((*TRUE, *FALSE)), "true or false"),
}
# Differences of rounded numbers, and losses that may be negative; all others are 0 or more.
_SIGNED = ("overhead_s", "loss", "energy_paper_missing_pct")

PROVENANCE = next(f for f in SWEEP_COLUMNS if f.name == "provenance")


@dataclass(frozen=True)
class Column:
    """A column, and what a cell of it may be."""

    field: OurColumn  # name, kind, unit and meaning
    required: bool = False  # a cell may not be empty
    choices: tuple[str, ...] = ()  # the only texts that are allowed; none: any
    least: float | None = None  # limits of a number, in `field.unit`: least allowed, and excluded
    above: float | None = None

    @property
    def name(self) -> str:
        """Its name."""
        return self.field.name

    @cached_property
    def _form(self) -> re.Pattern[str]:
        return re.compile(_FORMS[self.field.kind][0])

    def problem(self, cell: str) -> str:
        """Check a cell; return what is allowed instead, empty if the cell is allowed."""
        if cell == "":
            return self.allowed() if self.required else ""
        if self.choices:
            return "" if cell in self.choices else self.allowed()
        if not self._form.fullmatch(cell):
            return self.allowed()
        if self.least is not None and float(cell) < self.least:
            return self.allowed()
        # a number that is too large for a float is infinite
        is_outside = self.above is not None and not self.above < float(cell) < float("inf")
        return self.allowed() if is_outside else ""

    def allowed(self) -> str:
        """Return in words what a cell may be."""
        words = ", ".join(self.choices) or _FORMS[self.field.kind][1]
        if self.least is not None:
            words += f" of at least {self.least:g}"
        if self.above is not None:
            words += f" above {self.above:g}"
        return words + (f" in {self.field.unit}" if self.field.unit else "")

    def descriptor(self) -> Document:
        """Return the column as a field of a Frictionless Table Schema; `unit` is our addition."""
        limits = {
            "required": self.required or None,
            "enum": list(self.choices) or None,
            "minimum": self.least,
            "exclusiveMinimum": self.above,
        }
        constraints = {name: value for name, value in limits.items() if value is not None}
        return {
            "name": self.name,
            "type": TYPES[self.field.kind],
            "description": self.field.description,
            **({"unit": self.field.unit} if self.field.unit else {}),
            **({"constraints": constraints} if constraints else {}),
        }


@dataclass(frozen=True)
class Table:
    """A kind of table that is passed on."""

    name: str  # sweeps, epochs, runs or energy
    title: str  # what a row is
    columns: tuple[Column, ...]  # in the order of the file
    key: tuple[str, ...]  # columns that tell a row from all others

    @property
    def header(self) -> list[str]:
        """Names of the columns."""
        return [column.name for column in self.columns]

    def descriptor(self) -> Document:
        """Return the Frictionless Table Schema."""
        return {
            "$schema": "https://datapackage.org/profiles/2.0/tableschema.json",
            "fields": [column.descriptor() for column in self.columns],
            "missingValues": [""],
            "primaryKey": list(self.key),
        }


def _sweep_columns() -> tuple[Column, ...]:
    """Build the columns of a table of modes from the types and defaults of `SweepRow`."""
    types = typing.get_type_hints(SweepRow)
    defaults = {a.name: a.default for a in attributes(SweepRow)}
    columns = []
    for field in SWEEP_COLUMNS:
        default = defaults[field.name]
        is_number = field.kind in ("int", "float")
        is_positive = field.name in POSITIVE
        columns.append(
            Column(
                field,
                required=default is MISSING or default not in (None, ""),
                choices=_choices(types[field.name]),
                least=0 if is_number and not is_positive else None,
                above=0 if is_positive else None,
            )
        )
    return tuple(columns)


def _choices(annotation: Any) -> tuple[str, ...]:
    """Return the texts of a Literal type, also inside a union; empty for other types."""
    parts = typing.get_args(annotation)
    if typing.get_origin(annotation) is typing.Literal:
        return tuple(word for word in parts if word)
    return next((words for part in parts if (words := _choices(part))), ())


_SWEEPS = _sweep_columns()
_CHOICES = {
    **{column.name: column.choices for column in _SWEEPS},
    **{
        name: _choices(f.annotation)
        for name, f in FactorValues.model_fields.items()
        if _choices(f.annotation)
    },
    "backend": tuple(ORIGINS),
    "statistic": STATISTICS,
    "epoch_set": ("0", "1+", "all"),
}
_REQUIRED = (
    *("provenance", "run", "epoch", "e2e_s", "valid", "epoch_set", "statistic", "n_epochs"),
    *(f.name for f in FACTORS if f.default is REQUIRED),
)


def _run_columns(columns: Iterable[OurColumn], optional: Iterable[str] = ()) -> tuple[Column, ...]:
    """Build the columns of a table of runs, provenance first; cells of `optional` may be empty."""
    return tuple(
        Column(
            field,
            required=field.name in _REQUIRED and field.name not in optional,
            choices=_CHOICES.get(field.name, ()),
            least=0 if field.kind in ("int", "float") and field.name not in _SIGNED else None,
        )
        for field in (PROVENANCE, *columns)
    )


TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        Table(
            "sweeps",
            "a workload in one mode of a device, and one repeat",
            _SWEEPS,
            (
                *("sweep", "device", "instance", "workload", "task", "batch_size"),
                *("precision", "work", *MODE_PARTS, "repeat"),
            ),
        ),
        Table(
            "epochs",
            "an epoch of a run",
            _run_columns((STUDIES_COLUMN, *RUN_EPOCH_COLUMNS)),
            ("run", "epoch"),
        ),
        Table(
            "runs",
            "a run, a set of its epochs, and a statistic over them",
            _run_columns(RUNS_COLUMNS, ("e2e_s",)),
            ("run", "epoch_set", "statistic"),
        ),
        Table(
            "energy",
            "an epoch of a run, and a power scope",
            _run_columns(RUN_ENERGY_COLUMNS),
            ("run", "epoch", "power_scope"),
        ),
    )
}
