"""Evidence: which numbers speak of a parameter, and whether they are enough."""

from dataclasses import replace

import numpy as np
import pytest

from epochwatt.published.folds import Leak
from epochwatt.twin.calibration.calibrate import Problem
from epochwatt.twin.calibration.evidence import (
    PRIVATE,
    fit_with_evidence,
    is_enough,
    moves,
    private_number,
    private_to,
    serves,
)


@pytest.fixture(scope="module")
def facts(evidence):
    """Return a function that gives published numbers by id."""
    return lambda *ids: [evidence.published.facts()[name] for name in ids]


@pytest.mark.parametrize(
    ("ids", "enough"),
    [
        ((), False),
        (("S5.1.1-01",), False),
        (("S5.1.1-01", "S5.1.1-08"), False),  # one take-away
        (("S5.1.1-02", "S5.2.2-03"), False),  # the same number twice
        (("S5.1.1-02", "S5.2.2-03", "S5.2.1-01"), True),
        (("S5.1.1-01", "S5.6-05"), True),
    ],
)
def test_two_independent_numbers_are_enough(evidence, facts, ids, enough):
    assert is_enough(facts(*ids), evidence.leaks) is enough


def test_leak_takes_the_independence_away(facts):
    two = facts("S5.1.1-01", "S5.6-05")
    assert is_enough(two, [])
    assert not is_enough(two, [Leak(frozenset(fact.id for fact in two), "arithmetic", "why")])


def served_by(evidence):
    """Return by fitted parameter the numbers that it serves."""
    found = moves(evidence.facts, evidence.twin)
    return {name: serves(evidence.facts, moved) for name, moved in found.items()}


@pytest.mark.parametrize(
    ("moved", "expected"),
    [
        ((9.0, 1.0, 1.0), "a"),
        ((3.0, 1.0, 1.0), ""),  # 82 %
        ((0.0, 0.0, 5.0), "c"),
        ((0.0, 0.0, 0.0), ""),
    ],
)
def test_number_that_has_nearly_all_of_what_a_parameter_does_is_named(facts, moved, expected):
    some = facts("S5.1.1-01", "S5.6-05", "S5.6-06")
    named = dict(zip((fact.id for fact in some), "abc", strict=True))
    assert named.get(private_number(some, np.array(moved)), "") == expected


def test_no_fitted_parameter_is_private_to_one_number(evidence):
    """Of what a parameter moves, squared: by its width, and by the derivative."""
    found = moves(evidence.facts, evidence.twin)
    problem = Problem(evidence.facts, evidence.twin)
    known = evidence.twin.parameters
    x = [
        np.log(known[n] / known.described[n].prior) / np.log(known.described[n].factor)
        for n in problem.names
    ]
    slopes = dict(zip(problem.names, problem.jacobian(np.array(x)).T, strict=True))
    for name, moved in found.items():
        assert private_number(evidence.facts, moved) == "", name
        assert private_number(evidence.facts, slopes[name][: len(evidence.facts)]) == "", name
    assert 0.5 < PRIVATE < 1


def test_every_fitted_parameter_of_the_checkout_has_its_evidence(evidence):
    p = evidence.twin.parameters
    assert p.fitted
    for name in p.fitted:
        served = [evidence.published.facts()[each] for each in p.described[name].serves]
        assert is_enough(served, evidence.leaks), name
        assert p.described[name].private_to == private_to(served), name
    others = [each for each in p.described.values() if each.source != "fitted"]
    assert not any(each.serves or each.spread or each.private_to for each in others)


def test_committed_lists_are_those_of_the_committed_values(evidence):
    p = evidence.twin.parameters
    found = served_by(evidence)
    differing = {
        name: set(p.described[name].serves) ^ {fact.id for fact in served}
        for name, served in found.items()
    }
    assert {name: ids for name, ids in differing.items() if ids} == {}


def test_parameter_of_one_number_is_assumed_again(evidence, only):
    twin = only(evidence.twin, "soc_factor", "sample_kcycles")
    ids = ("S5.6-06", "S5.1.3-01", "S5.1.3-02", "S5.1.4-01", "RS5.1.4-05", "S5.1.5-01")
    some = [fact for fact in evidence.facts if fact.id in ids]
    lines = []
    fit = fit_with_evidence(some, [], twin, lines.append)
    assert fit.parameters.fitted == ("sample_kcycles",)
    assert "soc_factor stays at its prior: it serves S5.6-06" in lines
    assert fit.parameters["soc_factor"] == twin.parameters.described["soc_factor"].prior
    served = fit.parameters.described["sample_kcycles"].serves
    assert {"S5.1.3-01", "S5.1.5-01"} <= set(served)
    again = replace(twin, parameters=fit.parameters)
    assert fit_with_evidence(some, [], again).parameters.described == (fit.parameters.described)
