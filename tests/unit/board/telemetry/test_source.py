"""Names of columns, samples of a service, and files of /proc and /sys that are read again."""

import errno
import os
import threading

import pytest

from epochwatt.board.telemetry import open_files
from epochwatt.board.telemetry.open_files import readable
from epochwatt.board.telemetry.source import Arrivals, zone_name


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("CPU-therm", "cpu"),
        ("cpu-thermal", "cpu"),
        ("CPU", "cpu"),
        ("Tboard_tegra", "tboard"),
        ("thermal-fan-est", "thermal-fan-est"),
        ("thermal", "thermal"),
        ("PMIC-Die", ""),
        ("PMIC", ""),
    ],
)
def test_zone_has_one_name_on_all_releases(kind, name):
    assert zone_name(kind) == name


def test_nothing_that_comes_while_a_window_begins_is_lost():
    arrivals, n = Arrivals(), 2000
    thread = threading.Thread(
        target=lambda: [arrivals.add(float(t_s), t_s) for t_s in range(n)], name="client"
    )
    thread.start()
    taken = []
    while thread.is_alive() or arrivals._waiting:
        before = arrivals.newest
        arrivals.restart(-1.0)
        some = [value for _, value in arrivals.take()]
        if before is not None and some:
            assert some[0] >= before[1]  # what is left out is older than the newest
            assert some == list(range(some[0], some[0] + len(some)))
        taken += some
    thread.join()
    assert arrivals.newest == (float(n - 1), n - 1)


def test_file_that_cannot_seek_is_read_from_its_start_each_time(tmp_path, monkeypatch):
    """As simple attributes of debugfs."""

    def refuse(fd, size, offset):
        raise OSError(errno.ESPIPE, os.strerror(errno.ESPIPE))

    monkeypatch.setattr(open_files.os, "pread", refuse)
    path = tmp_path / "clk_rate"
    path.write_text("3199000000\n")
    n_open = len(os.listdir("/proc/self/fd"))
    handle = readable(str(path))
    assert handle.read() == b"3199000000\n"
    path.write_text("204000000\n")
    assert handle.read() == b"204000000\n"
    handle.close()
    assert len(os.listdir("/proc/self/fd")) == n_open
