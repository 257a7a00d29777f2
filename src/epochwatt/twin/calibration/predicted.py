"""Predict published numbers by the simulated boards."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from epochwatt.published.numbers import Fact, single
from epochwatt.twin.calibration.queries import QUANTITIES, Question, evaluate, groups
from epochwatt.twin.inputs.numbers import Array, Values, number
from epochwatt.twin.inputs.twin import Twin
from epochwatt.twin.model.power import STATE, idle_w

Answers = Mapping[Question, Mapping[str, Array]]

_SWEPT = ("device", "model", "storage", "num_workers", "batch_size", "power_mode", "dvfs")
_ON_BOARD = "i"  # the one idle state that the module's sensors are read in


def questions(config: Mapping[str, Any], setup: str = "") -> list[Question]:
    """Return the configurations that a published one speaks of; none where a key is not stated."""
    asked_for = []
    for run in single(config):
        values = [run.get(key) for key in _SWEPT]
        if any(value is None for value in values):
            return []
        cold = run["epoch"] == "0" or run["cache"] == "dropped"
        asked_for.append(Question._make((*values, cold, run["scale"], setup)))
    return asked_for


class Batch:
    """Published numbers, made ready to be predicted with many sets of parameters at once.

    The simulation's equations take one value per configuration. So a number of sets is as many
    copies of the configurations, each with its own parameters, and costs little more than one.
    """

    def __init__(self, facts: Iterable[Fact], twin: Twin) -> None:
        self._facts = list(facts)
        self._twin = twin
        wanted: dict[Question, set[str]] = defaultdict(set)
        for fact in self._facts:
            for q in _questions_of(fact):
                wanted[q].add(fact.metric)
        self._groups = [
            (group, sorted(set().union(*(wanted[q] for q in group.questions))))
            for group in groups(wanted, twin)
        ]

    def predict(self, p: Mapping[str, Array]) -> dict[str, tuple[NDArray[np.floating], ...]]:
        """Return what the simulation says to each number; those it cannot say are left out.

        Returns
        -------
        By id: one value, or lowest and highest where a number speaks of a range; each of shape
        (sets,).
        """
        n = max(int(np.size(value)) for value in p.values())
        answers: dict[Question, dict[str, Array]] = {}
        for group, metrics in self._groups:
            values = evaluate(group, {name: QUANTITIES[name] for name in metrics}, p, n)
            for i, q in enumerate(group.questions):
                answers[q] = {name: column[:, i] for name, column in values.items()}
        predictions = {}
        for fact in self._facts:
            of_sets = _value(fact, answers, self._twin, p)
            if of_sets and all(np.all(np.isfinite(value)) for value in of_sets):
                predictions[fact.id] = tuple(np.broadcast_to(value, n) for value in of_sets)
        return predictions


def predict(facts: Iterable[Fact], twin: Twin, p: Values) -> dict[str, tuple[float, ...]]:
    """Return what the simulation says to each published number; those it cannot say are left out.

    Returns
    -------
    By id: one value, or lowest and highest where a number speaks of a range.
    """
    answers = Batch(facts, twin).predict(p)
    return {name: tuple(number(value) for value in values) for name, values in answers.items()}


def _questions_of(fact: Fact) -> list[Question]:
    """Return the configurations that a number asks for; none where it is of no simulated epoch."""
    if fact.metric not in QUANTITIES or fact.kind == "idle":
        return []
    return [q for side in fact.sides for q in questions(side, fact.paper)]


def _value(fact: Fact, answers: Answers, twin: Twin, p: Mapping[str, Array]) -> tuple[Array, ...]:
    if fact.kind == "idle":
        return _idle(fact, twin, p)
    if fact.metric not in QUANTITIES:
        return ()
    sides = [
        np.array([answers[q][fact.metric] for q in questions(side, fact.paper)])
        for side in fact.sides
    ]
    if not all(map(len, sides)):
        return ()
    return _related(fact.formula, sides) if fact.formula else (sides[0].mean(axis=0),)


def _related(formula: str, sides: list[NDArray[np.floating]]) -> tuple[Array, ...]:
    """Return what a relation's formula makes of its sides, each of shape (configurations, sets)."""
    a = sides[0]
    if len(sides) == 1:
        if formula == "100*(max-min)/max":
            return (100.0 * (a.max(axis=0) - a.min(axis=0)) / a.max(axis=0),)
        return _range(a) if formula in ("100*part/whole", "min..max") else (a[0],)
    ratios = sides[1] / a  # B to A
    if formula == "A/B":
        return _range(1.0 / ratios)
    if formula == "B/A":
        return (ratios.mean(axis=0),)
    change = 100.0 * (ratios.mean(axis=0) - 1.0)
    return (abs(change) if "|" in formula else change,)


def _range(values: NDArray[np.floating]) -> tuple[Array, ...]:
    """Return lowest and highest; of one value, that one."""
    return (values.min(axis=0), values.max(axis=0)) if len(values) > 1 else (values[0],)


def _idle(fact: Fact, twin: Twin, p: Mapping[str, Array]) -> tuple[Array, ...]:
    """Return an idle power: state (i) as the module's sensors see it, the others at the plug."""
    (config,) = fact.sides
    device, state = config["device"], config["state"]
    scope = "module" if state == _ON_BOARD else "socket"
    clocks = twin.clocks(device, config["power_mode"])
    board = twin.boards[device]
    return (idle_w(board, STATE[state], clocks, scope, cast(Values, p)),)
