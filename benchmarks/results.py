"""What a benchmark gives back: values with their spread, a budget, a table and a JSON file."""

import csv
import json
import math
import resource
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from epochwatt.board.device import host
from epochwatt.board.records import files
from epochwatt.text import aligned

REPOSITORY = Path(__file__).resolve().parents[1]
CONFIDENCE = 0.95

_HEADER = ("what", "median", "middle half", "95 % of median", "n", "budget", "")


@dataclass(frozen=True)
class Budget:
    """The range in which a median has to lie; `low` of None is no lower bound."""

    low: float | None
    high: float
    text: str

    def met(self, median: float) -> bool:
        """Say whether a median keeps to it."""
        return median <= self.high and (self.low is None or median >= self.low)


def at_most(limit: float) -> Budget:
    """Return the budget of something that should be small."""
    return Budget(None, limit, f"<= {limit:g}")


def near(truth: float, margin: float) -> Budget:
    """Return the budget of something whose true value is known."""
    return Budget(truth - margin, truth + margin, f"{truth:g} ± {margin:g}")


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Parameters
    ----------
    what : what was measured, under which condition
    values : every value, in `unit` and in the order in which they were taken
    unit : of the values; empty for a ratio
    digits : decimals shown
    budget : where the median should lie; None: only said
    """

    what: str
    values: Sequence[float]
    unit: str
    digits: int
    budget: Budget | None = None

    @property
    def median(self) -> float:
        """Median of the values."""
        return float(np.median(self.values))

    @property
    def met(self) -> bool | None:
        """Whether the median keeps to the budget; None without one."""
        return None if self.budget is None else self.budget.met(self.median)

    def cells(self) -> tuple[str, ...]:
        """Return the cells of the table's line."""
        interval = median_interval(self.values)
        unit = f" {self.unit}" if self.unit else ""
        return (
            self.what,
            f"{self.median:.{self.digits}f}{unit}",
            self._range(*quartiles(self.values)),
            self._range(*interval) if interval else "-",
            str(len(self.values)),
            self.budget.text + unit if self.budget else "-",
            {True: "met", False: "NOT MET", None: ""}[self.met],
        )

    def _range(self, low: float, high: float) -> str:
        return f"{low:.{self.digits}f} .. {high:.{self.digits}f}"

    def as_json(self) -> dict[str, Any]:
        """Return all of it as it stands in the JSON file."""
        budget = self.budget
        return {
            "what": self.what,
            "unit": self.unit,
            "median": self.median,
            "quartiles": quartiles(self.values),
            "median_interval": median_interval(self.values),
            "budget": {"low": budget.low, "high": budget.high} if budget else None,
            "met": self.met,
            "values": list(self.values),
        }


@dataclass(frozen=True)
class Result:
    """What one benchmark found: lines of the table, and raw values that stand in none."""

    rows: list[Row]
    details: dict[str, Any] = field(default_factory=dict)


def quartiles(values: Sequence[float]) -> tuple[float, float]:
    """Return the bounds of the middle half of the values."""
    low, high = np.percentile(values, [25, 75])
    return float(low), float(high)


def median_interval(values: Sequence[float]) -> tuple[float, float] | None:
    """Return the interval that covers the true median in at least 95 % of cases.

    Two order statistics, whatever the distribution: the number of values below the true median is
    binomial. None for fewer than six values, which hold no such interval.
    """
    n = len(values)
    tail, k = 0.5**n, 0  # tail = P(at most k values lie below the median)
    if 2 * tail > 1 - CONFIDENCE:
        return None
    while 2 * (tail + math.comb(n, k + 1) * 0.5**n) <= 1 - CONFIDENCE:
        k += 1
        tail += math.comb(n, k) * 0.5**n
    ordered = sorted(values)
    return float(ordered[k]), float(ordered[n - 1 - k])


def children_cpu_s() -> float:
    """Return the CPU time of all child processes that have ended, in seconds."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


Table = list[list[str]]  # the header, then rows of cells


def read_table(path: Path) -> Table:
    """Return the cells of a CSV file."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def write_tables(folder: Path, tables: Mapping[str, Table]) -> None:
    """Write tables as CSV files of these names."""
    folder.mkdir(exist_ok=True)
    for name, table in tables.items():
        with (folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows(table)


def table(rows: Sequence[Row]) -> list[str]:
    """Return the rows as lines with aligned columns, under a header."""
    return aligned([_HEADER, *(row.cells() for row in rows)])


def save(path: Path, name: str, result: Result) -> None:
    """Put a benchmark's result into the JSON file; those of other benchmarks stay as they are.

    Each carries its own time, commit and machine, since they need not be of one call.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    known = json.loads(path.read_text("utf-8")) if path.exists() else {}
    known[name] = {
        "time": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "commit": commit(),
        **host.describe(),
        "rows": [row.as_json() for row in result.rows],
        "details": result.details,
    }
    files.write_json(str(path), known)


def commit() -> dict[str, Any] | None:
    """Return hash and whether tracked files differ from it; None where there is no commit."""
    head = _git("rev-parse", "HEAD")
    changed = _git("status", "--porcelain", "--untracked-files=no")
    return None if head is None else {"hash": head, "changed": bool(changed)}


def _git(*words: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(REPOSITORY), *words], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()
