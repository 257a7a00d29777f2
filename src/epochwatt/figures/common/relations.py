"""The published ratios, changes, shares and spreads of a panel, and what they are here.

`config/published/relations.csv` has them. `brackets.py` draws them as brackets over the two bars
that one is of, or as marks in a strip of changes; others are said in a line under a title.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from epochwatt.figures.common.published import METRICS
from epochwatt.figures.common.runs import RunData
from epochwatt.published.numbers import (
    BOUNDS,
    KEYS,
    SPREADS,
    Config,
    Relation,
    load_published,
    run_key,
    single,
    trains_as_published,
)

COLUMNS = {metric: column for column, metric in METRICS.items()} | {"median_e2e_s": "e2e_s"}
PER_MINIBATCH = "_ms_per_minibatch"
SIGNS = {"less_than": "<", "at_most": "≤", "at_least": "≥", "approx": "≈"}
UNITS = {"x": "", "pct": " %"}
FACTOR_DIGITS = 3

NumberOf = Callable[[Config, str], float | None]


class Related(NamedTuple):
    """A published relation and what it is here.

    Attributes
    ----------
    relation : as printed
    here : one number, or the lowest and the highest where the relation is of several runs
    seen_by_fit : whether the simulated boards were fitted to it
    """

    relation: Relation
    here: tuple[float, ...]
    seen_by_fit: bool

    @property
    def sentence(self) -> str:
        """What is printed and what it is here, in a line."""
        return self.reading()

    def reading(self, *, a_is_left: bool = True) -> str:
        """Return the same, a factor as what the bar on the left is multiplied or divided by."""
        r = self.relation
        is_bound = r.qualifier in BOUNDS
        sign = "+" if r.formula.endswith("(B-A)/A") and not is_bound else ""
        factor = ""
        if r.unit == "x":
            factor = "÷" if (r.formula == "A/B") == a_is_left else "×"
        ends = (r.value,) if r.value_hi is None else (r.value, r.value_hi)
        published = " to ".join(f"{end:{sign}g}" for end in ends)
        digits = f".{FACTOR_DIGITS}g" if factor else ""
        here = " to ".join(
            dict.fromkeys(f"{end:{sign}{digits or _digits(end)}}" for end in self.here)
        )
        unit = UNITS.get(r.unit, f" {r.unit}")
        return f"{SIGNS.get(r.qualifier, '')}{factor}{published}{unit}, here {factor}{here}{unit}"


def _digits(value: float) -> str:
    return ".1f" if abs(value) < 100 else ".0f"


def load_relations(published: str, paper: str) -> list[Relation]:
    """Return the relations of one paper that are of runs."""
    relations = load_published(Path(published)).relations.values()
    return [r for r in relations if r.paper == paper and "model" in r.config_a]


def related(
    relations: Iterable[Relation],
    number_of: NumberOf,
    seen: frozenset[str],
    metrics: Iterable[str] = (),
) -> list[Related]:
    """Return the relations of these metrics whose runs are there, with what they are here.

    Parameters
    ----------
    relations : `load_relations`
    number_of : run and metric -> the number here; None: there is none
    seen : ids that the fit has seen
    metrics : as in `relations.csv`; none: all
    """
    wanted = set(metrics)
    shown = []
    for relation in relations:
        if not wanted or relation.metric in wanted:
            here = here_of(relation, number_of)
            if here:
                shown.append(Related(relation, here, relation.id in seen))
    return shown


def numbers_of(runs: Sequence[RunData]) -> NumberOf:
    """Return the function that finds the mean of a metric in runs, as a relation names both.

    It knows columns of `epochs.csv`, times of a mini-batch, and shares such as `stall_s/e2e_s`.
    """
    by_key = {key_of(run): run for run in runs if run.epochs}

    def number_of(config: Config, metric: str) -> float | None:
        run = by_key.get(run_key({**config, "epoch": None}))
        return None if run is None else metric_of(run, metric, config["epoch"])

    return number_of


def key_of(run: RunData) -> tuple[Any, ...]:
    """Return what tells a run from others, whatever the epochs; no relation names inference."""
    if not trains_as_published(run.factors):
        return (run.id,)
    config = {key: run.factors[key] for key in KEYS if key in run.factors}
    config |= {"cache": run.factors["cache_policy"], "scale": run.factors["dataset_scale"]}
    return run_key({**config, "epoch": None})


def metric_of(run: RunData, metric: str, epoch_set: str) -> float | None:
    """Return the mean (of `median_`: the median) of a metric over a run's valid epochs."""
    whole, share, part = metric.partition("/")
    if share:
        parts = [metric_of(run, name, epoch_set) for name in whole.strip("()").split("+")]
        total = metric_of(run, part, epoch_set)
        values = [number for number in parts if number is not None]
        return 100.0 * sum(values) / total if total and len(values) == len(parts) else None
    if metric.endswith(PER_MINIBATCH):
        seconds = run.number(metric.replace(PER_MINIBATCH, "_s"), epoch_set).value
        count = run.number("n_minibatches", epoch_set).value
        return 1e3 * seconds / count if seconds is not None and count else None
    statistic = "median" if metric.startswith("median_") else "mean"
    column = COLUMNS.get(metric, metric)
    known_column = not run.epochs or column in run.epochs[0]
    return run.number(column, epoch_set, statistic).value if known_column else None


def here_of(relation: Relation, number_of: NumberOf) -> tuple[float, ...]:
    """Return what a relation is here; nothing where a run or a number of it is missing."""
    sides = [
        [number_of(config, relation.metric) for config in single(side)] for side in relation.sides
    ]
    values = [[value for value in side if value is not None] for side in sides]
    if not all(side and len(side) == len(all_) for side, all_ in zip(values, sides, strict=True)):
        return ()
    if len(values) == 1:
        return _of_one(relation.formula, np.array(values[0]))
    a, b = map(np.array, values)
    return _of_two(relation.formula, a, b) if a.size == b.size else ()


def _of_one(formula: str, values: np.ndarray) -> tuple[float, ...]:
    low, high = float(values.min()), float(values.max())
    if formula in SPREADS:
        if formula == SPREADS[0]:
            return (100.0 * (high - low) / high,) if high else ()
        return spread_pct(formula, [values])
    return (low,) if low == high else (low, high)


def spread_pct(formula: str, of_boards: Sequence[np.ndarray]) -> tuple[float, ...]:
    """Return a spread of section 5.4, %: of all values together, or of the worst board's epochs.

    There is none about a median of zero.

    Parameters
    ----------
    of_boards : values of each board
    """
    boards = [values for values in of_boards if values.size]
    if not boards:
        return ()
    if "max|x-median|" in formula:
        spreads = [(np.abs(v - np.median(v)).max(), np.median(v)) for v in boards]
    else:
        together = np.concatenate(boards)
        spreads = [(np.ptp(together), np.median(together))]
    if not all(median for _, median in spreads):
        return ()
    return (100.0 * max(float(spread / median) for spread, median in spreads),)


def _of_two(formula: str, a: np.ndarray, b: np.ndarray) -> tuple[float, ...]:
    with np.errstate(divide="ignore", invalid="ignore"):
        if formula == "A/B":
            values = a / b
        elif formula == "B/A":
            values = b / a
        else:
            values = 100.0 * (b - a) / a
    if formula.startswith("mean"):
        values = np.array([values.mean()])
    values = np.abs(values) if "|" in formula else values
    ends = sorted({float(values.min()), float(values.max())})
    return tuple(ends) if all(map(math.isfinite, ends)) else ()


def relation_row(one: Related) -> dict[str, Any]:
    """Return a row of the CSV for a relation."""
    r = one.relation
    return {
        "quantity": f"{r.metric} {r.formula}",
        "value": one.here[0],
        "value_hi": one.here[-1] if len(one.here) > 1 else None,
        "missing": "",
        "published": r.value,
        "published_hi": r.value_hi,
        "published_id": r.id,
        "published_qualifier": r.qualifier,
        "seen_by_fit": one.seen_by_fit,
        "is_relation": True,
    }
