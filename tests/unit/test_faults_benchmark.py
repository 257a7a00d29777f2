"""The fault campaign: a few injections of each family, and that each check can fail."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks import template
from benchmarks.faults import __main__ as campaign
from benchmarks.faults import invariants
from benchmarks.faults.place import Place
from epochwatt.board.records.run_folder import RunFolder

ROOT = Path(__file__).resolve().parents[2]
FAULTS = (
    *("flip record.json", "truncate samples-*.csv", "delete checkpoint", "zero manifest.json"),
    *("damaged attempt", "kill -9 group", "power cut", "SIGINT trainer", "EIO of a call"),
)
LOSSES = {0: 2.25, 1: 2.25, 2: 2.25}


@pytest.mark.thorough
def test_real_measurements_recover():
    command = [sys.executable, "-m", "benchmarks.faults", "--seed", "20261122", "--count", "1"]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*command, "--only", *FAULTS],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert all(f"{name} " in done.stdout for name in FAULTS)


@pytest.fixture
def here(tmp_path, add_epoch, factors):
    """A place whose three epochs are made up, with its tables and its receipt."""
    source = tmp_path / "source"
    runs = RunFolder(str(source / "after-3/measured"), template.RUN)
    for epoch in range(3):
        add_epoch(runs, epoch)
    (source / "data").mkdir()
    (source / "factors.json").write_text(json.dumps(factors), "utf-8")
    (tmp_path / "beside").mkdir()
    here = Place(tmp_path / "beside/here", source, 3)
    template.collect(here.folder)
    receipt = {"epochs": [{"epoch": epoch} for epoch in range(3)]}
    (here.folder / "results/receipt.json").write_text(json.dumps(receipt), "utf-8")
    return here


def wrong(here, before=None, damaged=()):
    before = here.digests() if before is None else before
    return invariants.after_recovery(here, here.source, LOSSES, before, set(damaged))


def test_nothing_is_wrong_where_nothing_was_done(here):
    assert wrong(here) == []


def test_another_loss_is_seen_and_one_after_fresh_weights_is_not(here):
    table = here.folder / "results/epochs.csv"
    rows = table.read_text("utf-8").replace(",2.25,", ",2.5,", 3).splitlines()
    table.write_text("\n".join(rows) + "\n", "utf-8")
    assert len(wrong(here)) == 3
    flagged = [rows[0], rows[1], rows[2].replace("cold_process", "fresh_weights"), rows[3]]
    table.write_text("\n".join(flagged) + "\n", "utf-8")
    assert wrong(here) == ["epoch 0 has loss 2.5, undisturbed 2.25"]


def test_a_lost_epoch_is_seen_unless_the_fault_took_it(here):
    before = here.digests()
    shutil.rmtree(here.epoch(1))
    assert wrong(here, before) == ["epoch 1, whole before, is lost or altered"]
    assert wrong(here, before, damaged=[1]) == []


def test_other_weights_strange_files_and_a_receipt_that_lacks_an_epoch_are_seen(here):
    before = {**here.digests(), 2: "measured again since"}
    assert wrong(here, before, [2]) == []
    (here.epoch(2) / "checkpoint.pt").unlink(missing_ok=True)
    (here.epoch(2) / "checkpoint.npz").write_bytes(b"others")
    (here.folder / "core").touch()
    (here.folder.parent / "elsewhere").touch()
    Path(here.runs.attempt_path(2)).mkdir()
    (here.folder / "results/receipt.json").write_text('{"epochs": [{"epoch": 0}]}', "utf-8")
    found = " ".join(wrong(here, before, [2]))
    words = ("checkpoint", "core was", "elsewhere was", "epoch-2.unfinished is", "receipt has [0]")
    assert [word for word in words if word not in found] == []


def test_what_a_start_says_is_judged(here):
    def broken():
        raise KeyError("flags")

    start = here.start(broken)
    assert start.wait() in campaign.FAILED
    (found,) = invariants.tracebacks([start])
    assert "KeyError" in found
    assert invariants.unnamed([start], ("record.json",)) == ["nobody named record.json"]
    assert invariants.unnamed([start], ("flags",)) == []


def test_a_signal_that_comes_at_once_ends_the_job_and_not_the_campaign(here):
    started = os.getpid()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        # it cannot have ended before
        start = here.start(prepare=lambda: time.sleep(20), collect=False)
        start.send(number)
        assert os.getpid() == started
        assert start.wait() != 0
