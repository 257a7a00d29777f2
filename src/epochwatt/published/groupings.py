"""Leave published numbers out by board, network or section instead of by take-away.

A take-away left out is still beside numbers of the same board and network. How well a board, a
network or a section of the paper is predicted of which a fit has seen nothing is another question,
and each has its own answer: the headline is the range of them all.

A number belongs to the group of all the boards (networks, both) that it speaks of. The fit
that predicts it has seen no number of any of them, nor what gives those away (`folds.giving_away`).
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path

from epochwatt.published.folds import Fold, giving_away, judged, load_leaks
from epochwatt.published.numbers import PAPERS, Config, Fact, Published

IDLE = "idle"  # in place of a network


def _runs(fact: Fact) -> list[Config]:
    """Return the runs and idle boards that a number speaks of."""
    return [run for run in fact.runs if "device" in run or "model" in run]


# name of a grouping -> what a number belongs to
GROUPINGS: dict[str, Callable[[Fact], set[str]]] = {
    "section": lambda fact: {".".join(fact.section.split(".")[:2])},
    "board": lambda fact: {run["device"] for run in _runs(fact) if "device" in run},
    "network": lambda fact: {run.get("model", IDLE) for run in _runs(fact)},
    "board_network": lambda fact: {
        f"{run['device']} {run.get('model', IDLE)}" for run in _runs(fact) if "device" in run
    },
}


def groupings(published: Published, folder: Path) -> dict[str, dict[str, Fold]]:
    """Return for each of `GROUPINGS` its folds, by the name of the grouping and what is left out.

    Only of the main paper: nothing else is fitted. Errors as of `folds.folds`.
    """
    rows = judged(folder)
    leaks = load_leaks(folder, rows)
    facts = [f for f in published.facts().values() if f.paper == PAPERS[0]]
    folds: dict[str, dict[str, Fold]] = {}
    for grouping, keys in GROUPINGS.items():
        keys_of = {fact.id: frozenset(keys(fact)) for fact in facts}
        groups: dict[frozenset[str], set[str]] = defaultdict(set)
        for fact in facts:
            if rows[fact.id].is_simulable and keys_of[fact.id]:
                groups[keys_of[fact.id]].add(fact.id)
        folds[grouping] = {}
        for group, ids in groups.items():
            name = f"{grouping} {' + '.join(sorted(group))}"
            touched = {i for i, fact_keys in keys_of.items() if fact_keys & group}
            removed = giving_away(touched, leaks, rows)
            folds[grouping][name] = Fold(name, frozenset(ids), removed)
    return folds


def fold_of(folds: Mapping[str, Fold]) -> dict[str, str]:
    """Return the name of its fold by published id."""
    return {id_: name for name, fold in folds.items() for id_ in fold.ids}
