"""`epochwatt plan` says what would run and why; `epochwatt discard` is the only way back."""

import pytest
from full_checkout import configure_two_studies

pytestmark = pytest.mark.workflow


def test_plan_says_what_is_measured_and_what_is_left(fresh, finished):
    configure_two_studies(fresh)
    before, after = (each.epochwatt("plan", "--runs") for each in (fresh, finished.checkout))
    assert "2 runs, 3 epochs, 0 of them measured; the rest takes about" in before.text
    assert "2 runs, 3 epochs, 3 of them measured; nothing is left to do" in after.text
    for told in (before, after):
        assert told.status == 0
        assert finished.drawn in told.text
        assert finished.beside in told.text


def test_plan_explains_the_jobs_of_a_run_and_their_reasons(shop, finished):
    checkout = shop.copy_of(finished.checkout)
    run, receipt = finished.drawn, f"results/runs/{finished.drawn}/part-1-1.json"
    (checkout.root / receipt).unlink()
    told = checkout.epochwatt("plan", "--explain", run)
    assert told.status == 0, told.text
    assert "epoch 1: measured " in told.text
    assert f"train_epoch 1-1: Missing output files: {receipt}" in told.text
    assert "train_epoch 0-0" not in told.text
    assert finished.beside not in told.text


@pytest.mark.thorough
def test_plan_explains_a_run_of_which_nothing_or_everything_is_there(fresh, finished):
    configure_two_studies(fresh)
    run = finished.drawn
    told = fresh.epochwatt("plan", "--explain", run)
    assert f"epoch 0: not in measured/{run}, will be measured" in told.text
    receipt = f"results/runs/{run}/part-0-0.json"
    assert f"train_epoch 0-0: Missing output files: {receipt}" in told.text
    told = finished.checkout.epochwatt("plan", "--explain", run)
    assert "epoch 1: measured " in told.text
    assert "nothing would run" in told.text


def test_a_discarded_epoch_alone_is_measured_again_and_flagged(shop, finished):
    checkout = shop.copy_of(finished.checkout)
    run = finished.drawn
    others = (f"measured/{run}/epoch-0", f"measured/{finished.beside}")
    before, taken_back = checkout.state(*others), checkout.epoch_state(run, 1)
    told = checkout.epochwatt("discard", run, "1")
    assert told.status == 0, told.text
    assert "measured/.trash/" in told.text
    (trashed,) = (checkout.root / "measured/.trash").glob(f"*/{run}/epoch-1")
    assert {p.name for p in trashed.iterdir()} >= {path.split("/")[-1] for path in taken_back}

    assert checkout.make("runs").measuring == [f"train_epoch {run} 1 1"]
    assert checkout.state(*others) == before
    record = checkout.record(run, 1)
    assert record["weights"] == "fresh"
    assert f"epoch 0 of {finished.beside} was measured in between" in record["resumed"]["reason"]
    first, second = checkout.rows(run)
    assert (first["valid"], second["valid"]) == ("True", "False")
    assert {"fresh_weights", "resumed"} <= set(second["flags"].split())


@pytest.mark.thorough
def test_a_discarded_run_starts_over(shop, finished):
    checkout = shop.copy_of(finished.checkout)
    run = finished.drawn
    told = checkout.epochwatt("discard", run)
    assert told.status == 0, told.text
    assert not (checkout.root / "measured" / run).exists()
    assert len(list((checkout.root / "measured/.trash").glob(f"*/{run}/epoch-*"))) == 2
    outcome = checkout.snakemake("--dry-run")
    assert outcome.measuring == [f"train_epoch {run} 0 0", f"train_epoch {run} 1 1"]
    again = checkout.epochwatt("discard", run)
    assert again.status == 1
    assert f"nothing is measured of run '{run}'" in again.text
