"""What libraries and the kernel say when they fail has cause and remedy."""

import csv
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from epochwatt.device import host, remedies

DATA = Path(__file__).parents[2] / "data/failures.csv"
ROWS = [
    {key: value.replace("\\n", "\n") for key, value in row.items()}
    for row in csv.DictReader(DATA.read_text("utf-8").splitlines())
]


def name(row):
    return row["source"].removeprefix("github.com/") + " " + row["message"][:40]


@pytest.fixture
def little_shm(monkeypatch):
    """Shared memory as docker has it, full but for a little."""
    monkeypatch.setattr(host, "shm_bytes", lambda: (64 * 2**20, 65536))


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
    "text",
    [
        "FileNotFoundError: [Errno 2] No such file or directory: '/pictures/1.jpg'",
        "OSError: cannot identify image file",
        "RuntimeError: stack expects each tensor to be equal size",
        "ModuleNotFoundError: No module named 'own_network'",
        "KeyError: 'torch'",
        "FileNotFoundError: [Errno 2] No such file or directory: '/dev/shm/data/mnist'",
        "PermissionError: [Errno 13] Permission denied: '/dev/shm/data/mnist'",
        "ValueError: torchvision is a nice name",
    ],
)
def test_mistakes_of_ones_own_have_none(text):
    assert remedies.remedy_of(text) is None


def test_the_line_of_many_that_was_recognised_is_given():
    text = (
        "ImportError: \n\nIMPORTANT\n  Original error was: libopenblas.so.0: cannot open "
        "shared object file: No such file\n\nmore"
    )
    assert remedies.remedy_of(text).line.startswith("Original error was: libopenblas.so.0")


def test_remedies_name_the_interpreter_that_they_are_for():
    remedy = remedies.remedy_of("RuntimeError: Numpy is not available", "/usr/bin/python3")
    assert "/usr/bin/python3 -m pip install 'numpy<2'" in remedy.do


def test_size_of_shared_memory_is_named(little_shm):
    remedy = remedies.remedy_of(
        "RuntimeError: DataLoader worker (pid 1) is killed by signal: Bus error. "
    )
    assert "/dev/shm has 64.0 MiB, 64 KiB of them free" in remedy.cause
    assert "num_workers: 0" in remedy.do


def test_a_bus_error_beside_much_shared_memory_may_be_of_the_disk(monkeypatch):
    monkeypatch.setattr(host, "shm_bytes", lambda: (8 * 2**30, 7 * 2**30))
    remedy = remedies.remedy_of(
        "RuntimeError: DataLoader worker (pid 1) is killed by signal: Bus error. "
    )
    assert "a file of the data set" in remedy.cause
    assert "dmesg" in remedy.do


def test_limits_of_memory_are_named():
    script = (
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (4000000 * 1024,) * 2)\n"
        "from epochwatt.device import remedies\n"
        "print(remedies.remedy_of('libcublasLt.so.12: failed to map segment from shared object'))"
    )
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "`ulimit -v` is 4000000 (3.8 GiB)" in out.stdout
    assert "ulimit -v unlimited" in out.stdout


@pytest.mark.parametrize(
    ("kills", "before", "cause"),
    [
        (0, None, "not by the kernel"),
        (3, 3, "not by the kernel"),
        (3, 2, "meanwhile the kernel killed 1 for want of memory"),
        (2, None, "since the machine was started the kernel killed 2"),
        (None, None, "often by the kernel"),
    ],
)
def test_want_of_memory_is_blamed_for_a_kill_where_the_kernel_counted_one(
    kills, before, cause, monkeypatch
):
    monkeypatch.setattr(host, "oom_kills", lambda: kills)
    assert cause in remedies.of_signal(signal.SIGKILL, oom_kills=before).cause


@pytest.mark.parametrize(
    ("machine", "do"), [("aarch64", "OPENBLAS_CORETYPE=ARMV8"), ("x86_64", "builds for this CPU")]
)
def test_an_instruction_that_a_cpu_lacks_is_explained(machine, do, monkeypatch):
    monkeypatch.setattr(remedies.platform, "machine", lambda: machine)
    assert do in remedies.of_status(-signal.SIGILL).do
    assert do in remedies.of_status(128 + signal.SIGILL).do


@pytest.mark.parametrize("status", [0, 1, 4, 127, 130, 143, 255, -signal.SIGTERM])
def test_who_ends_by_itself_or_is_asked_to_needs_no_explanation(status):
    assert remedies.of_status(status) is None


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGKILL])
def test_every_deadly_signal_has_a_remedy(number):
    remedy = remedies.of_status(-number)
    assert remedy.cause
    assert remedy.do
    assert remedy.line == number.name


def test_a_job_that_is_killed_says_why_and_keeps_its_status(tmp_path):
    """As the rules that measure have it."""
    log = tmp_path / "log"
    ended = f"{sys.executable} -m epochwatt.training.ended"
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


def test_shared_memory_is_that_of_the_system():
    size, free = host.shm_bytes()
    assert 0 <= free <= size
    assert size == os.statvfs("/dev/shm").f_blocks * os.statvfs("/dev/shm").f_frsize
