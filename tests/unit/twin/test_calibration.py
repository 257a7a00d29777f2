"""Calibration: how numbers are judged, what a fit finds, and the evidence for a parameter."""

import math
from dataclasses import replace

import numpy as np
import pytest

from epochwatt.twin.calibration import (
    PRIVATE,
    Problem,
    calibrate,
    find_lacking,
    misfits,
    moves,
    serves,
)
from epochwatt.twin.predicted import predict


@pytest.fixture(scope="module")
def fact(evidence):
    return evidence.published.facts().__getitem__


@pytest.mark.parametrize(
    ("name", "predicted", "expected"),
    [
        ("S5.1.3-01", (22 * math.exp(0.1),), 2.0),  # exact: 5 %
        ("S5.1.6-13", (576 * math.exp(0.1),), 1.0),  # about: 10 %
        ("S5.5.2-16", (11 + 5.0,), 1.0),  # a share: 5 points
        ("RS5.6.4-01", (100 * ((1 - 0.223) * math.exp(0.05) - 1),), 1.0),  # ratio of the sides
        ("RS5.1.3-02", (1.9 * math.exp(-0.05),), -1.0),
        ("S5.1.6-05", (19.0,), 0.0),  # a bound that is met
        ("S5.1.6-05", (20 * math.exp(0.05),), 1.0),
        ("S5.5.2-04", (14 - 10.0,), -2.0),  # at least
        ("RS5.6.2-02", (15.0, 45.0), 1.0),  # a range: both ends
    ],
)
def test_misfit_of_each_kind_of_number(fact, name, predicted, expected):
    assert misfits([fact(name)], {name: predicted})[0] == pytest.approx(expected)
    assert misfits([fact(name)], {}) == [0.0]  # not predicted: counts nothing


def test_fit_finds_the_parameters_that_made_the_numbers(evidence, only):
    names = ("sample_kcycles", "gpu_mw_per_ghz_v2")
    twin = only(evidence.twin, *names)
    true = {name: 1.3 * twin.parameters.described[name].prior for name in names}
    predictions = predict(evidence.facts, twin, twin.parameters.moved(true))
    facts = [
        replace(fact, value=predictions[fact.id][0], qualifier="exact")
        for fact in evidence.facts
        if not fact.is_bound
    ]
    fit = calibrate(facts, twin)
    assert fit.n_facts == len(facts)
    assert {n: fit.parameters[n] for n in names} == pytest.approx(true, rel=0.01)
    before = sum(misfits(facts, predict(facts, twin, twin.parameters)) ** 2)
    assert 2 * fit.cost < 0.02 * before


def test_derivatives_are_those_of_the_residuals(evidence):
    """One-sided and all at once, against two-sided ones of every third parameter."""
    problem = Problem(evidence.facts, evidence.twin)
    x = np.random.default_rng(4).uniform(-0.5, 0.5, len(problem.names))
    slopes, h = problem.jacobian(x), 1e-4
    for i in range(0, len(x), 3):
        step = h * np.eye(len(x))[i]
        expected = (problem.residuals(x + step) - problem.residuals(x - step)) / (2 * h)
        assert slopes[:, i] == pytest.approx(expected, rel=0.02, abs=0.05), problem.names[i]


# -- evidence --------------------------------------------------------------------------------------

SERVED = 3.0  # tolerances by which a parameter moves a number, in made-up moves


@pytest.mark.parametrize(
    ("ids", "lack"),
    [
        ((), "it serves no number"),
        (("S5.1.1-01",), "it serves S5.1.1-01"),
        (("S5.1.1-01", "S5.1.1-08"), "it serves S5.1.1-01, S5.1.1-08"),  # one take-away
        (("S5.1.1-02", "S5.2.2-03"), "it serves S5.1.1-02, S5.2.2-03"),  # the same number twice
        (("S5.1.1-02", "S5.2.2-03", "S5.2.1-01"), None),
        (("S5.1.1-01", "S5.6-05"), None),
    ],
)
def test_two_independent_numbers_are_enough(evidence, fact, ids, lack):
    facts = [fact(name) for name in ids]
    lacking = find_lacking(facts, evidence.leaks, {"p": np.full(len(ids), SERVED)})
    assert lacking.get("p") == lack


@pytest.mark.parametrize(
    ("moved", "only"), [((9.0, 1.0, 1.0), "S5.1.1-01"), ((3.0, 1.0, 1.0), None)]
)
def test_parameter_that_acts_on_one_number_nearly_alone_is_not_fitted(fact, moved, only):
    facts = [fact(name) for name in ("S5.1.1-01", "S5.6-05", "S5.6-06")]
    lack = find_lacking(facts, [], {"p": np.array(moved)}).get("p")
    assert lack == (only and f"90 % and more of what it does is to {only}")
    assert 0.5 < PRIVATE < 1


def test_committed_parameters_have_their_evidence(evidence):
    p, facts = evidence.twin.parameters, evidence.facts
    by_name = moves(facts, evidence.twin)
    assert list(by_name) == list(p.fitted)
    assert find_lacking(facts, evidence.leaks, by_name) == {}
    for name, moved in by_name.items():
        served = {f.id for f in serves(facts, moved)}
        assert set(p.described[name].serves) == served, name
    # the same by the derivative
    problem = Problem(facts, evidence.twin)
    described = [p.described[name] for name in problem.names]
    x = [math.log(q.value / q.prior) / math.log(q.factor) for q in described]
    for name, slopes in zip(problem.names, problem.jacobian(np.array(x)).T, strict=True):
        squares = slopes[: len(facts)] ** 2
        assert squares.max() < PRIVATE * squares.sum(), name
    others = [q for q in p.described.values() if q.source != "fitted"]
    assert not any(q.serves or q.spread or q.private_to for q in others)
