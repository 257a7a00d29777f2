"""One measurement at a time, across processes and users, whatever becomes of the holder."""

import multiprocessing
import os
import re
import signal
import stat

import pytest

from epochwatt.board.device.locks import HolderLock, machine_lock
from epochwatt.board.device.notes import write_note
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


def test_lock_is_exclusive_across_processes_names_its_holder_and_is_free_after_a_kill(path, holder):
    with pytest.raises(LockedError, match=re.escape(path)) as raised:
        HolderLock(path).acquire({"run": "run-b"})
    for word in ("run run-a", "epoch 3", f"pid {holder.pid}"):
        assert word in str(raised.value)
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


def test_machine_lock_is_shared_by_all_users_under_a_strict_umask(
    machine_tmp, in_child, as_stranger
):
    def take(name):
        os.umask(0o077)
        machine_lock().acquire({"run": name}).release()

    machine_tmp.chmod(0o1777)
    in_child(take, "run-a")
    as_stranger(machine_tmp, take, "run-b")
    assert "run-b" in machine_lock().describe()
    with machine_lock().acquire({"run": "run-c"}), pytest.raises(LockedError, match="run-c"):
        as_stranger(machine_tmp, take, "run-b")


def test_file_that_was_removed_while_somebody_waited_locks_nothing(path):
    first = HolderLock(path).acquire({"run": "run-a"})

    def remove_and_end(_):
        os.unlink(path)
        first.release()

    second = HolderLock(path).acquire({"run": "run-b"}, on_wait=remove_and_end)
    with second, pytest.raises(LockedError, match="run-b"):
        HolderLock(path).acquire({"run": "run-c"})


@pytest.fixture
def victims(tmp_path):
    """A file that somebody else wants to have overwritten."""
    victims = tmp_path / ".bashrc"
    victims.write_text("mine\n")
    victims.chmod(0o600)
    yield victims
    assert victims.read_text() == "mine\n"
    assert stat.S_IMODE(victims.stat().st_mode) == 0o600


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_link_in_place_of_a_lock_or_a_note_is_refused(path, machine_tmp, victims, link):
    link(victims, path)
    with pytest.raises(RecordWriteError, match=r"measuring\.lock"):
        HolderLock(path).acquire({"run": "run-a"})
    folder = machine_tmp / f"epochwatt-{os.geteuid()}"
    folder.mkdir()
    for name in ("measuring.json", "last-measurement.json"):
        link(victims, folder / name)
        with pytest.raises(RecordWriteError, match="not this user's alone"):
            write_note(name, {"run": "run-a"})


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o775])
def test_folder_that_others_may_write_is_refused(machine_tmp, mode):
    folder = machine_tmp / f"epochwatt-{os.geteuid()}"
    folder.mkdir()
    folder.chmod(mode)
    with pytest.raises(RecordWriteError, match="not this user's alone"):
        machine_lock().acquire({"run": "run-a"})
