"""results/sweeps/scores.csv: its columns and words, and tables of what it says.

One row for each statistic of a method, beside what is judged and how methods learned of it. Which
methods are the best rests on the bootstrap: a method is among the best where the interval of its
median error over the best method's holds one or reaches below; it beats the plain regression where
that of its error over the paper's ends below one. Point estimates alone decide nothing.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from epochwatt.prediction.names import ENERGY, POWER, REFERENCE, TIME
from epochwatt.tables import read_cells, write_table
from epochwatt.text import aligned, counted

N_PROFILED = (4, 10, 25, 50, 100)  # modes that methods learn from
RANDOM, DESIGNED = "random", "designed"  # how they are chosen

PROFILED = "best profiled mode"  # no method: the fastest of the profiled modes within the budget
RECOMMENDED = "recommended mode"  # in place of a target
OVER_W, OVER_SHARE = 1.0, 0.05  # a budget that is broken by more than that

MEDIAN, P90 = "median error, %", "90th percentile of errors, %"
TO_PAPER, TO_BEST = "median over the paper's", "median over the best method's"
HELD, WIDTH = "held by intervals of 90 %, %", "width of intervals, %"
BY_WORKLOAD = "median error by workload, %"
REGRET, REGRET_P90 = "regret in time, %", "90th percentile of regret, %"
BROKEN = "broken budgets, %"
BROKEN_W = f"broken by more than {OVER_W:g} W, %"
BROKEN_SHARE = f"broken by more than {100 * OVER_SHARE:g} %, %"
NO_ANSWER, LEFT_OUT = "no answer, %", "left out"

SCORE_COLUMNS = (  # `low` and `high` are the central 95 % of a bootstrap
    *("sweep", "provenance", "device", "workload", "n_workloads", "n_modes", "knobs"),
    *("power_scope", "learned_from", "n_profiled", "n_draws"),
    *("method", "target", "statistic", "value", "low", "high", "note"),
)
TITLES = {TIME: "time", POWER: "power", ENERGY: "energy"}
AMONG = " *"  # marks methods that are among the best
NOTE = (
    "Errors in % of the observed value: median / 90th percentile, of modes that no method has seen."
    f" {AMONG.strip()} marks the best method and those that the bootstrap (95 %) cannot tell from"
    " it. All methods of a column learn from the same modes."
)
SUMMARY = ["sweeps", "target", "method", "comparisons", "among the best", "alone", "beats paper's"]

Row = Mapping[str, str]  # of scores.csv
Column = tuple[str, int]  # how profiled modes are chosen, and how many
Table = list[list[str]]  # the header first; empty: there is nothing to show


def as_text(rows: pd.DataFrame) -> list[dict[str, str]]:
    """Return rows as dicts of text, as a file has them: numbers to five digits, None empty."""

    def cell(value: object) -> str:
        if isinstance(value, float):
            return f"{value:.5g}"
        return "" if value is None else str(value)

    texts = rows.map(cell).itertuples(index=False)
    return [dict(zip(rows.columns, text, strict=True)) for text in texts]


def write_scores(path: Path, rows: pd.DataFrame | Iterable[Row]) -> None:
    """Write rows, or such as `read_scores` gives."""
    texts = as_text(rows) if isinstance(rows, pd.DataFrame) else rows
    write_table(path, "scores of sweeps", SCORE_COLUMNS, texts)


def read_scores(paths: Iterable[str]) -> list[dict[str, str]]:
    """Return the rows of files of scores, in order."""
    return [row for path in paths for row in read_cells(path)]


class Cell(NamedTuple):
    """One number of a method with the bounds of its bootstrap; NaN where there are none."""

    value: float
    low: float
    high: float


class Judged:
    """Rows of one unit."""

    def __init__(self, key: tuple[str, str, str], rows: Sequence[Row]) -> None:
        self.key = key  # sweep, device, workload
        scored = [row for row in rows if row["statistic"] != LEFT_OUT]
        self.shared = scored[0] if scored else rows[0]  # for what all rows share
        self._cells: dict[tuple[Column, str, str, str], Cell] = {}
        for row in scored:
            column = row["learned_from"], int(row["n_profiled"])
            numbers = (float(row[name] or "nan") for name in Cell._fields)
            self._cells[column, row["method"], row["target"], row["statistic"]] = Cell(*numbers)
        self.columns = list(dict.fromkeys(column for column, *_ in self._cells))
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
        """Return the method of least median error, then those the bootstrap cannot tell from it."""
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
        modes = counted(int(row["n_modes"]), "modes")
        most = " at most" if row["n_workloads"] != "1" else ""
        knobs = ", ".join(row["knobs"].split())
        return f"{row['sweep']}: {row['workload']} on {row['device']}, {modes}{most} of {knobs}"

    def table(
        self, head: str, targets: Iterable[str], cell: Callable[..., str], label: str = "{1}"
    ) -> Table:
        """Tabulate a text for each target and method (rows) and way to choose modes (columns).

        `cell`: (column, method, target) -> text; `label` formats the title of a row's target and
        its method. Rows without any text are left out.
        """
        rows = [
            [label.format(TITLES.get(target), method)]
            + [cell(column, method, target) for column in self.columns]
            for target in targets
            for method in self.methods(target)
        ]
        rows = [row for row in rows if any(row[1:])]
        return [[head, *map(heading, self.columns)], *rows] if rows else []

    def tables(self) -> list[Table]:
        """Return all tables of the unit that have rows."""
        errors = [error_table(self, target) for target in TITLES]
        return [table for table in (*errors, held_table(self), choice_table(self)) if table]

    def left_out_lines(self) -> list[str]:
        """Return what has no number, and why."""
        return [f"left out: {what}: {why}" for what, why in self.left_out.items()]


def judged(rows: Sequence[Row]) -> list[Judged]:
    """Group the rows of scores.csv by unit, in order."""
    grouped: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        grouped.setdefault((row["sweep"], row["device"], row["workload"]), []).append(row)
    return [Judged(key, of_unit) for key, of_unit in grouped.items()]


def heading(column: Column) -> str:
    """Return how many modes, and how they are chosen where that is not at random."""
    how, n_profiled = column
    return f"{n_profiled} modes" if how == RANDOM else f"{n_profiled} {how}"


def short(value: float) -> str:
    """Return a number to two or three figures."""
    return f"{value:.0f}" if abs(value) >= 10 else f"{value:.1f}"


def error_table(unit: Judged, target: str) -> Table:
    """Tabulate errors of a target: a row per method, a column per way to choose modes."""
    best = {column: unit.best(column, target) for column in unit.columns}

    def cell(column: Column, method: str, target: str) -> str:
        parts = [unit.cell(column, method, target, statistic) for statistic in (MEDIAN, P90)]
        mark = AMONG if method in best[column] else ""
        return " / ".join(short(part.value) for part in parts if part) + mark

    return unit.table(f"{TITLES[target]}, from", [target], cell)


def held_table(unit: Judged) -> Table:
    """Tabulate what intervals of 90 % hold, in %."""

    def cell(column: Column, method: str, target: str) -> str:
        held = unit.cell(column, method, target, HELD)
        return f"{held.value:.0f}" if held else ""

    return unit.table("held by intervals of 90 %", TITLES, cell, "{0}, {1}")


def choice_table(unit: Judged) -> Table:
    """Tabulate regret and broken budgets."""

    def cell(column: Column, method: str, target: str) -> str:
        statistics = (REGRET, BROKEN, BROKEN_SHARE)
        parts = [unit.cell(column, method, target, name) for name in statistics]
        regret, broken, by_share = (f"{part.value:.0f}" if part else "-" for part in parts)
        return f"{regret}; {broken} ({by_share})"

    head = "fastest within a power budget: regret %; broken % (by over 5 %)"
    return unit.table(head, [RECOMMENDED], cell)


def summary_table(units: Sequence[Judged]) -> Table:
    """Tabulate how often each method is among the best, alone the best, and beats the paper's.

    A comparison is one unit and one way to choose modes. Units of another provenance are counted by
    themselves; a single unit needs no summary. The paper's regression has a number in some of the
    comparisons only: `17 of 30`.
    """
    rows = [SUMMARY]
    for provenance in dict.fromkeys(unit.shared["provenance"] for unit in units):
        own = [unit for unit in units if unit.shared["provenance"] == provenance]
        for target, title in TITLES.items() if len(own) > 1 else ():
            comparisons = [(u, column) for u in own for column in u.columns if u.methods(target)]
            best = [unit.best(column, target) for unit, column in comparisons]
            beats = [unit.beats_paper(column, target) for unit, column in comparisons]
            known = [methods for methods in beats if methods is not None]
            names = dict.fromkeys(name for unit in own for name in unit.methods(target))
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
