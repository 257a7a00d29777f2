"""One measurement at a time, across processes and users, whatever becomes of the holder."""

import multiprocessing
import os
import re
import signal
import stat
import tempfile

import pytest

from epochwatt.device.locks import HolderLock, machine_folder, machine_lock
from epochwatt.errors import LockedError, RecordWriteError


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "measuring.lock")


@pytest.fixture
def holder(path):
    """Another process that holds the lock until it is killed."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def hold():
        HolderLock(path).acquire({"run": "run-a", "epoch": 3})
        sender.send("held")
        signal.pause()

    process = context.Process(target=hold)
    process.start()
    assert receiver.recv() == "held"
    yield process
    process.kill()
    process.join()


def test_lock_is_exclusive_across_processes_and_names_its_holder(path, holder):
    with pytest.raises(LockedError, match=re.escape(path)) as raised:
        HolderLock(path).acquire({"run": "run-b"})
    assert "run run-a" in str(raised.value)
    assert "epoch 3" in str(raised.value)
    assert f"pid {holder.pid}" in str(raised.value)


def test_lock_is_free_after_its_holder_was_killed(path, holder):
    os.kill(holder.pid, signal.SIGKILL)
    holder.join()
    with HolderLock(path).acquire({"run": "run-b"}) as lock:
        assert "run run-b" in lock.describe()
        assert "run-a" not in lock.describe()


def test_waiting_is_told_once_with_the_holder_and_ends_in_the_lock(path):
    first = HolderLock(path).acquire({"run": "run-a"})
    told = []

    def on_wait(holder):
        told.append(holder)
        first.release()

    with HolderLock(path).acquire({"run": "run-b"}, on_wait=on_wait) as second:
        assert "run run-b" in second.describe()
    (holder,) = told
    assert "run run-a" in holder


def test_free_lock_is_not_waited_for(path):
    HolderLock(path).acquire({"run": "run-a"}, on_wait=pytest.fail).release()


def test_lock_is_given_back_at_the_end_of_the_block(path):
    with pytest.raises(ZeroDivisionError), HolderLock(path).acquire({"run": "run-a"}):
        raise ZeroDivisionError
    HolderLock(path).acquire({"run": "run-b"}).release()


def test_interrupted_wait_leaves_no_lock_behind(path):
    first = HolderLock(path).acquire({"run": "run-a"})

    def interrupt(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        HolderLock(path).acquire({"run": "run-b"}, on_wait=interrupt)
    assert "run-a" in first.describe()
    first.release()
    HolderLock(path).acquire({"run": "run-c"}).release()


def test_released_lock_is_free_though_a_forked_worker_lives_on(path):
    context = multiprocessing.get_context("fork")
    lock = HolderLock(path).acquire({"run": "run-a"})
    worker = context.Process(target=signal.pause)
    worker.start()
    try:
        lock.release()
        HolderLock(path).acquire({"run": "run-b"}).release()
    finally:
        worker.kill()
        worker.join()


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff"])
def test_holder_that_did_not_say_who_it_is_still_holds(path, content):
    lock = HolderLock(path).acquire({"run": "run-a"})
    with open(path, "wb") as handle:
        handle.write(content)
    with pytest.raises(LockedError, match="did not say who it is"):
        HolderLock(path).acquire({"run": "run-b"})
    lock.release()


def test_lock_file_of_another_without_write_permission_is_explained(tmp_path, path, as_stranger):
    HolderLock(path).acquire({"run": "run-a"}).release()
    os.chmod(path, 0o444)
    tmp_path.chmod(0o755)
    with pytest.raises(RecordWriteError, match=r"cannot open measuring\.lock: Permission denied"):
        as_stranger(tmp_path, lambda: HolderLock("measuring.lock").acquire({"run": "run-b"}))


def test_lock_file_that_cannot_be_made_is_explained(tmp_path, as_stranger):
    tmp_path.chmod(0o555)
    with pytest.raises(RecordWriteError, match=r"cannot make measuring\.lock: Permission denied"):
        as_stranger(tmp_path, lambda: HolderLock("measuring.lock").acquire({"run": "run-b"}))


# -- the machine's own lock ----------------------------------------------------------------------


def test_machine_lock_lies_where_the_system_keeps_temporary_files(machine_tmp):
    with machine_lock().acquire({"run": "run-a"}) as lock:
        assert lock.path == str(machine_tmp / "epochwatt" / "measuring.lock")
        with pytest.raises(LockedError, match="run-a"):
            machine_lock().acquire({"run": "run-b"})


def test_machine_lock_is_shared_by_all_users_under_a_strict_umask(
    machine_tmp, in_child, as_stranger
):
    def make():
        os.umask(0o077)
        machine_lock().acquire({"run": "run-a"}).release()

    in_child(make)
    assert stat.S_IMODE(os.stat(machine_folder()).st_mode) == 0o777
    machine_tmp.chmod(0o755)
    as_stranger(machine_tmp, lambda: machine_lock().acquire({"run": "run-b"}).release())
    assert "run-b" in machine_lock().describe()


def test_machine_folder_that_cannot_be_made_is_explained(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "no-such"))
    with pytest.raises(RecordWriteError, match="no-such/epochwatt: No such file"):
        machine_folder()
