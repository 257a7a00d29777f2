"""Folds refitted: what is left out, their files, their spread, one fold fitted anew, set-ups."""

import math
from dataclasses import replace

import numpy as np
import pytest

from epochwatt.errors import ConfigError
from epochwatt.published.folds import GROUPINGS
from epochwatt.tables import read_cells
from epochwatt.twin.calibrate_twin import NEAR, SOURCE, all_folds
from epochwatt.twin.calibration import POWER, Calibration, fit_with_evidence
from epochwatt.twin.parameters import write_parameters
from epochwatt.twin.refits import (
    ALL,
    CLAIMS,
    FILE,
    FOLD,
    PRIOR,
    fit_setups,
    load_prior_parameters,
    load_refits,
    load_setups,
    parameter_draws,
    spreads,
    without,
    write_refits,
    write_setups,
)

KINDS = (FOLD, CLAIMS, PRIOR, *GROUPINGS, NEAR, SOURCE)
CHEAP = "board agx"  # a fold that leaves few numbers: seconds
WIDTHS = 0.05  # of the prior: what another machine's rounding may change
SPARE = "hipcw2021_spare_mib"


@pytest.fixture(scope="module")
def committed(evidence):
    return load_refits(evidence.folder, evidence.twin.parameters)


def test_every_fold_that_takes_a_number_is_committed_with_what_it_saw(evidence, committed):
    def taking(folds):
        facts = evidence.facts
        return [name for name, fold in folds.items() if len(without(facts, fold)) < len(facts)]

    p, folds = evidence.twin.parameters, all_folds(evidence)
    assert list(load_refits(evidence.folder, p, KINDS)) == [ALL, *taking(folds)]
    assert list(committed) == [ALL, *taking(evidence.folds)]
    claims = load_refits(evidence.folder, p, (CLAIMS,))
    assert list(claims) == [ALL, *taking(evidence.claim_folds)]
    assert evidence.claim_folds.keys() - claims.keys() == {"5.4.4"}
    assert not committed.keys() & evidence.claim_folds.keys()
    for kind, members in evidence.other_folds.items():
        assert list(load_refits(evidence.folder, p, (kind,))) == [ALL, *taking(members)]
    counted = {row["takeaway"]: int(row["n_facts"]) for row in read_cells(evidence.folder / FILE)}
    assert counted.pop(ALL) == len(evidence.facts)
    assert counted == {name: len(without(evidence.facts, folds[name])) for name in counted}


@pytest.mark.slow
def test_committed_refit_is_what_a_refit_of_power_gives(evidence):
    """One of them, its times given; `make validate` makes them all."""
    kept = without(evidence.facts, all_folds(evidence)[CHEAP])
    committed = load_refits(evidence.folder, evidence.twin.parameters, KINDS)[CHEAP]
    twin = replace(evidence.twin, parameters=evidence.twin.parameters.moved(committed))
    fit = fit_with_evidence(kept, evidence.leaks, twin, group=POWER)
    off = {
        name: math.log(fit.parameters[name] / value)
        / math.log(fit.parameters.described[name].factor)
        for name, value in committed.items()
    }
    assert 0 < len(fit.parameters.fitted) < len(off)
    assert {name: by for name, by in off.items() if abs(by) > WIDTHS} == {}


def test_committed_spread_is_that_of_the_folds(evidence, committed):
    p = evidence.twin.parameters
    assert spreads(committed, p.fitted) == {n: p.described[n].spread for n in p.fitted}


class TestFile:
    """cross_validation_fits.csv."""

    @pytest.fixture
    def fits(self, evidence, only):
        p = only(evidence.twin, "sample_kcycles", "soc_factor").parameters
        moved = {ALL: (470.0, 3.5), "5.1.1": (450.5, 3.25), "5.6": (500.0, 4.0)}
        return {
            name: Calibration(p.moved({"sample_kcycles": a, "soc_factor": b}), 12.345, 99)
            for name, (a, b) in moved.items()
        }

    def test_is_read_back_kind_by_kind(self, fits, tmp_path):
        write_refits(tmp_path, fits, {"5.1.1": CLAIMS, "5.6": PRIOR})
        p = fits[ALL].parameters
        assert list(load_refits(tmp_path, p)) == [ALL]
        claims = load_refits(tmp_path, p, (CLAIMS,))
        assert list(claims) == [ALL, "5.1.1"]
        assert claims["5.1.1"] == {"sample_kcycles": 450.5, "soc_factor": 3.25}
        assert list(load_refits(tmp_path, p, (CLAIMS, PRIOR))) == [ALL, "5.1.1", "5.6"]
        with pytest.raises(ConfigError, match=r"no row 'power modes'\n.*make validate"):
            load_prior_parameters(tmp_path, p)

    def test_of_other_fitted_values_or_damaged_is_refused(self, fits, tmp_path):
        write_refits(tmp_path, fits, {})
        with pytest.raises(ConfigError, match=r"other fitted values(.|\n)*make validate"):
            load_refits(tmp_path, fits["5.6"].parameters)
        text = (tmp_path / FILE).read_text("utf-8")
        (tmp_path / FILE).write_text(text.replace("450.5", "much"), "utf-8")
        with pytest.raises(ConfigError, match=r"line 3(.|\n)*make validate"):
            load_refits(tmp_path, fits[ALL].parameters)


def test_draws_have_the_spread_and_correlation_of_the_folds_around_the_fit(evidence):
    p = evidence.twin.parameters
    names = ["sample_kcycles", "soc_factor"]
    logs = np.random.default_rng(5).normal(0, [0.02, 0.1], (12, 2)) @ [[1, 0], [0.5, 1]]
    refits = {
        str(i): {n: p[n] * math.exp(x) for n, x in zip(names, row, strict=True)}
        for i, row in enumerate(logs)
    }
    refits[ALL] = {name: p[name] for name in names}
    draws = parameter_draws(p, refits, 5_000, 0)
    steps = np.log([[draw[name] / p[name] for name in names] for draw in draws])
    assert steps.mean(axis=0) == pytest.approx([0, 0], abs=0.006)
    assert np.cov(steps.T) == pytest.approx(np.cov(logs.T), rel=0.1)
    expected = dict(zip(names, logs.std(axis=0, ddof=1), strict=True))
    assert spreads(refits, names) == pytest.approx(expected, rel=1e-3)


# -- what a paper's set-up has of its own ----------------------------------------------------------


def test_committed_set_ups_are_refitted_without_each_takeaway(evidence, tmp_path):
    """Two of them; `make validate` makes them all."""
    own = [name for name in evidence.folds if name.startswith("H-")]
    committed = load_setups(evidence.folder, evidence.twin.parameters)
    assert set(committed) == set(own)
    folds = {name: evidence.folds[name] for name in ("5.1.1", *own[:2])}
    values, n_facts = fit_setups(evidence.published, evidence.rows, folds, evidence.twin)
    assert set(values) == {ALL, *own[:2]}
    for name in own[:2]:
        assert n_facts[name] < n_facts[ALL]
        assert committed[name] == pytest.approx(values[name], rel=0.02)
    p = evidence.twin.parameters.moved(values[ALL])
    write_parameters(tmp_path, p)
    write_setups(tmp_path, values, n_facts)
    assert load_setups(tmp_path, p) == {n: own for n, own in values.items() if n != ALL}
    with pytest.raises(ConfigError, match="other values"):
        load_setups(tmp_path, p.moved({SPARE: 1.0}))
