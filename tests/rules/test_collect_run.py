"""Rule collect_run: from hand-made records to results/runs/{run}/epochs.csv."""

from pathlib import Path

import pytest

from epochwatt.board.records.run_folder import write_receipt


@pytest.fixture
def run(checkout, measure):
    """A run of three epochs, of which the last was measured after an update of torch."""
    wanted = checkout.runs[0]
    measure(wanted, 0, flags=["cold_process"])
    measure(wanted, 1, flags=["fresh_weights", "resumed"], e2e_s=4.5, loss=None)
    folder = measure(wanted, 2, software={"torch": "2.10"})
    for epoch in range(3):
        write_receipt(wanted.receipts[epoch], folder, epoch, epoch)
    return wanted


def test_epochs_are_those_of_the_records(run, run_rule, expected, assert_table):
    target = f"results/runs/{run.id}/epochs.csv"
    run_rule("collect_run", target)
    assert_table(target, expected("collect_run", "epochs.csv"))


def test_damaged_record_fails_in_a_line_and_leaves_no_table(run, run_rule):
    Path("measured", run.id, "epoch-1", "minibatches.npy").write_bytes(b"\x93NUMPY")
    output = run_rule("collect_run", f"results/runs/{run.id}/epochs.csv", status=1)
    log = Path(f"results/logs/collect_run/{run.id}.log").read_text("utf-8")
    assert f"error: measured/{run.id}/epoch-1/minibatches.npy was altered" in output
    assert "Traceback" in log
    assert not Path(f"results/runs/{run.id}/epochs.csv").exists()
