"""What libraries and the kernel say when they fail has cause and remedy."""

import csv
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from epochwatt.board.device import host, remedies

DATA = Path(__file__).parents[3] / "data/failures.csv"
ROWS = [
    {key: value.replace("\\n", "\n") for key, value in row.items()}
    for row in csv.DictReader(DATA.read_text("utf-8").splitlines())
]


def name(row):
    return row["source"].removeprefix("github.com/") + " " + row["message"][:40]


@pytest.mark.parametrize("row", ROWS, ids=name)
def test_each_reported_message_has_cause_and_remedy(row, monkeypatch):
    free = 8 * 2**30 if "open shared memory" in row["message"] else 65536
    monkeypatch.setattr(host, "shm_bytes", lambda: (8 * 2**30, free))
    monkeypatch.setattr(host, "memory_limits", list)
    text = f"{row['error']}: {row['message']}"
    remedy = remedies.remedy_of(text)
    assert row["cause"] in remedy.cause
    assert row["remedy"] in remedy.do
    assert remedy.line
    assert remedy.line in text
    assert "{" not in remedy.cause + remedy.do


@pytest.mark.parametrize(
    ("kills", "before", "cause"),
    [
        (0, None, "not by the kernel"),
        (3, 3, "not by the kernel"),
        (3, 2, "OOM killer, for want of memory (which ended 1 meanwhile)"),
        (2, None, "(which ended 2 since the machine was started)"),
        (None, None, "often by the kernel"),
    ],
)
def test_want_of_memory_is_blamed_for_a_kill_where_the_kernel_counted_one(
    kills, before, cause, monkeypatch
):
    monkeypatch.setattr(host, "oom_kills", lambda: kills)
    assert cause in remedies.of_signal(signal.SIGKILL, oom_kills=before).cause


def test_a_job_that_is_killed_says_why_and_keeps_its_status(tmp_path):
    """As the rules that measure have it."""
    log = tmp_path / "log"
    ended = f"{sys.executable} -m epochwatt.board.training.ended"
    script = f"set -o pipefail; ( sh -c 'kill -ILL $$' || {ended} $? ) 2>&1 | tee -i {log}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, check=False)
    assert done.returncode == 128 + signal.SIGILL
    assert "error: the job was ended by SIGILL: it met an instruction" in log.read_text()
    assert "  do: " in log.read_text()


def test_control_groups_limit_memory(monkeypatch):
    proc = {
        "/proc/meminfo": "MemTotal: 8000000 kB\n",
        "/proc/self/cgroup": "0::/system.slice/job\n5:memory:/docker/abc\n",
        "/sys/fs/cgroup/system.slice/memory.max": "2147483648\n",
        "/sys/fs/cgroup/system.slice/job/memory.max": "max\n",
        "/sys/fs/cgroup/memory/memory.limit_in_bytes": "4294967296\n",
    }
    monkeypatch.setattr(host, "_read", lambda path: proc.get(path, ""))
    monkeypatch.setattr(resource, "getrlimit", lambda what: (resource.RLIM_INFINITY,) * 2)
    assert host.memory_limits() == ["its control group (container, service or job) has 2.0 GiB"]
    proc["/sys/fs/cgroup/system.slice/memory.max"] = "9223372036854771712"  # as v1 says: none
    assert host.memory_limits() == ["its control group (container, service or job) has 4.0 GiB"]


def test_what_control_groups_hold_is_not_free_but_for_files(monkeypatch):
    folder = "/sys/fs/cgroup/memory/docker/abc"
    proc = {
        "/proc/meminfo": "MemTotal: 8000000 kB\nMemAvailable: 7000000 kB\n",
        "/proc/self/cgroup": "5:memory:/docker/abc\n",
        f"{folder}/memory.limit_in_bytes": "1000000000\n",
        f"{folder}/memory.usage_in_bytes": "700000000\n",
        f"{folder}/memory.stat": "total_active_file 100000000\ntotal_inactive_file 200000000\n",
        f"{folder}/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n",
    }
    monkeypatch.setattr(host, "_read", lambda path: proc.get(path, ""))
    assert host.free_memory() == 600_000_000
    monkeypatch.setattr(host, "oom_kills", lambda: 3)
    monkeypatch.setattr(host, "oom_message", lambda: "Killed process 7 (python) anon-rss:9kB")
    cause = remedies.of_signal(signal.SIGKILL).cause
    assert "OOM killer" in cause
    assert "which has lost 3 so; the kernel's log: Killed process 7 (python)" in cause
