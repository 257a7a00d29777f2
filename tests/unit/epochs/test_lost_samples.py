"""An epoch whose samples could not be written keeps its times and loses what they would tell."""

import errno
import os
from pathlib import Path

import numpy as np
import pytest

from epochwatt.board.records import files
from epochwatt.board.records.run_folder import RunFolder
from epochwatt.board.records.samples import samples_path
from epochwatt.board.telemetry.channel import Channel
from epochwatt.board.telemetry.source import Source, sensor_facts
from epochwatt.columns import FLAG_EFFECTS
from epochwatt.epochs.collect import collect_run
from epochwatt.errors import RecordError
from epochwatt.tables import read_cells

STAMPS = np.arange(0.0, 40.0, 0.1)


class Sensor(Source):
    """A module's power, 20 and 21 W in turn."""

    name, columns, scope = "ina", ("power_total_w",), "module"
    total, period_s = "power_total_w", 0.1

    def __init__(self):
        self.n = 0

    def read(self):
        self.n += 1
        return [20.0 + self.n % 2]

    def settings(self):
        return {"sensor": sensor_facts("instant", 0.0, None, {"power_total_w": 0.001})}


def failing_write(monkeypatch, first, code, truncates=True):
    """Let writing fail from the nth time on; return a function that ends it."""
    real, calls = os.write, []

    def write(fd, block):
        calls.append(fd)
        if len(calls) < first:
            return real(fd, block)
        if len(calls) == first:
            return real(fd, block[: len(block) // 2 - 3])
        raise OSError(code, os.strerror(code))

    def ftruncate(fd, size):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "write", write)
    if not truncates:
        monkeypatch.setattr(os, "ftruncate", ftruncate)


@pytest.fixture
def sampled(tmp_path, make_meta, monkeypatch):
    """Return a function that measures an epoch of 39 s whose sampler meets an error in writing."""

    def measure(first, code=errno.ENOSPC, truncates=True):
        folder = RunFolder(str(tmp_path / "measured"), "r")
        folder.begin(0)
        attempt = folder.attempt_path(0)
        now = [0.0]
        with monkeypatch.context() as patch:
            failing_write(patch, first, code, truncates)
            channel = Channel(Sensor(), lambda: now[0], lambda: 1e9 + now[0])
            channel.open(attempt)
            channel.begin("seed", 0.0)
            for n, t_s in enumerate(STAMPS):
                now[0] = float(t_s)
                channel.sample(now[0], now[0])
                if n % 100 == 99:
                    channel.flush()
            tape = channel.end(attempt)
        sources = {"ina": channel.statistics(tape, now[0])}
        told = {"lost": False, "clock_jumps": 0, "sources": sources}
        files.write_json(os.path.join(attempt, "telemetry.json"), told)
        minibatch_s = np.array([[4.0, 0.0, 35.0]], dtype=np.float32)
        bounds = {"t_start_mono_s": 0.05, "t_end_mono_s": 39.05, "e2e_s": 39.0, "tail_s": 0.0}
        bounds |= {"placement": {"clock": "host", "starts": [[0, 0.05], [1, 39.05]], "error_s": 0}}
        meta = make_meta(0, minibatch_s, run="r", telemetry_lost=False, **bounds)
        folder.finish(0, meta, minibatch_s)
        return folder

    return measure


def collected(folder):
    """Return the row of the epoch."""
    out = Path(folder.root).parent / "out"
    collect_run(folder.root, "r", 1, FLAG_EFFECTS, str(out / "epochs.csv"), str(out / "energy.csv"))
    (row,) = read_cells(out / "epochs.csv")
    return row, set(row["flags"].split())


def assert_only_power_is_lost(folder):
    """The epoch is whole for who trains on, its row has its times, no energy, and says why."""
    assert folder.verify(0).meta["epoch"] == 0
    row, flags = collected(folder)
    assert float(row["wait_s"]) == 4.0
    assert row["valid"] == "True"
    assert row["energy_wh"] == row["power_mean_w"] == row["stall_energy_j"] == ""
    assert {"power_missing", "sampler_gap"} <= flags
    assert folder.has(0)


@pytest.mark.parametrize(("code", "truncates"), [(errno.ENOSPC, True), (errno.EIO, False)])
def test_header_that_cannot_be_written_costs_the_energy_only(sampled, code, truncates):
    assert_only_power_is_lost(sampled(1, code, truncates))


@pytest.mark.parametrize("truncates", [True, False])
def test_rows_that_cannot_be_written_cost_what_they_would_tell(sampled, truncates):
    """Rows of the first 10 s are there; of the rest nobody knows the power."""
    folder = sampled(3, errno.EIO, truncates)
    assert folder.verify(0).meta["epoch"] == 0
    row, flags = collected(folder)
    assert {"power_lost", "sampler_gap", "power_end_held"} <= flags
    assert row["energy_error_pct"] == ""


def test_samples_that_did_not_reach_the_disk_cost_the_energy_only(sampled, monkeypatch):
    """The kernel said so at the end (fsync), and after a restart the file is shorter."""

    def fsync(fd):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr("epochwatt.board.records.samples.os.fsync", fsync)
        patch.setattr(files, "sync_file", lambda *arguments, **named: None)
        patch.setattr(
            files, "write_bytes", lambda path, content, *_: Path(path).write_bytes(content)
        )
        folder = sampled(first=1000)
    path = Path(samples_path(folder.epoch_path(0), "ina"))
    path.write_bytes(path.read_bytes()[:4096])
    assert_only_power_is_lost(folder)


def test_file_that_was_written_whole_and_is_cut_is_damage_as_ever(sampled):
    folder = sampled(first=1000)
    path = Path(samples_path(folder.epoch_path(0), "ina"))
    path.write_bytes(path.read_bytes()[:4096])
    with pytest.raises(RecordError, match="altered"):
        folder.verify(0)
    with pytest.raises(RecordError, match="moved to"):
        collected(folder)
    assert not folder.has(0)
