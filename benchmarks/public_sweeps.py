"""Tables of the documentation on how well methods predict real sweeps.

Made from results/sweeps/scores.csv (`snakemake sweep_scores`) by `python -m benchmarks.tables`.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from benchmarks.results import REPOSITORY
from epochwatt.prediction.evaluation.sweep_scores import (
    BROKEN,
    BROKEN_SHARE,
    HELD,
    N_PROFILED,
    RANDOM,
    RECOMMENDED,
    REGRET,
    REGRET_P90,
    TITLES,
    Column,
    Judged,
    Row,
    error_table,
    heading,
    judged,
    short,
    summary_table,
)

SCORES = REPOSITORY / "results/sweeps/scores.csv"
FOUR = (RANDOM, N_PROFILED[0])

Table = list[list[str]]


def sweep_tables(rows: Sequence[Row]) -> dict[str, Table]:
    """Return by name the tables of rows of scores.csv, the header first."""
    units = judged(rows)
    return {
        "said": summary_table(units),
        "four": _from_four(units),
        "held": _held(units),
        "budgets": _budgets(units),
        **{title: _errors(units, target) for target, title in TITLES.items()},
    }


def _name(unit: Judged) -> str:
    return f"{unit.key[0]}: {unit.key[2]}"


def _methods(units: Sequence[Judged], target: str) -> list[str]:
    return list(dict.fromkeys(method for unit in units for method in unit.methods(target)))


def _cells(unit: Judged, target: str) -> dict[str, dict[str, str]]:
    """Return heading of a column -> method -> errors, marked where it is among the best."""
    head, *rows = error_table(unit, target) or [[]]
    return {column: {row[0]: row[n] for row in rows} for n, column in enumerate(head) if n}


def _from_four(units: Sequence[Judged]) -> Table:
    """Return errors of time and energy from four random modes, a row for each sweep."""
    targets = {title: target for target, title in TITLES.items() if title != "power"}
    columns = [(title, name) for title, t in targets.items() for name in _methods(units, t)]
    columns = [column for column in columns if column[1] != "paper_observed_time"]
    table = [["sweep", *(f"{title}: {name}" for title, name in columns)]]
    for unit in units:
        cells = {title: _cells(unit, target) for title, target in targets.items()}
        found = [cells[title].get(heading(FOUR), {}).get(name, "") for title, name in columns]
        table.append([_name(unit), *found])
    return table


def _errors(units: Sequence[Judged], target: str) -> Table:
    methods = _methods(units, target)
    table = [["sweep", "learned from", *methods]]
    for unit in units:
        for column, cells in _cells(unit, target).items():
            table.append([_name(unit), column, *(cells.get(name, "") for name in methods)])
    return table


def _columns(units: Sequence[Judged]) -> Iterator[tuple[Judged, Column]]:
    yield from ((unit, column) for unit in units for column in unit.columns)


def _held(units: Sequence[Judged]) -> Table:
    """Return what intervals of 90 % hold: mean, least and most over sweeps and numbers of modes."""
    table = [["target", "method", "from", "comparisons", "mean, %", "least, %", "most, %"]]
    kinds = {"four modes": lambda n: n == N_PROFILED[0], "more": lambda n: n > N_PROFILED[0]}
    for target, title in TITLES.items():
        for method in _methods(units, target):
            for words, is_kind in kinds.items():
                held = [
                    cell.value
                    for unit, column in _columns(units)
                    if is_kind(column[1]) and (cell := unit.cell(column, method, target, HELD))
                ]
                if held:
                    shares = [f"{of(held):.0f}" for of in (np.mean, np.min, np.max)]
                    table.append([title, method, words, str(len(held)), *shares])
    return table


def _budgets(units: Sequence[Judged]) -> Table:
    """Return regret and broken budgets from the most random modes of each sweep."""
    head = ["sweep", "learned from", "method", "regret, %: median / 90th percentile"]
    table = [[*head, "broken budgets, % (bootstrap)", "by over 5 %, %"]]
    for unit in units:
        random = [column for column in unit.columns if column[0] == RANDOM]
        for method in unit.methods(RECOMMENDED) if random else ():
            named = (REGRET, REGRET_P90, BROKEN, BROKEN_SHARE)
            parts = [unit.cell(random[-1], method, RECOMMENDED, name) for name in named]
            if all(parts):
                regret, p90, broken, by_share = parts
                lost = f"{short(regret.value)} / {short(p90.value)}"
                share = f"{broken.value:.0f} ({broken.low:.0f} to {broken.high:.0f})"
                row = [_name(unit), heading(random[-1]), method, lost, share]
                table.append([*row, f"{by_share.value:.0f}"])
    return table
