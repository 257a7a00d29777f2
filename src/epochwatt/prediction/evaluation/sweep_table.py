"""results/sweeps/scores.csv: its rows, its words, how it is read and written.

One row for each statistic of a method, beside what is judged and how methods learned of it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from epochwatt.tables import read_cells, write_table

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


@dataclass(frozen=True)
class ScoreRow:
    """One statistic; None: an empty cell."""

    sweep: str
    provenance: str
    device: str
    workload: str
    n_workloads: int | None
    n_modes: int | None
    knobs: str
    power_scope: str
    learned_from: str
    n_profiled: int
    n_draws: int | None
    method: str = ""
    target: str = ""
    statistic: str = LEFT_OUT
    value: float | None = None
    low: float | None = None  # low, high: the central 95 % of a bootstrap
    high: float | None = None
    note: str = ""


COLUMNS = tuple(field.name for field in fields(ScoreRow))


def as_text(rows: Iterable[ScoreRow]) -> list[dict[str, str]]:
    """Return rows as a file has them: numbers to five digits."""
    return [{name: _cell(getattr(row, name)) for name in COLUMNS} for row in rows]


def _cell(value: object) -> str:
    return "" if value is None else f"{value:.5g}" if isinstance(value, float) else str(value)


def write_scores(path: Path, rows: Iterable[ScoreRow] | Sequence[dict[str, str]]) -> None:
    """Write rows, or such as `read_scores` gives."""
    texts = (row if isinstance(row, dict) else as_text([row])[0] for row in rows)
    write_table(path, "scores of sweeps", COLUMNS, texts)


def read_scores(paths: Iterable[str]) -> list[dict[str, str]]:
    """Return the rows of files of scores, in order."""
    return [row for path in paths for row in read_cells(path)]
