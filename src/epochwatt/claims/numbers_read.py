"""`config/twin/numbers_read_by_claims.csv`: published numbers of the runs that claims read.

A take-away whose fold takes no number from the fit of the simulated boards cannot be held out by
it. Its claims are judged without every number of the runs and metrics that their predicates read,
and of the metrics which these are made of: who knows stall and compute knows the epoch. A
prediction reads what its model has learned from and is held against: all networks in all modes that
they have in common.

`epochwatt calibrate-twin --folds` writes the file; `published/folds.py` reads it, and adds what
gives the numbers away.
"""

from collections import defaultdict
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from typing import NamedTuple

from epochwatt.claims.evaluate import Claim, load_claims, reads_of
from epochwatt.claims.number_sources import HIPCW, METRICS
from epochwatt.claims.tolerances import PRINTED, Terms, load_terms
from epochwatt.claims.verdict import Read
from epochwatt.published.folds import (
    READ_BY_CLAIMS,
    Point,
    components_of,
    folds,
    judged,
    point,
    points,
)
from epochwatt.published.numbers import PAPERS, Published, load_published
from epochwatt.tables import write_entries
from epochwatt.text import counted
from epochwatt.twin.predicted import seen_by_fit

# what is asked of a prediction -> metrics that its model has learned from
LEARNED = {
    "time_mape_pct": ("e2e_s",),
    "best_mode_set": ("e2e_s",),
    "energy_mape_pct": ("e2e_s", "energy_wh"),
}


class NumbersRead(NamedTuple):
    """One row of the file: numbers that a fit must not see when the take-away is judged."""

    takeaway: str
    published_ids: str
    why: str


def points_read(claims: Iterable[Claim], terms: Terms) -> set[Point]:
    """List the runs and metrics that predicates read, by themselves or through a prediction.

    Raises ConfigError as `evaluate`.
    """
    reads: list[Read] = []
    for read in reads_of(claims, terms):
        if read.metric in METRICS:
            reads.append(read)
        elif read.metric in LEARNED:
            # a prediction has learned from all networks in all modes that they have in common
            for model, mode in product(terms.sets["MODELS4"], terms.sets["COMMON_MODES"]):
                run = terms.factors(read.factors["device"], model, {"pm": mode})
                run |= {"setup": PAPERS[0], "epoch": "1+"}
                reads += [Read(metric, run) for metric in LEARNED[read.metric]]
    found: set[Point] = set()
    for metric, factors in reads:
        config = {PRINTED.get(name, name): value for name, value in factors.items()}
        found.add(point(factors["setup"], config, metric))
    return found


def numbers_read_by_claims(root: Path = Path()) -> list[NumbersRead]:
    """Make a row for each take-away of the main paper whose fold takes no number from the fit.

    Raises ConfigError: a table is missing or wrong.
    """
    published, terms = load_published(root / "config/published"), load_terms(root)
    seen = {fact.id for fact in seen_by_fit(published, judged(root / "config/twin"))}
    with_numbers = {name for name, f in folds(root / "config/twin").items() if seen & f.removed}
    by_fold: dict[str, list[Claim]] = defaultdict(list)
    for claim in load_claims(root):
        if claim.paper != HIPCW and claim.fold not in with_numbers:
            by_fold[claim.fold].append(claim)
    return [_row(fold, points_read(own, terms), published) for fold, own in by_fold.items()]


def _row(fold: str, read: set[Point], published: Published) -> NumbersRead:
    """Make the row of a fold: published numbers of the points read, and of their components."""
    components = set().union(*map(components_of, read))
    facts = published.facts().items()
    ids = [name for name, fact in facts if not components.isdisjoint(points(fact))]
    metrics = ", ".join(sorted({str(metric) for *_, metric in read}))
    n_runs = len({tuple(run) for *run, _ in read})
    what = f"{metrics} of {counted(n_runs, 'runs')}" if read else "no simulated run"
    return NumbersRead(fold, " ".join(ids), f"its claims read {what}")


def write_numbers_read(root: Path = Path()) -> None:
    """Write the file of a checkout, whole or not at all; errors as `numbers_read_by_claims`."""
    path, rows = root / "config/twin" / READ_BY_CLAIMS, numbers_read_by_claims(root)
    write_entries(path, "the numbers that claims read", NumbersRead, rows)
