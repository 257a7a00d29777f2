"""Accuracy from other priors: `config/twin/priors.csv`, made by `calibrate-twin --priors`.

The priors of the fitted parameters were chosen by people who knew the papers, and with nothing
fitted they predict as well as the fits do. So part of the held-out accuracy is theirs. How much
shows when each of them is moved by its own width, up or down at random, or its width is doubled,
and every take-away is left out again.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np

from epochwatt.tables import checked_rows, write_entries
from epochwatt.twin.inputs.parameters import Parameters
from epochwatt.twin.validation.cross_validation import GOAL_CLASSES, Row

FILE = "priors.csv"
CHOSEN, SHIFTED, WIDER = "as chosen", "shifted", "widths doubled"
N_SHIFTED, SEED = 2, 0
WIDER_BY = 2.0  # times the width: a factor of 3 becomes one of 9


@dataclass(frozen=True)
class PriorRow:
    """One line of priors.csv.

    Attributes
    ----------
    priors : `CHOSEN`, `SHIFTED` with a number, `WIDER`
    fitted : yes: each take-away predicted by a fit that saw the others; no: by the priors alone
    seed : of the shifts
    class_ : of the numbers, one of `validate.GOAL_CLASSES`
    n, median_error_pct : how many, and their median held-out error
    """

    priors: str
    fitted: str
    seed: int
    class_: str
    n: int
    median_error_pct: float


def variants(parameters: Parameters, n: int, seed: int) -> dict[str, Parameters]:
    """Return parameters with other priors: n shifted ones, and one with wider ones."""
    p = parameters.candidates()
    described, rng = {name: p.described[name] for name in p.fitted}, np.random.default_rng(seed)
    priors = {}
    for i in range(1, n + 1):
        signs = rng.choice((-1.0, 1.0), len(described))
        moved = {
            name: {"prior": parameter.prior * parameter.factor**sign}
            for (name, parameter), sign in zip(described.items(), signs, strict=True)
        }
        priors[f"{SHIFTED} {i}"] = p.changed(moved)
    wider = {name: {"factor": parameter.factor**WIDER_BY} for name, parameter in described.items()}
    return {WIDER: p.changed(wider), **priors}


def at_priors(parameters: Parameters) -> Parameters:
    """Return parameters with nothing fitted: each that has a prior is at it."""
    p = parameters.candidates()
    return p.moved({name: p.described[name].prior for name in p.fitted})


def prior_rows(priors: str, fitted: str, rows: Sequence[Row]) -> list[PriorRow]:
    """Return the medians of one choice of priors, as `validate.validate` found them."""
    errors = {
        class_: [row.held_out_error_pct or 0.0 for row in rows if row.class_ == class_]
        for class_ in GOAL_CLASSES
    }
    return [
        PriorRow(priors, fitted, SEED, class_, len(of_class), median(of_class))
        for class_, of_class in errors.items()
        if of_class
    ]


def write_priors(folder: Path, rows: Iterable[PriorRow]) -> None:
    """Write `priors.csv`, whole or not at all."""
    write_entries(folder / FILE, "what other priors give", PriorRow, rows, ".2f")


def load_priors(folder: Path) -> list[PriorRow]:
    """Read `priors.csv`; ConfigError names file and line."""
    rows = checked_rows(PriorRow, folder / FILE, lambda row: {**row, "class_": row.get("class")})
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
