"""A run's folder: an epoch is there whole or not at all, and is never read when in doubt."""

import errno
import hashlib
import os
import resource
import subprocess
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from epochwatt.board.records import files
from epochwatt.board.records.checksums import write_sums
from epochwatt.board.records.run_folder import RunFolder, write_receipt
from epochwatt.errors import DamagedError, RecordError, RecordWriteError

SECONDS = np.array([[0.5, 0.25, 1.0], [0.125, 0.25, 1.5]], dtype=np.float32)

few = settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],  # they only make new values
)


def record_of(folder, epoch):
    return Path(folder.epoch_path(epoch), "record.json")


def array_of(folder, epoch):
    return Path(folder.epoch_path(epoch), "minibatches.npy")


seconds_arrays = npst.arrays(
    np.float32,
    st.tuples(st.integers(1, 40), st.just(3)),
    elements=st.floats(0, 1000, width=32),
)


@few
@given(minibatch_s=seconds_arrays)
def test_any_times_are_read_back_bit_for_bit(tmp_path_factory, make_meta, minibatch_s):
    folder = RunFolder(str(tmp_path_factory.mktemp("m")), "r")
    folder.begin(0)
    folder.finish(0, make_meta(0, minibatch_s, run="r"), minibatch_s.astype(np.float64))
    np.testing.assert_array_equal(folder.read(0).minibatch_s, minibatch_s)


def test_epochs_are_listed_by_number_and_nothing_else_is(folder, add_epoch):
    for epoch in (10, 9, 2):
        add_epoch(folder, epoch)
    Path(folder.path, "epoch-3.bak").mkdir()
    Path(folder.path, "notes.txt").touch()
    assert folder.measured() == [2, 9, 10]


def test_second_begin_tells_when_the_first_began(folder, monkeypatch):
    monkeypatch.setattr("time.time", lambda: 1234.5)
    folder.begin(0)
    Path(folder.attempt_path(0), "checkpoint.npz").write_bytes(b"half")
    monkeypatch.undo()
    assert folder.begin(0)["started_unix_s"] == 1234.5
    assert os.listdir(folder.attempt_path(0)) == ["attempt.json"]


def test_measured_epoch_is_never_overwritten(folder, add_epoch, make_meta):
    add_epoch(folder, 0, loss=1.0)
    folder.begin(0)
    with pytest.raises(RecordWriteError, match="epoch 0"):
        folder.finish(0, make_meta(0, SECONDS, loss=2.0), SECONDS)
    assert folder.read(0).meta["loss"] == 1.0


def test_only_the_latest_epoch_keeps_its_checkpoint(folder, add_epoch):
    for epoch in range(3):
        add_epoch(folder, epoch)
    kept = [epoch for epoch in range(3) if os.path.exists(folder.checkpoint_path(epoch))]
    assert kept == [2]
    assert Path(folder.checkpoint_path(2)).read_bytes() == b"weights 2"


def test_checkpoint_stays_until_the_next_is_in_place(folder, add_epoch, make_meta, monkeypatch):
    add_epoch(folder, 0)
    folder.begin(1)
    Path(folder.attempt_path(1), "checkpoint.npz").write_bytes(b"weights 1")
    rename = os.rename

    def watched(source, target):
        is_list_of_before = target == os.path.join(folder.epoch_path(0), "SHA256SUMS")
        assert os.path.exists(folder.checkpoint_path(0)) != is_list_of_before
        rename(source, target)

    monkeypatch.setattr(os, "rename", watched)
    folder.finish(1, make_meta(1, SECONDS), SECONDS)
    assert not os.path.exists(folder.checkpoint_path(0))


def nth_call_fails(monkeypatch, nth):
    """Let the nth of all calls that change the disk fail; return the list of those made."""
    calls = []

    def failing(name, original):
        def call(*arguments, **named):
            calls.append(name)
            if len(calls) == nth:
                raise OSError(errno.EIO, "planted")
            return original(*arguments, **named)

        return call

    for name in ("fsync", "rename", "unlink"):
        monkeypatch.setattr(os, name, failing(name, getattr(os, name)))
    return calls


def test_finish_that_fails_anywhere_leaves_a_whole_epoch_or_none(
    tmp_path, make_meta, add_epoch, monkeypatch
):
    n_whole = n_none = 0
    for nth in range(1, 50):
        folder = RunFolder(str(tmp_path / str(nth)), "r")
        add_epoch(folder, 0)
        folder.begin(1)
        Path(folder.attempt_path(1), "checkpoint.npz").write_bytes(b"weights 1")
        with monkeypatch.context() as patch:
            calls = nth_call_fails(patch, nth)
            with suppress(OSError, RecordWriteError):
                folder.finish(1, make_meta(1, SECONDS, run="r"), SECONDS)
        if folder.measured() == [0, 1]:
            n_whole += 1
            np.testing.assert_array_equal(folder.read(1).minibatch_s, SECONDS)
            assert os.path.exists(folder.checkpoint_path(1))
        else:
            n_none += 1
            assert folder.measured() == [0]
            assert os.path.exists(folder.checkpoint_path(0))
            assert folder.begin(1) is not None
        if len(calls) < nth:  # nothing failed any more
            break
    assert n_none >= 3
    assert n_whole >= 1


def test_file_size_limit_leaves_no_epoch_and_the_next_attempt_works(
    folder, add_epoch, make_meta, in_child
):
    large = np.ones((2000, 3), dtype=np.float32)

    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (16 * 1024, 16 * 1024))
        folder.begin(0)
        folder.finish(0, make_meta(0, large), large)

    with pytest.raises(RecordWriteError, match=r"the record of epoch 0.*\n.*file size limit"):
        in_child(limited)
    assert folder.measured() == []
    add_epoch(folder, 0, large)
    assert folder.read(0).minibatch_s.shape == (2000, 3)


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda m: m.update(schema_version=0), "schema version 0"),
        (lambda m: m.pop("schema_version"), "schema version None"),
        (lambda m: m.pop("boot_id"), "lacks boot_id"),
        (lambda m: (m.pop("e2e_s"), m.pop("loss")), "lacks e2e_s"),
        (lambda m: m.update(run="other"), "epoch 0 of other"),
        (lambda m: m.update(e2e_s="1.5"), "e2e_s is '1.5', needed: seconds"),
        (lambda m: m.update(fetch_s=None), "fetch_s is None, needed: a number >= 0"),
        (lambda m: m.update(e2e_s=-1.0), "e2e_s is -1.0, needed: seconds above 0, to"),
        (lambda m: m.update(e2e_s=0.0), "e2e_s is 0.0, needed: seconds above 0, to"),
        (lambda m: m.update(e2e_s=float("nan")), "e2e_s is nan, needed: seconds"),
    ],
)
def test_record_that_cannot_be_right_is_refused_by_name(
    folder, add_epoch, edit_json, change, fault
):
    add_epoch(folder, 0)
    edit_json(record_of(folder, 0), change)
    with pytest.raises(RecordError, match=f"{record_of(folder, 0)}.* {fault}"):
        folder.read(0)


@pytest.mark.parametrize("column", ["wait_s", "copy_s", "compute_s"])
def test_sums_that_disagree_with_the_mini_batches_are_refused(folder, add_epoch, edit_json, column):
    add_epoch(folder, 0)
    edit_json(record_of(folder, 0), lambda m: m.update({column: m[column] + 0.001}))
    write_sums(folder.epoch_path(0))  # as if they had been recorded so
    with pytest.raises(RecordError, match=rf"minibatches\.npy: {column} sums to"):
        folder.read(0)


def test_renamed_epoch_is_refused(folder, add_epoch):
    add_epoch(folder, 0)
    os.rename(folder.epoch_path(0), folder.epoch_path(7))
    with pytest.raises(RecordError, match=r"epoch-7/record\.json says it is epoch 0 .*renamed"):
        folder.read(7)


@pytest.mark.parametrize(
    "array",
    [
        SECONDS[:1],
        SECONDS[:, :2],
        SECONDS.astype(np.float64),
        SECONDS.ravel(),
        np.full_like(SECONDS, np.nan),
        np.array([{}], dtype=object),
    ],
    ids=["too few", "a column short", "float64", "flat", "not a number", "pickled"],
)
def test_times_of_the_wrong_form_are_refused_by_name(folder, add_epoch, edit_json, array):
    add_epoch(folder, 0, SECONDS)
    path = array_of(folder, 0)
    np.save(path, array, allow_pickle=True)
    digest = files.sha256_of(str(path))  # as if they had been recorded so
    edit_json(record_of(folder, 0), lambda m: m.update(minibatches_sha256=digest))
    write_sums(folder.epoch_path(0))
    with pytest.raises(RecordError, match=str(path)):
        folder.read(0)


def test_a_flipped_bit_is_refused_wherever_it_is(folder, add_epoch):
    add_epoch(folder, 0)
    path = array_of(folder, 0)
    whole = path.read_bytes()
    for position in range(len(whole)):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :])
        with pytest.raises(RecordError, match=str(path)):
            folder.read(0)


@pytest.mark.parametrize("name", ["record.json", "telemetry.json", "SHA256SUMS"])
def test_a_flipped_bit_in_any_text_or_its_loss_is_damage(folder, add_epoch, name):
    """Before there were checksums 64 of 500 changed a row without a word."""
    add_epoch(folder, 0)
    path = Path(folder.epoch_path(0), name)
    if name == "telemetry.json":
        path.write_text('{"sources": {}, "clock_jumps": 0}')
    os.unlink(folder.checkpoint_path(0))  # its own damage costs the next epoch, not this one
    write_sums(folder.epoch_path(0))
    folder.verify(0)
    whole = path.read_bytes()
    for position in range(0, len(whole), 7):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 2]) + whole[position + 1 :])
        with pytest.raises(DamagedError, match=folder.epoch_path(0)):
            folder.verify(0)
    path.unlink()
    with pytest.raises(DamagedError, match=name):
        folder.read(0)


def test_checksums_are_those_of_sha256sum_and_a_measurement_from_before_them_is_read(
    folder, add_epoch, edit_json
):
    add_epoch(folder, 0)
    command = ["sha256sum", "--check", "--strict", "SHA256SUMS"]
    where = folder.epoch_path(0)
    checked = subprocess.run(command, cwd=where, check=True, capture_output=True, text=True)
    assert checked.stdout.count(": OK") == 3
    edit_json(record_of(folder, 0), lambda m: m.pop("checksums"))
    Path(folder.epoch_path(0), "SHA256SUMS").unlink()
    assert folder.verify(0).meta["loss"] == 2.25
    assert folder.checkpoint_fault(0) == ""
    content = array_of(folder, 0).read_bytes()
    array_of(folder, 0).write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(RecordError, match="was altered"):
        folder.read(0)


@pytest.mark.parametrize("damaged", [True, False])
def test_list_that_cannot_be_mended_costs_no_epoch(
    folder, add_epoch, make_meta, monkeypatch, damaged
):
    add_epoch(folder, 0)
    listed = Path(folder.epoch_path(0), "SHA256SUMS")
    if damaged:
        listed.write_text("nonsense\n")
    before = listed.read_bytes()
    write = files.write_bytes

    def full(path, *arguments):
        if path == str(listed):
            raise OSError(errno.ENOSPC, "planted")
        write(path, *arguments)

    monkeypatch.setattr(files, "write_bytes", full)
    add_epoch(folder, 1)
    assert folder.measured() == [0, 1]
    assert folder.verify(1).meta["epoch"] == 1
    assert listed.read_bytes() == before


@pytest.mark.parametrize(
    "content",
    [
        *("", "[]", "{}", "3", '{"started_unix_s": "x"}', '{"started_unix_s": NaN}', "[" * 9999),
        f'{{"started_unix_s": {10**400}}}',
    ],
)
def test_damaged_attempt_does_not_block_the_run(folder, content):
    folder.begin(0)
    Path(folder.attempt_path(0), "attempt.json").write_text(content)
    earlier = folder.begin(0)
    assert abs(earlier["started_unix_s"] - os.path.getmtime(folder.attempt_path(0))) < 60


@pytest.mark.parametrize("name", ["record.json", "minibatches.npy"])
def test_file_that_is_missing_or_cut_short_anywhere_is_refused_by_name(folder, add_epoch, name):
    add_epoch(folder, 0)
    path = Path(folder.epoch_path(0), name)
    whole = path.read_bytes()
    path.unlink()
    with pytest.raises(RecordError, match=name):
        folder.read(0)
    for length in {0, 1, *range(2, len(whole) - 2, 23), len(whole) - 2}:
        path.write_bytes(whole[:length])
        with pytest.raises(RecordError, match=name):
            folder.read(0)


def test_discarded_epochs_lie_in_the_trash_with_an_unfinished_attempt(folder, add_epoch):
    for epoch in range(3):
        add_epoch(folder, epoch)
    (moved,) = folder.discard(2)
    assert folder.measured() == [0, 1]
    assert Path(moved).parts[-4] == ".trash"
    assert Path(moved).parts[-2:] == (folder.run, "epoch-2")
    assert files.read_json(os.path.join(moved, "record.json"))["epoch"] == 2
    assert Path(moved, "checkpoint.npz").read_bytes() == b"weights 2"
    folder.begin(2)
    moved = folder.discard()
    assert sorted(map(os.path.basename, moved)) == ["epoch-0", "epoch-1", "epoch-2.unfinished"]
    assert all(map(os.path.exists, moved))
    assert not os.path.exists(folder.path)


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
