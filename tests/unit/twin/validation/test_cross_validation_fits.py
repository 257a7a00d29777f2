"""Folds refitted: what is left out, their file, their spread, and one fold fitted anew."""

import csv
import math

import numpy as np
import pytest

from epochwatt.errors import ConfigError
from epochwatt.published.folds import GROUPINGS, POWER_MODES
from epochwatt.twin.calibration.calibrate import Calibration
from epochwatt.twin.calibration.evidence import fit_with_evidence
from epochwatt.twin.validation.cross_validation_fits import (
    ALL,
    CLAIMS,
    FILE,
    FOLD,
    PRIOR,
    load_prior_parameters,
    load_refits,
    parameter_draws,
    refit,
    spreads,
    without,
    write_refits,
)
from epochwatt.twin.validation.validate_twin import NEAR, all_folds, kinds_of_refits

KINDS = (FOLD, CLAIMS, PRIOR, *GROUPINGS, NEAR)
CHEAP = "board agx"  # a fold that leaves few numbers: seconds
WIDTHS = 0.05  # of the prior: what another machine's rounding may change


@pytest.fixture(scope="module")
def committed(evidence):
    return load_refits(evidence.folder, evidence.twin.parameters)


def test_fold_takes_its_takeaway_and_what_gives_it_away(evidence):
    fold = evidence.folds["5.1.5"]
    left = {fact.id for fact in without(evidence.facts, fold)}
    seen = {fact.id for fact in evidence.facts}
    assert seen - left == seen & fold.removed
    assert {"S5.1.5-01", "S5.1.3-01", "RS5.1.3-01", "S5.1.6-05"} <= seen - left


def test_every_fold_that_takes_a_number_is_committed(evidence, committed):
    def taking(folds):
        return [
            n for n, f in folds.items() if len(without(evidence.facts, f)) < len(evidence.facts)
        ]

    p = evidence.twin.parameters
    assert list(load_refits(evidence.folder, p, KINDS)) == [ALL, *taking(all_folds(evidence))]
    assert list(committed) == [ALL, *taking(evidence.folds)]
    claims = load_refits(evidence.folder, p, (CLAIMS,))
    assert list(claims) == [ALL, *taking(evidence.claim_folds)]
    assert evidence.claim_folds.keys() - claims.keys() == {"5.4.4"}
    assert not committed.keys() & evidence.claim_folds.keys()
    assert list(load_refits(evidence.folder, p, (PRIOR,))) == [ALL, POWER_MODES]
    for kind, folds in evidence.other_folds.items():
        assert list(load_refits(evidence.folder, p, (kind,))) == [ALL, *taking(folds)]


def test_committed_refits_saw_the_numbers_that_their_folds_leave(evidence):
    folds = all_folds(evidence)
    with open(evidence.folder / FILE, newline="", encoding="utf-8") as handle:
        counted = {row["takeaway"]: int(row["n_facts"]) for row in csv.DictReader(handle)}
    assert counted.pop(ALL) == len(evidence.facts)
    assert counted == {name: len(without(evidence.facts, folds[name])) for name in counted}


@pytest.mark.slow
def test_committed_refit_is_what_a_refit_gives(evidence):
    """One of them, which takes seconds; `make validate` makes them all."""
    kept = without(evidence.facts, all_folds(evidence)[CHEAP])
    committed = load_refits(evidence.folder, evidence.twin.parameters, KINDS)[CHEAP]
    fit = fit_with_evidence(kept, evidence.leaks, evidence.twin)
    off = {
        name: math.log(fit.parameters[name] / value) / math.log(known.factor)
        for name, value in committed.items()
        if (known := fit.parameters.described[name])
    }
    assert 0 < len(fit.parameters.fitted) < len(off)
    assert {name: by for name, by in off.items() if abs(by) > WIDTHS} == {}


def test_committed_spread_is_that_of_the_folds(evidence, committed):
    known = evidence.twin.parameters.described
    fitted = evidence.twin.parameters.fitted
    assert spreads(committed, fitted) == {n: known[n].spread for n in fitted}


def test_folds_are_fitted_side_by_side(evidence, only):
    twin = only(evidence.twin, "sample_kcycles")
    some = [fact for fact in evidence.facts if fact.id[:6] in ("S5.2.1", "S5.1.3", "S5.6-0")]
    folds = {name: evidence.folds[name] for name in ("5.1.3", "5.6.3", "5.6")}
    lines = []
    found = refit(folds, some, evidence.leaks, twin, lines.append)
    assert list(found) == ["5.1.3", "5.6"]  # 5.6.3 takes none of these numbers
    assert len(lines) == 2
    left = without(some, folds["5.6"])
    alone = fit_with_evidence(left, evidence.leaks, twin)
    assert alone.parameters.fitted == ("sample_kcycles",)
    assert dict(found["5.6"].parameters) == dict(alone.parameters)


def test_prior_of_power_modes_is_all_parameters_fitted_without_any(evidence):
    p = evidence.twin.parameters
    found = load_prior_parameters(evidence.folder, p)
    refit = load_refits(evidence.folder, p, (PRIOR,))[POWER_MODES]
    assert found == {**p, **refit}
    assert found != dict(p)
    assert refit.keys() == set(p.fitted)
    assert kinds_of_refits(evidence)[POWER_MODES] == PRIOR


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

    def test_is_read_back(self, fits, tmp_path):
        write_refits(tmp_path, fits, {})
        found = load_refits(tmp_path, fits[ALL].parameters)
        assert found["5.1.1"] == {"sample_kcycles": 450.5, "soc_factor": 3.25}
        assert list(found) == [ALL, "5.1.1", "5.6"]
        assert (
            (tmp_path / FILE)
            .read_text("utf-8")
            .startswith(
                "takeaway,kind,n_facts,n_parameters,objective,other_starts,"
                "sample_kcycles,soc_factor\nall,all,99,2,"
            )
        )

    def test_kinds_are_read_apart(self, fits, tmp_path):
        write_refits(tmp_path, fits, {"5.1.1": CLAIMS, "5.6": PRIOR})
        p = fits[ALL].parameters
        assert list(load_refits(tmp_path, p)) == [ALL]
        assert list(load_refits(tmp_path, p, (CLAIMS,))) == [ALL, "5.1.1"]
        assert list(load_refits(tmp_path, p, (CLAIMS, PRIOR))) == [ALL, "5.1.1", "5.6"]
        with pytest.raises(ConfigError, match=r"no row 'power modes'\n.*make validate"):
            load_prior_parameters(tmp_path, p)

    def test_of_other_fitted_values_is_refused(self, fits, tmp_path):
        write_refits(tmp_path, fits, {})
        with pytest.raises(ConfigError, match=r"other fitted values(.|\n)*make validate"):
            load_refits(tmp_path, fits["5.6"].parameters)

    def test_damaged_is_refused_with_its_line(self, fits, tmp_path):
        write_refits(tmp_path, fits, {})
        text = (tmp_path / FILE).read_text("utf-8")
        (tmp_path / FILE).write_text(text.replace("450.5", "much"), "utf-8")
        with pytest.raises(ConfigError, match=r"line 3(.|\n)*make validate"):
            load_refits(tmp_path, fits[ALL].parameters)


class TestDraws:
    """Parameters drawn as the folds spread."""

    def test_same_seed_gives_the_same(self, evidence, committed):
        p = evidence.twin.parameters
        first, again, other = (parameter_draws(p, committed, 3, seed) for seed in (1, 1, 2))
        assert [dict(draw) for draw in first] == [dict(draw) for draw in again]
        assert dict(first[0]) != dict(other[0])
        assert len(first) == 3

    def test_only_fitted_parameters_move_and_all_stay_positive(self, evidence, committed):
        p = evidence.twin.parameters
        for draw in parameter_draws(p, committed, 20, 0):
            assert {n for n in p if draw[n] != p[n]} <= set(p.fitted)
            assert all(draw[name] > 0 for name in p.fitted)

    def test_draws_lie_around_the_fit_with_the_spread_and_correlation_of_the_folds(self, evidence):
        p = evidence.twin.parameters
        names = ["sample_kcycles", "soc_factor"]
        logs = np.random.default_rng(5).normal(0, [0.02, 0.1], (12, 2)) @ [[1, 0], [0.5, 1]]
        refits = {
            str(i): {n: p[n] * math.exp(x) for n, x in zip(names, row, strict=True)}
            for i, row in enumerate(logs)
        }
        refits[ALL] = {name: p[name] for name in names}
        draws = parameter_draws(p, refits, 20_000, 0)
        found = np.log([[draw[name] / p[name] for name in names] for draw in draws])
        assert found.mean(axis=0) == pytest.approx([0, 0], abs=0.003)
        assert np.cov(found.T) == pytest.approx(np.cov(logs.T), rel=0.05)
        assert spreads(refits, names) == pytest.approx(
            dict(zip(names, logs.std(axis=0, ddof=1), strict=True)), rel=1e-3
        )
