"""Starting again after a kill -9: nothing that was finished is lost, nothing half-done is read.

And one epoch a job or three: the same training, and the same measurement.
"""

import os
import signal
from typing import NamedTuple

import pytest
from full_checkout import FullCheckout, Outcome, configure_long_runs, wait_for

from epochwatt.study.runs import Run

pytestmark = pytest.mark.workflow


class Killed(NamedTuple):
    """A run of three jobs whose workflow died twice, and one of one job that nobody disturbed."""

    checkout: FullCheckout
    disturbed: Run
    undisturbed: Run
    starts: list[Outcome]  # the second, which was killed as well, and the third
    before: list[dict]  # state of the finished epochs before each of them
    after: list[dict]  # and after it


@pytest.fixture(scope="module")
def killed(shop) -> Killed:
    """Kill the workflow alone in epoch 0, and with its training in epoch 2; then let it end."""
    checkout = shop.configuration_alone()
    configure_long_runs(checkout, 1, 3)
    shop.provide_data(checkout)
    disturbed, undisturbed = checkout.runs()
    before, after = [], []
    with checkout.started(disturbed.receipts[0]) as first:
        first.wait_until(lambda: checkout.is_measuring(disturbed.id, 0))
        first.kill_main()
        wait_for(lambda: not checkout.trainers(disturbed.id))
    before.append(checkout.epoch_state(disturbed.id, 0))
    with checkout.started("runs") as second:
        second.wait_until(lambda: checkout.is_measuring(disturbed.id, 2))
        second.kill_group()
    wait_for(lambda: not checkout.processes())
    after.append(checkout.epoch_state(disturbed.id, 0))
    assert checkout.is_measuring(disturbed.id, 2)
    before.append(checkout.epoch_state(disturbed.id, 0, 1))
    starts = [Outcome(second.process.returncode, second.screen.read_text()), checkout.make("runs")]
    after.append(checkout.epoch_state(disturbed.id, 0, 1))
    return Killed(checkout, disturbed, undisturbed, starts, before, after)


def check_completed(checkout: FullCheckout, run: Run, losses: list[float]) -> None:
    """The run is whole; only epoch 2 was resumed; it went on exactly where it had been."""
    assert checkout.leftovers() == []
    flagged = [("resumed" in row["flags"].split(), row["valid"]) for row in checkout.rows(run.id)]
    assert flagged == [(False, "True"), (False, "True"), (True, "True")]
    resumed = checkout.record(run.id, 2)["resumed"]
    assert resumed["reason"] == "an unfinished attempt of this epoch was found"
    assert 0 < resumed["gap_s"] < 120
    assert checkout.record(run.id, 2)["weights"] == "checkpoint"
    assert checkout.losses(run) == losses


def test_an_epoch_finished_after_its_workflow_died_is_found(killed):
    """The orphan finishes alone; the receipt it leaves is not trusted, its record is."""
    second, _ = killed.starts
    run = killed.disturbed.id
    assert second.measuring == [f"train_epoch {run} {epoch} {epoch}" for epoch in range(3)]
    assert "epoch 0 was measured on" in second.text
    assert killed.after[0] == killed.before[0] != {}


def test_a_run_killed_in_epoch_2_goes_on_there(killed):
    _, third = killed.starts
    one, three = killed.disturbed, killed.undisturbed
    assert "lockexception" not in third.text.lower()
    jobs = [f"train_epoch {one.id} 2 2", f"train_epoch {three.id} 0 2"]
    assert third.measuring == sorted(jobs)
    assert killed.after[1] == killed.before[1]
    check_completed(killed.checkout, one, killed.checkout.losses(three))


def test_epochs_of_one_job_and_of_three_learn_the_same_in_the_processes_asked_for(killed):
    """No epoch is shorter than its parts: overhead is at least -0.1 % of E2E in every row."""
    assert len(set(killed.checkout.losses(killed.undisturbed))) == 3
    one, three = (killed.checkout.rows(run.id) for run in (killed.disturbed, killed.undisturbed))
    assert [row["cold_process"] for row in one] == ["True"] * 3
    assert [row["cold_process"] for row in three] == ["True", "False", "False"]
    assert min(float(row["overhead_s"]) / float(row["e2e_s"]) for row in one + three) >= -0.001


def long_run(shop, epochs_per_job: int) -> FullCheckout:
    """Return a checkout with one run of three epochs, each long enough to be stopped inside."""
    checkout = shop.checkout()
    configure_long_runs(checkout, epochs_per_job)
    shop.provide_data(checkout)
    return checkout


@pytest.mark.thorough
def test_a_job_of_three_epochs_killed_in_the_third_keeps_two(shop, killed):
    checkout = long_run(shop, epochs_per_job=3)
    (run,) = checkout.runs()
    with checkout.started() as first:
        first.wait_until(lambda: checkout.is_measuring(run.id, 2))
        first.kill_group()
    attempt = checkout.root / f"measured/{run.id}/epoch-2.unfinished"
    (attempt / "record.json").write_text('{"epoch": 2, "e2e')  # as if it had died while writing
    (attempt / "record.json.4711.tmp").write_text("")
    before = checkout.epoch_state(run.id, 0, 1)
    assert {path.split("/")[2] for path in before} == {"epoch-0", "epoch-1"}
    outcome = checkout.make("runs")
    assert outcome.measuring == [f"train_epoch {run.id} 0 2"]
    assert checkout.epoch_state(run.id, 0, 1) == before
    assert "epoch 1 was measured on" in checkout.job_log(run.id, 0, 2)
    check_completed(checkout, run, killed.checkout.losses(killed.undisturbed))


@pytest.mark.thorough
def test_a_training_job_that_outlives_its_workflow_is_waited_for(shop):
    """Only Snakemake's own process dies; the second start meets the first one's training."""
    checkout = long_run(shop, epochs_per_job=3)
    (run,) = checkout.runs()
    with checkout.started("runs") as first:
        first.wait_until(lambda: checkout.is_measuring(run.id, 0))
        (trainer,) = checkout.trainers(run.id)
        os.kill(trainer, signal.SIGSTOP)
        first.kill_main()
        with checkout.started("runs") as second:
            second.wait_until(lambda: "waiting" in checkout.job_log(run.id, 0, 2))
            waiting = checkout.job_log(run.id, 0, 2)
            os.kill(trainer, signal.SIGCONT)
            outcome = second.end()
    assert "another measurement runs on this machine" in waiting
    assert f"pid {trainer}" in waiting
    assert f"run {run.id}" in waiting
    assert outcome.status == 0, outcome.text
    assert outcome.measuring == [f"train_epoch {run.id} 0 2"]
    assert "epoch 2 was measured on" in outcome.text
    assert checkout.leftovers() == []
    assert not any("resumed" in row["flags"] for row in checkout.rows(run.id))
