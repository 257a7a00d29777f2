"""What the simulation says to a published number: its configurations, and its formula."""

import numpy as np
import pytest

from epochwatt.published.numbers import DEFAULTS, Measurement, Relation
from epochwatt.twin.calibration.predicted import Batch, predict, questions
from epochwatt.twin.calibration.queries import Question, answer
from epochwatt.twin.model.power import idle_w

RUN = {**DEFAULTS, "device": "agx", "model": "resnet", "storage": "ssd", "power_mode": "g"}
COMMON = {
    "id": "S1",
    "paper": "sigmetrics2023",
    "section": "5.1",
    "value": 1.0,
    "unit": "s",
    "qualifier": "exact",
}


def config(**changes):
    return {**RUN, **changes}


def asked(**changes):
    return Question("agx", "resnet", "ssd", 4, 16, "g")._replace(**changes)


def measurement(metric, kind="run", **changes):
    return Measurement(**COMMON, metric=metric, kind=kind, config=config(**changes))


def relation(metric, formula, *sides):
    a, b = (*sides, {})[:2]
    return Relation(**COMMON, metric=metric, formula=formula, config_a=a, config_b=b)


@pytest.fixture
def predicted(twin):
    """Return a function that gives what the simulation says to one fact."""

    def call(fact):
        return predict([fact], twin, twin.parameters).get(fact.id)

    return call


@pytest.fixture
def e2e_s(twin):
    """Return a function that gives the epoch time of the default, but for what is told."""

    def call(**changes):
        question = asked(**changes)
        return answer([question], twin, twin.parameters)[question]["e2e_s"]

    return call


# -- configurations -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "cold"),
    [
        ({}, False),
        ({"epoch": "0"}, True),
        ({"cache": "dropped"}, True),
        ({"cache": "dropped", "epoch": "0"}, True),
    ],
)
def test_first_epochs_and_dropped_caches_are_cold(changes, cold):
    assert questions(config(**changes)) == [asked(cold=cold)]


# -- formulas -------------------------------------------------------------------------------------


def test_a_measurement_is_the_quantity_and_the_mean_of_several(predicted, e2e_s):
    assert predicted(measurement("e2e_s")) == pytest.approx((e2e_s(),))
    both = (e2e_s() + e2e_s(power_mode="h")) / 2
    assert predicted(measurement("e2e_s", power_mode=("g", "h"))) == pytest.approx((both,))


def test_relations_of_two_sides(predicted, e2e_s):
    a, b = e2e_s(power_mode="h"), e2e_s()
    sides = config(power_mode="h"), config()
    assert predicted(relation("e2e_s", "A/B", *sides)) == pytest.approx((a / b,))
    assert predicted(relation("e2e_s", "B/A", *sides)) == pytest.approx((b / a,))
    change = 100 * (b - a) / a
    assert change < 0
    assert predicted(relation("e2e_s", "100*(B-A)/A", *sides)) == pytest.approx((change,))
    assert predicted(relation("e2e_s", "100*|B-A|/A", *sides)) == pytest.approx((-change,))


def test_several_ratios_are_a_range_and_several_changes_a_mean(predicted, e2e_s):
    several = config(num_workers=(0, 4), power_mode="h"), config(num_workers=(0, 4))
    a = [e2e_s(num_workers=w, power_mode="h") for w in (0, 4)]
    b = [e2e_s(num_workers=w) for w in (0, 4)]
    ratios = [x / y for x, y in zip(a, b, strict=True)]
    assert predicted(relation("e2e_s", "A/B", *several)) == pytest.approx(
        (min(ratios), max(ratios))
    )
    mean = sum(100 * (y / x - 1) for x, y in zip(a, b, strict=True)) / 2
    assert predicted(relation("e2e_s", "mean 100*(B-A)/A", *several)) == pytest.approx((mean,))


def test_relations_of_one_side(predicted, e2e_s):
    one, other = e2e_s(), e2e_s(power_mode="h")
    several = config(power_mode=("g", "h"))
    spread = 100 * (other - one) / other
    assert predicted(relation("e2e_s", "100*(max-min)/max", several)) == pytest.approx((spread,))
    assert predicted(relation("e2e_s", "min..max", several)) == pytest.approx((one, other))
    share = predicted(relation("stall_s/e2e_s", "100*part/whole", config()))
    assert len(share) == 1
    assert 0 < share[0] < 100


def test_idle_powers_are_of_the_module_where_its_sensors_are_read(predicted, twin, modes):
    board, clocks, p = twin.boards["agx"], modes["agx"]["g"], twin.parameters
    for state, name, scope in (
        ("i", "logging_on_dvfs_off", "module"),
        ("ii", "logging_off_dvfs_off", "socket"),
        ("iv", "wol", "socket"),
    ):
        found = predicted(measurement("power_w", kind="idle", state=state))
        assert found == pytest.approx((float(idle_w(board, name, clocks, scope, p)),))


def test_every_published_number_that_can_be_simulated_is_answered(evidence, twin):
    told = predict(evidence.facts, twin, twin.parameters)
    assert set(told) == {fact.id for fact in evidence.facts}


# -- many sets of parameters at once --------------------------------------------------------------


def test_sets_of_parameters_side_by_side_say_what_each_says_alone(evidence, twin):
    p, rng = twin.parameters, np.random.default_rng(3)
    factors = {name: rng.uniform(0.5, 2.0, 4) for name in p.fitted}
    told = Batch(evidence.facts, twin).predict(
        {**p, **{name: p[name] * by for name, by in factors.items()}}
    )
    for i in range(4):
        alone = p.moved({name: p[name] * by[i] for name, by in factors.items()})
        expected = predict(evidence.facts, twin, alone)
        assert {name: tuple(v[i] for v in values) for name, values in told.items()} == expected
