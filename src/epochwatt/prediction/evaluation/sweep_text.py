"""What scores.csv of sweeps says: tables of text, and plain sentences that rest on its bootstrap.

A method is among the best where the interval of its median error over the best method's holds one
or reaches below; it beats the plain regression where that of its error over the paper's ends below
one. Point estimates alone decide nothing.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from epochwatt.prediction.evaluation.sweep_names import (
    BROKEN,
    BROKEN_SHARE,
    HELD,
    LEFT_OUT,
    MEDIAN,
    P90,
    PROFILED,
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

Row = Mapping[str, str]
Key = tuple[str, str, str]  # sweep, device, workload
Column = tuple[str, int]  # how profiled modes are chosen, and how many


class Cell(NamedTuple):
    """One number of a method with the bounds of its bootstrap; NaN where there are none."""

    value: float
    low: float
    high: float


class Judged:
    """Rows of one unit.

    Attributes
    ----------
    key : sweep, device, workload
    shared : one of its rows, for what all rows share
    columns : how many profiled modes, chosen how, in order
    n_draws : most random sets of profiled modes
    left_out : method, or way to choose modes -> why it has no number
    """

    def __init__(self, key: Key, rows: Sequence[Row]) -> None:
        self.key = key
        scored = [row for row in rows if row["statistic"] != LEFT_OUT]
        self.shared = scored[0] if scored else rows[0]
        self.columns = list(dict.fromkeys(_column(row) for row in scored))
        self.n_draws = max((int(row["n_draws"]) for row in scored), default=0)
        self._cells = {
            (_column(row), row["method"], row["target"], row["statistic"]): _cell(row)
            for row in scored
        }
        self.left_out = {
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


def judged(rows: Sequence[Row]) -> list[Judged]:
    """Return the rows of scores.csv by unit, in order."""
    grouped: dict[Key, list[Row]] = defaultdict(list)
    for row in rows:
        grouped[row["sweep"], row["device"], row["workload"]].append(row)
    return [Judged(key, some) for key, some in grouped.items()]


def _column(row: Row) -> Column:
    return row["learned_from"], int(row["n_profiled"])


def _cell(row: Row) -> Cell:
    return Cell(*(float(row[name] or "nan") for name in ("value", "low", "high")))


def error_table(unit: Judged, target: str) -> list[list[str]]:
    """Return errors of a target as rows of cells, the header first; empty: there are none."""
    if not (methods := unit.methods(target)):
        return []
    best = {column: unit.best(column, target) for column in unit.columns}
    head = [f"{TITLES[target]}, from", *map(heading, unit.columns)]
    rows = [head]
    for method in methods:
        cells = [_errors(unit, column, method, target) for column in unit.columns]
        marks = [AMONG if method in best[column] else "" for column in unit.columns]
        rows.append([method, *(cell + mark for cell, mark in zip(cells, marks, strict=True))])
    return rows


def heading(column: Column) -> str:
    """Return how many modes, and how they are chosen where that is not at random."""
    how, n_profiled = column
    return f"{n_profiled} modes" if how == RANDOM else f"{n_profiled} {how}"


def in_words(columns: Sequence[Column]) -> str:
    """Return the same of several: `4 designed modes and 10, 25 and 50 random modes`."""
    numbers: dict[str, list[str]] = defaultdict(list)
    for how, n_profiled in columns:
        numbers[how].append(str(n_profiled))
    return listed([f"{listed(some)} {how} modes" for how, some in numbers.items()])


def listed(words: Sequence[str]) -> str:
    """Return words as a list in a sentence: `a, b and c`."""
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))


def _errors(unit: Judged, column: Column, method: str, target: str) -> str:
    parts = [unit.cell(column, method, target, statistic) for statistic in (MEDIAN, P90)]
    return " / ".join(short(part.value) for part in parts if part)


def short(value: float) -> str:
    """Return a number to two or three figures."""
    return f"{value:.0f}" if abs(value) >= 10 else f"{value:.1f}"


def held_table(unit: Judged) -> list[list[str]]:
    """Return what intervals of 90 % hold, in %, as rows of cells, the header first."""
    rows = [["held by intervals of 90 %", *map(heading, unit.columns)]]
    for target, title in TITLES.items():
        for method in unit.methods(target):
            cells = [unit.cell(column, method, target, HELD) for column in unit.columns]
            if any(cells):
                rows.append([f"{title}, {method}", *(f"{c.value:.0f}" if c else "" for c in cells)])
    return rows if len(rows) > 1 else []


def choice_table(unit: Judged) -> list[list[str]]:
    """Return regret and broken budgets as rows of cells, the header first; empty: none."""
    head = ["fastest within a power budget: regret %; broken % (by over 5 %)"]
    rows = [[*head, *map(heading, unit.columns)]]
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


def text_lines(rows: Sequence[Row], left_out: Sequence[str] = ()) -> list[str]:
    """Return all of it for the terminal: tables of each unit, then sentences."""
    units = judged(rows)
    lines = [NOTE]
    for unit in units:
        lines += ["", f"{unit.title} ({unit.shared['provenance']})"]
        for target in TITLES:
            lines += aligned(error_table(unit, target))
        lines += [*aligned(held_table(unit)), *aligned(choice_table(unit))]
        lines += left_out_lines(unit)
    lines += ["", "What it says"]
    lines += [f"* {sentence}" for unit in units for sentence in sentences(unit)]
    lines += [f"* {sentence}" for sentence in summary(units)]
    return lines + [f"not judged: {line}" for line in left_out]


def left_out_lines(unit: Judged) -> list[str]:
    """Return what has no number, and why."""
    return [f"left out: {what}: {why}" for what, why in unit.left_out.items()]


def sentences(unit: Judged) -> list[str]:
    """Return which method wins where on a unit, and where none beats the plain regression."""
    lines = [
        f"{unit.key[0]}, {unit.key[2]}: {title}: {'; '.join(_winners(unit, target))}"
        f"{_plain(unit, target)}."
        for target, title in TITLES.items()
        if unit.methods(target)
    ]
    return lines + _broken(unit)


def _winners(unit: Judged, target: str) -> Iterator[str]:
    """Yield the best methods with their median errors, of runs of columns with the same ones."""
    runs: list[tuple[list[str], list[Column]]] = []
    for column in unit.columns:
        best = unit.best(column, target)
        if not best:
            continue
        if runs and set(runs[-1][0]) == set(best):
            runs[-1][1].append(column)
        else:
            runs.append((best, [column]))
    for best, columns in runs:
        errors = ", ".join(
            short(cell.value)
            for column in columns
            if (cell := unit.cell(column, unit.best(column, target)[0], target, MEDIAN))
        )
        alone = f"{best[0]} is best" if len(best) == 1 else f"{listed(best)} are level"
        yield f"from {in_words(columns)} {alone} (median error {errors} %)"


def _plain(unit: Judged, target: str) -> str:
    if target == POWER:  # of which the paper has no model
        return ""
    beats = {column: unit.beats_paper(column, target) for column in unit.columns}
    if all(methods is None for methods in beats.values()):
        return "; the paper's plain regression has no number here"
    none = [column for column, methods in beats.items() if methods == []]
    if not none:
        return "; some method beats the paper's plain regression throughout"
    return f"; no method beats the paper's plain regression from {in_words(none)}"


def _broken(unit: Judged) -> list[str]:
    """Return how often the fastest predicted mode breaks a budget, from the most random modes."""
    columns = [column for column in unit.columns if column[0] == RANDOM]
    if not columns or not unit.methods(RECOMMENDED):
        return []
    column, parts = columns[-1], []
    for method in unit.methods(RECOMMENDED):
        broken, regret = (unit.cell(column, method, RECOMMENDED, s) for s in (BROKEN, REGRET))
        if broken and regret and method != PROFILED:
            parts.append(f"{method} {broken.value:.0f} % (regret {regret.value:.1f} %)")
    if not parts:
        return []
    shares = ", ".join(parts)
    profiled = unit.cell(column, PROFILED, RECOMMENDED, REGRET)
    lost = "no number" if profiled is None else f"{profiled.value:.1f} %"
    return [
        f"{unit.key[0]}, {unit.key[2]}: the fastest mode that is predicted to keep a power budget "
        f"breaks it, from {in_words([column])}: {shares}; the best profiled mode keeps it, at a "
        f"regret of {lost}."
    ]


def summary(units: Sequence[Judged]) -> list[str]:
    """Return over all units how often each method is best, and where none beats the regression.

    Units of another provenance are counted by themselves; a single unit needs no summary.
    """
    by_provenance: dict[str, list[Judged]] = defaultdict(list)
    for unit in units:
        by_provenance[unit.shared["provenance"]].append(unit)
    return [
        f"All {provenance} sweeps, {title}: {sentence}."
        for provenance, some in by_provenance.items()
        if len(some) > 1
        for target, title in TITLES.items()
        for sentence in _of_all(some, target)
    ]


def _of_all(units: Sequence[Judged], target: str) -> Iterator[str]:
    alone: Counter[str] = Counter()
    among: Counter[str] = Counter()
    places = [(unit, column) for unit in units for column in unit.columns if unit.methods(target)]
    for unit, column in places:
        best = unit.best(column, target)
        among.update(best)
        alone.update(best if len(best) == 1 else [])
    if not among:
        return
    order = sorted(among, key=lambda name: (-among[name], name))
    shares = ", ".join(f"{name} {among[name]} (alone {alone[name]})" for name in order)
    yield f"among the best in {len(places)} comparisons: {shares}"
    beats = [(*place, place[0].beats_paper(place[1], target)) for place in places]
    judged_too = [row for row in beats if row[2] is not None]
    none = [f"{unit.key[0]} from {in_words([c])}" for unit, c, methods in judged_too if not methods]
    if judged_too:
        n_compared = counted(len(judged_too), "comparisons")
        yield (
            f"no method beats the paper's plain regression in {len(none)} of {n_compared}: "
            f"{'; '.join(none)}"
            if none
            else f"some method beats the paper's plain regression in each of {n_compared}"
        )
