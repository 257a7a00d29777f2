"""Two real networks in one process: what the record holds, on this CPU and a board of files."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from fake_board import make_board, settings_of

from epochwatt.board.records.interleaved_folder import read
from epochwatt.board.training.interleave import session
from epochwatt.board.training.interleave.__main__ import main
from epochwatt.schedule.interleaved import expected_of, outcome_lines

PLAN = {"train": "lenet", "infer": "lenet", "rate_per_s": 40, "batch_size": 4, "seconds": 1}
MACHINE = {
    **{"backend": "host", "root": "/", "kind": "", "unit": "", "power_source": "none"},
    **{"storage": {"root": "/", "mount": "", "block_device": ""}, "settle": None},
}


@pytest.fixture
def words(tmp_path):
    """Return a function that gives the words of the command."""

    def make(plan, machine=MACHINE):
        paths = ["--measured", str(tmp_path / "measured"), "--receipt", str(tmp_path / "receipt")]
        return ["--plan", json.dumps(plan), "--machine", json.dumps(machine), *paths]

    return make


@pytest.fixture
def measure(words, tmp_path, monkeypatch, on_the_cpu):
    """Return a function that measures a plan in this process and gives its record."""
    monkeypatch.setattr(session, "BUSY_S", 0.01)

    def call(plan, machine=MACHINE):
        assert main(words({"torch_threads": 1, **plan}, machine)) == 0
        return read(json.loads((tmp_path / "receipt").read_text("utf-8"))["record"])

    return call


def test_every_request_and_minibatch_is_in_the_record(measure):
    record = measure(PLAN)
    requests, training = record.requests, record.training
    start_s, end_s = record.meta["t_start_mono_s"], record.meta["t_end_mono_s"]
    np.testing.assert_allclose(requests["arrival_s"] - start_s, np.arange(1, 41) / 40, atol=1e-6)
    assert np.isfinite(requests["end_s"]).sum() == record.meta["counts"]["n_served"] == 40
    assert (requests["start_s"] >= requests["arrival_s"]).all()
    assert len(training["train_start_s"]) == record.meta["counts"]["n_train"] > 0
    trained = zip(training["train_start_s"], training["train_end_s"], strict=True)
    served = set(zip(requests["start_s"], requests["end_s"], strict=True))
    busy = np.array(sorted([*trained, *served]))
    assert (busy[:-1, 1] <= busy[1:, 0]).all(), "one at a time"
    assert start_s <= busy[0, 0] <= busy[-1, 1] <= end_s
    assert Path(record.folder, "samples-host.csv").exists()
    promised = expected_of(record)
    longest_ms = 1e3 * (requests["end_s"] - requests["arrival_s"]).max()
    assert f"worst {longest_ms:.1f} ms; plan" in outcome_lines(record)[0]
    infer_s, train_s = (record.meta["before"][key] for key in ("infer_s", "train_s"))
    assert promised.latency_s == 3 / 40 + np.median(infer_s)
    over_s = max(infer_s) - np.median(infer_s)
    assert promised.margin_s == pytest.approx(2 * (max(train_s) + over_s))
    assert len(infer_s) >= 10
    assert len(train_s) == 5 * len(infer_s)
    assert "40 arrived, 40 served, 0 refused" in "\n".join(outcome_lines(record))


def test_a_board_s_power_stands_beside_it(measure, tmp_path):
    board = make_board(tmp_path / "agx", "agx_xavier")
    record = measure({**PLAN, "seconds": 1.5}, settings_of(board.root))
    assert record.meta["power"]["scope"] == "module"
    assert "NOT MEASURED, of a fake board" in "\n".join(outcome_lines(record))
    assert record.meta["power"]["mean_w"] > 0


def test_ctrl_c_keeps_what_was_measured(words, tmp_path):
    command = [sys.executable, "-m", "epochwatt.board.training.interleave"]
    process = subprocess.Popen(
        [*command, *words({**PLAN, "seconds": 600, "torch_threads": 1})],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": ""},
    )
    attempts = tmp_path / "measured/interleaved"
    deadline_s = time.monotonic() + 60
    while not list(attempts.glob("*.unfinished/samples-host.csv")):
        assert process.poll() is None
        assert time.monotonic() < deadline_s
        time.sleep(0.05)
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    errors = process.communicate(timeout=60)[1]
    assert process.returncode == 130, errors
    assert "ended by Ctrl-C" in errors
    record = read(json.loads((tmp_path / "receipt").read_text("utf-8"))["record"])
    assert record.meta["ended_early"]
    assert 0 < record.meta["counts"]["n_served"] <= record.meta["counts"]["n_requests"] < 24000
    assert not list(attempts.glob("*.unfinished"))
