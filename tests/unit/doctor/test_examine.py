"""The self-test: what it finds on a machine, how it is shown, what ends it."""

import os
import platform
import re
import subprocess

import pytest
from fake_device import LIBRARIES

from epochwatt.device.locks import machine_lock
from epochwatt.device.storage import Medium
from epochwatt.doctor import examine
from epochwatt.doctor.finding import WIDTH, Finding, finding_lines
from epochwatt.doctor.subject import choose
from epochwatt.errors import ConfigError

MEMINFO = "MemTotal: {:>10} kB\nMemFree: 100 kB\nMemAvailable: {:>10} kB\n"


@pytest.fixture
def subject(checkout):
    """The device `host` of a small checkout."""
    return choose(checkout.path, None)


@pytest.fixture
def elsewhere(subject, tmp_path):
    """The same machine with files of its own below a folder; give it /proc files by name."""
    subject.machine.root = str(tmp_path / "root")

    def write(name, text):
        path = tmp_path / "root/proc" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return subject

    return write


def levels(findings):
    return [finding.level for finding in findings]


# -- how it is shown -------------------------------------------------------------------------------


def test_a_finding_is_shown_with_what_to_do_below_it():
    lines = finding_lines(
        [Finding("warning", "swap", "zram", "away with it"), Finding("ok", "a", "b")]
    )
    assert lines == [
        "warning  swap  zram",
        "               do: away with it",
        "ok       a     b",
        "problems: 0, warnings: 1",
    ]


def test_long_findings_are_wrapped():
    lines = finding_lines([Finding("ok", "power", "rail " * 40, "look " * 40)])
    assert max(map(len, lines)) <= len("ok  power  ") + WIDTH
    assert sum("rail" in line for line in lines) > 1
    assert " ".join(" ".join(lines).split()).count("look") == 40


# -- one check after the other ---------------------------------------------------------------------


@pytest.mark.parametrize(("uid", "level"), [(1000, "ok"), (0, "warning")])
def test_root_gives_a_warning(subject, uid, level, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    assert levels(examine.user(subject)) == [level]


def process(proc, pid, name):
    (proc / str(pid)).mkdir(parents=True)
    (proc / str(pid) / "comm").write_text(name + "\n")


def test_a_running_desktop_is_named(tmp_path):
    process(tmp_path, 10, "Xorg")
    process(tmp_path, 11, "gnome-shell")
    process(tmp_path, 12, "bash")
    (tmp_path / "13").mkdir()  # has ended
    (finding,) = examine.desktop(tmp_path)
    assert finding.level == "warning"
    assert "Xorg, gnome-shell" in finding.message
    assert "multi-user.target" in finding.do


def test_no_desktop_is_well(tmp_path):
    process(tmp_path, 12, "bash")
    assert levels(examine.desktop(tmp_path)) == ["ok"]


@pytest.mark.parametrize(("gib", "level"), [(3.9, "warning"), (7.4, "ok")])
def test_little_memory_gives_a_warning(elsewhere, gib, level):
    subject = elsewhere("meminfo", MEMINFO.format(int(gib * 2**20), 2**20))
    (finding,) = examine.memory(subject)
    assert finding.level == level
    assert f"{gib} GiB, 1.0 of them free" in finding.message


def test_limits_of_memory_give_a_warning(monkeypatch):
    monkeypatch.setattr(examine.host, "memory_limits", lambda: ["`ulimit -v` is 4000000"])
    (finding,) = examine.memory_limits()
    assert finding.level == "warning"
    assert "`ulimit -v` is 4000000" in finding.message


@pytest.mark.parametrize(
    ("sizes", "level", "words"),
    [
        (None, "warning", "there is no /dev/shm"),
        ((65536, 65536), "warning", "has 64 KiB, 64 KiB of them free"),
        ((2**26, 2**26), "warning", "64.0 MiB"),
        ((2**33, 2**20), "warning", "1.0 MiB of them free"),
        ((2**33, 2**32), "ok", "8.0 GiB, 4.0 GiB of them free"),
    ],
)
def test_little_shared_memory_gives_a_warning(sizes, level, words, monkeypatch):
    monkeypatch.setattr(examine.host, "shm_bytes", lambda: sizes)
    (finding,) = examine.shared_memory()
    assert finding.level == level
    assert words in finding.message
    assert level == "ok" or "--shm-size" in finding.do


def test_a_cache_that_cannot_be_written_is_a_problem(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert levels(examine.home()) == ["ok"]
    (tmp_path / "snakemake").write_text("a file")
    (finding,) = examine.home()
    assert finding.level == "problem"
    assert str(tmp_path / "snakemake") in finding.message
    assert "XDG_CACHE_HOME" in finding.do


def test_unknown_memory_is_no_problem(elsewhere):
    assert levels(examine.memory(elsewhere("meminfo", ""))) == ["info"]


HEADER = "Filename Type Size Used Priority\n"


@pytest.mark.parametrize(
    ("rows", "level", "words"),
    [
        ("", "ok", "none"),
        ("/dev/zram0 partition 500 0 5\n/dev/zram1 partition 500 2048 5\n", "warning", "2 MiB"),
        ("/swapfile file 4096 0 -2\n", "ok", "/swapfile: 0 MiB"),
        ("/swapfile file 4096 4096 -2\n", "warning", "4 MiB in use"),
    ],
)
def test_swap_is_reported(elsewhere, rows, level, words):
    (finding,) = examine.swap(elsewhere("swaps", HEADER + rows))
    assert finding.level == level
    assert words in finding.message


@pytest.mark.parametrize(("busy_pct", "level"), [(None, "info"), (3.0, "ok"), (40.0, "warning")])
def test_other_load_is_reported(subject, busy_pct, level, monkeypatch):
    monkeypatch.setattr(subject.machine, "busy_pct", lambda over_s: busy_pct)
    assert levels(examine.load(subject)) == [level]


def test_an_interpreter_without_torch_is_a_problem(subject):
    installed = {**LIBRARIES, "torch": None, "errors": {"torch": "ModuleNotFoundError: no torch"}}
    (finding,) = examine.interpreter(subject, installed)
    assert finding.level == "problem"
    assert "without torch (ModuleNotFoundError: no torch)" in finding.message
    assert "python:" in finding.do


def test_a_host_without_a_gpu_trains_on_its_cpu(subject):
    first, gpu = examine.interpreter(subject, LIBRARIES)
    assert (first.level, gpu.level) == ("ok", "info")
    assert "Python 3.8.10, torch 2.0, torchvision 0.15" in first.message


def test_a_real_board_without_cuda_is_a_problem(subject):
    subject.machine.backend = "jetson"
    _, gpu = examine.interpreter(subject, {**LIBRARIES, "errors": {"gpu": "RuntimeError: driver"}})
    assert gpu.level == "problem"
    assert "RuntimeError: driver" in gpu.message


def test_a_board_without_cuda_is_told_why(subject):
    subject.machine.backend = "jetson"
    installed = {**LIBRARIES, "no_gpu": "Torch not compiled with CUDA enabled"}
    _, gpu = examine.interpreter(subject, installed)
    assert "knows no CUDA" in gpu.message
    assert "jetson-torch.md" in gpu.do


def test_torch_and_numpy_that_do_not_fit_are_a_problem(subject):
    errors = {"together": "RuntimeError: Numpy is not available"}
    finding = list(examine.interpreter(subject, {**LIBRARIES, "errors": errors}))[1]
    assert (finding.level, finding.topic) == ("problem", "interpreter")
    assert "numpy<2" in finding.do


def test_a_gpu_is_named(subject):
    installed = {**LIBRARIES, "gpu": "Orin", "cuda": "12.2"}
    assert examine.interpreter(subject, installed).__next__().level == "ok"
    assert "Orin, CUDA 12.2" in list(examine.interpreter(subject, installed))[1].message


# -- storage ---------------------------------------------------------------------------------------


def medium(device="", mount="/", source="overlay"):
    return Medium(mount, source, device, "unknown", None)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("nvme0n1p1", "nvme0n1p2", True),
        ("nvme0n1", "nvme0n1p2", True),
        ("nvme0n1p1", "nvme1n1p1", False),
        ("mmcblk0p1", "mmcblk1p1", False),
        ("sda1", "sda12", True),
        ("sda1", "sdb1", False),
        ("sda", "sdaa", False),
        ("vda", "vda1", True),
    ],
)
def test_partitions_of_one_disk_are_one_disk(one, other, same):
    assert (examine.disk_of(medium(one)) == examine.disk_of(medium(other))) is same


def test_what_has_no_block_device_is_reported_apart_by_its_mount():
    assert examine.disk_of(medium()) == examine.disk_of(medium())
    assert examine.disk_of(medium()) != examine.disk_of(medium(mount="/mnt"))


@pytest.fixture
def disks(monkeypatch):
    """Say by the last word of its path which disk a file lies on."""

    def lie(**device_of):
        def medium_of(path, root="/"):
            return medium(device_of[os.path.basename(path)])

        monkeypatch.setattr(examine.storage, "medium_of", medium_of)

    return lie


def test_results_on_a_medium_under_test_give_a_warning(subject, disks):
    disks(measured="mmcblk0p1", results="nvme0n1p2", sets="mmcblk0p3", data="sda1")
    findings = list(examine.results_place(subject))
    assert [(f.level, f.message.split()[0]) for f in findings] == [
        ("ok", "measured/"),
        ("warning", "measured/"),
        ("ok", "results/"),
    ]
    assert findings[1].message.endswith("storage that is measured: flash")


def test_results_on_a_disk_of_their_own_are_ok(subject, disks):
    disks(measured="mmcblk0p1", results="mmcblk0p1", sets="nvme0n1p3", data="sda1")
    (finding,) = examine.results_place(subject)
    assert finding.level == "ok"
    assert finding.message.startswith("measured/ and results/ on mmcblk0p1")


def test_a_full_disk_gives_a_warning(subject, monkeypatch):
    class Free:
        f_bavail, f_frsize = 10, 4096

    monkeypatch.setattr(os, "statvfs", lambda path: Free)
    findings = [f for f in examine.media(subject) if f.level == "warning"]
    assert [f.message.split(":")[0] for f in findings] == ["disk", "flash"]
    assert "at least 3.5 GiB" in findings[0].do


def test_a_medium_that_is_not_mounted_is_reported(checkout, tmp_path):
    checkout.edit("devices/host.yaml", "root: flash/sets}", f"root: x, mount: {tmp_path}}}")
    findings = [f for f in examine.media(choose(checkout.path, None)) if "flash" in f.message]
    assert levels(findings) == ["info"]
    assert f"nothing is mounted at {tmp_path}" in findings[0].message


def test_a_data_set_on_another_device_is_reported(checkout):
    checkout.edit("devices/host.yaml", "root: data}", "root: data, block_device: floppy}")
    (finding,) = [f for f in examine.media(choose(checkout.path, None)) if f.level == "problem"]
    assert finding.message.endswith(", not on floppy")


def test_the_page_cache_is_dropped_by_the_helper_or_told_to_be_advised(subject, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    advised, resident = examine.cache(subject, helped=False)
    assert "cache_advised" in advised.message
    assert resident.level == "ok"
    assert "by the root helper" in next(examine.cache(subject, helped=True)).message


# -- all of it -------------------------------------------------------------------------------------


@pytest.fixture
def quick(monkeypatch):
    """No second of load, no import of torch."""
    monkeypatch.setattr(examine, "libraries", lambda subject: LIBRARIES)
    monkeypatch.setattr("epochwatt.device.machine.Machine.busy_pct", lambda self, over_s: 1.0)


def test_a_host_is_looked_at_for_real(checkout, quick):
    lines, status = examine.doctor_lines(None, 0.3, checkout.path)
    text = "\n".join(lines)
    assert status == 0
    assert lines[0].endswith("device host, a test's machine")
    assert re.search(
        r"^\w+ +sampler +\d+\.\d\d s of CPU a minute", text, re.M
    )  # a busy machine: warning
    assert re.search(r"^\w+ +sampler +host: a row every 1000 ms", text, re.M)
    assert re.search(r"^ok +sensors +host: .*cpu_util_pct", text, re.M)
    assert list((checkout.path / "measured").iterdir()) == []


def test_a_problem_gives_status_1(checkout, quick, monkeypatch):
    monkeypatch.setattr(
        examine,
        "libraries",
        lambda subject: {**LIBRARIES, "numpy": None, "errors": {"numpy": "no"}},
    )
    assert examine.doctor_lines(None, 0.1, checkout.path)[1] == 1


def test_a_check_that_fails_ends_no_other(checkout, quick, monkeypatch):
    def broken(subject):
        raise OSError("no such disk")

    monkeypatch.setattr(examine, "media", broken)
    lines, status = examine.doctor_lines(None, 0.1, checkout.path)
    assert status == 1
    assert any(re.match(r"problem +storage +no such disk", line) for line in lines)
    assert any(" sampler " in line for line in lines)


def test_beside_a_running_measurement_it_examines_what_does_not_disturb(checkout, monkeypatch):
    monkeypatch.setattr("epochwatt.device.machine.Machine.busy_pct", lambda self, over_s: 1.0)
    started = []
    monkeypatch.setattr(subprocess, "run", lambda words, **rest: started.append(words))
    with machine_lock().acquire({"run": "another"}):
        lines, status = examine.doctor_lines(None, 0.1, checkout.path)
    text = "\n".join(lines)
    assert status == 0
    assert started == []
    assert re.search(r"^info +interpreter +left out: it would disturb", text, re.M)
    assert re.search(r"^info +sampler +left out: it would disturb", text, re.M)
    assert "run another" in text
    assert re.search(r"^ok +storage ", text, re.M)
    assert list((checkout.path / "measured").iterdir()) == []


def test_a_folder_that_cannot_be_written_is_a_problem(checkout, quick):
    (checkout.path / "measured").write_text("a file")
    lines, status = examine.doctor_lines(None, 0.1, checkout.path)
    assert status == 1
    assert any("cannot write to" in line for line in lines)


def test_an_unknown_device_is_refused(checkout):
    with pytest.raises(ConfigError, match="--device is 'nano'"):
        examine.doctor_lines("nano", 0.1, checkout.path)


def test_no_setting_is_changed(checkout, quick, monkeypatch):
    """Programs are started only for the interpreter's answers."""
    started = []
    run = subprocess.run
    monkeypatch.setattr(
        subprocess, "run", lambda words, **rest: started.append(words) or run(words, **rest)
    )
    monkeypatch.setattr("epochwatt.device.page_cache.drop", None)
    examine.doctor_lines(None, 0.1, checkout.path)
    assert [words[1:4] for words in started] == [["-m", "epochwatt.training.trial", "sampler"]]


def test_the_machine_is_reported(subject):
    assert platform.release() in next(iter(examine._machine(subject))).message
