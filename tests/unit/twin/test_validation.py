"""Validation: classes, errors, what is held out, the words about it, and the whole command."""

import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made_up import assumed

from benchmarks.calibration import one_run, write_leaks
from epochwatt import cli
from epochwatt.published.folds import LEAKS, points
from epochwatt.published.numbers import Measurement, Published
from epochwatt.twin import calibrate_twin, validation
from epochwatt.twin.calibrate_twin import accuracy_lines, write_validation
from epochwatt.twin.parameters import load_parameters, write_parameters
from epochwatt.twin.refits import ALL, CLAIMS, FOLD, load_refits, load_setups
from epochwatt.twin.validation import CLASSES, N_DRAWS, SEED, drawn_medians


@pytest.fixture(scope="module")
def rows(evidence):
    return calibrate_twin.validate(evidence).set_index("published_id", drop=False)


@pytest.fixture(scope="module")
def refits(evidence):
    kinds, p = (FOLD, *evidence.other_folds), evidence.twin.parameters
    return {**load_refits(evidence.folder, p, kinds), **load_setups(evidence.folder, p)}


def test_each_judged_number_has_a_row_or_is_named_as_lacking(evidence, rows):
    judged = {name for name, row in evidence.rows.items() if row.is_simulable}
    lacking = judged - set(rows.index)
    text = "\n".join(accuracy_lines(evidence, rows.reset_index(drop=True)))
    assert all(name in text for name in lacking)
    assert len(lacking) < 0.05 * len(judged)
    assert set(rows["class"].str.removeprefix("hipcw_")) <= set(CLASSES)


def test_medians_of_drawn_groups_are_those_of_all_errors_in_them():
    group = np.array([0, 1, 0, 2, 2, 2, 3, 1, 0])
    errors = np.array([3.0, 7.5, 0.1, 2.0, 2.0, 11.0, 5.0, 0.0, 4.0])
    drawn = np.random.default_rng(SEED).integers(0, 4, (N_DRAWS, 4))
    expected = [np.median(np.concatenate([errors[group == g] for g in row])) for row in drawn]
    assert drawn_medians(errors, group).tolist() == expected


def test_hipcw_is_seen_by_its_own_parameter_alone(evidence, rows):
    """Without it the shared parameters say the same, whatever HiPCW prints."""
    other = rows[rows.index.str.startswith(("H", "RH"))]
    assert len(other)
    assert other["class"].str.startswith("hipcw_").all()
    assert (other["seen_by_fit"] == "yes").all()
    assert not any(fact.paper == "hipcw2021" for fact in evidence.facts)
    moves = other["fitted_prediction"] != other["held_out_prediction"]
    assert moves[(other["device"] == "nx") & (other["takeaway"] == "H-III.A")].any()
    assert not moves[other["device"] == "agx"].any()  # everything is cached there anyway


def test_fold_changes_its_own_rows_only(evidence, refits, rows):
    slower = {**refits, "5.1.3": {n: 1.5 * v for n, v in refits["5.1.3"].items()}}
    again = validation.validate(
        evidence.published, evidence.rows, evidence.twin, slower, evidence.groups
    ).set_index("published_id")
    changed = again["held_out_prediction"] != rows["held_out_prediction"]
    assert set(again.index[changed]) == set(again.index[again["takeaway"] == "5.1.3"])


def test_published_value_reaches_no_prediction(evidence, refits, rows):
    """But through fitted parameters, which stay as committed here."""
    published = evidence.published
    other = Published(
        {n: replace(m, value=2 * m.value) for n, m in published.measurements.items()},
        {
            n: replace(r, value=0.9 * r.value, value_hi=r.value_hi and 0.9 * r.value_hi)
            for n, r in published.relations.items()
        },
    )
    again = validation.validate(other, evidence.rows, evidence.twin, refits, evidence.groups)
    for name in ("published_id", "fitted_prediction", "held_out_prediction"):
        assert again[name].tolist() == rows[name].tolist()


# -- what stands beside the calibration: runs that are one to the simulation, other priors ---------


def test_committed_leaks_are_those_of_the_committed_simulation(evidence, tmp_path):
    shutil.copy(evidence.folder / LEAKS, tmp_path)
    write_leaks(tmp_path, evidence.published, evidence.twin)
    written, committed = ((f / LEAKS).read_text("utf-8") for f in (tmp_path, evidence.folder))
    assert written == committed, "do: make validate"
    # what the simulation cannot tell apart leaves with its take-away
    folds = evidence.folds
    assert {"S5.5.1-02", "S5.5.1-04"} <= folds["5.6"].removed  # DVFS on: the same epoch
    assert {"S5.3.1-02", "RS5.3.1-03"} <= folds["5.2.2"].removed  # 361 ms is twice 195 ms


def test_numbers_that_a_fold_keeps_are_of_no_run_that_it_removes(evidence):
    """Whatever the paper prints: predictions of kept and removed numbers always differ."""
    same = one_run(evidence.published, evidence.twin)
    facts = evidence.published.facts()
    values = {n: f for n, f in facts.items() if isinstance(f, Measurement) and not f.is_bound}
    at = {name: {same.get(p, p) for p in points(fact)} for name, fact in values.items()}
    for takeaway, fold in evidence.folds.items():
        lost = set().union(*(at[name] for name in fold.removed if name in at))
        kept = {name for name in values if name not in fold.removed and at[name] & lost}
        assert kept == set(), takeaway


# -- the command -----------------------------------------------------------------------------------

FITTED = ("sample_kcycles", "gpu_mw_per_ghz_v2")


@pytest.fixture
def checkout(tmp_path, monkeypatch, request):
    """The configuration, of which two parameters are fitted and the others assumed."""
    for folder in ("published", "twin", "devices"):
        shutil.copytree(request.config.rootpath / "config" / folder, tmp_path / "config" / folder)
    shutil.copy(request.config.rootpath / "config/claims.yaml", tmp_path / "config")
    monkeypatch.chdir(tmp_path)
    twin = Path("config/twin")
    known = load_parameters(twin)
    write_parameters(twin, assumed(known, [n for n in known.fitted if n not in FITTED]))
    return twin


@pytest.mark.thorough
def test_calibrate_twin_refits_and_writes_the_same_again(checkout, workloads, capsys):
    def contents():
        return {path.name: path.read_bytes() for path in checkout.iterdir()}

    before = contents()
    command = ["calibrate-twin", "--workloads", str(Path(workloads[0]).parent)]
    assert cli.main([*command, "--folds"]) == 0
    out, after = capsys.readouterr().out, contents()
    changed = {name for name in after if after[name] != before[name]}
    assert changed == {"parameters.yaml", "cross_validation_fits.csv", "setups.csv"}
    known = load_parameters(checkout)
    assert known.fitted == FITTED
    assert all(known.described[n].spread > 0 and known.described[n].serves for n in FITTED)
    assert load_refits(checkout, known).keys() > {ALL, "5.1.1", "5.6.7"}
    assert load_refits(checkout, known, (CLAIMS,)).keys() > {ALL, "5.6.1", "A.0.4"}
    for line in ("2 parameters, ", "sample_kcycles ", "time: median held-out error "):
        assert line in out
    done = re.findall(r"\((\d+) of (\d+)\)", out)
    assert [int(n) for n, _ in done] == list(range(1, len(done) + 1))

    assert cli.main(command) == 0
    assert contents() == after

    write_validation(workloads, "validation.csv", "groupings.csv", "validation.txt")
    assert Path("validation.txt").read_text("utf-8").strip() in out
    assert Path("validation.csv").read_text("utf-8").count("\n") > 150
