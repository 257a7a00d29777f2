"""Which published numbers speak of a parameter, and whether they are enough to fit it.

A number speaks of a parameter, and the parameter serves it, when moving the parameter by its
prior's width, up or down from its fitted value, moves the number's misfit by more than half of the
number's tolerance (`calibrate.misfits`). A bound that is met on the way speaks of nothing.

A parameter is fitted only if it serves two numbers of different take-aways, of which neither gives
the other away (`config/twin/leaks.csv`). Any other is assumed to be what it was thought to be
before: one number can always be met by a parameter of its own.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from epochwatt.study.folds import Leak
from epochwatt.study.published import Measurement, single
from epochwatt.twin.calibrate import Fit, calibrate, misfits
from epochwatt.twin.compare import Fact, predict
from epochwatt.twin.load import Twin
from epochwatt.twin.observe import Modes
from epochwatt.twin.parameters import Parameters

MOVED = 0.5  # tolerances


def fit_with_evidence(
    facts: Sequence[Fact],
    leaks: Sequence[Leak],
    twin: Twin,
    modes: Modes,
    say: Callable[[str], None] = lambda line: None,
) -> Fit:
    """Return a fit of the parameters that enough numbers speak of, and which ones those are.

    Parameters
    ----------
    facts : published numbers that the fit may see
    leaks : sets of numbers that give each other away
    say : is told of each pass, and of each parameter that is not fitted after all
    """
    while True:
        fit = calibrate(facts, twin, modes, say)
        served = serves(facts, replace(twin, parameters=fit.parameters), modes)
        lacking = [name for name, found in served.items() if not is_enough(found, leaks)]
        if not lacking:
            known = {
                name: {"serves": tuple(f.id for f in found), "private_to": private_to(found)}
                for name, found in served.items()
            }
            return fit._replace(parameters=fit.parameters.told(known))
        for name in lacking:
            ids = ", ".join(fact.id for fact in served[name]) or "no number"
            say(f"{name} is assumed: it serves {ids}")
        twin = replace(twin, parameters=twin.parameters.assumed(lacking))


def serves(facts: Sequence[Fact], twin: Twin, modes: Modes) -> dict[str, list[Fact]]:
    """Return for each fitted parameter the numbers that it serves, at the values of `twin`."""
    p = twin.parameters

    def at(parameters: Parameters) -> np.ndarray:
        return misfits(facts, predict(facts, twin, modes, parameters))

    here, found = at(p), {}
    for name in p.fitted:
        known = p.described[name]
        ends = (known.value * known.factor, known.value / known.factor)
        moved = np.max([np.abs(at(p.moved({name: end})) - here) for end in ends], axis=0)
        found[name] = [fact for fact, by in zip(facts, moved, strict=True) if by > MOVED]
    return found


def is_enough(facts: Iterable[Fact], leaks: Sequence[Leak]) -> bool:
    """Say if two numbers are of different take-aways and neither gives the other away."""
    return any(
        a.take_away != b.take_away and not any({a.id, b.id} <= leak.ids for leak in leaks)
        for a, b in combinations(facts, 2)
    )


def private_to(facts: Iterable[Fact]) -> str:
    """Return the one board and network that all the numbers are of; empty where there are more."""
    pairs = {
        f"{config['device']} {config.get('model', 'idle')}"
        for fact in facts
        for side in ((fact.config,) if isinstance(fact, Measurement) else fact.sides)
        for config in single(side)
    }
    return pairs.pop() if len(pairs) == 1 else ""
