"""The real process: started, commanded, killed, orphaned."""

import errno
import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import epochwatt
from benchmarks.synthetic import SyntheticSource, sampler_with
from epochwatt.board.records import files
from epochwatt.board.records.samples import read_samples
from epochwatt.board.telemetry import client
from epochwatt.board.telemetry.client import NO_POWER, Sampler

FAST = 0.02  # s; so that an epoch of a fraction of a second has rows enough
ORPHAN_S = 2.0  # within that time after its trainer no sampler may be left


def gone(pid):
    """Say whether a process has ended, reaped or not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return True
    return state in "ZX"


def wait_until(holds, seconds):
    """Wait until something holds; say whether it does in that time."""
    end_s = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end_s:
            return False
        time.sleep(0.005)
    return True


@pytest.fixture
def start(tmp_path):
    """Return a function that starts a sampler with one synthetic source."""
    started = []

    def make(faults=None, **options):
        program = sampler_with({"rails": 4, "period_s": FAST, "faults": faults})
        started.append(Sampler.start(os.getpid(), str(tmp_path), 0, program=program, **options))
        return started[-1]

    yield make
    for sampler in started:
        sampler.stop()


def run_epoch(sampler, folder, seconds=0.4):
    """Let an epoch pass; return its statistics."""
    sampler.begin(folder)
    time.sleep(seconds)
    return sampler.end()


def test_epochs_are_sampled_one_after_the_other(start, folder, tmp_path):
    sampler = start()
    assert sampler.sources["host"] is None
    assert sampler.sources["synthetic"] == "module"
    second = tmp_path / "epoch 1"
    second.mkdir()
    for path in (folder, str(second)):
        before_s = time.monotonic()
        statistics = run_epoch(sampler, path)
        after_s = time.monotonic()
        assert statistics == files.read_json(path + "/telemetry.json")
        assert statistics["lost"] is False
        assert Path(path, "samples-host.csv").exists()
        rows = read_samples(path, "synthetic")
        assert before_s <= rows["t_mono_s"][0]
        assert rows["t_mono_s"][-1] <= after_s
        assert len(rows["t_mono_s"]) > 10
        # every row is the signal at its stamp, but for those beside a step of it
        truth_w = list(map(SyntheticSource().power_w, rows["t_mono_s"].tolist()))
        assert np.mean(rows["power_total_w"] == truth_w) > 0.9


def test_windows_may_lie_within_one_another(start, folder, tmp_path):
    sampler, inner = start(), str(tmp_path / "inner")
    os.mkdir(inner)
    sampler.begin(folder)
    time.sleep(0.1)
    sampler.begin(inner)
    time.sleep(0.2)
    ended = sampler.end(inner)
    time.sleep(0.1)
    whole = sampler.end(folder)
    assert (ended["lost"], whole["lost"]) == (False, False)
    rows, rows_of_inner = (read_samples(path, "synthetic") for path in (folder, inner))
    assert rows["t_mono_s"][0] < rows_of_inner["t_mono_s"][0]
    assert rows_of_inner["t_mono_s"][-1] < rows["t_mono_s"][-1]
    assert set(rows_of_inner["t_mono_s"]) < set(rows["t_mono_s"])
    assert sampler.end(inner)["lost"] is True  # it is over


def test_power_can_be_asked_for_while_an_epoch_goes_on(start, folder):
    """Each reading is told once, and stands in the samples as well."""
    sampler = start()
    assert sampler.power().scope is None  # nothing was begun
    sampler.begin(folder)
    asked = [sampler.power()]
    time.sleep(0.2)
    asked.append(sampler.power())
    sampler.end()
    assert {power.scope for power in asked} == {"module"}
    assert {power.period_s for power in asked} == {FAST}
    assert len(asked[1].t_s) >= 5
    t_s = [t_s for power in asked for t_s in power.t_s]
    power_w = [power_w for power in asked for power_w in power.power_w]
    rows = read_samples(folder, "synthetic")
    n = len(t_s)
    assert rows["t_mono_s"][:n] == pytest.approx(t_s, abs=1e-6)
    assert rows["power_total_w"][:n] == pytest.approx(power_w, rel=1e-5)


@pytest.fixture
def told(caplog):
    """Return a function that gives what the client has logged."""
    caplog.set_level(logging.WARNING)
    return lambda: [record.getMessage() for record in caplog.records]


def assert_lost(sampler, folder, told, why):
    """Nothing is raised, it is told once, and the statistics say it from then on."""
    for _ in range(2):
        statistics = run_epoch(sampler, folder, seconds=0)
        assert statistics["lost"] is True
        assert why in statistics["reason"]
        assert statistics["sources"] == {}
        assert files.read_json(folder + "/telemetry.json") == statistics
    assert len(told()) == 1
    assert why in told()[0]


def test_sampler_that_was_killed_harms_nothing(start, folder, told):
    sampler = start()
    sampler.begin(folder)
    pid = sampler.pid
    os.kill(pid, signal.SIGKILL)
    assert wait_until(lambda: gone(pid) and len(os.listdir(f"/proc/{pid}/task")) < 2, 5)
    assert sampler.end()["lost"] is True
    assert_lost(sampler, folder, told, "it")


def test_sampler_that_is_silent_is_given_up_and_killed(start, folder, told):
    sampler = start({"hang_at": 1, "hang_s": 60}, timeout_s=0.3)
    pid = sampler.pid
    assert_lost(sampler, folder, told, "no answer within 0.3 s")
    assert gone(pid)


READY = '{"ok": true, "sources": {"host": null}}'


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    """Return a function that puts a shell script in the sampler's place."""

    def put(script):
        tool = tmp_path / "sampler"
        tool.write_text(f"#!/bin/sh\n{script}\nexec cat\n", encoding="ascii")
        tool.chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(tool))

    return put


def test_sampler_that_starts_slowly_is_started_once_more(told, monkeypatch, tmp_path, stand_in):
    once = tmp_path / "once"
    stand_in(f"[ -e {once} ] && s=1.5 || s=60\ntouch {once}\nsleep $s\nprintf '%s\\n' '{READY}'")
    monkeypatch.setattr("epochwatt.board.telemetry.client.START_S", 0.3)
    with Sampler.start(os.getpid(), str(tmp_path), 0) as sampler:
        assert sampler.sources == {"host": None}
    assert told() == ["the sampler is not ready after 0.3 s: it is started once more"]


ODD = [
    *("7", '"ok"', "[" * 5000, "\\xff", "{}", '{"ok": false}', '{"ok": true, "statistics": 3}'),
    '{"ok": true, "statistics": {"lost": false, "sources": {"host": 1}}}',
]
ODD_POWER = '{"ok": true, "power": {"scope": "module", "period_s": 1, "readings": [[%s]]}}'


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("place", range(3), ids=["at the start", "to begin", "to end"])
def test_whatever_a_sampler_answers_the_trainer_goes_on(
    folder, told, stand_in, tmp_path, odd, place
):
    lines = "\n".join([*[READY, '{"ok": true}'][:place], odd])
    stand_in(f"printf '%b\\n' '{lines}'")
    with Sampler.start(os.getpid(), str(tmp_path), 0, timeout_s=5.0) as sampler:
        assert all(isinstance(scope, (str, type(None))) for scope in sampler.sources.values())
        statistics = run_epoch(sampler, folder, seconds=0)
    assert statistics["lost"] is True
    assert statistics["sources"] == {}
    assert statistics == files.read_json(folder + "/telemetry.json")


@pytest.mark.parametrize("odd", [*ODD, '{"ok": true}', ODD_POWER % "1", ODD_POWER % '"a", 2'])
def test_whatever_a_sampler_answers_of_power_the_trainer_goes_on(folder, stand_in, tmp_path, odd):
    lines = "\n".join([READY, '{"ok": true}', odd])
    stand_in(f"printf '%b\\n' '{lines}'")
    with Sampler.start(os.getpid(), str(tmp_path), 0, timeout_s=5.0) as sampler:
        sampler.begin(folder)
        assert sampler.power() == NO_POWER
        assert sampler.end()["lost"] is True


@pytest.mark.parametrize(("n_full", "is_lost"), [(1, False), (1000, True)])
def test_statistics_that_cannot_be_written_are_tried_again_and_never_missing_in_silence(
    folder, told, monkeypatch, tmp_path, n_full, is_lost
):
    """A disk that is full for a moment costs nothing; one that stays full costs the telemetry."""
    monkeypatch.setattr(client, "REWRITE_S", 0.01)
    write = files.write_json
    left = [n_full - 1]  # the sampler's own try is one

    def full(*arguments):
        if left[0] > 0:
            left[0] -= 1
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(*arguments)

    monkeypatch.setattr(files, "write_json", full)
    full_in_the_sampler = (
        "from epochwatt.board.records import files\n"
        "import epochwatt.board.telemetry.__main__ as program\n"
        "def full(*arguments): raise OSError(28, 'No space left on device')\n"
        "files.write_json = full; program.main()\n"
    )
    with Sampler.start(
        os.getpid(), str(tmp_path), 0, program=["-c", full_in_the_sampler]
    ) as sampler:
        statistics = run_epoch(sampler, folder, seconds=0.1)
    assert statistics["lost"] is is_lost
    assert "No space left on device" in told()[0]
    if is_lost:
        assert statistics["sources"] == {}
        assert "No space left on device" in statistics["reason"]
        assert not Path(folder, "telemetry.json").exists()
    else:
        assert "host" in statistics["sources"]
        assert files.read_json(folder + "/telemetry.json") == statistics


def test_interrupt_from_the_keyboard_is_not_for_the_sampler(start, folder):
    sampler = start()
    sampler.begin(folder)
    os.kill(sampler.pid, signal.SIGINT)
    assert sampler.end()["lost"] is False
    assert os.getsid(sampler.pid) == sampler.pid


TRAINER = """
import os, signal, sys
from epochwatt.board.telemetry.client import Sampler
sampler = Sampler.start(os.getpid(), sys.argv[1], 0, program=sys.argv[2:])
sampler.begin(sys.argv[1])
worker = os.fork()  # a loader worker: it holds the trainer's ends of the sampler's pipes
if worker:
    print(sampler.pid, worker, flush=True)
signal.pause()
"""


@pytest.fixture
def trainer(folder):
    """A stand-in trainer with a sampler and a forked worker; gives it and their process ids."""
    environment = {**os.environ, "PYTHONPATH": str(Path(epochwatt.__file__).parents[1])}
    words = [sys.executable, "-c", TRAINER, folder, *sampler_with({"rails": 4})]
    with subprocess.Popen(words, env=environment, stdout=subprocess.PIPE) as process:
        sampler, worker = map(int, process.stdout.readline().split())
        yield process, sampler, worker
        process.kill()
        os.kill(worker, signal.SIGKILL)


def test_killed_trainer_leaves_no_sampler_though_its_workers_live_on(trainer):
    process, sampler, worker = trainer
    assert not gone(sampler)
    process.kill()
    assert wait_until(lambda: gone(sampler), ORPHAN_S)
    assert not gone(worker)


def test_sensors_of_a_board_are_sampled(root, folder, tmp_path):
    root.write("proc/device-tree/model", "NVIDIA Jetson Nano Developer Kit\0")
    chip = "sys/bus/i2c/drivers/ina3221x/6-0040/iio:device0"
    root.write(f"{chip}/rail_name_0", "POM_5V_IN\n")
    root.write(f"{chip}/in_power0_input", "2500\n")
    with Sampler.start(os.getpid(), str(tmp_path), 0, root=str(root), power="sysfs") as sampler:
        assert sampler.sources == {"host": None, "board": None, "sysfs": "module"}
        sampler.begin(folder)
        root.write(f"{chip}/in_power0_input", "")  # the sensor stops
        statistics = sampler.end()
    about = statistics["sources"]["sysfs"]
    assert about["total"] == "power_module_w"
    assert about["settings"]["total_of"] == ["POM_5V_IN"]
    assert about["n_failed"] >= 1
    assert about["n_gaps"] >= about["n_failed"]
    assert "no rail answers" in about["error"]
    power_w = read_samples(folder, "sysfs")["power_module_w"]
    np.testing.assert_array_equal(power_w[[0, -1]], [2.5, np.nan])
