"""Try the interpreter and the sampler of a device on this machine."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import epochwatt
from epochwatt.board.device import remedies
from epochwatt.board.device.locks import machine_lock
from epochwatt.board.device.machine import Machine, open_machine
from epochwatt.board.records.files import ADVICE
from epochwatt.board.records.shapes import Document
from epochwatt.errors import EpochwattError
from epochwatt.study.config import Device
from epochwatt.study.devices import DEVICES, Devices
from epochwatt.study.expand import machine_settings
from epochwatt.study.place import MEASURED

IMPORTS_S = 240.0  # to all of `trial libraries`, which gives up a step sooner (`trial.STEP_S`)
START_S = 135.0  # the sampler gets 30 s to be ready, and 90 s at its second try
HOST = "host"  # device of a machine that is not a board of config/devices/


@dataclass(frozen=True)
class Subject:
    """A device of the configuration on this machine."""

    checkout: Path
    name: str
    device: Device
    machine: Machine

    @property
    def python(self) -> list[str]:
        """Command of the interpreter that has torch."""
        return self.device.python or [sys.executable]

    @property
    def file(self) -> str:
        """The device's file, for messages."""
        return f"{DEVICES}/{self.name}.yaml"

    @property
    def power(self) -> str:
        """The power source of the device file."""
        return str(self.machine.settings["power_source"])


def choose(checkout: Path, name: str | None) -> Subject:
    """Return the device of that name; without a name, the board at hand, or else the host."""
    devices = Devices(checkout)
    if name is None:
        name = next(iter(devices.here()), HOST)
    device = devices.get(name, "--device")
    return Subject(checkout, name, device, open_machine(settings_of(device, device.instances[0])))


def settings_of(device: Device, instance: str) -> Document:
    """Return the machine's settings for jobs of a unit that use its first storage medium."""
    backend = ("jetson" if device.sysroot == "/" else "fake") if device.board else "host"
    factors = {"backend": backend, "instance": instance, "storage": next(iter(device.storage))}
    return machine_settings(factors, device)


def libraries(subject: Subject) -> Document:
    """Try which libraries and GPU the device's interpreter has; return the answer of the trial.

    Raises LockedError: something is measured on this machine, which this would disturb;
    EpochwattError: the interpreter cannot be started, fails or does not answer.
    """
    with machine_lock().acquire({"self-test in": str(subject.checkout)}):
        return run_trial(subject.python, ["libraries"], IMPORTS_S, subject.checkout)


@dataclass(frozen=True)
class Recording:
    """Samples of some seconds."""

    folder: Path  # samples-*.csv and telemetry.json
    statistics: Document
    jtop_cpu_s: float  # CPU time of the jtop service during it; 0: there is none


@contextmanager
def recording(subject: Subject, seconds: float) -> Iterator[Recording]:
    """Run the sampler of the device as during a training; its files are removed at the end.

    They are written below measured/, so that the disk is the same.

    Raises LockedError: something is measured on this machine; EpochwattError: the sampler cannot
    run.
    """
    measured = subject.checkout / MEASURED
    try:
        measured.mkdir(exist_ok=True)
        folder = Path(tempfile.mkdtemp(prefix=".doctor-", dir=measured))
    except OSError as error:
        raise EpochwattError(
            f"cannot write to {measured}: {error.strerror}", do=ADVICE.get(error.errno or 0)
        ) from error
    try:
        with machine_lock().acquire({"self-test in": str(subject.checkout)}):
            recorded = _record(subject, folder, seconds)
        yield recorded
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _record(subject: Subject, folder: Path, seconds: float) -> Recording:
    """Sample into a folder for some seconds; raises EpochwattError: the sampler was lost."""
    before_s = cpu_s_of("jtop")
    words = ["sampler", str(folder.absolute()), str(folder.absolute())]
    words += [subject.machine.root, subject.power, str(seconds)]
    statistics = run_trial(subject.python, words, START_S + seconds, subject.checkout)
    if statistics.get("lost"):
        raise EpochwattError(f"the sampler was lost: {statistics['reason']}")
    return Recording(folder, statistics, max(0.0, cpu_s_of("jtop") - before_s))


def run_trial(python: list[str], words: list[str], timeout_s: float, checkout: Path) -> Document:
    """Run a part of `epochwatt.board.training.trial` and return its answer.

    Where a library ended the process or took too long, the answer is what was known before that.

    Raises EpochwattError: the interpreter cannot be started, fails or does not answer.
    """
    command = [*python, "-m", "epochwatt.board.training.trial", *words]
    paths = [str(Path(epochwatt.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    shown = " ".join(python)
    try:
        done = subprocess.run(
            command,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
            cwd=checkout,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
    except OSError as error:
        do = "name the interpreter that has torch under `python:` of the device file"
        raise EpochwattError(f"{shown} cannot be started: {error.strerror}", do=do) from error
    except subprocess.TimeoutExpired:
        do = "try again, since files of a memory card are in memory now; else see how far "
        do += f"{shown} -X importtime -c 'import torch' comes"
        raise EpochwattError(f"{shown} did not answer within {timeout_s:g} s", do=do) from None
    last = done.stdout.strip().rpartition("\n")[2]
    answer: Document = json.loads(last) if last.startswith("{") else {}
    if answer and done.returncode == 0:
        return answer
    remedy = remedies.of_status(done.returncode, shown)
    if "trying" in answer and remedy:
        step = answer.pop("trying")
        answer["errors"][step] = f"{remedy.cause} ({remedy.line})"
        return answer | {"remedies": {step: remedy.do}}
    why = (done.stderr.strip() or last or f"exit status {done.returncode}").rpartition("\n")[2]
    if remedy is None:
        raise EpochwattError(f"{shown} failed: {why}")
    raise EpochwattError(f"{shown} failed: {remedy.cause} ({remedy.line})", do=remedy.do)


def running(names: frozenset[str], proc: Path = Path("/proc")) -> dict[int, str]:
    """Return the processes of these names: process id -> name."""
    programs = {}
    for path in proc.glob("[0-9]*/comm"):
        try:
            name = path.read_text("utf-8", errors="replace").strip()
        except OSError:  # it has ended
            continue
        if name in names:
            programs[int(path.parent.name)] = name
    return programs


def cpu_s_of(name: str, proc: Path = Path("/proc")) -> float:
    """Return the CPU time of all processes of a name so far, s."""
    ticks = 0
    for pid in running(frozenset([name]), proc):
        try:
            stat = (proc / str(pid) / "stat").read_text("utf-8", errors="replace")
        except OSError:
            continue
        ticks += sum(map(int, stat.rpartition(")")[2].split()[11:13]))  # user and system
    return ticks / os.sysconf("SC_CLK_TCK")
