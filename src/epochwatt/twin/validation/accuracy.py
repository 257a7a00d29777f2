"""Sum up errors of the simulated boards, by what was left out: `results/twin/groupings.csv`.

The median error of times, of stalls among them, and of energies and powers, for each grouping of
`published/folds.py`, beside that by take-away. Its interval is a bootstrap over the groups,
since the numbers of one group are off together; of fewer than `ENOUGH` groups none is said.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np

from epochwatt.tables import checked_rows, write_entries
from epochwatt.twin.validation.cross_validation import CONTRADICTS, GOAL_CLASSES, Row

TAKE_AWAY, TRANSFER = "take-away", "main paper to HiPCW"
LABELS = {
    TAKE_AWAY: "take-away",
    "near": "take-away, and what asks nearly the same",
    "section": "section of the paper",
    "board_network": "board with network",
    "board": "board",
    "network": "network",
    TRANSFER: "HiPCW: main paper, one parameter",
}
STALL = "stall"
CLASSES = (GOAL_CLASSES[0], STALL, GOAL_CLASSES[1])
CLASS_LABELS = {"time": "times", STALL: "stalls alone", "energy_power": "energies and powers"}
PRIORS, CHOSEN = "priors.csv", "as chosen"  # made by `benchmarks.calibration`
ENOUGH = 5  # groups that an interval needs
N_DRAWS, SEED = 2000, 0
INTERVAL_PCT = 90.0


@dataclass(frozen=True)
class Accuracy:
    """One line of groupings.csv."""

    grouping: str  # a key of `LABELS`, and in words
    left_out: str
    class_: str  # one of `CLASSES`
    n: int  # numbers, and the groups that were left out, one after the other
    n_groups: int
    median_error_pct: float  # of the held-out errors, and its interval; None: too few
    low_pct: float | None
    high_pct: float | None
    worst_id: str  # the number that is furthest off
    worst_error_pct: float


def accuracies(rows: Sequence[Row], groups: Mapping[str, Mapping[str, str]]) -> list[Accuracy]:
    """Return the errors of each grouping and class that has any number.

    `groups`: grouping -> published id -> what it is left out with.
    """
    rows_of_groups = []
    for grouping in [name for name in LABELS if name in groups or name == TRANSFER]:
        members = groups.get(grouping, {})
        for class_ in CLASSES:
            errors = {
                row.published_id: error
                for row in rows
                if _is_of(row, class_, grouping == TRANSFER)
                and (error := row.error_by(grouping)) is not None
            }
            if errors:
                rows_of_groups.append(_accuracy(grouping, class_, errors, members))
    return rows_of_groups


def _is_of(row: Row, class_: str, is_transfer: bool) -> bool:
    if row.class_.startswith(CONTRADICTS) != is_transfer:
        return False
    plain_class = row.class_.removeprefix(CONTRADICTS)
    return (
        plain_class == "time" and row.metric.startswith("stall")
        if class_ == STALL
        else plain_class == class_
    )


def _accuracy(
    grouping: str, class_: str, errors: Mapping[str, float], groups: Mapping[str, str]
) -> Accuracy:
    members: dict[str, list[float]] = defaultdict(list)
    for name, error in errors.items():
        members[groups.get(name, "")].append(error)
    worst = max(errors, key=lambda name: errors[name])
    low, high = _interval(list(members.values()))
    return Accuracy(
        grouping,
        LABELS[grouping],
        class_,
        len(errors),
        len(members),
        median(errors.values()),
        low,
        high,
        worst,
        errors[worst],
    )


def _interval(groups: Sequence[Sequence[float]]) -> tuple[float | None, float | None]:
    """Return the bootstrap interval of the median over groups; None where there are too few."""
    if len(groups) < ENOUGH:
        return None, None
    rng, tail = np.random.default_rng(SEED), (100.0 - INTERVAL_PCT) / 2.0
    drawn = rng.integers(0, len(groups), (N_DRAWS, len(groups)))
    medians = [np.median(np.concatenate([groups[i] for i in row])) for row in drawn]
    low, high = np.percentile(medians, [tail, 100.0 - tail])
    return float(low), float(high)


def write_accuracies(path: str, rows: Iterable[Accuracy]) -> None:
    """Write `groupings.csv`."""
    write_entries(Path(path), "the accuracies", Accuracy, rows, ".2f")


def headline(rows: Sequence[Accuracy]) -> str:
    """Return the range of the medians over all groupings: the accuracy in a sentence."""
    parts = []
    for class_ in GOAL_CLASSES:
        medians = [row.median_error_pct for row in rows if row.class_ == class_]
        if medians:
            parts.append(f"{CLASS_LABELS[class_]} {min(medians):.0f} to {max(medians):.0f} %")
    return f"Off in the median, by what is left out: {'; '.join(parts)}."


def accuracy_table(rows: Sequence[Accuracy]) -> list[str]:
    """Return a line per grouping: of each class the median, its interval, and of how many."""
    cells = {(row.grouping, row.class_): _cell(row) for row in rows}
    lines = [f"{'left out':42s}" + "".join(f"{CLASS_LABELS[c]:>32s}" for c in CLASSES)]
    for grouping, label in LABELS.items():
        if any((grouping, c) in cells for c in CLASSES):
            line_cells = "".join(f"{cells.get((grouping, c), '-'):>32s}" for c in CLASSES)
            lines.append(f"{label:42s}{line_cells}")
    return [line.rstrip() for line in lines]


def _cell(row: Accuracy) -> str:
    ends = "" if row.low_pct is None else f" ({row.low_pct:.1f} to {row.high_pct:.1f})"
    return f"{row.median_error_pct:.1f} %{ends}, n {row.n} in {row.n_groups}"


@dataclass(frozen=True)
class PriorRow:
    """One line of priors.csv."""

    priors: str  # as chosen, shifted, or widths doubled
    # yes: each take-away predicted by a fit that saw the others; no: by the priors alone
    fitted: str
    seed: int  # of the shifts
    class_: str  # of the numbers, one of `GOAL_CLASSES`
    n: int  # how many, and their median held-out error
    median_error_pct: float


def load_priors(folder: Path) -> list[PriorRow]:
    """Read `priors.csv`; ConfigError names file and line."""
    rows = checked_rows(PriorRow, folder / PRIORS, lambda row: {**row, "class_": row.get("class")})
    return [row for _, _, row in rows]


def prior_lines(rows: Sequence[PriorRow]) -> list[str]:
    """Return what other priors give, for people."""
    errors: dict[tuple[str, str], dict[str, float]] = {}
    for row in rows:
        errors.setdefault((row.priors, row.fitted), {})[row.class_] = row.median_error_pct
    lines = [f"{'priors':42s}{'times':>10s}{'energies and powers':>22s}"]
    for (priors, fitted), medians in errors.items():
        label = priors if fitted == "yes" else f"{priors}, nothing fitted"
        time_pct, energy_pct = (f"{medians[class_]:.1f} %" for class_ in GOAL_CLASSES)
        lines.append(f"{label:42s}{time_pct:>10s}{energy_pct:>22s}")
    return lines
