"""Files of /proc and /sys that are read again and again."""

import errno
import os

import pytest

from epochwatt.board.telemetry import open_files
from epochwatt.board.telemetry.open_files import readable


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
