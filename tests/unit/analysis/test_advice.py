"""Advice on planted runs, where it is known which one is right, and where none is."""

import csv

import pytest

from epochwatt.analysis.advice import advise, write_advice
from epochwatt.analysis.collect_study import read_epochs

LOADED = {"fetch_s": 4.0, "preprocess_s": 8.0, "cpu_util_pct": 20.0}


def times(wait=0.0, copy=0.1, compute=4.0, overhead=0.1, **more):
    """Return an epoch made of these parts, s."""
    e2e_s = wait + copy + compute + overhead
    return {"wait_s": wait, "copy_s": copy, "compute_s": compute, "e2e_s": e2e_s, **more}


@pytest.fixture
def judged(checkout, write_epochs):
    """Return a function that judges runs: changed factors and epochs after a first, slow one."""

    def call(*runs):
        base = checkout.runs[0].factors
        paths = [
            write_epochs(f"run-{n}", {**base, **factors}, times(wait=90.0), *epochs)
            for n, (factors, *epochs) in enumerate(runs)
        ]
        return advise(read_epochs(paths))

    return call


def test_workers_that_were_measured_to_hide_the_wait_are_named(judged):
    slow = ({"num_workers": 0}, times(wait=10.0), times(wait=10.2))
    fast = ({"num_workers": 2, "prefetch_factor": 2}, times(wait=1.6), times(wait=1.7))
    advice, other = judged(slow, fast)
    assert (advice.bound_by, advice.kind, advice.compared_run) == ("loader", "measured", "run-1")
    assert advice.advice == "Bound by the loader: 2 workers hide 84 % of the wait (measured)."
    assert advice.hidden_pct == pytest.approx(100 * (1 - 1.65 / 10.1))
    assert advice.saved_pct == pytest.approx(100 * (1 - 5.85 / 14.3))
    assert advice.saved_low_pct < advice.saved_pct < advice.saved_high_pct
    assert "14.3 s here, 5.85 s there: 59 % less" in advice.reason
    assert other.kind == "none"
    assert other.advice == ("Bound by compute: faster than the neighbouring setting measured.")


SLOW, FAST = {"num_workers": 0}, {"num_workers": 2, "prefetch_factor": 2}
NO_SPREAD = "its neighbours cannot be told apart, as one epoch has no spread."


@pytest.mark.parametrize(
    ("fast", "slow_s", "fast_s", "said"),
    [
        # within the spread of the epochs
        (FAST, (4.0, 5.0), (3.8, 4.8), "no neighbouring setting is faster beyond the spread of"),
        (FAST, (4.0, 4.0001), (3.99, 3.9901), "no neighbouring setting"),  # certain, but tiny
        (FAST, (4.0,), (1.0,), NO_SPREAD),
        # two settings
        ({**FAST, "batch_size": 32}, (4.0, 4.1), (1.0, 1.1), "no run that differs in one setting"),
    ],
)
def test_what_gives_no_advice(judged, fast, slow_s, fast_s, said):
    advice, _ = judged(
        (SLOW, *(times(compute=s) for s in slow_s)), (fast, *(times(compute=s) for s in fast_s))
    )
    assert (advice.kind, advice.compared_run) == ("none", "")
    assert advice.advice.startswith(f"Bound by compute: {said}")


def test_a_batch_size_is_advised_only_where_nothing_else_helps_and_says_what_it_changes(judged):
    slow = ({"num_workers": 0}, times(), times(compute=4.1))
    batch = ({"num_workers": 0, "batch_size": 32}, times(compute=1.0), times(compute=1.1))
    advice, _ = judged(slow, batch)
    assert "batch 32 takes" in advice.advice
    assert "also changes what is learned" in advice.reason
    workers = ({"num_workers": 2, "prefetch_factor": 2}, times(compute=2.0), times(compute=2.1))
    assert "2 workers take" in judged(slow, batch, workers)[0].advice


def test_without_a_sibling_the_number_of_workers_is_estimated(judged):
    """Two mini-batches: 6 s of loading each, 2.05 s of training each: three workers keep up."""
    (advice,) = judged(({"num_workers": 0}, times(wait=12.0, **LOADED), times(wait=12.0, **LOADED)))
    assert (advice.kind, advice.workers) == ("estimated", 3)
    assert advice.advice == "Bound by the loader: 3 workers would keep up on average (estimated)."
    assert advice.reason == (
        "Loading a mini-batch takes 6e+03 ms of one worker, 33 % of it fetching; "
        "training on it takes 2.05e+03 ms. Where loading times vary, a part of the wait stays."
    )


@pytest.mark.parametrize("epochs", [[], [times(compute=0.2)], [times(valid=False)]])
def test_what_is_too_short_to_tell_is_not_judged(epochs, judged):
    (advice,) = judged(({"num_workers": 0}, *epochs))
    assert (advice.bound_by, advice.kind) == ("", "none")
    assert advice.advice == "Too short to tell what holds it back."


def test_the_table_has_a_row_per_run_and_may_have_none(checkout, write_epochs, tmp_path):
    path = tmp_path / "advice.csv"
    write_advice([], str(path))
    assert len(path.read_text("utf-8").splitlines()) == 1
    write_advice([write_epochs("run", checkout.runs[0].factors, {}, {}, {})], str(path))
    (row,) = csv.DictReader(path.read_text("utf-8").splitlines())
    assert (row["run"], row["bound_by"], row["workers"]) == ("run", "compute", "")
