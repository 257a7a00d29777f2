"""What a paper's set-up has of its own: fitted to that paper alone, refitted without each fold."""

from dataclasses import replace

import pytest

from epochwatt.errors import ConfigError
from epochwatt.twin.calibration.fit_numbers import seen_by_setups
from epochwatt.twin.calibration.predicted import predict
from epochwatt.twin.inputs.parameters import write_parameters
from epochwatt.twin.model.epoch import cached_share
from epochwatt.twin.validation.cross_validation_fits import ALL
from epochwatt.twin.validation.paper_setups import (
    fit_setups,
    load_setups,
    own_parameters,
    write_setups,
)

SPARE = "hipcw2021_spare_mib"


@pytest.fixture(scope="module")
def fitted(evidence):
    """The fit of the committed configuration."""
    return fit_setups(evidence.published, evidence.rows, evidence.folds, evidence.twin)


def test_only_another_papers_numbers_are_seen(evidence):
    seen = seen_by_setups(evidence.published, evidence.rows)
    assert {fact.paper for fact in seen} == {"hipcw2021"}
    assert own_parameters(evidence.twin.parameters) == [SPARE]
    assert SPARE not in evidence.twin.parameters.fitted


def test_no_shared_parameter_moves_and_the_main_papers_numbers_stay_as_they_are(evidence, fitted):
    before = evidence.twin.parameters
    p = before.moved(fitted[0][ALL])
    assert {name for name in p if p[name] != before[name]} <= {SPARE}
    assert predict(evidence.facts, evidence.twin, p) == predict(
        evidence.facts, evidence.twin, p.moved({SPARE: 1.0})
    )


def test_a_planted_value_is_found_again(evidence):
    """Numbers that the simulation itself would print lead back to what it printed them with."""
    twin, planted = evidence.twin, {SPARE: 1234.0}
    facts = {fact.id: fact for fact in seen_by_setups(evidence.published, evidence.rows)}
    told = predict(facts.values(), twin, twin.parameters.moved(planted))
    printed = {
        name: replace(fact, value=told[name][0]) if name in told and not fact.is_bound else fact
        for name, fact in evidence.published.measurements.items()
        for fact in [facts.get(name, fact)]
    }
    published = replace(evidence.published, measurements=printed, relations={})
    values, _ = fit_setups(published, evidence.rows, {}, twin)
    assert values[ALL][SPARE] == pytest.approx(1234.0, rel=0.03)


def test_each_takeaway_of_the_paper_is_refitted_without_its_numbers(evidence, fitted):
    values, n_facts = fitted
    own = {name for name in evidence.folds if name.startswith("H-")}
    assert set(values) == {ALL, *own}
    assert all(n_facts[name] < n_facts[ALL] for name in own)


def test_the_committed_file_is_that_fit(evidence, fitted):
    values, _ = fitted
    told = load_setups(evidence.folder, evidence.twin.parameters)
    for name, own in told.items():
        assert own == pytest.approx(values[name], rel=0.02)


def test_written_and_read_again(evidence, fitted, tmp_path):
    values, n_facts = fitted
    p = evidence.twin.parameters.moved(values[ALL])
    write_parameters(tmp_path, p)
    write_setups(tmp_path, values, n_facts)
    found = load_setups(tmp_path, p)
    assert found == {name: own for name, own in values.items() if name != ALL}
    with pytest.raises(ConfigError, match="other values"):
        load_setups(tmp_path, p.moved({SPARE: 1.0}))


def test_a_small_data_set_is_cached_on_nx_in_the_one_set_up_and_not_in_the_other(setting, twin):
    def share(setup, **keys):
        told = setting("nx", "mobilenet", medium="hdd", num_workers=0, setup=setup, **keys)
        return float(cached_share(told, twin.parameters))

    assert share("hipcw2021", scale=0.25) == 1.0
    assert share("hipcw2021") > 0.6
    assert share("hipcw2021", scale=4.0) < 0.5
    assert share("sigmetrics2023") < 0.1
    assert share("my own") == share("sigmetrics2023")
