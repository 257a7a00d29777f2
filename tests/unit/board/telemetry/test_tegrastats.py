"""The tool tegrastats as a child that may die or fall silent: each of its lines once."""

import array
import fcntl
import math
import os
import select
import signal
import subprocess
import sys
import termios
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from epochwatt.board.records.samples import read_samples
from epochwatt.board.telemetry import tegrastats
from epochwatt.board.telemetry.sampler import Recorder
from epochwatt.board.telemetry.tegrastats import TegrastatsSource

LINE = (
    b"RAM 1/2MB CPU [1%%@3] EMC_FREQ 6%%@1600 GR3D_FREQ 7%%@[768,760] CPU@32.5C PMIC@50C CV0@-256C "
    b"POM_5V_GPU 150/161 POM_5V_IN %d/2911\n"
)


class Tool:
    """A stand-in for the tool that prints what it is given, and nothing else."""

    def __init__(self, root, tmp_path):
        self.fifo = tmp_path / "lines"
        os.mkfifo(self.fifo)
        self.end = os.open(self.fifo, os.O_RDWR)  # a reader that comes and goes does not end it
        path = root.write("usr/bin/tegrastats", f"#!/bin/sh\nexec cat '{self.fifo}'\n")
        path.chmod(0o755)

    def say(self, milliwatts):
        os.write(self.end, LINE % milliwatts)


@pytest.fixture
def tool(root, tmp_path):
    tool = Tool(root, tmp_path)
    yield tool
    os.close(tool.end)


@pytest.fixture
def source(root, tool, clock):
    """The source after its first line: 2.7 W."""
    tool.say(2700)
    source = TegrastatsSource(str(root), "nano", clock)
    yield source
    source.close()


def wait_until(holds):
    """Wait until something holds that is bound to; fail after a long time."""
    end_s = time.monotonic() + 20.0
    while not holds():
        assert time.monotonic() < end_s
        time.sleep(0.005)


def waiting_bytes(source):
    count = array.array("i", [0])
    fcntl.ioctl(source._fd(), termios.FIONREAD, count)
    return count[0]


def row(source):
    return dict(zip(source.columns, source.read(), strict=True))


class TestSource:
    def test_columns_come_from_the_first_line(self, source):
        found = row(source)
        assert found == {
            "rail_pom_5v_gpu_w": 0.15,
            "rail_pom_5v_in_w": 2.7,
            "power_module_w": 2.7,
            "gpu_mhz": 768.0,
            "gpu_util_pct": 7.0,
            "emc_mhz": 1600.0,
            "emc_util_pct": 6.0,
            "temp_cpu_c": 32.5,
            "temp_cv0_c": pytest.approx(math.nan, nan_ok=True),
        }
        assert (source.scope, source.total) == ("module", "power_module_w")

    def test_each_line_stands_in_the_file_once_at_the_moment_it_came(
        self, source, tool, clock, folder
    ):
        """From the last line before the window to the first after it, whatever the load."""
        said_s, next_s = [], [clock.t_s + 0.3]

        def sleep(seconds):
            end_s = clock.t_s + seconds
            while next_s[0] <= end_s:
                clock.t_s = next_s[0]
                said_s.append(clock.t_s)
                tool.say(3000 + len(said_s))
                assert select.select([source.file()], [], [], 20.0)[0]
                recorder.listen()
                next_s[0] += 1.001
            clock.t_s = max(clock.t_s, end_s)

        recorder = Recorder([source], 0, clock, clock.wall, sleep)
        sleep(5.0)
        recorder.begin(folder)
        start_s = clock.t_s
        while clock.t_s < start_s + 30.0:
            sleep(min(recorder.step(), 0.7))
        end_s = clock.t_s
        about = recorder.end(folder)["sources"]["tegrastats"]
        rows = read_samples(folder, "tegrastats")
        t_s = rows["t_mono_s"]
        assert t_s[0] <= start_s < t_s[1]
        assert t_s[-2] < end_s <= t_s[-1]
        first = 4
        np.testing.assert_allclose(t_s, said_s[first:], atol=1e-3)
        np.testing.assert_allclose(
            rows["power_module_w"], [3.001 + n * 1e-3 for n in range(first, len(said_s))]
        )
        assert (about["n_samples"], about["n_gaps"]) == (len(t_s), 0)
        assert clock.t_s - end_s < 1.1

    def test_child_that_ends_is_watched_no_more_and_said_why(self, source, clock, folder):
        recorder = Recorder([source], 0, clock, clock.wall, clock.sleep)
        recorder.begin(folder)
        assert recorder.files() == [source.file()]
        os.kill(source._child.pid, signal.SIGKILL)
        source._child.wait()
        recorder.listen()
        assert recorder.files() == []
        clock.sleep(10.0)
        end_s = clock.t_s
        about = recorder.end(folder)["sources"]["tegrastats"]
        assert about["n_failed"] == pytest.approx(10, abs=1)
        assert about["error"].endswith("ended (exit status -9)")
        assert clock.t_s - end_s < 1.7

    def test_lines_that_nobody_read_are_not_taken_for_new_ones(self, source, tool, clock):
        old = LINE % 1000
        n_lines = tegrastats.BLOCKED_BYTES // len(old) + 2
        for _ in range(n_lines):
            os.write(tool.end, old)
        os.write(tool.end, old[:50])
        wait_until(lambda: waiting_bytes(source) == n_lines * len(old) + 50)
        clock.sleep(600.0)
        window = threading.Thread(target=source.start)
        window.start()
        wait_until(lambda: waiting_bytes(source) == 0)
        os.write(tool.end, old[50:])
        while window.is_alive():
            tool.say(2000)
            time.sleep(0.02)
        assert row(source)["power_module_w"] == 2.0


class TestToolThatCannotBeUsed:
    def test_never_ends_its_line(self, root, tool, clock, source):
        os.write(tool.end, b"x" * 40000)
        wait_until(lambda: waiting_bytes(source) == 40000)
        assert row(source)["power_module_w"] == 2.7
        os.write(tool.end, b"x" * 40000)
        wait_until(lambda: waiting_bytes(source) == 40000)
        source.read()
        assert len(source._pending) <= tegrastats.BLOCK_BYTES


ORPHAN = """
import os, signal, sys
from epochwatt.board.telemetry.tegrastats import TegrastatsSource
source = TegrastatsSource(sys.argv[1], "nano")
print(source._child.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_child_dies_with_the_sampler(root, tool):
    tool.say(2700)
    done = subprocess.run(
        [sys.executable, "-c", ORPHAN, str(root)], stdout=subprocess.PIPE, check=False
    )
    stat = Path(f"/proc/{int(done.stdout)}/stat")

    def gone():
        try:
            return stat.read_text("ascii").rpartition(")")[2].split()[0] in "ZX"
        except OSError:
            return True

    wait_until(gone)
