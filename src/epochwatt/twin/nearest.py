"""Find the published configuration nearest to a question, with its numbers, in words.

Only numbers of the main paper count that `config/twin/folds.csv` judges the simulation by: HiPCW
2021 has another set-up. `make validate` writes the held-out errors, `results/twin/validation.csv`.
"""

import math
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from statistics import median

from epochwatt import columns
from epochwatt.published.folds import judged
from epochwatt.published.numbers import Config, Fact, load_published
from epochwatt.tables import read_table
from epochwatt.twin.predicted import Question, questions
from epochwatt.twin.twin import Twin

MAIN_PAPER = "sigmetrics2023"
VALIDATION = Path("results/twin/validation.csv")
CLASSES = ("time", "energy_power")  # of the cross-validation, those that an answer contains
SETTINGS = {  # key of a question -> its title
    "storage": "storage",
    "num_workers": "loader workers",
    "batch_size": "batch size",
    "power_mode": "power mode",
    "dvfs": "DVFS",
    "cold": "empty page cache",
    "scale": "data set scale",
}
ASSUMED = "assumed"  # in the reason that folds.csv gives for a number

RATIOS = {  # of columns -> words
    "(stall_s+compute_s)/e2e_s": "share of stall and compute in the epoch",
    "stall_s/e2e_s": "share of the stall in the epoch",
    "baseload_wh/energy_wh": "share of the base load (the idle board) in the energy",
}
FORMULAS = {  # formula of a relation -> how a and b, or the values of a, make the number
    "100*(B-A)/A": "change from {a} to {b}",
    "mean 100*(B-A)/A": "mean change from {a} to {b}",
    "100*|B-A|/A": "change up or down from {a} to {b}",
    "A/B": "{a} over {b}",
    "B/A": "{b} over {a}",
    "100*part/whole": "over {a}",
    "min..max": "least to most over {a}",
    "100*(max-min)/max": "(most - least) / most over {a}",
}
KEYS = {"num_workers": "workers", "batch_size": "batch", "power_mode": "mode"}
QUALIFIERS = {"exact": "", "approx": "about "}  # the others read as they are

Published = Mapping[Question, tuple[Fact, ...]]


def published_questions(root: Path) -> Published:
    """Return the configurations that published numbers are about, with those numbers.

    Raises ConfigError: a table of `config/published` or `config/twin` cannot be read.
    """
    rows = judged(root / "config/twin")
    facts: dict[Question, dict[str, Fact]] = defaultdict(dict)
    for name, fact in load_published(root / "config/published").facts().items():
        if fact.paper == MAIN_PAPER and name in rows and rows[name].is_simulable:
            for question in (q for side in fact.sides for q in questions(side)):
                facts[question][name] = fact
    return {question: tuple(named.values()) for question, named in facts.items()}


def only_assumed(device: str, published: Published, root: Path) -> bool:
    """Return whether all judged numbers of a board are marked as resting on assumptions."""
    rows = judged(root / "config/twin")
    facts = [fact for q, of_q in published.items() if q.device == device for fact in of_q]
    return all(ASSUMED in rows[fact.id].why for fact in facts)


def unpublished(question: Question, published: Published, **scope: str) -> list[str]:
    """Return the settings with values that nothing is published of: `storage emmc (only hdd, ssd)`.

    `scope`: keys and values of the published configurations that count; without it all do.
    """
    rows = [q for q in published if all(getattr(q, key) == v for key, v in scope.items())]
    missing = []
    for key, title in SETTINGS.items():
        values, asked = sorted({getattr(q, key) for q in rows}), getattr(question, key)
        if asked not in values:
            missing.append(f"{title} {word(asked)} (only {', '.join(map(word, values))})")
    return missing


def word(value: object) -> str:
    """Return the value of a setting as text."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)


def nearest(question: Question, published: Published, twin: Twin) -> Question | None:
    """Return the published configuration of the same board that differs least; None: there is none.

    The same network counts first, then the number of other keys, then how far numbers are apart.

    `twin`: with the clocks of the board's modes, including the one of the question.
    """
    asked_clocks = twin.clocks(question.device, question.power_mode)

    def distance(q: Question) -> tuple[bool, int, float]:
        numbers = [
            (question.num_workers + 1, q.num_workers + 1),
            (question.batch_size, q.batch_size),
            (question.scale, q.scale),
            *zip(asked_clocks, twin.clocks(q.device, q.power_mode), strict=True),
        ]
        apart = sum(abs(math.log(float(x) / float(y))) for x, y in numbers)
        n_different = sum(getattr(question, key) != getattr(q, key) for key in SETTINGS)
        return (question.model != q.model, n_different, apart)

    return min((q for q in published if q.device == question.device), key=distance, default=None)


def subject(fact: Fact) -> str:
    """Return what a published number measures, in words: its metric and what it compares."""
    metric = RATIOS.get(fact.metric) or columns.label(fact.metric)
    if not fact.formula:
        return metric
    first, *rest = fact.sides
    second = rest[0] if rest else {}
    keys = [key for key in first if first[key] != second.get(key)]
    if not rest:
        keys = [key for key, value in first.items() if isinstance(value, tuple)]

    def listed(side: Config) -> str:
        values = {key: side.get(key) for key in keys}
        words = {k: " ".join(map(str, v)) if isinstance(v, tuple) else v for k, v in values.items()}
        return ", ".join(f"{KEYS.get(key, key)} {word}" for key, word in words.items())

    a, b = listed(first), listed(second)
    formula = FORMULAS.get(fact.formula, fact.formula) if a else ""
    return f"{metric}, {formula.format(a=a, b=b)}" if formula else metric


def value(fact: Fact) -> str:
    """Return a published number with qualifier and unit."""
    qualifier = QUALIFIERS.get(fact.qualifier, f"{fact.qualifier.replace('_', ' ')} ")
    top = "" if fact.value_hi is None else f" to {fact.value_hi:g}"
    return f"{qualifier}{fact.value:g}{top} {columns.UNIT_OF_ENDING.get(fact.unit, fact.unit)}"


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
    return {name: (median(values), len(values)) for name, values in errors.items()}
