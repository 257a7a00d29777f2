"""Files of /proc and /sys that are read again and again."""

import errno
import os

import pytest

from epochwatt.board.device import board_files
from epochwatt.board.telemetry import open_files
from epochwatt.board.telemetry.open_files import readable
from epochwatt.doctor import bundle


@pytest.fixture
def no_seeking(monkeypatch):
    """Let the kernel refuse pread, as for simple attributes of debugfs."""

    def refuse(fd, size, offset):
        raise OSError(errno.ESPIPE, os.strerror(errno.ESPIPE))

    monkeypatch.setattr(open_files.os, "pread", refuse)


def test_file_that_cannot_seek_is_read_from_its_start_each_time(tmp_path, no_seeking):
    path = tmp_path / "clk_rate"
    path.write_text("3199000000\n")
    n_open = len(os.listdir("/proc/self/fd"))
    handle = readable(str(path))
    assert handle.read() == b"3199000000\n"
    path.write_text("204000000\n")
    assert handle.read() == b"204000000\n"
    handle.close()
    assert len(os.listdir("/proc/self/fd")) == n_open


def test_other_errors_of_a_read_are_not_hidden(tmp_path):
    assert readable(str(tmp_path)) is None  # a folder opens, and is no file


@pytest.fixture
def no_data_now(monkeypatch):
    """Let whatever is opened answer EAGAIN, as a thermal zone without power; return its path."""
    read, write = os.pipe()
    os.set_blocking(read, False)

    def answering(path, *words, **more):
        return open(os.dup(read), *words, **more)

    for module in (open_files, board_files, bundle):
        monkeypatch.setattr(module, "open", answering, raising=False)
    yield "temp"
    os.close(read)
    os.close(write)


@pytest.mark.parametrize("text", [open_files.text, lambda name: board_files.text("", name)])
def test_a_file_that_has_no_data_now_is_empty(no_data_now, text):
    assert text(no_data_now) == ""


def test_a_file_that_has_no_data_now_is_an_error_in_a_report(no_data_now, tmp_path, monkeypatch):
    (tmp_path / no_data_now).write_text("")
    monkeypatch.setattr(bundle, "READINGS", [("", [no_data_now])])
    board = bundle.read_all(str(tmp_path))
    assert board.values == {}
    assert board.errors[no_data_now]["errno"] == errno.EAGAIN
