"""What a benchmark gives back: values with their spread, a budget, a table and a JSON file."""

import json
import math
import os
import resource
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from epochwatt.board.device import host
from epochwatt.board.records import files
from epochwatt.errors import EpochwattError
from epochwatt.text import aligned

if TYPE_CHECKING:  # a system's own torch may come without it
    import pandas as pd

REPOSITORY = Path(__file__).resolve().parents[1]
CONFIDENCE = 0.95
HEADER = ("what", "median", "middle half", "95 % of median", "n", "budget", "verdict")


@dataclass(frozen=True)
class Budget:
    """The range in which a median has to lie; `low` of None is no lower bound."""

    low: float | None
    high: float
    text: str

    def met(self, median: float) -> bool:
        return median <= self.high and (self.low is None or median >= self.low)


def at_most(limit: float) -> Budget:
    """Return the budget of something that should be small."""
    return Budget(None, limit, f"<= {limit:g}")


def near(truth: float, margin: float) -> Budget:
    """Return the budget of something whose true value is known."""
    return Budget(truth - margin, truth + margin, f"{truth:g} ± {margin:g}")


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    what: str  # was measured, under which condition
    values: Sequence[float]  # all of them, in `unit` and in the order in which they were taken
    unit: str  # empty for a ratio
    digits: int  # decimals shown
    budget: Budget | None = None  # where the median should lie; None: it is only reported

    @classmethod
    def from_json(cls, saved: dict[str, Any]) -> "Row":
        """Return the row that `as_json` saved."""
        budget = None
        if limits := saved["budget"]:
            low, high = limits["low"], limits["high"]
            budget = at_most(high) if low is None else Budget(low, high, f"{low:g} to {high:g}")
        return cls(saved["what"], saved["values"], saved["unit"], saved.get("digits", 2), budget)

    @property
    def median(self) -> float:
        return float(np.median(self.values))

    @property
    def met(self) -> bool | None:
        """Whether the median keeps to the budget; None without one."""
        return None if self.budget is None else self.budget.met(self.median)

    def cells(self) -> tuple[str, ...]:
        unit = f" {self.unit}" if self.unit else ""
        low_high = quartiles(self.values), median_interval(self.values)
        return (
            self.what,
            f"{self.median:.{self.digits}f}{unit}",
            *(" .. ".join(f"{v:.{self.digits}f}" for v in of) if of else "-" for of in low_high),
            str(len(self.values)),
            self.budget.text + unit if self.budget else "-",
            {True: "met", False: "NOT MET", None: "-"}[self.met],
        )

    def as_json(self) -> dict[str, Any]:
        """Return all of it as it stands in the JSON file."""
        budget = self.budget
        return {
            "what": self.what,
            "unit": self.unit,
            "digits": self.digits,
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


def table_lines(rows: Sequence[Row], judged: str) -> list[str]:
    """Return the rows as lines under a header, and how many of what is `judged` is met."""
    missed = sum(row.met is False for row in rows)
    n_judged = sum(row.met is not None for row in rows)
    summary = f"{n_judged - missed} of {n_judged} {judged} met"
    return [
        *aligned([HEADER, *(row.cells() for row in rows)]),
        "",
        summary + (f", {missed} NOT MET" if missed else ""),
    ]


@dataclass(frozen=True)
class Finished:
    """A process that has ended well."""

    wall_s: float
    cpu_s: float  # of the process and all its children
    output: str  # what it wrote to stdout, then what to stderr


def children_cpu_s() -> float:
    """Return the CPU time of all child processes that have ended, in seconds."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run_command(
    words: Sequence[str], folder: str | Path = REPOSITORY, **variables: str
) -> Finished:
    """Run a command in a folder to its end; EpochwattError with its output if it fails.

    `variables`: of the environment, beside those of this process
    """
    cpu_before_s, start_s = children_cpu_s(), time.perf_counter()
    done = subprocess.run(
        words,
        cwd=folder,
        env={**os.environ, **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    wall_s, output = time.perf_counter() - start_s, done.stdout + done.stderr
    if done.returncode:
        raise EpochwattError(f"{' '.join(words)} failed:\n{output}")
    return Finished(wall_s, children_cpu_s() - cpu_before_s, output)


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
    try:
        head, changed = (
            subprocess.run(
                ["git", "-C", str(REPOSITORY), *words], capture_output=True, text=True, check=True
            ).stdout.strip()
            for words in (("rev-parse", "HEAD"), ("status", "--porcelain", "-uno"))
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return {"hash": head, "changed": bool(changed)}


def write_tables(folder: Path, tables: "Mapping[str, pd.DataFrame]") -> None:
    """Write frames as CSV files of these names."""
    for name, frame in tables.items():
        path = folder / f"{name}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        frame.to_csv(path, index=False, lineterminator="\n")


def wide(cells: "pd.Series", level: str, gap: str = "") -> "pd.DataFrame":
    """Return texts with a column for each value of a level of their index; the order stays."""
    rows, columns = cells.index.droplevel(level).unique(), cells.index.unique(level)
    table = cells.unstack(level).reindex(index=rows, columns=columns)
    return table.fillna(gap).reset_index()
