"""Starting again after a kill -9: nothing that was finished is lost, nothing half-done is read.

And one epoch a job or three: the same training, and the same measurement.
"""

import os
import signal

import pytest
from full_checkout import FullCheckout, configure_long_runs, wait_for

pytestmark = pytest.mark.workflow


def long_run(shop, epochs_per_job: int) -> FullCheckout:
    """Return a checkout with one run of three epochs, each longer than a second."""
    checkout = shop.checkout()
    configure_long_runs(checkout, epochs_per_job)
    shop.provide_data(checkout)
    return checkout


def check_completed(checkout: FullCheckout, run, undisturbed: FullCheckout) -> None:
    """The run is whole; only epoch 2 was resumed; it went on exactly where it had been."""
    assert checkout.leftovers() == []
    flagged = [("resumed" in row["flags"].split(), row["valid"]) for row in checkout.rows(run.id)]
    assert flagged == [(False, "True"), (False, "True"), (True, "True")]
    resumed = checkout.record(run.id, 2)["resumed"]
    assert resumed["reason"] == "an unfinished attempt of this epoch was found"
    assert 0 < resumed["gap_s"] < 120
    assert checkout.record(run.id, 2)["weights"] == "checkpoint"
    assert checkout.losses(run) == undisturbed.losses(run)


def test_a_run_killed_in_epoch_2_goes_on_there(shop, undisturbed):
    checkout = long_run(shop, epochs_per_job=1)
    (run,) = checkout.runs()
    with checkout.started("runs") as first:
        first.wait_until(lambda: checkout.is_measuring(run.id, 2))
        first.kill_group()
    wait_for(lambda: not checkout.processes())
    assert checkout.is_measuring(run.id, 2)
    before = checkout.epoch_state(run.id, 0, 1)
    outcome = checkout.make("runs")
    assert "lockexception" not in outcome.text.lower()
    assert outcome.measuring == [f"train_epoch {run.id} 2 2"]
    assert checkout.epoch_state(run.id, 0, 1) == before
    check_completed(checkout, run, undisturbed)


@pytest.mark.thorough
def test_a_job_of_three_epochs_killed_in_the_third_keeps_two(shop, undisturbed):
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
    check_completed(checkout, run, undisturbed)


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


def test_an_epoch_finished_after_its_workflow_died_is_found(shop):
    """The orphan finishes alone; the receipt it leaves is not trusted, its record is."""
    checkout = long_run(shop, epochs_per_job=1)
    (run,) = checkout.runs()
    with checkout.started(run.receipts[0]) as first:
        first.wait_until(lambda: checkout.is_measuring(run.id, 0))
        first.kill_main()
        wait_for(lambda: not checkout.trainers(run.id))
    before = checkout.epoch_state(run.id, 0)
    outcome = checkout.make(run.receipts[0])
    assert outcome.measuring == [f"train_epoch {run.id} 0 0"]
    assert checkout.epoch_state(run.id, 0) == before
    assert "epoch 0 was measured on" in outcome.text


# -- one epoch a job or three ----------------------------------------------------------------------


def runs_of(checkout):
    """Return the run with one epoch a job and the run with three."""
    by_length = {run.factors["epochs_per_job"]: run for run in checkout.runs()}
    return by_length[1], by_length[3]


def test_training_is_identical_to_the_last_bit_in_the_processes_asked_for(undisturbed):
    one, three = runs_of(undisturbed)
    assert undisturbed.losses(one) == undisturbed.losses(three)
    assert len(set(undisturbed.losses(one))) == 3
    cold = [[row["cold_process"] for row in undisturbed.rows(run.id)] for run in (one, three)]
    assert cold == [["True"] * 3, ["True", "False", "False"]]
