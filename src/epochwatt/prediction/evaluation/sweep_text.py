"""Tables of what scores.csv of sweeps says; which methods are the best rests on its bootstrap.

A method is among the best where the interval of its median error over the best method's holds one
or reaches below; it beats the plain regression where that of its error over the paper's ends below
one. Point estimates alone decide nothing.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from epochwatt.prediction.evaluation.sweep_table import (
    BROKEN,
    BROKEN_SHARE,
    HELD,
    LEFT_OUT,
    MEDIAN,
    P90,
    RANDOM,
    RECOMMENDED,
    REGRET,
    TO_BEST,
    TO_PAPER,
)
from epochwatt.prediction.names import ENERGY, POWER, REFERENCE, TIME
from epochwatt.text import aligned, counted

TITLES = {TIME: "time", POWER: "power", ENERGY: "energy"}
AMONG = " *"  # marks methods that are among the best
NOTE = (
    "Errors in % of the observed value: median / 90th percentile, of modes that no method has seen."
    f" {AMONG.strip()} marks the best method and those that the bootstrap (95 %) cannot tell from"
    " it. All methods of a column learn from the same modes."
)
SUMMARY = ["sweeps", "target", "method", "comparisons", "among the best", "alone", "beats paper's"]

Row = Mapping[str, str]  # of scores.csv
Key = tuple[str, str, str]  # sweep, device, workload
Column = tuple[str, int]  # how profiled modes are chosen, and how many
Table = list[list[str]]  # the header first; empty: there is nothing to show


class Cell(NamedTuple):
    """One number of a method with the bounds of its bootstrap; NaN where there are none."""

    value: float
    low: float
    high: float


class Judged:
    """Rows of one unit."""

    def __init__(self, key: Key, rows: Sequence[Row]) -> None:
        self.key = key
        scored = [row for row in rows if row["statistic"] != LEFT_OUT]
        self.shared = scored[0] if scored else rows[0]  # for what all rows share
        self.columns = list(dict.fromkeys(_column(row) for row in scored))
        self.n_draws = max((int(row["n_draws"]) for row in scored), default=0)
        self._cells = {
            (_column(row), row["method"], row["target"], row["statistic"]): Cell(
                *(float(row[name] or "nan") for name in ("value", "low", "high"))
            )
            for row in scored
        }
        self.left_out = {  # method, or way to choose modes -> why it has no number
            row["method"] or f"{row['learned_from']} modes": row["note"]
            for row in rows
            if row["statistic"] == LEFT_OUT
        }

    def cell(self, column: Column, method: str, target: str, statistic: str) -> Cell | None:
        """Return a number; None: there is none."""
        return self._cells.get((column, method, target, statistic))

    def methods(self, target: str) -> list[str]:
        """Return the methods with numbers of a target, in the order of the registry."""
        return list(dict.fromkeys(m for _, m, t, _ in self._cells if t == target))

    def best(self, column: Column, target: str) -> list[str]:
        """Return the best method and those that cannot be told from it, the best first."""
        medians = {
            method: cell.value
            for method in self.methods(target)
            if (cell := self.cell(column, method, target, MEDIAN))
        }
        ranked = sorted(medians, key=medians.__getitem__)
        ratios = {m: self.cell(column, m, target, TO_BEST) for m in ranked[1:]}
        return ranked[:1] + [m for m, ratio in ratios.items() if ratio and ratio.low <= 1]

    def beats_paper(self, column: Column, target: str) -> list[str] | None:
        """Return the methods that beat the plain regression; None: it has no number here."""
        if self.cell(column, REFERENCE, target, MEDIAN) is None:
            return None
        ratios = {m: self.cell(column, m, target, TO_PAPER) for m in self.methods(target)}
        return [method for method, ratio in ratios.items() if ratio and ratio.high < 1]

    @property
    def title(self) -> str:
        """Sweep, workload and device, how many modes and what they change."""
        row = self.shared
        knobs = ", ".join(row["knobs"].split())
        modes = counted(int(row["n_modes"]), "modes")
        most = " at most" if row["n_workloads"] != "1" else ""
        return f"{row['sweep']}: {row['workload']} on {row['device']}, {modes}{most} of {knobs}"

    def tables(self) -> list[Table]:
        """Return all tables of the unit that have rows."""
        errors = [error_table(self, target) for target in TITLES]
        return [table for table in (*errors, held_table(self), choice_table(self)) if table]

    def left_out_lines(self) -> list[str]:
        """Return what has no number, and why."""
        return [f"left out: {what}: {why}" for what, why in self.left_out.items()]


def judged(rows: Sequence[Row]) -> list[Judged]:
    """Group the rows of scores.csv by unit, in order."""
    grouped: dict[Key, list[Row]] = defaultdict(list)
    for row in rows:
        grouped[row["sweep"], row["device"], row["workload"]].append(row)
    return [Judged(key, some) for key, some in grouped.items()]


def _column(row: Row) -> Column:
    return row["learned_from"], int(row["n_profiled"])


def heading(column: Column) -> str:
    """Return how many modes, and how they are chosen where that is not at random."""
    how, n_profiled = column
    return f"{n_profiled} modes" if how == RANDOM else f"{n_profiled} {how}"


def short(value: float) -> str:
    """Return a number to two or three figures."""
    return f"{value:.0f}" if abs(value) >= 10 else f"{value:.1f}"


def error_table(unit: Judged, target: str) -> Table:
    """Tabulate errors of a target: a row per method, a column per way to choose modes."""
    rows = [[f"{TITLES[target]}, from", *map(heading, unit.columns)]]
    best = {column: unit.best(column, target) for column in unit.columns}
    for method in unit.methods(target):
        cells = []
        for column in unit.columns:
            parts = [unit.cell(column, method, target, statistic) for statistic in (MEDIAN, P90)]
            mark = AMONG if method in best[column] else ""
            cells.append(" / ".join(short(part.value) for part in parts if part) + mark)
        rows.append([method, *cells])
    return rows if len(rows) > 1 else []


def held_table(unit: Judged) -> Table:
    """Tabulate what intervals of 90 % hold, in %."""
    rows = [["held by intervals of 90 %", *map(heading, unit.columns)]]
    for target, title in TITLES.items():
        for method in unit.methods(target):
            cells = [unit.cell(column, method, target, HELD) for column in unit.columns]
            if any(cells):
                rows.append([f"{title}, {method}", *(f"{c.value:.0f}" if c else "" for c in cells)])
    return rows if len(rows) > 1 else []


def choice_table(unit: Judged) -> Table:
    """Tabulate regret and broken budgets."""
    head = "fastest within a power budget: regret %; broken % (by over 5 %)"
    rows = [[head, *map(heading, unit.columns)]]
    for method in unit.methods(RECOMMENDED):
        cells = []
        for column in unit.columns:
            parts = [
                unit.cell(column, method, RECOMMENDED, name)
                for name in (REGRET, BROKEN, BROKEN_SHARE)
            ]
            regret, broken, by_share = (f"{part.value:.0f}" if part else "-" for part in parts)
            cells.append(f"{regret}; {broken} ({by_share})")
        rows.append([method, *cells])
    return rows if len(rows) > 1 else []


def summary_table(units: Sequence[Judged]) -> Table:
    """Tabulate how often each method is among the best, alone the best, and beats the paper's.

    A comparison is one unit and one way to choose modes. Units of another provenance are counted by
    themselves; a single unit needs no summary. The paper's regression has a number in some of the
    comparisons only: `17 of 30`.
    """
    by_provenance: dict[str, list[Judged]] = defaultdict(list)
    for unit in units:
        by_provenance[unit.shared["provenance"]].append(unit)
    rows = [SUMMARY]
    for provenance, some in by_provenance.items():
        for target, title in TITLES.items() if len(some) > 1 else ():
            comparisons = [(u, column) for u in some for column in u.columns if u.methods(target)]
            best = [unit.best(column, target) for unit, column in comparisons]
            beats = [unit.beats_paper(column, target) for unit, column in comparisons]
            known = [methods for methods in beats if methods is not None]
            names = dict.fromkeys(name for unit in some for name in unit.methods(target))
            among = {name: sum(name in methods for methods in best) for name in names}
            for method in sorted(among, key=lambda name: (-among[name], name)):
                n_beaten = sum(method in methods for methods in known)
                row = [provenance, title, method, str(len(comparisons)), str(among[method])]
                row.append(str(sum(methods == [method] for methods in best)))
                rows.append([*row, f"{n_beaten} of {len(known)}" if known else "-"])
    return rows if len(rows) > 1 else []


def text_lines(rows: Sequence[Row], left_out: Sequence[str] = ()) -> list[str]:
    """Return all tables for the terminal."""
    units = judged(rows)
    lines = [NOTE]
    for unit in units:
        lines += ["", f"{unit.title} ({unit.shared['provenance']})"]
        lines += [line for table in unit.tables() for line in aligned(table)]
        lines += unit.left_out_lines()
    if table := summary_table(units):
        lines += ["", "Over all sweeps", *aligned(table)]
    return lines + [f"not judged: {line}" for line in left_out]
