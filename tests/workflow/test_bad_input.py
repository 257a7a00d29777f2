"""Bad input and bad luck: a clear error in the job's log and on the screen, nothing recorded."""

import os
import signal
import subprocess
from typing import NamedTuple

import pytest
from full_checkout import STOPPABLE, FullCheckout, Outcome, block

pytestmark = pytest.mark.workflow

# Each case is a study of one run. What its job has to say:
TOLD = {
    "full": "the disk is full; free some space",
    "forbidden": "this user may not write there",
    "orphaned": "a loader worker died in epoch 0",
}
DROPPED = "-dac_override,-dac_read_search"  # what lets root write into a folder that forbids it
# mounts a tiny disk that goes away with the command, then starts the command without those rights
ENCLOSE = (
    'mount -t tmpfs -o size=96k none "$1" && shift && '
    f'exec setpriv --bounding-set={DROPPED} --inh-caps={DROPPED} "$@"'
)


class Disaster(NamedTuple):
    """A checkout after one start in which every run but one had a fault of its own."""

    checkout: FullCheckout
    outcome: Outcome
    skipped: dict[str, str]  # cases that this machine cannot bring about, with the reason


@pytest.fixture(scope="module")
def disaster(shop) -> Disaster:
    checkout = shop.checkout()
    blocks = {
        "full": block(seed=1),
        "forbidden": block(seed=2),
        "orphaned": block(dataset_scale=STOPPABLE, batch_size=16, num_workers=1),
        "healthy": block(seed=3),
    }
    checkout.configure(**{case: {"epochs": 1, "sweep": [made]} for case, made in blocks.items()})
    shop.provide_data(checkout)
    run_of = {case: checkout.run_of(case) for case in TOLD}
    forbidden, tiny_disk = (
        checkout.root / "measured" / run_of[case].id for case in ("forbidden", "full")
    )
    tiny_disk.mkdir(parents=True)
    forbidden.mkdir()
    forbidden.chmod(0o555)
    skipped = _enclose(checkout, str(tiny_disk))
    orphaned = run_of["orphaned"].id
    with checkout.started("runs", "--cores", "1") as first:
        # not before: every child looks like this process until it has started its own program
        first.wait_until(lambda: checkout.is_measuring(orphaned, 0))
        first.wait_until(lambda: len(checkout.trainers(orphaned)) == 2)
        _, worker = checkout.trainers(orphaned)
        os.kill(worker, signal.SIGKILL)
        outcome = first.end()
    return Disaster(checkout, outcome, skipped)


def _enclose(checkout, tiny_disk: str) -> dict[str, str]:
    """Arrange for a full disk and for missing rights; return the cases that cannot be had."""
    user = () if os.geteuid() == 0 else ("--user", "--map-root-user")
    before = ("unshare", *user, "--mount", "sh", "-c", ENCLOSE, "sh", tiny_disk)
    try:
        subprocess.run([*before, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        reason = f"needs unshare, mount and setpriv: {error}"
        return {"full": reason} | ({} if user else {"forbidden": reason})
    checkout.before = before
    return {}


def skip_if_impossible(disaster, case: str) -> None:
    if case in disaster.skipped:
        pytest.skip(disaster.skipped[case])


@pytest.mark.parametrize("case", TOLD)
def test_a_fault_is_told_in_log_and_on_screen_and_nothing_is_recorded(disaster, case):
    skip_if_impossible(disaster, case)
    checkout = disaster.checkout
    run = checkout.run_of(case).id
    log = checkout.job_log(run, 0, 0)
    (error,) = [line for line in log.splitlines() if line.startswith(f"error: {run}: ")]
    advice = log.partition(error)[2].partition("error: ")[0]  # the lines below it
    assert TOLD[case] in error + advice
    assert error in disaster.outcome.text
    assert TOLD[case] in disaster.outcome.text
    assert "Traceback" not in log
    assert not checkout.is_measured(run, 0)
    assert not (checkout.root / f"results/runs/{run}/part-0-0.json").exists()
    assert not (checkout.root / f"results/runs/{run}/epochs.csv").exists()


def test_the_other_runs_go_on_and_the_workflow_reports_failure(disaster):
    healthy = disaster.checkout.run_of("healthy").id
    assert [row["valid"] for row in disaster.checkout.rows(healthy)] == ["True"]
    assert disaster.outcome.status != 0


@pytest.mark.thorough
def test_what_was_mended_is_measured_and_flagged(shop, disaster):
    checkout = shop.copy_of(disaster.checkout)
    orphaned = checkout.run_of("orphaned")
    checkout.make(*orphaned.receipts)
    assert checkout.record(orphaned.id, 0)["flags"] == ["cold_process", "resumed"]


@pytest.mark.parametrize("folder", ["measured", pytest.param("data", marks=pytest.mark.thorough)])
def test_an_unwritable_folder_is_called_that(shop, disaster, folder):
    """Of measured/, too, it is not said that another workflow runs there: none does."""
    skip_if_impossible(disaster, "forbidden")
    checkout = shop.checkout()
    checkout.configure(host_pipeline={"epochs": 1, "sweep": [block()]})
    closed = checkout.root / folder
    closed.mkdir()
    closed.chmod(0o555)
    checkout.before = (*disaster.checkout.before[:-1], str(checkout.machine))
    outcome = checkout.snakemake()
    assert outcome.status != 0
    assert outcome.measuring == []
    (told,) = [line for line in outcome.text.splitlines() if "Permission denied" in line]
    assert f"{folder}/" in told
    assert "another workflow" not in told
    assert "Traceback" not in outcome.text
