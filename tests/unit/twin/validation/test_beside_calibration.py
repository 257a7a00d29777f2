"""What stands beside the calibration: runs that are one to the simulation, and other priors."""

import re
import shutil

import pytest

from benchmarks.calibration import (
    N_SHIFTED,
    SHIFTED,
    WIDER,
    one_run,
    prior_rows,
    write_leaks,
)
from epochwatt.errors import ConfigError
from epochwatt.published.folds import LEAKS, folds, points
from epochwatt.published.numbers import DEFAULTS, DEVICE_DEFAULTS, Measurement, Published
from epochwatt.twin.validation.accuracy import CHOSEN, PRIORS, load_priors
from epochwatt.twin.validation.validate_twin import validation


def measurement(name, metric, section="5.1", **config):
    run = {"device": "agx", "model": "resnet", **config}
    return Measurement(
        id=name,
        paper="sigmetrics2023",
        section=section,
        metric=metric,
        value=1.0,
        unit="s",
        qualifier="exact",
        config={**DEFAULTS, **DEVICE_DEFAULTS[run["device"]], **run},
    )


@pytest.fixture
def grouped(twin):
    """Return a function that says which of some made-up numbers are one to the simulation."""

    def call(*facts):
        same = one_run(Published({f.id: f for f in facts}, {}), twin)
        at = {fact.id: next(points(fact)) for fact in facts}
        return {name: same.get(own, own) for name, own in at.items()}

    return call


def test_hidden_media_are_one_run_and_slow_ones_are_not(grouped):
    found = grouped(
        measurement("ssd", "e2e_s", model="mobilenet", storage="ssd"),
        measurement("sd", "e2e_s", model="mobilenet", storage="sd"),
        measurement("one", "e2e_s", model="mobilenet", storage="ssd", num_workers=1),
        measurement("other metric", "stall_s", model="mobilenet", storage="ssd"),
        measurement("other board", "e2e_s", device="nx", model="mobilenet", storage="ssd"),
    )
    assert found["sd"] == found["ssd"]
    assert len(set(found.values())) == 4


def test_dvfs_that_leaves_the_clocks_is_one_run(grouped):
    found = grouped(
        measurement("off", "energy_wh", dvfs="off"),
        measurement("on", "energy_wh", dvfs="on"),
        measurement("slow", "energy_wh", power_mode="b"),
    )
    assert found["on"] == found["off"] != found["slow"]


def test_what_the_simulation_cannot_tell_apart_leaves_with_its_takeaway(evidence):
    found = folds(evidence.folder)
    assert {"S5.5.1-02", "S5.5.1-04"} <= found["5.6"].removed  # DVFS on: the same epoch
    assert {"S5.3.1-02", "RS5.3.1-03"} <= found["5.2.2"].removed  # 361 ms is twice 195 ms
    assert {"S5.2.2-05", "S5.2.2-06"} <= found["5.3.1"].removed  # hidden media


def test_committed_leaks_are_those_of_the_committed_simulation(evidence, tmp_path):
    shutil.copy(evidence.folder / LEAKS, tmp_path)
    write_leaks(tmp_path, evidence.published, evidence.twin)
    written, committed = ((f / LEAKS).read_text("utf-8") for f in (tmp_path, evidence.folder))
    assert written == committed, "do: make validate"


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


NAMES = [WIDER, *(f"{SHIFTED} {i}" for i in range(1, N_SHIFTED + 1))]


def test_committed_file_has_every_choice_and_the_held_out_errors(evidence):
    rows = load_priors(evidence.folder)
    told = {(row.priors, row.fitted, row.class_): row for row in rows}
    wanted = [(CHOSEN, "no"), (CHOSEN, "yes"), (WIDER, "yes")]
    wanted += [(name, fitted) for name in NAMES[1:] for fitted in ("no", "yes")]
    assert {key[:2] for key in told} == set(wanted)
    for now in prior_rows(CHOSEN, "yes", validation(evidence)):
        then = told[CHOSEN, "yes", now.class_]
        assert (then.n, then.seed) == (now.n, now.seed)
        assert then.median_error_pct == pytest.approx(now.median_error_pct, abs=0.006)


def test_chosen_priors_alone_predict_better_than_any_moved_ones(evidence):
    """Which is why nobody may say that they were chosen without the papers."""
    time_pct = {
        row.priors: row.median_error_pct
        for row in load_priors(evidence.folder)
        if (row.fitted, row.class_) == ("no", "time")
    }
    chosen = time_pct.pop(CHOSEN)
    assert len(time_pct) == N_SHIFTED
    assert all(error > 2 * chosen for error in time_pct.values())


def test_a_cell_that_is_no_number_is_named(evidence, tmp_path):
    lines = (evidence.folder / PRIORS).read_text("utf-8").splitlines()
    lines[1] = lines[1].rpartition(",")[0] + ",much"
    (tmp_path / PRIORS).write_text("\n".join(lines), "utf-8")
    with pytest.raises(ConfigError, match=re.escape("priors.csv, line 2")):
        load_priors(tmp_path)
