"""Convert others' files to mode tables, without what says nothing on modes.

Some published tables were filled up with lines whose times and energies belong to no mode, some
are copies of another one with the times rescaled. Both are recognised by their content.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import combinations, product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from epochwatt.columns import MODE_PARTS
from epochwatt.errors import ConfigError
from epochwatt.sweeps.mode_table import ModeTable, Numbers, SweepRow, tables_of
from epochwatt.sweeps.public.readers import FORMATS, Wanted

FLAG = "no_dependence_on_mode"
FEWEST = 40  # fewer rows are not judged: chance alone correlates them
BLOCK = 100  # rows in the order of the file that are judged together
# |rank correlation| * sqrt(n - 1) of what has nothing to do with the mode: above it once in
# thousands of tables of four knobs.
CHANCE = 4.0
CHANCE_OF_BLOCK = 2.5
FLAT = 1.1  # 90th over 10th percentile of the times: where it is less, there is nothing to follow
SPREAD = 0.5  # of a block's ranks over the whole table's: less of it, and it cannot be judged
SAME_RATIO = 1e-6  # spread of the ratio of two tables' times where one is a copy


class Converted(NamedTuple):
    """Mode tables of others' files."""

    tables: list[ModeTable]  # one per workload and device
    left_out: list[str]  # a sentence for each line or table that is not in them


def convert(name: str, paths: Sequence[Path], wanted: Wanted) -> Converted:
    """Convert the authors' own files, of one format (a key of `FORMATS`), to mode tables.

    A mode that is there again is its next repeat. Raises ConfigError: no such format; a file of
    another form; a cell that is not allowed; no table with times that depend on the mode and are no
    copy of another table's.
    """
    if name not in FORMATS:
        raise ConfigError("no such format", found=name, allowed=FORMATS)
    per_file = [FORMATS[name].read(path, wanted) for path in paths]
    left_out = [reason for _, reasons in per_file for reason in reasons]
    found_tables = []
    for rows, _ in per_file:
        own_tables, reasons = without_copies(tables_of(rows))
        left_out += reasons
        found_tables.append(own_tables)
    if not any(found_tables):
        raise ConfigError(
            "no line of use", where=", ".join(map(str, paths)), found=left_out[:1] or "no line"
        )
    for first, second in combinations(found_tables, 2):
        refuse_copies(first, second)
    all_rows = (row for tables in found_tables for table in tables for row in table.rows)
    informative, tables = [], tables_of(numbered(all_rows))
    for table in tables:
        try:
            informative.append(without_uninformative(table))
        except ConfigError as error:
            if len(tables) == 1:
                raise
            left_out.append(f"{table.key.device} {table.key.workload}: {error.problem}")
    if not informative:
        raise ConfigError("no table says anything on modes", found=left_out[-1])
    return Converted(informative, left_out)


def numbered(rows: Iterable[SweepRow]) -> list[SweepRow]:
    """Number the repeats of each mode of a workload from 0, in the order of the rows."""
    seen: dict[tuple[object, ...], int] = defaultdict(int)
    result = []
    for row in rows:
        mode = (row.key, *(getattr(row, name) for name in MODE_PARTS))
        result.append(replace(row, repeat=seen[mode]))
        seen[mode] += 1
    return result


# -- does it say anything? -------------------------------------------------------------------------


def dependence(table: ModeTable) -> float:
    """Compute the largest |Spearman correlation| * sqrt(n - 1) of time or power with a mode's part.

    About 1 where nothing depends on the mode; nan with fewer than three rows or no varied part.
    """
    scores = _scores(*_ranked(table))
    return float(np.nanmax(scores)) if scores.size and not np.isnan(scores).all() else np.nan


def without_uninformative(table: ModeTable) -> ModeTable:
    """Mark rows whose time and power do not depend on the mode as not valid.

    They get the flag `no_dependence_on_mode`; the table itself is not changed. Judged are whole
    tables of at least `FEWEST` rows, and blocks of `BLOCK` rows: a block must follow the knob that
    the rest of the table follows most, where that knob and the times vary in it as they do
    elsewhere. Times that hardly vary are no fault: what waits for memory does not follow a core's
    clock.

    Raises ConfigError: the whole table depends on no part of the mode.
    """
    n = len(table.rows)
    low, high = np.quantile(table.column("time_s"), (0.1, 0.9))
    if n < FEWEST or not table.varied() or high <= FLAT * low:
        return table
    strongest = dependence(table)
    if not strongest >= CHANCE:
        raise ConfigError(
            "neither time nor power depends on any part of the mode: the table says nothing",
            where=f"{table.key.sweep}: {table.key.device} {table.key.workload}",
            found=f"largest |rank correlation| * sqrt(rows - 1) {strongest:.1f}",
            allowed=f"at least {CHANCE:g}; about 1 is chance",
            do="leave it out",
        )
    if n < 2 * BLOCK:
        return table
    knobs, targets = _ranked(table)
    blocks = np.array_split(np.arange(n), n // BLOCK)
    scores = [_follows(block, knobs, targets) for block in blocks]
    bad = {i for i, score in enumerate(scores) if score < CHANCE_OF_BLOCK}
    usual = np.median([score for i, score in enumerate(scores) if i not in bad] or [0])
    # beside a bad block, half of the usual score is bad, too: it may begin or end there
    bad |= {i for i, score in enumerate(scores) if {i - 1, i + 1} & bad and score < usual / 2}
    rows = list(table.rows)
    for index in (int(index) for i in bad for index in blocks[i]):
        flags = f"{rows[index].flags} {FLAG}".strip()
        rows[index] = replace(rows[index], valid=False, flags=flags)
    return ModeTable(table.key, tuple(rows)) if bad else table


def _ranked(table: ModeTable) -> tuple[Numbers, Numbers]:
    """Rank n rows by the parts that vary, (n, k), and by time, and power if all rows have it."""
    knobs = [table.column(name) for name in table.varied()]
    targets = [table.column(name) for name in ("time_s", "power_w")]
    targets = [column for column in targets if not np.isnan(column).any()]
    return _ranks(np.array(knobs).reshape(-1, len(table.rows)).T), _ranks(np.array(targets).T)


def _ranks(values: Numbers) -> Numbers:
    from scipy.stats import rankdata  # slow to import, and each start of the workflow comes here

    return np.asarray(rankdata(values, axis=0), float) if values.size else values


def _scores(knobs: Numbers, targets: Numbers) -> Numbers:
    """Compute |correlation| * sqrt(n - 1) of n ranks, (knobs, targets); nan: no variation."""
    knobs, targets = knobs - knobs.mean(axis=0), targets - targets.mean(axis=0)
    norms = np.outer(np.linalg.norm(knobs, axis=0), np.linalg.norm(targets, axis=0))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.abs(knobs.T @ targets) / norms * np.sqrt(max(len(knobs) - 1, 0)))


def _follows(block: NDArray[np.int64], knobs: Numbers, targets: Numbers) -> float:
    """Score how rows of a block follow the knob that the rest follows most, as `dependence`.

    Infinite where the block cannot be judged: the knob or the times hardly vary in it, the rest
    follows no knob, or the block follows another one.

    `knobs` and `targets` are ranks in the whole table, shapes (n, parts) and (n, 1 or 2).
    """
    rest = np.setdiff1d(np.arange(len(knobs)), block)
    by_rest = np.nan_to_num(_scores(knobs[rest], targets[rest]))
    knob, target = np.unravel_index(np.argmax(by_rest), by_rest.shape)
    varies = all(
        np.std(ranks[block]) >= SPREAD * np.std(ranks)
        for ranks in (knobs[:, knob], targets[:, target])
    )
    scores = np.nan_to_num(_scores(_ranks(knobs[block]), _ranks(targets[block])))
    if not varies or by_rest[knob, target] < CHANCE or scores.max() >= CHANCE:
        return np.inf
    return float(scores[knob, target])


# -- is it a copy? ---------------------------------------------------------------------------------


def without_copies(tables: Sequence[ModeTable]) -> tuple[list[ModeTable], list[str]]:
    """Drop tables of one file that have the times of another; return the rest, and reasons.

    Where several workloads have the same times, rescaled or not, nothing says whose they are.
    """
    copies: dict[int, list[str]] = defaultdict(list)
    for (i, first), (j, second) in combinations(enumerate(tables), 2):
        if ratio_of_copies(first, second) is not None:
            copies[i].append(second.key.workload)
            copies[j].append(first.key.workload)
    reasons = [
        f"{tables[i].key.device} {tables[i].key.workload}: its times are those of "
        f"{len(others)} other workloads, such as {others[0]}"
        for i, others in sorted(copies.items())
    ]
    return [table for i, table in enumerate(tables) if i not in copies], reasons


def refuse_copies(first: Sequence[ModeTable], second: Sequence[ModeTable]) -> None:
    """Raise ConfigError where a table of the second file is one of the first, rescaled or not."""
    for original, copy in product(first, second):
        if (ratio := ratio_of_copies(original, copy)) is not None:
            raise ConfigError(
                f"a copy of another table: all times are {ratio:.6g} times those",
                where=f"{copy.key.device} {copy.key.workload}",
                found=f"the same modes in {original.key.device} {original.key.workload}",
                do="leave one of the two files out",
            )


def ratio_of_copies(first: ModeTable, second: ModeTable) -> float | None:
    """Return the ratio of times, second over first, if it is the same in all modes; else None.

    None, too, for tables of fewer than `FEWEST` rows, or of different modes.
    """
    if len(first.rows) != len(second.rows) or len(first.rows) < FEWEST:
        return None
    sorted_rows = []  # modes and times by mode, then time, shape (n, parts + 1)
    for table in (first, second):
        values = np.column_stack([np.nan_to_num(table.modes), table.column("time_s")])
        sorted_rows.append(values[np.lexsort(values.T[::-1])])
    if not np.array_equal(sorted_rows[0][:, :-1], sorted_rows[1][:, :-1]):
        return None
    ratio = sorted_rows[1][:, -1] / sorted_rows[0][:, -1]
    return float(np.median(ratio)) if np.ptp(ratio) <= SAME_RATIO * np.median(ratio) else None
