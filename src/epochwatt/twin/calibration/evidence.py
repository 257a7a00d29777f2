"""Judge the evidence for a parameter: the published numbers that it moves.

A number speaks of a parameter, and the parameter serves it, when moving the parameter by its
prior's width, up or down from its fitted value, moves the number's misfit by more than half of the
number's tolerance (`calibrate.misfits`). A bound that is met on the way speaks of nothing.

A parameter is fitted only if it serves two numbers of different take-aways, of which neither gives
the other away (`config/twin/overlapping_numbers.csv`), and no number alone has more than `PRIVATE`
of what it does to all, as the sum of squares. Any other stays at its prior: one number can always
be met by a parameter that serves it alone. Each fit decides on the numbers that it sees, first at
the priors, then at the values that it has found.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from epochwatt.published.folds import Leak
from epochwatt.published.numbers import Fact
from epochwatt.twin.calibration.calibrate import N_RANDOM, Calibration, calibrate, misfits_of_sets
from epochwatt.twin.calibration.predicted import Batch
from epochwatt.twin.inputs.twin import Twin

MOVED = 0.5  # tolerances
PRIVATE = 0.9  # most of a parameter's effect that one number may have

Moves = Mapping[str, np.ndarray]  # parameter -> how far it moves each number's misfit


def fit_with_evidence(
    facts: Sequence[Fact],
    leaks: Sequence[Leak],
    twin: Twin,
    say: Callable[[str], None] = lambda line: None,
    n_random: int = N_RANDOM,
) -> Calibration:
    """Return a fit of the parameters that enough numbers speak of, and which ones those are.

    `twin`: of its parameters all are candidates that have a prior.
    """
    p = twin.parameters.candidates()
    p = p.moved({name: p.described[name].prior for name in p.fitted})
    while True:
        twin = replace(twin, parameters=p)
        lacking = _lacking(facts, leaks, moves(facts, twin))
        if not lacking:
            fit = calibrate(facts, twin, say, n_random)
            moved = moves(facts, replace(twin, parameters=fit.parameters))
            lacking = _lacking(facts, leaks, moved)
        if not lacking:
            served = {name: serves(facts, by) for name, by in moved.items()}
            evidence = {
                name: {"serves": tuple(f.id for f in numbers), "private_to": private_to(numbers)}
                for name, numbers in served.items()
            }
            return fit._replace(parameters=fit.parameters.changed(evidence))
        for name, why in lacking.items():
            say(f"{name} stays at its prior: {why}")
        p = p.lacking(lacking)


def _lacking(facts: Sequence[Fact], leaks: Sequence[Leak], moves_of: Moves) -> dict[str, str]:
    """Return the parameters without enough evidence, and what they lack."""
    lacking = {}
    for name, moved in moves_of.items():
        served = serves(facts, moved)
        only = private_number(facts, moved)
        if not is_enough(served, leaks):
            lacking[name] = f"it serves {', '.join(f.id for f in served) or 'no number'}"
        elif only:
            lacking[name] = f"{100 * PRIVATE:g} % and more of what it does is to {only}"
    return lacking


def moves(facts: Sequence[Fact], twin: Twin) -> dict[str, np.ndarray]:
    """Return how far each fitted parameter moves each number's misfit, in tolerances.

    From the values of `twin` by the prior's width, up or down, whichever moves a number further.
    """
    p, names = twin.parameters, twin.parameters.fitted
    here = np.array([p[name] for name in names])
    factors = np.diag(np.log([p.described[name].factor for name in names]))
    sets = here * np.exp(np.vstack([0.0 * here, factors, -factors]))
    columns = {name: sets[:, i] for i, name in enumerate(names)}
    predictions = Batch(facts, twin).predict({**p, **columns})
    off = misfits_of_sets(facts, predictions, len(sets))
    up, down = np.abs(off[1:] - off[0]).reshape(2, len(names), len(facts))
    return dict(zip(names, np.maximum(up, down), strict=True))


def serves(facts: Iterable[Fact], moved: np.ndarray) -> list[Fact]:
    """Return the numbers that a parameter serves which moves them so far."""
    return [fact for fact, by in zip(facts, moved, strict=True) if by > MOVED]


def private_number(facts: Sequence[Fact], moved: np.ndarray) -> str:
    """Return the number that has more than `PRIVATE` of what a parameter does; empty: none."""
    shares = moved**2 / max(float((moved**2).sum()), np.finfo(float).tiny)
    return facts[int(shares.argmax())].id if len(facts) and shares.max() > PRIVATE else ""


def is_enough(facts: Iterable[Fact], leaks: Sequence[Leak]) -> bool:
    """Say if two numbers are of different take-aways and neither gives the other away."""
    return any(
        a.takeaway != b.takeaway and not any({a.id, b.id} <= leak.ids for leak in leaks)
        for a, b in combinations(facts, 2)
    )


def private_to(facts: Iterable[Fact]) -> str:
    """Return the one board and network that all the numbers are of; empty where there are more."""
    pairs = {f"{run['device']} {run.get('model', 'idle')}" for fact in facts for run in fact.runs}
    return pairs.pop() if len(pairs) == 1 else ""
