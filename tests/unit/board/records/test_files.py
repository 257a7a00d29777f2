"""Files are whole or absent, and what stops a writer is explained."""

import errno
import os

import pytest

from epochwatt.board.records import files
from epochwatt.errors import RecordError, RecordWriteError


@pytest.fixture
def path(tmp_path):
    """A file that holds something already."""
    path = tmp_path / "record"
    path.write_bytes(b"old")
    return path


@pytest.mark.parametrize("step", ["fsync", "rename"])
@pytest.mark.parametrize("failure", [OSError(errno.EIO, "I/O error"), KeyboardInterrupt()])
def test_write_bytes_that_fails_leaves_the_old_content_and_nothing_else(
    path, monkeypatch, step, failure
):
    def fail(*_):
        raise failure

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(type(failure)):
        files.write_bytes(str(path), b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(path.parent) == ["record"]


def test_write_bytes_is_on_the_disk_before_it_bears_its_name(path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(os.readlink(f"/proc/self/fd/{fd}")))
    rename = os.rename

    def checked_rename(source, target):
        assert synced == [source]
        assert path.read_bytes() == b"old"
        rename(source, target)

    monkeypatch.setattr(os, "rename", checked_rename)
    files.write_bytes(str(path), b"new")
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize("content", [b"", b'{"epoch": 1', b"\xff\xfe"])
def test_read_json_names_the_damaged_file(path, content):
    path.write_bytes(content)
    with pytest.raises(RecordError, match=str(path)):
        files.read_json(str(path))


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.ENOSPC, "the disk is full; free some space"),
        (errno.EDQUOT, "the disk quota is used up; free some space"),
        (errno.EFBIG, r"a file size limit was reached \(ulimit -f\)"),
        (errno.EACCES, "this user may not write there; change the owner or the permissions"),
        (errno.EPERM, "this user may not write there; change the owner or the permissions"),
        (errno.EROFS, "the file system is read-only: mount it writable, or choose another disk"),
        (errno.EISDIR, "that is a folder; name a file"),
    ],
)
def test_writing_says_what_failed_where_and_what_to_do(number, advice):
    expected = rf"/measured/x: cannot write the record: {os.strerror(number)}\n  do: {advice}, then"
    with (
        pytest.raises(RecordWriteError, match=expected),
        files.writing("the record", "/measured/x"),
    ):
        raise OSError(number, os.strerror(number))


def write_explained(path, size):
    with files.writing("the record", path):
        files.write_bytes(path, bytes(size))


def test_a_full_disk_is_explained_and_leaves_the_old_file(small_disk):
    path = small_disk / "record"
    path.write_bytes(b"old")
    with pytest.raises(RecordWriteError, match="disk is full"):
        write_explained(str(path), 200 * 1024)
    assert path.read_bytes() == b"old"
    assert os.listdir(small_disk) == ["record"]
