"""Tabulate runs that the paper mentions in its text and shows in no figure.

Source: SIGMETRICS 2023, sections 5.1 (page cache dropped, 8 workers, first runs on AGX Orin) and
5.6 (a very slow GPU, modes e and f without workers). The CSV has a row for each number of such a
run, and for each ratio or change that the paper prints between one of them and another run.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from epochwatt import columns
from epochwatt.claims.tolerances import load_terms
from epochwatt.figures.common.published import (
    COLUMNS,
    Mark,
    cells,
    key_of,
    mark,
    published_marks,
    seen_ids,
)
from epochwatt.figures.common.runs import Number, RunData, csv_row, note, read_runs
from epochwatt.figures.tables.text_runs import EXPERIMENTS, experiment_of
from epochwatt.published.numbers import (
    BOTH_SIDES,
    KEYS,
    Config,
    Relation,
    load_published,
    run_key,
    single,
)
from epochwatt.templates import save_tables
from epochwatt.text import counted

PAPER = "sigmetrics2023"
QUANTITIES = ("e2e_s", "stall_s", "compute_s", "energy_paper_wh", "power_mean_w")
HEADS = {name: columns.axis_title(name) for name in QUANTITIES}  # columns of the page
SHORT = 4  # figures of a number on the page

Row = dict[str, Any]  # of a figure's CSV, with `about`, its experiment


def write(
    epochs: Iterable[str],
    missing: Iterable[Mapping[str, Any]],
    backend: str,
    published: str,
    twin: str,
    stem: str,
) -> None:
    """Write the table as CSV and as a page.

    It needs `epochs.csv` of each run that may be in it, or that one of it is compared with, and of
    those that are not available factors, `run` and `reason`.
    """
    runs = [run for run in read_runs(epochs, missing) if run.factors["setup"] == PAPER]
    about = {run.id: experiment_of(run.factors) for run in runs}
    shown_runs = [run for name in EXPERIMENTS for run in runs if about[run.id] == name]
    marks = published_marks(published, twin, PAPER, backend)
    tolerances = load_terms(Path(published).parents[1]).numbers
    numbers, by_run = list[Row](), []
    for run in shown_runs:
        rows = []
        for quantity in HEADS:
            number, printed = run.number(quantity), mark(marks, run.factors, quantity)
            printed = printed and printed.judged([number.value], tolerances)
            row = csv_row(run, quantity, number)
            rows.append({"about": about[run.id], **row, **cells(printed)})
        numbers += rows
        f, workers = run.factors, counted(run.factors["num_workers"], "workers")
        words = f"{f['device']} {f['model']} {f['storage']}, {workers}, mode {f['power_mode']}"
        values = {HEADS[row["quantity"]]: _beside(row) for row in rows}
        by_run.append({"about": about[run.id], "run": words, **values})
    seen = seen_ids(twin, backend)
    by_key = {key_of(run): run for run in runs}
    pairs = [
        pair
        for fact in load_published(Path(published)).relations.values()
        if fact.paper == PAPER and fact.formula in BOTH_SIDES
        for pair in compared(fact, by_key, tolerances, is_seen=fact.id in seen)
    ]
    pairs.sort(key=lambda pair: EXPERIMENTS.index(pair["about"]))
    named = ("about", "model", "a", "b", "quantity")
    texts = [
        {**{n: str(pair[n]).replace("_", " ") for n in named}, "value": _beside(pair)}
        for pair in pairs
    ]
    means = "Means over the valid epochs after the first; (published) beside ours."
    title, notes = "What the paper tells only in its text", [note(shown_runs), means]
    save_tables(stem, title, notes, numbers + pairs, [by_run, texts])


def compared(
    fact: Relation,
    runs: Mapping[tuple[Any, ...], RunData],
    tolerances: Mapping[str, float],
    *,
    is_seen: bool,
) -> list[Row]:
    """Return the rows of a relation, one for each pair of runs that it speaks of.

    None where it has no side in this table, or no side here that was run or tried.
    """
    quantity, rows = COLUMNS.get(fact.metric, fact.metric), []
    sides = (single(fact.config_a), single(fact.config_b))
    for pair in zip(*sides, strict=False):
        mine = next((side for side in pair if "model" in side and experiment_of(side)), None)
        run = _run(mine, runs) if mine is not None and quantity in HEADS else None
        if mine is None or run is None:
            continue
        a, b = (_run(side, runs) for side in pair)
        number = _related(fact, quantity, a, b)
        ratio = csv_row(run, f"{quantity}, {fact.formula}", number)
        which = {"about": experiment_of(mine), "a": _differing(*pair), "b": _differing(*pair[::-1])}
        printed = Mark(fact.value, fact.value_hi, fact.id, fact.qualifier, is_seen)
        printed = printed.judged([number.value], tolerances, is_percentage=fact.unit == "pct")
        rows.append({**which, **ratio, **cells(printed)})
    return rows


def _run(side: Config, runs: Mapping[tuple[Any, ...], RunData]) -> RunData | None:
    return runs.get(run_key({**side, "epoch": None}))


def _differing(side: Config, other: Config) -> str:
    """Return in words what a side has that the other has not."""
    return " ".join(
        f"{key} {side[key]}" for key in KEYS if key in side and side[key] != other.get(key)
    )


def _related(fact: Relation, quantity: str, a: RunData | None, b: RunData | None) -> Number:
    """Return what a relation's formula makes of its two runs."""
    if a is None or b is None:
        return Number(None, 0, "the run it is compared with is not there")
    first, second = a.number(quantity), b.number(quantity)
    if not first.value or second.value is None:
        return Number(None, 0, first.missing or second.missing)
    ratio = second.value / first.value
    change = 100.0 * (ratio - 1.0)
    made = {"A/B": 1.0 / ratio, "B/A": ratio, "100*|B-A|/A": abs(change)}
    return Number(made.get(fact.formula, change), min(first.n_epochs, second.n_epochs))


def _beside(row: Mapping[str, Any]) -> str:
    """Return a number and, in brackets, what is published of it."""
    ours = f"missing: {row['missing']}" if row["value"] is None else f"{row['value']:.{SHORT}g}"
    if row["published"] is None:
        return ours
    end = "" if row["published_hi"] is None else f" to {row['published_hi']:g}"
    return f"{ours} ({row['published']:g}{end})"
