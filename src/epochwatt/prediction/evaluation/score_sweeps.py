"""Judge all methods on mode tables: scores.csv, and what it says in plain sentences.

Every method learns from the same modes of a table and predicts all others of it; never does a mode
train and test at once. Methods that need a simulation have no rows: it does not know these devices.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from epochwatt.errors import EpochwattError
from epochwatt.prediction.data.modes import PredictionError
from epochwatt.prediction.evaluation.sweep_names import DESIGNED, LEFT_OUT, RANDOM
from epochwatt.prediction.evaluation.sweep_scores import Row, rows_of
from epochwatt.prediction.evaluation.sweep_trials import run_trials
from epochwatt.prediction.evaluation.sweep_units import (
    N_DESIGNED,
    N_DRAWS,
    Unit,
    draws_of,
    units_of,
    with_reference,
)
from epochwatt.prediction.evaluation.workers import workers
from epochwatt.prediction.predictor import Method
from epochwatt.prediction.registry import load_method, load_methods
from epochwatt.sweeps.mode_table import ModeTable

CACHE = ".cache"  # of the checkout; git ignores it


class Scores(NamedTuple):
    """Rows of scores.csv, and why tables have none."""

    rows: list[Row]
    left_out: list[str]


def judged_methods(root: Path = Path()) -> list[str]:
    """Return the names of the methods that are judged: those that need no simulation.

    Methods that transfer from a reference are judged where they are named: they take minutes.
    """
    methods = load_methods(root).values()
    return [method.name for method in methods if method.is_scored and not method.needs_prior]


def score_tables(
    tables: Iterable[ModeTable],
    methods: Sequence[str],
    root: Path = Path(),
    n_draws: int | None = None,
    processes: int = 1,
    say: Callable[[str], None] = lambda line: None,
    references: Sequence[ModeTable] = (),
) -> Scores:
    """Return the scores of methods on tables.

    Raises PredictionError: no table has enough modes.

    Parameters
    ----------
    n_draws : random sets of profiled modes; None: as many as always
    """
    tables = list(tables)
    units, left_out = units_of(tables)
    if not units:
        raise PredictionError(
            "no table of modes that a method could learn from and be judged on",
            found="; ".join(left_out) or "no table",
        )
    units = _with_references(units, tables, references, methods, root)
    parts = [(unit, how, n) for unit in units for how, n in _ways(unit)]
    rows: list[Row] = []
    with workers(min(processes, len(parts))) as pool:
        settings = tuple(methods), root, n_draws or N_DRAWS
        jobs = [pool.submit(_score, *part, *settings) for part in parts]
        for number, ((unit, how, n_profiled), job) in enumerate(zip(parts, jobs, strict=True), 1):
            rows += job.result()
            what = f"{unit.sweep}, {unit.workload}: {n_profiled} {how} modes"
            say(f"{what} ({number} of {len(parts)})")
    for line in left_out:
        say(f"not judged: {line}")
    return Scores(rows, left_out)


def _with_references(
    units: list[Unit],
    tables: Sequence[ModeTable],
    references: Sequence[ModeTable],
    methods: Sequence[str],
    root: Path,
) -> list[Unit]:
    """Return units with a reference, if a method needs one: by default of their own kind."""
    if not any(load_method(name, root).needs_reference for name in methods):
        return units
    return [
        with_reference(unit, references or _of_kind(unit, tables), root / CACHE) for unit in units
    ]


def _of_kind(unit: Unit, tables: Sequence[ModeTable]) -> list[ModeTable]:
    """Return the tables of the same device and provenance."""
    kind = unit.device, unit.provenance
    return [table for table in tables if (table.key.device, table.key.provenance) == kind]


def _ways(unit: Unit) -> Iterator[tuple[str, int]]:
    yield DESIGNED, N_DESIGNED
    yield from ((RANDOM, n_profiled) for n_profiled in unit.sizes())


def _score(
    unit: Unit, how: str, n_profiled: int, methods: Sequence[str], root: Path, n_draws: int
) -> list[Row]:
    try:
        draws = draws_of(unit, n_profiled, how, n_draws)
    except EpochwattError as error:  # of a design: random modes are always there
        place = {"sweep": unit.sweep, "device": unit.device, "workload": unit.workload}
        why = f"no design: {str(error).partition(chr(10))[0]}"
        row = {"learned_from": how, "n_profiled": n_profiled, "statistic": LEFT_OUT, "note": why}
        return [place | {"provenance": unit.provenance} | row]
    loaded = [load_method(name, root) for name in methods]
    most = max(sum(draw.table == place for draw in draws) for place in range(len(unit.tables)))
    rows = rows_of(unit, run_trials(unit, draws, loaded), how, n_profiled, most)
    return [row | _from(unit, loaded, row) for row in rows]


def _from(unit: Unit, methods: Iterable[Method], row: Row) -> Row:
    """Return a note of what a method transferred from, beside what the row notes."""
    transferred = {method.name for method in methods if method.needs_reference}
    if not unit.references or row.get("method") not in transferred:
        return {}
    reference = f"reference: {' and '.join(one.rows.workload for one in unit.references)}"
    return {"note": "; ".join(filter(None, (row.get("note", ""), reference)))}
