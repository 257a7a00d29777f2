"""Lines of the authors' own files: columns by name, numbers checked, clocks in MHz.

A converter asks a line for its cells. What cannot be is refused with file, line and column; further
columns are ignored, so a file with more counters than ours is read unchanged.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

from epochwatt.errors import ConfigError
from epochwatt.sweeps.mode_table import SweepRow
from epochwatt.tables import read_table
from epochwatt.text import CELL_TEXT, CELL_TEXT_ADVICE

HZ, KHZ, MHZ = 1e6, 1e3, 1.0  # how many of the unit are one MHz
TABLE_NAMES = ("table", "source_table", "source_file")  # columns, where tables were put together
CLOCKS_MHZ = (5.0, 50_000.0)  # no clock of a CPU, GPU or memory is outside of it


class Wanted(NamedTuple):
    """What the caller says of files that do not say it themselves.

    Attributes
    ----------
    sweep : name of the sweep
    device : board or GPU; empty: as the file or its name says
    only : pattern of the tables to read, where a file holds several; else of the file's name
    """

    sweep: str
    device: str = ""
    only: str = "*"


@dataclass(frozen=True)
class Line:
    """One line of a table, or one entry of another file.

    Attributes
    ----------
    where : file and line, for messages
    cells : column -> text
    stem : the file's name without what follows the first full stop
    """

    where: str
    cells: dict[str, str]
    stem: str

    @property
    def table(self) -> str:
        """Which of the authors' tables it is of: a column says it, or the file's name."""
        return next((self.cells[name] for name in TABLE_NAMES if name in self.cells), self.stem)

    def has(self, *names: str) -> bool:
        """Return whether one of the columns is there."""
        return any(name in self.cells for name in names)

    def text(self, *names: str) -> str:
        """Return the cell of the first of these columns that is there. Raises ConfigError."""
        return self.cells[self._column(names)].strip()

    def device(self, wanted: Wanted, *names: str, in_name: str = "") -> str:
        """Return which device it is: as the caller, a column or the file's name says.

        Raises
        ------
        ConfigError : nobody says it
        """
        device = wanted.device or (self.text(*names) if self.has(*names) else in_name)
        if not device:
            raise ConfigError(
                "the file does not say which device was measured",
                where=self.where,
                do="name it with --device",
            )
        return device

    def number(self, *names: str) -> float:
        """Return a finite number. Raises ConfigError: no such column, or no number."""
        column = self._column(names)
        value = self._value(column)
        if value is None or not math.isfinite(value):
            raise self._wrong(column, "a finite number")
        return value

    def positive(self, *names: str) -> float:
        """Return a finite number above zero. Raises ConfigError."""
        column = self._column(names)
        value = self._value(column)
        if value is None or not (math.isfinite(value) and value > 0):
            raise self._wrong(column, "a finite number above zero")
        return value

    def whole(self, *names: str) -> int:
        """Return a whole number above zero, also as 2.0. Raises ConfigError."""
        column = self._column(names)
        value = self._value(column)
        if value is None or not (math.isfinite(value) and value > 0 and value.is_integer()):
            raise self._wrong(column, "a whole number above zero")
        return int(value)

    def clock_mhz(self, *names: str, unit: float) -> float:
        """Return a clock in MHz.

        Parameters
        ----------
        names : of the column, any of these
        unit : of the file: `HZ`, `KHZ` or `MHZ`

        Raises
        ------
        ConfigError : no such column, no number, or no clock of any device in this unit
        """
        column = self._column(names)
        clock_mhz = self.positive(column) / unit
        lowest, highest = CLOCKS_MHZ
        if not lowest <= clock_mhz <= highest:
            name = {HZ: "Hz", KHZ: "kHz", MHZ: "MHz"}[unit]
            raise self._wrong(column, f"{lowest * unit:.0f} to {highest * unit:.0f} {name}")
        return clock_mhz

    def measured(self, *names: str) -> float | None:
        """Return what was measured; None where the cell is empty, nan or not above zero.

        Raises
        ------
        ConfigError : no such column, or text that is no number
        """
        value = self._value(self._column(names))
        return value if value is not None and math.isfinite(value) and value > 0 else None

    def _value(self, column: str) -> float | None:
        """Return the number in a cell; None: empty."""
        cell = self.cells[column].strip()
        if cell == "":
            return None
        try:
            return float(cell)
        except ValueError:
            raise self._wrong(column, "a number") from None

    def _column(self, names: tuple[str, ...]) -> str:
        for name in names:
            if name in self.cells:
                return name
        raise ConfigError(
            f"no column {' or '.join(names)}",
            where=self.where.rpartition(", line")[0] or self.where,
            found=self.cells,
            do="look whether this is the authors' own file, and of this format",
        )

    def _wrong(self, column: str, allowed: str) -> ConfigError:
        return ConfigError(f"{column} is {self.cells[column]!r}", where=self.where, allowed=allowed)


def stem_of(path: Path) -> str:
    """Return a file's name without its endings: `a.csv.gz` -> `a`."""
    return path.name.partition(".")[0]


def lines_of(path: Path, wanted: Wanted, delimiter: str = ",") -> Iterator[Line]:
    """Yield the wanted lines of a table, compressed or not.

    Raises
    ------
    ConfigError : it cannot be read
    """
    for number, row in read_table(path, delimiter):
        cells = {name.lstrip("\ufeff").strip(): cell for name, cell in row.items()}
        line = Line(f"{path}, line {number}", cells, stem_of(path))
        if fnmatchcase(line.table, wanted.only):
            yield line


def public_row(line: Line, wanted: Wanted, **columns: Any) -> SweepRow | str:
    """Return the row of a line, or why it is left out: nothing was timed.

    Parameters
    ----------
    line, wanted : where it stands, and the name of the sweep
    columns : of `SweepRow`; `time_s` may be None

    Raises
    ------
    ConfigError : a cell cannot be
    """
    if columns["time_s"] is None:
        return f"{line.where}: no time"
    for name, value in columns.items():
        if isinstance(value, str) and not re.fullmatch(CELL_TEXT, value):
            raise ConfigError(f"{name} is {value!r}", where=line.where, do=CELL_TEXT_ADVICE)
    try:
        return SweepRow(sweep=wanted.sweep, provenance="public", **columns)
    except ValueError as error:
        raise ConfigError(str(error), where=line.where) from error
