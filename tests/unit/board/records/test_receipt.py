"""Receipts: small, exact, and written again at any time from what is measured."""

import hashlib
from pathlib import Path

import pytest

from epochwatt.board.records import files
from epochwatt.board.records.run_folder import write_receipt
from epochwatt.errors import RecordError


def test_receipt_names_the_epochs_of_its_part_with_flags_and_checksums(folder, add_epoch, tmp_path):
    for epoch in range(3):
        add_epoch(folder, epoch, flags=["cold_process", "resumed"] if epoch == 2 else [])
    path = tmp_path / "results" / "runs" / folder.run / "part-1-2.json"
    write_receipt(str(path), folder, 1, 2)
    receipt = files.read_json(str(path))
    assert (receipt["run"], receipt["first"], receipt["last"]) == (folder.run, 1, 2)
    assert [e["epoch"] for e in receipt["epochs"]] == [1, 2]
    assert [e["flags"] for e in receipt["epochs"]] == [[], ["cold_process", "resumed"]]
    record = Path(folder.epoch_path(2), "record.json")
    assert receipt["epochs"][1]["record_sha256"] == hashlib.sha256(record.read_bytes()).hexdigest()
    assert receipt["epochs"][1]["measured_unix_s"] == folder.read(2).meta["t_start_unix_s"]


def test_no_receipt_while_an_epoch_is_unfinished(folder, add_epoch, tmp_path):
    add_epoch(folder, 0)
    folder.begin(1)
    with pytest.raises(RecordError, match="epoch-1"):
        write_receipt(str(tmp_path / "part-0-1.json"), folder, 0, 1)
    assert not (tmp_path / "part-0-1.json").exists()
