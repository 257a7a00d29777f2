"""Folds of the cross-validation: the numbers that a fit must not see before it is judged.

A fold is a take-away by its number; rows without a number are folds by their section. Held out with
its own rows is every other row that gives them away. `config/twin/folds.csv` has one line for each
published number: its take-away, whether a simulation can be judged on it, and how.
`config/twin/overlapping_numbers.csv` has one line for each set of rows of which one gives away
another: a fold that holds one of them loses them all, and what these give away, to the end. Only a
bound, which implies no value, leads no further.

A take-away whose fold takes no number from a fit is judged by its claims alone. It loses the
numbers of the runs that these read: `config/twin/numbers_read_by_claims.csv`, which
`claims/numbers_read.py` makes.
`config/twin/seen.csv` has the ids of the numbers that the fit of all sees
(`twin/predicted.py`).

Judged as `ratio` are times, energies, powers, factors and changes of 20 % or more, as the ratio of
the two sides; as `points` shares, spreads and smaller changes, since "no change at all" would be
near them as a ratio; as `bound` what only says where a value lies. Not judged are constants,
counts, clocks, zeros, 0 and 100 %, what rests on noise put in by hand (5.4) and the errors of
prediction models (5.7).

Most of the leaks follow from the tables (`benchmarks/calibration.py`): rows, or ends of relations,
with the same run and metric; numbers of one run that add up or multiply; and both again where the
simulation says the same to two runs, so that for it they are one. The others were found by hand,
and the file says the arithmetic.

`folder` is config/twin of the checkout in all functions here.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, TypeVar, get_args

from pydantic import BeforeValidator, Field

from epochwatt.errors import ConfigError
from epochwatt.published.numbers import (
    DEVICE_DEFAULTS,
    PAPERS,
    SPREADS,
    Config,
    Fact,
    Filled,
    Published,
    run_key,
)
from epochwatt.tables import checked_rows

FOLDS = "folds.csv"
LEAKS = "overlapping_numbers.csv"
READ_BY_CLAIMS = "numbers_read_by_claims.csv"
SEEN = "seen.csv"
ID = "published_id"

Rule = Literal["same run and metric", "identity", "one run in the simulation", "arithmetic"]
RULES: tuple[Rule, ...] = get_args(Rule)
BY_HAND = RULES[-1]

# Metrics that are another in other words: over mini-batches, over the 15 hours of section 5.4.
SAME_AS = {
    "stall_ms_per_minibatch": "stall_s",
    "compute_ms_per_minibatch": "compute_s",
    "n_epochs_in_15h": "e2e_s",
}
# Metrics of one run of which the last follows from the others.
IDENTITIES = (
    ("stall_s", "compute_s", "e2e_s"),
    ("power_w", "e2e_s", "energy_wh"),
    ("stall_s", "e2e_s", "stall_s/e2e_s"),
    ("stall_s", "compute_s", "e2e_s", "(stall_s+compute_s)/e2e_s"),
)

POWER_MODES = "power modes"  # in place of a take-away: `power_mode_fold`
OF_POWER_MODES = ("5.6.", "5.7.")  # take-aways of the main paper begin so

Point = tuple[object, ...]  # a run and a metric
Ids = Annotated[  # column published_ids
    frozenset[str],
    BeforeValidator(lambda cell: cell.split()),
    Field(validation_alias="published_ids"),
]


@dataclass(frozen=True)
class Fold:
    """One take-away."""

    takeaway: str  # its number, or the section of rows without one
    # published numbers that are judged when it is held out; none where its claims alone are
    ids: frozenset[str]
    # published numbers that the fit does not see then; `ids` and what gives them away
    removed: frozenset[str]


@dataclass(frozen=True)
class Judged:
    """Whether and how a simulation is judged on a published number."""

    takeaway: Filled  # fold of the number
    # ratio (error |ln|), points (of per cent), bound (met or not); empty: it is not
    judged_as: Literal["", "ratio", "points", "bound"]
    why: str  # why it is not, or what to keep in mind

    @property
    def is_simulable(self) -> bool:
        """Whether a simulation can be judged on it."""
        return bool(self.judged_as)


@dataclass(frozen=True)
class Leak:
    """Published numbers that leave together, by which of `RULES`, and why."""

    ids: Annotated[Ids, Field(min_length=2)]
    rule: Rule
    why: Filled


@dataclass(frozen=True)
class NumbersRead:
    """Published numbers that the claims of a take-away read, and why these."""

    takeaway: Filled
    ids: Ids
    why: Filled


IDLE = "idle"  # in place of a network


# name of a grouping -> what a number belongs to
GROUPINGS: dict[str, Callable[[Fact], set[str]]] = {
    "section": lambda fact: {".".join(fact.section.split(".")[:2])},
    "board": lambda fact: {run["device"] for run in fact.runs if "device" in run},
    "network": lambda fact: {
        run.get("model", IDLE) for run in fact.runs if "device" in run or "model" in run
    },
    "board_network": lambda fact: {
        f"{run['device']} {run.get('model', IDLE)}" for run in fact.runs if "device" in run
    },
}

IdSet = TypeVar("IdSet", Leak, NumbersRead)


def folds(folder: Path) -> dict[str, Fold]:
    """Read the folds by take-away, in the order of the papers.

    Raises ConfigError: a file is missing, or a line is malformed.
    """
    rows = judged(folder)
    leaks = load_leaks(folder, rows)
    by_takeaway: dict[str, set[str]] = defaultdict(set)
    for name, row in rows.items():
        by_takeaway[row.takeaway].add(name)
    return {
        name: Fold(name, frozenset(ids), giving_away(ids, leaks, rows))
        for name, ids in by_takeaway.items()
    }


def claim_folds(folder: Path) -> dict[str, Fold]:
    """Read the folds of take-aways that claims alone judge. Errors as of `folds`.

    Where nothing that the claims read is published, the fold removes nothing.
    """
    rows, folds = judged(folder), dict[str, Fold]()
    leaks = load_leaks(folder, rows)
    for where, read in _sets_of_ids(NumbersRead, folder / READ_BY_CLAIMS, rows):
        if read.takeaway in folds:
            raise ConfigError(f"take-away {read.takeaway} is there twice", where=where)
        removed = giving_away(read.ids, leaks, rows)
        folds[read.takeaway] = Fold(read.takeaway, frozenset(), removed)
    return folds


def power_mode_fold(published: Published) -> Fold:
    """Build the fold that leaves out every number that tells what a power mode does.

    It loses the numbers of which a run is in another mode than its board's default, or with DVFS,
    which lets the clocks go below the mode's, and the take-aways on modes (`OF_POWER_MODES`). No
    leak has to be followed: whatever is left is of runs at the clocks of default modes, and nothing
    about others follows from them.
    """
    ids = (
        fact.id
        for fact in published.facts().values()
        if fact.takeaway.startswith(OF_POWER_MODES)
        or any(
            run.get("dvfs") == "on" or mode != DEVICE_DEFAULTS[run["device"]]["power_mode"]
            for run in fact.runs
            if (mode := run.get("power_mode"))
        )
    )
    return Fold(POWER_MODES, frozenset(), frozenset(ids))


def groupings(published: Published, folder: Path) -> dict[str, dict[str, Fold]]:
    """Build folds by board, network or section instead of by take-away, for each of `GROUPINGS`.

    A take-away left out is still beside numbers of the same board and network. How well a board, a
    network or a section of the paper is predicted of which a fit has seen nothing is another
    question, and each has its own answer: the headline is the range of them all. A number belongs
    to the group of all the boards (networks, both) that it speaks of. The fit that predicts it has
    seen no number of any of them, nor what gives those away. Only of the main paper: nothing else
    is fitted. Errors as of `folds`.
    """
    rows = judged(folder)
    leaks = load_leaks(folder, rows)
    facts = [f for f in published.facts().values() if f.paper == PAPERS[0]]
    by_grouping: dict[str, dict[str, Fold]] = {}
    for grouping, keys in GROUPINGS.items():
        keys_of = {fact.id: frozenset(keys(fact)) for fact in facts}
        groups: dict[frozenset[str], set[str]] = defaultdict(set)
        for fact in facts:
            if rows[fact.id].is_simulable and keys_of[fact.id]:
                groups[keys_of[fact.id]].add(fact.id)
        by_grouping[grouping] = {}
        for group, ids in groups.items():
            name = f"{grouping} {' + '.join(sorted(group))}"
            touched = {i for i, fact_keys in keys_of.items() if fact_keys & group}
            removed = giving_away(touched, leaks, rows)
            by_grouping[grouping][name] = Fold(name, frozenset(ids), removed)
    return by_grouping


def fold_of(folds: Mapping[str, Fold]) -> dict[str, str]:
    """Return the name of its fold by published id."""
    return {id_: name for name, fold in folds.items() for id_ in fold.ids}


def judged(folder: Path) -> dict[str, Judged]:
    """Read how a simulation is judged on each published number, by its id. Errors as of `folds`."""
    rows: dict[str, Judged] = {}
    for where, cells, how in checked_rows(Judged, folder / FOLDS):
        name, simulable = cells[ID], cells["simulable"]
        if name in rows:
            raise ConfigError(f"{name} is there twice", where=where)
        if simulable != ("yes" if how.is_simulable else "no"):
            problem = f"simulable is {simulable!r}, judged_as {how.judged_as!r}"
            raise ConfigError(problem, where=where, allowed="yes and how; no and nothing")
        rows[name] = how
    return rows


def load_leaks(folder: Path, published_ids: Collection[str]) -> list[Leak]:
    """Return the sets of numbers that leave together. Errors as of `folds`."""
    return [leak for _, leak in _sets_of_ids(Leak, folder / LEAKS, published_ids)]


def _sets_of_ids(
    kind: type[IdSet], path: Path, published_ids: Collection[str]
) -> Iterator[tuple[str, IdSet]]:
    """Yield the file and line of each row, and the row; ConfigError where an id is unknown."""
    for where, _, row in checked_rows(kind, path):
        for name in sorted(row.ids - set(published_ids)):
            raise ConfigError(f"{name} is not in {FOLDS}", where=where)
        yield where, row


def giving_away(
    ids: Iterable[str], leaks: Iterable[Leak], rows: Mapping[str, Judged]
) -> frozenset[str]:
    """Return ids of published numbers, and of all that give them away, directly or not.

    The closure of `ids` over the sets of leaks. A bound that was reached leads no further; `rows`
    say which numbers are bounds.
    """
    neighbours: dict[str, set[str]] = defaultdict(set)
    for leak in leaks:
        for name in leak.ids:
            neighbours[name] |= leak.ids
    reached, todo = set(ids), list(ids)
    while todo:
        new = neighbours[todo.pop()] - reached
        reached |= new
        todo += [name for name in new if rows[name].judged_as != "bound"]
    return frozenset(reached)


def points(fact: Fact) -> Iterator[Point]:
    """Yield the runs and metrics that a number says something about, paper first."""
    metric = SAME_AS.get(fact.metric, fact.metric)
    if fact.formula in SPREADS:  # says nothing of the level
        metric = f"{fact.formula} of {metric}"
    for run in fact.runs:
        if "device" in run:
            yield point(fact.paper, run, metric)


def point(paper: str, config: Config, metric: str) -> Point:
    """Return the key of a metric of one run: paper, factors, metric; `config` by `KEYS`."""
    # `all` epochs of the main paper are those of a run of 15 hours; HiPCW has a median of three
    if config.get("epoch") == "all" and paper == PAPERS[0]:
        config = {**config, "epoch": "1+"}
    return (paper, *run_key(config), SAME_AS.get(metric, metric))


def components_of(target: Point) -> set[Point]:
    """Return a point and all that it follows from: an epoch's time from stall and compute."""
    *run, metric = target
    found = {target}
    for *parts, whole in IDENTITIES:
        if whole == metric:
            for part in parts:
                found |= components_of((*run, part))
    return found
