"""The plan: what is asked for, what is measured, how long the rest may take and why."""

import re
from pathlib import Path

import pytest

from epochwatt.study import plan
from epochwatt.study.plan import plan_lines, why_lines

# What `snakemake --dry-run` says (9.27.1), shortened to one job of each kind.
DRY_RUN = (Path(__file__).parents[2] / "data/dry_run.txt").read_text("utf-8")


@pytest.fixture
def one(checkout):
    """A checkout with one run of 1,797 samples and 2 epochs."""
    checkout.sweep({}, epochs=2)
    return checkout


@pytest.fixture
def dry_run(monkeypatch):
    """Return a function that sets what Snakemake says of a run."""

    def say(run_id):
        monkeypatch.setattr(plan, "_dry_run", lambda _: DRY_RUN.format(run=run_id))

    return say


def row(settings, run_id):
    """Return what the table of runs says of a run: epochs, done, s per epoch, time left."""
    (line,) = [line for line in plan_lines(settings, with_runs=True) if line.startswith(run_id)]
    return re.split(r"  +", line)[1:]


def test_studies_come_first_and_runs_where_they_are_asked_for(checkout, measure, golden):
    measure(checkout.runs[0], 0)
    measure(checkout.runs[2], 1)
    settings = checkout.settings()
    golden("plan", "epochwatt plan", "\n".join(plan_lines(settings)))
    golden("plan", "epochwatt plan --runs", "\n".join(plan_lines(settings, with_runs=True)))


def test_measured_epochs_give_the_estimate(one, measure):
    measure(one.runs[0], 0, e2e_s=8.0)
    assert row(one.settings(), one.ids[0])[2] == "8 (measured)"


def test_runs_on_the_same_data_are_better_than_a_guess(checkout, measure):
    checkout.sweep({"batch_size": [16, 32, 64]})
    first, second, third = checkout.runs
    measure(first, 0, e2e_s=8.0)
    measure(second, 0, e2e_s=5.0)
    settings = checkout.settings()
    assert row(settings, first.id)[2] == "8 (measured)"
    assert row(settings, third.id)[2] == "6.5 (runs like it)"


@pytest.mark.parametrize("factor", [{"dataset_scale": [1, 2]}, {"instance": ["local", "second"]}])
def test_runs_on_other_data_or_machines_say_nothing(factor, checkout, measure):
    checkout.sweep(factor)
    measured, other = checkout.runs
    measure(measured, 0, e2e_s=8.0)
    assert "(a guess)" in row(checkout.settings(), other.id)[2]


def test_time_left_is_epochs_and_jobs(one, measure, monkeypatch):
    monkeypatch.setattr(plan, "JOB_S", 2.0)
    measure(one.runs[0], 0, e2e_s=8.0)
    assert row(one.settings(), one.ids[0])[3] == "10 s"  # one epoch of 8 s, one job of 2 s
    assert plan_lines(one.settings())[-1].endswith("the rest takes about 10 s")


def test_why_says_what_is_measured_and_which_jobs_would_run(one, measure, dry_run, golden):
    wanted = one.runs[0]
    measure(wanted, 0)
    dry_run(wanted.id)
    lines = why_lines(one.settings(), wanted.id)
    lines[1] = re.sub(r"measured 2025-06-1\d [\d:]+,", "measured DAY,", lines[1])
    golden("plan", "epochwatt plan --explain RUN", "\n".join(lines))
