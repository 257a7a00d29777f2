"""Real epochs of LeNet on the tiny data set: what is carried, what is flagged, what is refused."""

import json
import os
import signal
from contextlib import ExitStack
from pathlib import Path

import pytest
import torch

from epochwatt.board.records.checksums import write_sums
from epochwatt.board.records.run_folder import RunFolder
from epochwatt.board.telemetry.client import Sampler
from epochwatt.board.training import workloads
from epochwatt.board.training.session import Session
from epochwatt.errors import TrainingError

pytestmark = pytest.mark.usefixtures("on_the_cpu")


@pytest.fixture
def session(factors, data_root, machine):
    """Return a function that makes the session of a new process."""
    with ExitStack() as open_sessions:

        def start(folder, **changes):
            one = Session(folder, dict(factors, **changes), data_root, machine, {})
            if hasattr(one, "__exit__"):  # with a sampler that has to end
                open_sessions.push(one)
            return one

        yield start


@pytest.fixture
def replace_transform(monkeypatch):
    """Return a function that gives LeNet another transform."""

    def replace(transform):
        changed = workloads.WORKLOADS["lenet"]._replace(transform=transform)
        monkeypatch.setitem(workloads.WORKLOADS, "lenet", changed)

    return replace


def losses(folder):
    return [folder.read(epoch).meta["loss"] for epoch in folder.measured()]


def flags(folder, epoch):
    return folder.read(epoch).meta["flags"]


@pytest.mark.parametrize("num_workers", [0, 2])
def test_epoch_leaves_a_record_whose_parts_fit_the_whole(folder, session, num_workers):
    one = session(folder, num_workers=num_workers)
    for epoch in range(2):
        one.measure(epoch)
    for epoch in range(2):
        record = folder.read(epoch)
        meta, minibatch_s = record.meta, record.minibatch_s
        assert (meta["n_samples"], meta["n_minibatches"]) == (36, 3)
        assert minibatch_s.shape == (3, 3)
        assert (minibatch_s >= 0).all()
        assert meta["compute_s"] > 0
        assert meta["fetch_s"] > 0
        assert meta["preprocess_s"] > 0
        overhead_s = meta["e2e_s"] - meta["wait_s"] - meta["copy_s"] - meta["compute_s"]
        assert overhead_s >= -0.001 * meta["e2e_s"]
        assert meta["t_end_mono_s"] - meta["t_start_mono_s"] == meta["e2e_s"]
        assert meta["timing_method"] == "host_clock"
        assert meta["factors"]["num_workers"] == num_workers
        assert meta["software"]["torch"] == torch.__version__


@pytest.mark.parametrize(("began", "goes_on"), [("jtop", "jtop"), ("sysfs", "auto"), ("", "auto")])
def test_run_that_began_with_jtop_goes_on_with_it(
    folder, session, machine, monkeypatch, began, goes_on
):
    """Epochs of two sensors would not be those of one run."""
    machine.settings["power_source"] = "auto"
    asked = []
    start = Sampler.start
    monkeypatch.setattr(
        Sampler, "start", lambda *args, power, **kw: asked.append(power) or start(*args, **kw)
    )
    session(folder).measure(0)
    record = Path(folder.read(0).folder, "record.json")
    meta = json.loads(record.read_text())
    meta["sampler_periods_s"] = {"host": 1.0, **({began: 1.0} if began else {})}
    record.write_text(json.dumps(meta))
    write_sums(str(record.parent))
    session(folder)
    machine.settings["power_source"] = "sysfs"
    session(folder)
    assert asked == ["auto", goes_on, "sysfs"]


@pytest.mark.parametrize("num_workers", [pytest.param(0, marks=pytest.mark.thorough), 2])
def test_losses_are_bit_identical_however_the_epochs_are_split(
    folder, tmp_path, session, replace_transform, num_workers
):
    normalise = workloads.WORKLOADS["lenet"].transform
    replace_transform(lambda raw: normalise(raw) + torch.rand(1, 28, 28))  # augments at random
    one = session(folder, num_workers=num_workers)
    for epoch in range(3):
        one.measure(epoch)
    split = RunFolder(str(tmp_path / "split"), folder.run)
    for epoch in range(3):
        session(split, num_workers=num_workers).measure(epoch)
    assert losses(split) == losses(folder)
    assert len(set(losses(folder))) == 3


def test_order_depends_on_seed_and_epoch_alone(folder, tmp_path, session, monkeypatch):
    def orders(folder, **changes):
        one = session(folder, **changes)
        read = []
        original = one.source.read
        monkeypatch.setattr(one.source, "read", lambda i: read.append(i) or original(i))
        one.measure(0)
        one.measure(1)
        return read[:36], read[36:]

    first, second = orders(folder)
    assert first != second
    assert orders(RunFolder(str(tmp_path / "again"), folder.run)) == (first, second)
    assert orders(RunFolder(str(tmp_path / "other"), folder.run), seed=1)[0] != first


def test_weights_are_those_of_the_epoch_before_though_another_was_measured_last(folder, session):
    one = session(folder)
    for epoch in range(3):
        one.measure(epoch)
    undisturbed = losses(folder)
    folder.discard()
    one = session(folder)
    one.measure(0)
    one.measure(1)
    folder.discard(0)
    late = session(folder)
    late.measure(0)
    late.measure(2)
    assert folder.read(2).meta["weights"] == "checkpoint"
    assert losses(folder) == undisturbed


def test_warm_up_reads_nothing_of_the_data_set(folder, session, monkeypatch):
    session(folder).measure(0)
    late = session(folder)
    read = []
    original = late.source.read
    monkeypatch.setattr(late.source, "read", lambda i: read.append(i) or original(i))
    late.measure(1)
    assert sorted(read) == list(range(36))


def test_unfinished_attempt_makes_the_epoch_resumed(folder, session):
    session(folder).measure(0)
    folder.begin(1)
    session(folder).measure(1)
    assert flags(folder, 1) == ["cold_process", "resumed"]
    resumed = folder.read(1).meta["resumed"]
    assert resumed["reason"] == "an unfinished attempt of this epoch was found"
    assert resumed["gap_s"] >= 0


def test_other_run_in_between_makes_the_epoch_resumed(folder, tmp_path, session):
    one = session(folder)
    one.measure(0)
    other = RunFolder(str(tmp_path / "measured"), "other-run")
    session(other, batch_size=8).measure(0)
    one.measure(1)
    assert flags(folder, 0) == flags(other, 0) == ["cold_process"]
    assert flags(folder, 1) == ["resumed"]
    assert "epoch 0 of other-run" in folder.read(1).meta["resumed"]["reason"]


def test_checkpoint_with_a_flipped_bit_is_set_aside_and_flagged(folder, tmp_path, session, caplog):
    lost = RunFolder(str(tmp_path / "lost"), folder.run)
    for each in (folder, lost):
        session(each).measure(0)
    path = Path(folder.checkpoint_path(0))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)
    os.unlink(lost.checkpoint_path(0))
    for each in (folder, lost):
        session(each).measure(1)
    assert flags(folder, 1)[::2] == ["checkpoint_damaged", "fresh_weights"]
    assert losses(folder) == losses(lost)
    aside = Path(folder.read(1).meta["checkpoint_set_aside"])
    assert aside.read_bytes() == content
    assert f"{path} was altered: its SHA-256 differs: fresh weights; it lies in" in caplog.text
    folder.verify(0)  # the epoch itself is whole


def test_killed_loader_worker_leaves_no_epoch(folder, session, monkeypatch):
    def kill_worker(raw):
        assert torch.utils.data.get_worker_info() is not None
        os.kill(os.getpid(), signal.SIGKILL)

    with monkeypatch.context() as patch:
        changed = workloads.WORKLOADS["lenet"]._replace(transform=kill_worker)
        patch.setitem(workloads.WORKLOADS, "lenet", changed)
        with pytest.raises(
            TrainingError, match=r"a loader worker died in epoch 0(.*\n)+.* \(dmesg\)"
        ):
            session(folder, num_workers=1).measure(0)
    assert folder.measured() == []
    session(folder, num_workers=1).measure(0)
    assert flags(folder, 0) == ["cold_process", "resumed"]


def test_damaged_record_of_the_epoch_before_is_named_and_blocks_nothing(folder, session, caplog):
    session(folder).measure(0)
    Path(folder.epoch_path(0), "record.json").write_text("{")
    session(folder).measure(1)
    assert "epoch-0/record.json was altered" in caplog.text
    assert flags(folder, 1) == ["cold_process", "resumed"]
    assert folder.read(1).meta["resumed"]["reason"] == "the record of the epoch before is damaged"
