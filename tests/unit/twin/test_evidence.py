"""Evidence: which numbers speak of a parameter, and whether they are enough."""

from dataclasses import replace

import pytest

from epochwatt.study.folds import Leak
from epochwatt.twin.evidence import fit_with_evidence, is_enough, private_to, serves


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


def test_private_parameter_names_its_board_and_network(facts):
    assert private_to(facts("S5.1.5-01", "S5.6-06")) == "nano lenet"
    assert private_to(facts("S5.6.2-01")) == "agx idle"
    assert private_to(facts("S5.1.5-01", "S5.1.1-01")) == ""
    assert private_to([]) == ""


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
    found = serves(evidence.facts, evidence.twin, evidence.modes)
    differing = {
        name: set(p.described[name].serves) ^ {fact.id for fact in served}
        for name, served in found.items()
    }
    assert {name: ids for name, ids in differing.items() if ids} == {}


def test_power_serves_no_time(evidence):
    found = serves(evidence.facts, evidence.twin, evidence.modes)
    assert found["agx_soc_w"]
    assert not {fact.unit for fact in found["agx_soc_w"]} & {"s", "ms"}
    assert not {fact.unit for fact in found["hdd_access_ms"]} & {"W", "Wh"}


def test_parameter_of_one_number_is_assumed_again(evidence, only):
    twin = only(evidence.twin, "nano_soc_w", "sample_kcycles")
    ids = ("S5.6-06", "S5.1.3-01", "S5.1.3-02", "S5.1.4-01", "RS5.1.4-05", "S5.1.5-01")
    some = [fact for fact in evidence.facts if fact.id in ids]
    lines = []
    fit = fit_with_evidence(some, [], twin, evidence.modes, lines.append)
    assert fit.parameters.fitted == ("sample_kcycles",)
    assert "nano_soc_w is assumed: it serves S5.6-06" in lines
    assert fit.parameters["nano_soc_w"] == twin.parameters.described["nano_soc_w"].prior
    served = fit.parameters.described["sample_kcycles"].serves
    assert {"S5.1.3-01", "S5.1.5-01"} <= set(served)
    again = replace(twin, parameters=fit.parameters)
    assert fit_with_evidence(some, [], again, evidence.modes).parameters.described == (
        fit.parameters.described
    )
