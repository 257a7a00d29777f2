"""Make what stands beside the calibration of the simulated boards: `make validate` runs both.

`python -m benchmarks.calibration overlaps` writes `config/twin/overlapping_numbers.csv`. Two media
that are both hidden behind the workers, or DVFS that leaves the clocks where they are, give the
same epoch. A number of the one then gives away the same number of the other, whatever the paper
prints. So times, powers and energies of one board and network that agree within `SAME`, with
whatever parameters, are one point for the folds (`published/folds.py`).

`python -m benchmarks.calibration priors` writes `config/twin/priors.csv`. The priors of the fitted
parameters were chosen by people who knew the papers, and with nothing fitted they predict as well
as the fits do. So part of the held-out accuracy is theirs. How much shows when each of them is
moved by its own width, up or down at random, or its width is doubled, and every take-away is left
out again.
"""

import sys
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from epochwatt.published.folds import (
    BY_HAND,
    IDENTITIES,
    LEAKS,
    RULES,
    SAME_AS,
    Leak,
    Point,
    load_leaks,
    point,
    points,
)
from epochwatt.published.numbers import KEYS, SPREADS, Measurement, Published
from epochwatt.tables import write_table
from epochwatt.twin import validation
from epochwatt.twin.boards import Array
from epochwatt.twin.calibrate_twin import PRIORS, count_paths, load_evidence, validate
from epochwatt.twin.parameters import Parameters
from epochwatt.twin.predicted import Batch
from epochwatt.twin.refits import Refits, refit
from epochwatt.twin.twin import Twin
from epochwatt.twin.validation import GOAL_CLASSES

SAME = 1e-3  # of a value
METRICS = ("e2e_s", "stall_s", "compute_s", "power_w", "energy_wh")
N_DRAWS, SEED = 16, 0
SHIFTED, WIDER = "shifted", "widths doubled"
N_SHIFTED = 2
WIDER_BY = 2.0  # times the width: a factor of 3 becomes one of 9
CHOSEN = "as chosen"  # priors of the fits that everything simulated comes of
WORKLOADS = Path("results/twin/workloads")


def write_leaks(folder: Path, published: Published, twin: Twin) -> None:
    """Write `overlapping_numbers.csv`: derived sets anew, those found by hand kept."""
    order = list(published.facts())
    by_hand = [leak for leak in load_leaks(folder, order) if leak.rule == BY_HAND]
    leaks = derived_leaks(published, one_run(published, twin))
    rows = (
        (" ".join(sorted(leak.ids, key=order.index)), leak.rule, leak.why)
        for leak in [*leaks, *by_hand]
    )
    columns = ("published_ids", "rule", "why")
    write_table(folder / LEAKS, "what gives numbers away", columns, rows)


def derived_leaks(published: Published, one_run: Mapping[Point, Point] | None = None) -> list[Leak]:
    """Return the leaks that follow from the tables, and what follows where some points are one.

    `one_run`: point -> the point that it is to the simulation; others are themselves
    """
    leaks = _leaks(published, {})
    covered = {leak.ids for leak in leaks}
    for leak in _leaks(published, one_run or {}):
        if not any(leak.ids <= ids for ids in covered):
            leaks.append(Leak(leak.ids, RULES[2], leak.why))
    return leaks


def _leaks(published: Published, one_run: Mapping[Point, Point]) -> list[Leak]:
    touching: dict[Point, set[str]] = defaultdict(set)  # a value of the point, or an end there
    giving: dict[Point, set[str]] = defaultdict(set)  # its very value, or a share of a run
    for name, fact in published.facts().items():
        for place in points(fact):
            at = one_run.get(place, place)
            touching[at].add(name)
            if "/" in fact.metric or not (fact.formula or fact.is_bound):
                giving[at].add(name)
    reasons = {frozenset(ids): _words(at) for at, ids in touching.items()}
    leaks = [Leak(ids, RULES[0], why) for ids, why in reasons.items()]
    for run in dict.fromkeys(at[:-1] for at in giving):
        for metrics in IDENTITIES:
            members = [giving.get((*run, metric), set()) for metric in metrics]
            if all(members):
                why = f"{', '.join(metrics)} of one run: {_words(run)}"
                leaks.append(Leak(frozenset().union(*members), RULES[1], why))
    leaks = [leak for leak in leaks if len(leak.ids) > 1]
    return [leak for leak in leaks if not any(leak.ids < other.ids for other in leaks)]


def _words(point: Point) -> str:
    """Return in words which run a point is of, and what of it."""
    run = dict(zip(KEYS, point[1:], strict=False))
    short = {"num_workers": "w={}", "batch_size": "bs={}", "epoch": "epoch {}", "dvfs": "dvfs {}"}
    left_out = (None, "kept", "d1", 1.0)
    parts = [
        short.get(k, "{}").format(v) for k, v in run.items() if k in short or v not in left_out
    ]
    return " ".join([*parts, *map(str, point[1 + len(KEYS) :])])


def one_run(published: Published, twin: Twin) -> dict[Point, Point]:
    """Return of each point that has an equal the first of those which are equal to it."""
    measurements: dict[Point, Measurement] = {}  # of each point, as if a number of it were printed
    for fact in published.facts().values():
        metric = SAME_AS.get(fact.metric, fact.metric)
        if metric in METRICS and fact.kind == "run" and fact.formula not in SPREADS:
            for run in fact.runs:
                at = point(fact.paper, run, metric)
                about = (repr(at), fact.paper, fact.section, metric, 1.0, "s", "exact")
                names = ("id", "paper", "section", "metric", "value", "unit", "qualifier")
                alone = Measurement(**dict(zip(names, about, strict=True)), config=run)
                measurements.setdefault(at, alone)
    sets = drawn(twin.parameters.candidates(), N_DRAWS, SEED)
    predictions = Batch(measurements.values(), twin).predict(sets)
    values = {
        at: predictions[alone.id][0]
        for at, alone in measurements.items()
        if alone.id in predictions
    }

    def are_same(a: Point, b: Point) -> bool:
        """Say whether two points are of one paper, board, network and metric, and always agree."""
        alike = (a[0], a[1], a[3], a[-1]) == (b[0], b[1], b[3], b[-1])
        return alike and bool(np.all(np.abs(np.log(values[a] / values[b])) < SAME))

    same: dict[Point, Point] = {}
    for at in values:
        first = next(other for other in values if are_same(at, other))
        if first != at:
            same[at] = same.get(first, first)
    return same


def drawn(parameters: Parameters, n: int, seed: int) -> dict[str, Array]:
    """Return n sets of parameters: those with a prior lie anywhere within its width.

    So what is found does not depend on what was fitted before.
    """
    described, rng = parameters.described, np.random.default_rng(seed)
    others = [
        name for name in described if described[name].factor and name not in parameters.fitted
    ]
    moved = {}
    for name in (*parameters.fitted, *others):
        steps = rng.uniform(-1.0, 1.0, n)
        moved[name] = described[name].prior * described[name].factor ** steps
    return {**parameters, **moved}


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


def prior_rows(priors: str, fitted: str, rows: pd.DataFrame) -> list[dict[str, object]]:
    """Return the medians of one choice of priors, of what `validation.validate` found."""
    about = {"priors": priors, "fitted": fitted, "seed": SEED}
    errors = rows["held_out_error_pct"].fillna(0.0).groupby(rows["class"])
    return [
        {**about, "class": class_, "n": len(of_class), "median_error_pct": of_class.median()}
        for class_, of_class in errors
        if class_ in GOAL_CLASSES
    ]


def study_priors() -> None:
    """Leave out each take-away again with other priors, and write `priors.csv`."""
    evidence = load_evidence(map(str, count_paths(WORKLOADS)))
    p, as_chosen = evidence.twin.parameters, validate(evidence)
    judged_by = set(as_chosen.loc[as_chosen["class"].isin(GOAL_CLASSES), "takeaway"])
    left_out = {name: fold for name, fold in evidence.folds.items() if name in judged_by}

    def rows_of(parameters: Parameters, fits: Refits) -> pd.DataFrame:
        twin = replace(evidence.twin, parameters=parameters)
        return validation.validate(evidence.published, evidence.rows, twin, fits, {})

    rows = prior_rows(CHOSEN, "no", rows_of(at_priors(p), {}))
    rows += prior_rows(CHOSEN, "yes", as_chosen)
    for name, other in variants(p, N_SHIFTED, SEED).items():
        print(f"priors {name}")
        if name != WIDER:
            rows += prior_rows(name, "no", rows_of(at_priors(other), {}))
        twin = replace(evidence.twin, parameters=other)
        fits = refit(left_out, evidence.facts, evidence.leaks, twin, print, n_random=0)
        fitted = {fold: dict(fit.parameters) for fold, fit in fits.items()}
        rows += prior_rows(name, "yes", rows_of(other, fitted))
        path = str(evidence.folder / PRIORS)
        validation.write_errors(path, "what other priors give", pd.DataFrame(rows), 2)
    print("\n".join(validation.prior_lines(pd.DataFrame(rows))))


def main(what: str) -> None:
    """Write one of the two files."""
    if what == "priors":
        study_priors()
    else:
        evidence = load_evidence(map(str, count_paths(WORKLOADS)))
        write_leaks(evidence.folder, evidence.published, evidence.twin)


if __name__ == "__main__":
    main(*sys.argv[1:])
