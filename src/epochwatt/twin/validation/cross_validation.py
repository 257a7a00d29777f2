"""Cross-validate: each published number beside what the simulation says without seeing it.

`epochwatt calibrate-twin --folds` refits the folds (`cross_validation_fits`); this module only
evaluates the committed refits. A number that belongs to a take-away is predicted by the fit that
saw neither the take-away nor what gives it away; and again by fits that saw nothing of its section,
its board, its network, or its board with its network, nor of its take-away and what is near it.
HiPCW 2021 contradicts the main paper (the same NX run stalls for 456 s in one and 173 s in the
other), so no shared parameter sees it: it is predicted with the main paper's parameters and one of
its own (`paper_setups.py`), refitted without each take-away, and shown apart.

The error of a time, an energy, a power, a factor or a change of 20 % and more is
100 |ln(predicted / published)|, for a change on the ratio of its two sides; of a share or a smaller
change it is the distance in points; a bound is met or not (`published/folds.py` says which is
which).
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from epochwatt.published.folds import Judged
from epochwatt.published.numbers import PAPERS, Fact, Published
from epochwatt.tables import write_entries
from epochwatt.twin.calibration.calibrate import log_error, visible
from epochwatt.twin.calibration.fit_numbers import ALSO_SEEN, seen_by_setups
from epochwatt.twin.calibration.predicted import predict
from epochwatt.twin.inputs.twin import Twin
from epochwatt.twin.validation.cross_validation_fits import Refits, held_out

TIMES, ENERGIES = ("s", "ms"), ("W", "Wh")
CLASSES = ("time", "energy_power", "change", "small_change", "share", "bound", "count")
GOAL_CLASSES = ("time", "energy_power")
GOAL_PCT = 10.0  # of the median held-out error
N_WORST = 3
CONTRADICTS = "hipcw_"  # before the class of a number that HiPCW 2021 prints


@dataclass(frozen=True)
class Row:
    """One published number, as `results/twin/validation.csv` has it.

    Attributes
    ----------
    class_ : one of `CLASSES`, behind `CONTRADICTS` where it is HiPCW's
    device : its boards
    published_value, fitted_prediction, held_out_prediction : in `unit`; `a..b` is a range
    fitted_error_pct, held_out_error_pct : in per cent, or in points of it where `judged_as` is
        `points`; None: a bound, or not judged
    seen_by_fit : whether the fit of all numbers saw it; the held-out one never does
    met : of a bound, whether the held-out prediction meets it
    section_error_pct, board_error_pct, network_error_pct, board_network_error_pct, near_error_pct :
        as `held_out_error_pct`, where more is left out than the take-away; None: nothing is
    """

    published_id: str
    class_: str
    device: str
    metric: str
    published_value: str
    fitted_prediction: str
    fitted_error_pct: float | None
    held_out_prediction: str
    held_out_error_pct: float | None
    seen_by_fit: str
    takeaway: str
    judged_as: str
    unit: str
    qualifier: str
    met: str
    section_error_pct: float | None = None
    board_error_pct: float | None = None
    network_error_pct: float | None = None
    board_network_error_pct: float | None = None
    near_error_pct: float | None = None

    def beside(self, errors: Mapping[str, float | None]) -> "Row":
        """Return the row with its held-out errors by grouping."""
        columns: dict[str, Any] = {f"{name}_error_pct": error for name, error in errors.items()}
        return replace(self, **columns)

    def error_by(self, grouping: str) -> float | None:
        """Return the held-out error by what is left out; None: it was not left out so."""
        error = getattr(self, f"{grouping}_error_pct", self.held_out_error_pct)
        return None if error is None else float(error)


def validate(
    published: Published,
    rows: Mapping[str, Judged],
    twin: Twin,
    refits: Refits,
    groups: Mapping[str, Mapping[str, str]],
) -> list[Row]:
    """Return a row for each number that the simulation says something to, in the papers' order.

    Parameters
    ----------
    rows : how each published number is judged
    refits : fitted values by what is held out
    groups : grouping -> published id -> what it is held out with, beside its take-away
    """
    facts = [
        fact
        for fact in published.facts().values()
        if rows[fact.id].is_simulable or (fact.metric in ALSO_SEEN and fact.paper == PAPERS[0])
    ]
    seen = {fact.id for fact in visible(published, rows, twin)}
    seen |= {fact.id for fact in seen_by_setups(published, rows)}
    fitted = predict(facts, twin, twin.parameters)

    def held_out_with(names: Mapping[str, str]) -> dict[str, tuple[float, ...]]:
        by_name = defaultdict(list)
        for fact in facts:
            if fact.id in names:
                by_name[names[fact.id]].append(fact)
        predictions: dict[str, tuple[float, ...]] = {}
        for name, members in by_name.items():
            predictions |= predict(members, twin, held_out(twin.parameters, refits, name))
        return predictions

    without = held_out_with({fact.id: fact.takeaway for fact in facts})
    others = {name: held_out_with(grouping_folds) for name, grouping_folds in groups.items()}
    return [
        _row(
            fact, rows[fact.id].judged_as, fitted[fact.id], without[fact.id], fact.id in seen
        ).beside(
            {
                name: error_pct(fact, rows[fact.id].judged_as, predictions[fact.id])
                for name, predictions in others.items()
                if fact.id in predictions
            }
        )
        for fact in facts
        if fact.id in fitted and fact.id in without
    ]


def _row(
    fact: Fact, judged_as: str, fitted: tuple[float, ...], without: tuple[float, ...], seen: bool
) -> Row:
    ends = (fact.value,) if fact.value_hi is None else (fact.value, fact.value_hi)
    is_met = all(fact.is_met(value) for value in without)
    return Row(
        fact.id,
        ("" if fact.paper == PAPERS[0] else CONTRADICTS) + class_of(fact, judged_as),
        " ".join(dict.fromkeys(run["device"] for run in fact.runs)),
        fact.metric,
        _joined(ends),
        _joined(fitted),
        error_pct(fact, judged_as, fitted),
        _joined(without),
        error_pct(fact, judged_as, without),
        "yes" if seen else "no",
        fact.takeaway,
        judged_as,
        fact.unit,
        fact.qualifier,
        {True: "yes", False: "no"}[is_met] if judged_as == "bound" else "",
    )


def class_of(fact: Fact, judged_as: str) -> str:
    """Return the class in which a number's error is counted, one of `CLASSES`."""
    if not judged_as:
        return "count"
    if judged_as == "bound":
        return "bound"
    if fact.b_over_a is not None:
        return "change" if judged_as == "ratio" else "small_change"
    if fact.unit in TIMES:
        return "time"
    return "energy_power" if fact.unit in ENERGIES else "share"


def error_pct(fact: Fact, judged_as: str, predicted: tuple[float, ...]) -> float | None:
    """Return how far a prediction is from the number, in per cent or points; None for a bound."""
    if judged_as == "ratio":
        return 100.0 * abs(log_error(fact, predicted[0]))
    return abs(predicted[0] - fact.value) if judged_as == "points" else None


def _joined(values: Iterable[float]) -> str:
    return "..".join(f"{value:.6g}" for value in values)


def write_rows(path: str, rows: Iterable[Row]) -> None:
    """Write `validation.csv`."""
    write_entries(Path(path), "the validation", Row, rows, ".3f")


def summary_lines(
    rows: Sequence[Row], n_parameters: int, unsaid: Sequence[Fact], groupings: Sequence[str] = ()
) -> list[str]:
    """Return the accuracy in words and tables, for people.

    Parameters
    ----------
    groupings : lines on what else was left out (`accuracy`), which come first
    unsaid : numbers that are to be judged and that the simulation says nothing to
    """
    others = [row.class_.startswith(CONTRADICTS) for row in rows]
    n_seen = sum(
        row.seen_by_fit == "yes" and not other for row, other in zip(rows, others, strict=True)
    )
    judged = [row for row in rows if row.judged_as]
    lines = [
        f"Simulated boards: {n_parameters} parameters, fitted to {n_seen} numbers of one paper;",
        "the other paper's set-up has one more of its own, fitted to its numbers alone.",
        *groupings,
        f"{len(judged)} published numbers, each predicted by a fit that saw neither its take-away",
        "nor what gives it away; errors in per cent, points for small_change and share.",
        "",
        *_goal_lines(judged),
        "",
        *_table(judged, lambda row: (row.class_,)),
        "",
        *_table(judged, lambda row: (row.class_, row.device)),
        "",
        f"Times, energies and powers with a held-out error over {GOAL_PCT:g} %:",
        *_over_goal(judged),
    ]
    if unsaid:
        lines += ["", "To be judged, but the simulation has no such quantity:"]
        lines += [f"  {fact.id:13s} {fact.metric}" for fact in unsaid]
    return lines


def _goal_lines(rows: Sequence[Row]) -> list[str]:
    lines = []
    for class_ in GOAL_CLASSES:
        errors = [_error(row) for row in rows if row.class_ == class_]
        if errors:
            verdict = "met" if median(errors) <= GOAL_PCT else "missed"
            lines.append(
                f"{class_}: median held-out error {median(errors):.1f} % (n = {len(errors)}, worst "
                f"{max(errors):.1f} %); the goal of {GOAL_PCT:g} % is {verdict}"
            )
    return lines


def _table(rows: Sequence[Row], key: Callable[[Row], tuple[str, ...]]) -> list[str]:
    """Return a line per group: how many, medians, worst cases; of bounds how many are met."""
    groups: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: (row.class_.startswith(CONTRADICTS), _place(row))):
        groups[key(row)].append(row)
    lines = [f"{'':32s} {'n':>3s}  held out  fitted  worst held out"]
    for group, members in groups.items():
        head = f"{'  '.join(group):32s} {len(members):3d}"
        if members[0].judged_as == "bound":
            missed = [row.published_id for row in members if row.met == "no"]
            bounds_met = f"{len(members) - len(missed)} met" + (
                f"; not: {', '.join(missed)}" if missed else ""
            )
            lines.append(f"{head}  {bounds_met}")
            continue
        held, fitted = (
            median(map(_error, members)),
            median(row.fitted_error_pct or 0.0 for row in members),
        )
        worst = sorted(members, key=_error, reverse=True)[:N_WORST]
        named = ", ".join(f"{row.published_id} {_error(row):.1f}" for row in worst)
        lines.append(f"{head}  {held:8.1f}  {fitted:6.1f}  {named}")
    return lines


def _over_goal(rows: Iterable[Row]) -> list[str]:
    over = [row for row in rows if row.class_ in GOAL_CLASSES and _error(row) > GOAL_PCT]
    return [
        f"  {row.published_id:13s} {row.device:5s} {row.metric:25s} {row.published_value:>8s} "
        f"{row.unit:2s}  predicted {row.held_out_prediction:>8s}  {_error(row):5.1f} %"
        for row in sorted(over, key=_error, reverse=True)
    ] or ["  none"]


def _place(row: Row) -> int:
    return CLASSES.index(row.class_.removeprefix(CONTRADICTS))


def _error(row: Row) -> float:
    return row.held_out_error_pct or 0.0
