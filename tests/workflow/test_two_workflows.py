"""Two workflows at once: in one folder the second is refused, on one machine it waits."""

import os
import signal

import pytest
from full_checkout import block

pytestmark = pytest.mark.workflow


def test_a_second_workflow_is_refused_in_the_folder_and_waits_on_the_machine(shop):
    """The first one's training is held still, so that both meet it however fast they are."""
    here = shop.checkout()
    elsewhere = shop.checkout(machine=here.machine)
    for checkout in (here, elsewhere):
        checkout.configure(host_pipeline={"epochs": 1, "sweep": [block()]})
        shop.provide_data(checkout)
    (run,) = here.runs()
    with here.started("runs") as first:
        first.wait_until(lambda: here.is_measuring(run.id, 0))
        (trainer,) = here.trainers(run.id)
        os.kill(trainer, signal.SIGSTOP)
        with elsewhere.started("runs") as other:
            second = here.snakemake("runs")
            other.wait_until(lambda: "waiting" in elsewhere.job_log(run.id, 0, 0))
            waiting = elsewhere.job_log(run.id, 0, 0)
            assert not elsewhere.is_measuring(run.id, 0)
            os.kill(trainer, signal.SIGCONT)
            outcomes = [first.end(), other.end()]

    assert second.status != 0
    assert second.jobs == []
    assert "another workflow runs in this folder" in second.text
    assert f"pid {first.process.pid}" in second.text
    assert str(here.root) in second.text
    assert "Traceback" not in second.text

    assert "another measurement runs on this machine" in waiting
    assert f"pid {trainer}" in waiting
    assert f"run {run.id}" in waiting
    assert str(here.root) in waiting  # both folders may be called measured
    assert waiting in outcomes[1].text

    for checkout, outcome in zip((here, elsewhere), outcomes, strict=True):
        assert outcome.status == 0, outcome.text
        assert [row["valid"] for row in checkout.rows(run.id)] == ["True"]
    starts = [checkout.record(run.id, 0)["t_start_mono_s"] for checkout in (here, elsewhere)]
    assert starts[1] > here.record(run.id, 0)["t_end_mono_s"] > starts[0]
