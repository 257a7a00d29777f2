"""Files are whole or absent, and what stops a writer is explained."""

import errno
import hashlib
import json
import os
import resource

import pytest

from epochwatt.errors import RecordError, RecordWriteError
from epochwatt.records import files


@pytest.fixture
def path(tmp_path):
    """A file that holds something already."""
    path = tmp_path / "record"
    path.write_bytes(b"old")
    return path


def test_write_bytes_replaces_the_old_content(path):
    files.write_bytes(str(path), b"new")
    assert path.read_bytes() == b"new"
    assert os.listdir(path.parent) == ["record"]


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


def test_what_can_be_had_again_is_not_waited_for(path, monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda fd: pytest.fail("it was flushed to the disk"))
    files.write_json(path, {"a": 1}, durable=False)
    assert files.read_json(path) == {"a": 1}
    assert os.listdir(os.path.dirname(path)) == [os.path.basename(path)]


def test_write_json_is_read_back(path):
    value = {"flags": ["resumed"], "loss": None, "cpu_model": "Zürich µ", "e2e_s": 0.1 + 0.2}
    files.write_json(str(path), value)
    assert files.read_json(str(path)) == value


def test_write_json_refuses_nan_and_keeps_the_old_file(path):
    with pytest.raises(ValueError, match="not JSON compliant"):
        files.write_json(str(path), {"loss": float("nan")})
    assert path.read_bytes() == b"old"


@pytest.mark.parametrize("content", [b"", b'{"epoch": 1', b"\xff\xfe"])
def test_read_json_names_the_damaged_file(path, content):
    path.write_bytes(content)
    with pytest.raises(RecordError, match=str(path)):
        files.read_json(str(path))


def test_read_json_names_the_missing_file(tmp_path):
    with pytest.raises(RecordError, match="no-such"):
        files.read_json(str(tmp_path / "no-such"))


def test_sha256_of_a_file_larger_than_a_chunk(path):
    content = bytes(range(256)) * 8200  # 2 MiB and a bit
    path.write_bytes(content)
    assert files.sha256_of(str(path)) == hashlib.sha256(content).hexdigest()


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


def test_writing_explains_an_error_it_has_no_advice_for():
    with pytest.raises(RecordWriteError, match="I/O error"), files.writing("the record", "/x"):
        raise OSError(errno.EIO, "I/O error")


def test_writing_speaks_of_an_epoch_only_where_one_is_lost():
    with pytest.raises(RecordWriteError) as table, files.writing("a table", "/x"):
        raise OSError(5, "I/O error")
    with pytest.raises(RecordWriteError) as record, files.writing("it", "/x", files.UNMEASURED):
        raise OSError(5, "I/O error")
    assert table.value.problem == "cannot write a table: I/O error"
    assert table.value.do == record.value.do == "mend that, then start again"
    assert record.value.problem.endswith("; nothing of this epoch counts as measured")


def test_writing_lets_other_errors_through():
    with pytest.raises(ZeroDivisionError), files.writing("the record", "/x"):
        raise ZeroDivisionError


def write_explained(path, size):
    with files.writing("the record", path):
        files.write_bytes(path, bytes(size))


def test_a_file_size_limit_is_explained_and_leaves_the_old_file(path, in_child):
    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        write_explained(str(path), 1001)

    with pytest.raises(RecordWriteError, match="file size limit"):
        in_child(limited)
    assert path.read_bytes() == b"old"
    assert os.listdir(path.parent) == ["record"]


def test_a_full_disk_is_explained_and_leaves_the_old_file(small_disk):
    path = small_disk / "record"
    path.write_bytes(b"old")
    with pytest.raises(RecordWriteError, match="disk is full"):
        write_explained(str(path), 200 * 1024)
    assert path.read_bytes() == b"old"
    assert os.listdir(small_disk) == ["record"]


def test_a_folder_without_permission_is_explained(tmp_path, as_stranger):
    tmp_path.chmod(0o555)
    with pytest.raises(RecordWriteError, match="this user may not write there"):
        as_stranger(tmp_path, write_explained, "record", 10)
    assert os.listdir(tmp_path) == []


def test_sync_file_takes_files_and_folders(path):
    files.sync_file(str(path), drop_from_cache=True)
    files.sync_file(str(path.parent))
    assert path.read_bytes() == b"old"


def test_write_json_is_readable_by_people(path):
    files.write_json(str(path), {"b": 1, "a": 2})
    assert path.read_text(encoding="utf-8").splitlines() == ["{", ' "a": 2,', ' "b": 1', "}"]
    assert json.loads(path.read_text(encoding="utf-8")) == {"a": 2, "b": 1}
