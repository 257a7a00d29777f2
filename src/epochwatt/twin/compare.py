"""What the simulated boards say to each published number, and how far they are from it."""

import math
from collections.abc import Iterable, Mapping
from statistics import mean
from typing import Any

from epochwatt.study.published import Measurement, Relation, single
from epochwatt.twin.load import Twin
from epochwatt.twin.numbers import number
from epochwatt.twin.observe import QUANTITIES, Modes, Question, answer, mode_clocks
from epochwatt.twin.power import STATE, idle_w

Fact = Measurement | Relation
Answers = Mapping[Question, Mapping[str, float]]

_SWEPT = ("device", "model", "storage", "num_workers", "batch_size", "power_mode", "dvfs")
_ON_BOARD = "i"  # the one idle state that the module's sensors are read in


def questions(config: Mapping[str, Any]) -> list[Question]:
    """Return the configurations that a published one speaks of; none where a key is not stated."""
    found = []
    for each in single(config):
        values = [each.get(key) for key in _SWEPT]
        if any(value is None for value in values):
            return []
        cold = each["epoch"] == "0" or each["cache"] == "dropped"
        found.append(Question._make((*values, cold, each["scale"])))
    return found


def predict(
    facts: Iterable[Fact], twin: Twin, modes: Modes, p: Mapping[str, float]
) -> dict[str, tuple[float, ...]]:
    """Return what the simulation says to each published number; those it cannot say are left out.

    Returns
    -------
    By id: one value, or lowest and highest where a number speaks of a range.
    """
    facts = list(facts)
    asked = [q for fact in facts for side in _sides(fact) for q in questions(side)]
    told = answer(asked, twin, modes, p)
    found = {}
    for fact in facts:
        values = _value(fact, told, twin, modes, p)
        if values and all(map(math.isfinite, values)):
            found[fact.id] = values
    return found


def _sides(fact: Fact) -> tuple[Mapping[str, Any], ...]:
    return (fact.config,) if isinstance(fact, Measurement) else fact.sides


def _value(
    fact: Fact, told: Answers, twin: Twin, modes: Modes, p: Mapping[str, float]
) -> tuple[float, ...]:
    if isinstance(fact, Measurement) and fact.kind == "idle":
        return _idle(fact, twin, modes, p)
    if fact.metric not in QUANTITIES:
        return ()
    sides = [[told[q][fact.metric] for q in questions(side)] for side in _sides(fact)]
    if not all(sides):
        return ()
    if isinstance(fact, Measurement):
        return (mean(sides[0]),)
    return _related(fact.formula, sides)


def _related(formula: str, sides: list[list[float]]) -> tuple[float, ...]:
    """Return what a relation's formula makes of the values of its sides."""
    a = sides[0]
    if len(sides) == 1:
        if formula == "100*(max-min)/max":
            return (100.0 * (max(a) - min(a)) / max(a),)
        return _range(a) if formula in ("100*part/whole", "min..max") else (a[0],)
    ratios = [y / x for x, y in zip(a, sides[1], strict=True)]  # B to A
    if formula == "A/B":
        return _range([1.0 / ratio for ratio in ratios])
    if formula == "B/A":
        return (mean(ratios),)
    change = 100.0 * (mean(ratios) - 1.0)
    return (abs(change) if "|" in formula else change,)


def _range(values: list[float]) -> tuple[float, ...]:
    """Return lowest and highest; of one value, that one."""
    return (min(values), max(values)) if len(values) > 1 else (values[0],)


def _idle(fact: Measurement, twin: Twin, modes: Modes, p: Mapping[str, float]) -> tuple[float, ...]:
    """Return an idle power: state (i) as the module's sensors see it, the others at the plug."""
    device, state = fact.config["device"], fact.config["state"]
    scope = "module" if state == _ON_BOARD else "socket"
    clocks = mode_clocks(modes, device, fact.config["power_mode"])
    return (number(idle_w(twin.boards[device], STATE[state], clocks, scope, p)),)
