"""Rule collect_run: from records to results/runs/{run}/epochs.csv, and a damaged record."""

from pathlib import Path

from epochwatt.board.records.run_folder import write_receipt
from tests.rules.tables import assert_expected


def test_records_become_rows_and_a_damaged_one_fails_in_a_line_and_leaves_no_table(
    checkout, measure, run_rules
):
    """Of the first run the last epoch was measured after an update of torch."""
    whole, damaged, *_ = checkout.runs
    for run in (whole, damaged):
        measure(run, 0, flags=["cold_process"])
        measure(run, 1, flags=["fresh_weights", "resumed"], e2e_s=4.5, loss=None)
        folder = measure(run, 2, software={"torch": "2.10"})
        for epoch in range(3):
            write_receipt(run.receipts[epoch], folder, epoch, epoch)
    Path("measured", damaged.id, "epoch-1", "minibatches.npy").write_bytes(b"\x93NUMPY")
    output = run_rules("collect_run", whole.epochs_csv, damaged.epochs_csv, status=1)
    assert_expected(whole.epochs_csv, "collect_run")
    log = Path(f"results/logs/collect_run/{damaged.id}.log").read_text("utf-8")
    assert f"error: measured/{damaged.id}/epoch-1/minibatches.npy was altered" in output
    assert "Traceback" in log
    assert not Path(damaged.epochs_csv).exists()
