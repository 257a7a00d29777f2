"""How far a question lies from the published numbers that the simulated boards are judged on.

Only rows of the main paper count that `config/twin/folds.csv` judges: HiPCW 2021 is a set-up of
its own. What the cross-validation found is in `results/twin/validation.csv` (`make validate`).
"""

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from epochwatt.published.folds import judged
from epochwatt.published.numbers import Measurement, Relation, load_published, read_table
from epochwatt.twin.calibration.predicted import questions
from epochwatt.twin.calibration.queries import Modes, Question

MAIN_PAPER = "sigmetrics2023"
VALIDATION = Path("results/twin/validation.csv")
CLASSES = ("time", "energy_power")  # of the cross-validation, those that an answer is of
OPTIONS = {  # key of a question -> its option of the command
    "storage": "--storage",
    "num_workers": "--workers",
    "batch_size": "--batch-size",
    "power_mode": "--power-mode",
    "dvfs": "--dvfs",
    "cold": "--cold",
    "scale": "--scale",
}

ASSUMED = "assumed"  # in what folds.csv says of a number

Fact = Measurement | Relation


@dataclass(frozen=True)
class Near:
    """The published configuration that is nearest to a question.

    Attributes
    ----------
    question : it
    differs : keys in which it is another
    facts : published numbers that speak of it
    """

    question: Question
    differs: tuple[str, ...]
    facts: tuple[Fact, ...]


def published_questions(root: Path) -> dict[Question, tuple[Fact, ...]]:
    """Return the configurations that published numbers speak of, and those numbers.

    Parameters
    ----------
    root : the checkout

    Raises
    ------
    ConfigError : a table of `config/published` or `config/twin` cannot be read
    """
    known = judged(root / "config/twin")
    found: dict[Question, dict[str, Fact]] = defaultdict(dict)
    for name, fact in load_published(root / "config/published").facts().items():
        if fact.paper != MAIN_PAPER or name not in known or not known[name].is_simulable:
            continue
        for question in configurations(fact):
            found[question][name] = fact
    return {question: tuple(facts.values()) for question, facts in found.items()}


def configurations(fact: Fact) -> list[Question]:
    """Return the configurations that a published number speaks of."""
    sides = (fact.config,) if isinstance(fact, Measurement) else fact.sides
    return [question for side in sides for question in questions(side)]


def only_assumed(device: str, asked: Mapping[Question, tuple[Fact, ...]], root: Path) -> bool:
    """Say whether all judged numbers of a board are marked as resting on assumptions."""
    known = judged(root / "config/twin")
    return all(
        ASSUMED in known[fact.id].why
        for question, facts in asked.items()
        for fact in facts
        if question.device == device
    )


def values(key: str, asked: Mapping[Question, Any], **only: str) -> list[Any]:
    """Return the values of a key in published configurations, of one board and model or of all."""
    told = {
        getattr(q, key) for q in asked if all(getattr(q, k) == want for k, want in only.items())
    }
    return sorted(told)


def nearest(
    question: Question, asked: Mapping[Question, tuple[Fact, ...]], modes: Modes
) -> Near | None:
    """Return the published configuration of the same board that differs least; None: there is none.

    The same network counts first, then the number of other keys, then how far numbers are apart.

    Parameters
    ----------
    question : what is asked
    asked : as `published_questions` gives it
    modes : clocks of the board's modes, those of the question among them
    """
    there = [q for q in asked if q.device == question.device]
    if not there:
        return None
    best = min(there, key=lambda q: _distance(question, q, modes))
    return Near(best, _differs(question, best), asked[best])


def _differs(a: Question, b: Question) -> tuple[str, ...]:
    keys = ("model", *OPTIONS)
    return tuple(key for key in keys if getattr(a, key) != getattr(b, key))


def _distance(a: Question, b: Question, modes: Modes) -> tuple[bool, int, float]:
    numbers = [
        (a.num_workers + 1, b.num_workers + 1),
        (a.batch_size, b.batch_size),
        (a.scale, b.scale),
        *zip(modes[a.device][a.power_mode], modes[b.device][b.power_mode], strict=True),
    ]
    apart = sum(abs(math.log(float(x) / float(y))) for x, y in numbers)
    return (a.model != b.model, len(_differs(a, b)), apart)


def validation(root: Path) -> list[dict[str, str]]:
    """Return the rows of the cross-validation; none where it was not made."""
    path = root / VALIDATION
    return [row for _, row in read_table(path)] if path.exists() else []


def median_errors_pct(rows: list[dict[str, str]], device: str) -> dict[str, tuple[float, int]]:
    """Return the median held-out error of a board's numbers, and their count, by `CLASSES`."""
    errors = defaultdict(list)
    for row in rows:
        if row["device"] == device and row["class"] in CLASSES and row["held_out_error_pct"]:
            errors[row["class"]].append(float(row["held_out_error_pct"]))
    return {name: (median(each), len(each)) for name, each in errors.items()}
