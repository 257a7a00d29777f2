"""Calibration: how numbers are judged, and that a fit finds what there is to find."""

import math
from dataclasses import replace

import numpy as np
import pytest

from epochwatt.twin.calibration.calibrate import (
    Problem,
    calibrate,
    limits,
    log_error,
    misfits,
)
from epochwatt.twin.calibration.predicted import predict


@pytest.fixture(scope="module")
def fact(evidence):
    return evidence.published.facts().__getitem__


def made_up(facts, told):
    """Return the numbers as if the paper printed what the simulation says."""
    return [
        replace(fact, value=told[fact.id][0], qualifier="exact")
        for fact in facts
        if not fact.is_bound and fact.id in told
    ]


class TestMisfits:
    """Differences in units of a number's tolerance."""

    @pytest.mark.parametrize(
        ("name", "told", "expected"),
        [
            ("S5.1.3-01", 22 * math.exp(0.1), 2.0),  # exact: 5 %
            ("S5.1.6-13", 576 * math.exp(0.1), 1.0),  # about: 10 %
            ("S5.5.2-16", 11 + 5.0, 1.0),  # a share: 5 points
            ("RS5.6.4-01", 100 * ((1 - 0.223) * math.exp(0.05) - 1), 1.0),  # ratio of the sides
            ("RS5.1.3-02", 1.9 * math.exp(-0.05), -1.0),
            ("S5.1.6-05", 19.0, 0.0),  # a bound that is met
            ("S5.1.6-05", 20 * math.exp(0.05), 1.0),
            ("S5.5.2-04", 14 - 10.0, -2.0),  # at least
        ],
    )
    def test_of_each_kind_of_number(self, fact, name, told, expected):
        assert misfits([fact(name)], {name: (told,)})[0] == pytest.approx(expected)

    def test_range_is_held_against_both_ends(self, fact):
        told = {"RS5.6.2-02": (15.0, 45.0)}
        assert misfits([fact("RS5.6.2-02")], told)[0] == pytest.approx(1.0)

    def test_number_that_is_not_predicted_counts_nothing(self, fact):
        assert misfits([fact("S5.1.3-01")], {}) == [0.0]


def test_change_is_judged_on_the_ratio_of_its_sides(fact):
    halved = replace(fact("RS5.6.4-01"), value=-50.0)
    assert log_error(halved, -75.0) == pytest.approx(math.log(0.5))


def test_bound_and_range_have_their_ends(fact):
    assert limits(fact("S5.1.6-05")) == (-math.inf, 20.0)
    assert limits(fact("S5.5.2-04")) == (14.0, math.inf)
    assert limits(fact("RS5.6.2-02")) == (20.0, 45.0)


def test_fit_sees_the_main_paper_only_and_no_orin(evidence):
    facts = evidence.facts
    assert {f.paper for f in facts} == {"sigmetrics2023"}
    assert not any("orin" in str(f) for f in facts)
    assert all(evidence.rows[f.id].is_simulable or f.metric == "n_epochs_in_15h" for f in facts)
    assert len(facts) > 100


def test_fit_finds_the_parameters_that_made_the_numbers(evidence, only):
    names = ("sample_kcycles", "gpu_mw_per_ghz_v2")
    twin = only(evidence.twin, *names)
    true = {name: 1.3 * twin.parameters.described[name].prior for name in names}
    told = predict(evidence.facts, twin, twin.parameters.moved(true))
    facts = made_up(evidence.facts, told)
    fit = calibrate(facts, twin)
    assert fit.n_facts == len(facts)
    for name in names:
        assert fit.parameters[name] == pytest.approx(true[name], rel=0.01)
    before = sum(misfits(facts, predict(facts, twin, twin.parameters)) ** 2)
    assert 2 * fit.cost < 0.02 * before


def test_parameter_that_no_number_speaks_of_stays_at_its_prior(evidence, only):
    twin = only(evidence.twin, "soc_factor", "sample_kcycles")
    agx = [f for f in evidence.facts if f.id.startswith("S5.1.3")]
    fit = calibrate(agx, twin)
    prior = twin.parameters.described["soc_factor"].prior
    assert fit.parameters["soc_factor"] == pytest.approx(prior, rel=1e-6)


def test_with_nothing_to_fit_the_priors_stay(evidence, only):
    twin = only(evidence.twin, "sample_kcycles")
    fit = calibrate([], twin)
    assert fit.parameters["sample_kcycles"] == twin.parameters.described["sample_kcycles"].prior
    assert (fit.n_facts, fit.cost, fit.parameters.fitted) == (0, 0.0, ())


def test_derivatives_are_those_of_the_residuals(evidence):
    """One-sided and all at once, against two-sided ones, parameter by parameter."""
    problem = Problem(evidence.facts, evidence.twin)
    x = np.random.default_rng(4).uniform(-0.5, 0.5, len(problem.names))
    found, h = problem.jacobian(x), 1e-4
    for i in range(len(x)):
        step = h * np.eye(len(x))[i]
        expected = (problem.residuals(x + step) - problem.residuals(x - step)) / (2 * h)
        assert found[:, i] == pytest.approx(expected, rel=0.02, abs=0.05), problem.names[i]
