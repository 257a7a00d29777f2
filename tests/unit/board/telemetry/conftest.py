"""What tests of the sampler share: a clock that is told the time, a made-up /proc and /sys."""

import os
import types
from pathlib import Path
from typing import ClassVar

import pytest

CPU = "cpu  {} 0 100 {} 50 0 0 0 0 0\ncpu0 1 2 3\n"


class Clock:
    """A monotonic clock that moves when somebody sleeps, and a little with each look at it."""

    def __init__(self, t_s=1000.0):
        self.t_s = t_s
        self.wall_ahead_s = 1.7e9

    def __call__(self):
        self.t_s += 1e-6
        return self.t_s

    def sleep(self, seconds):
        self.t_s += seconds

    def wall(self):
        return self.t_s + self.wall_ahead_s


@pytest.fixture
def clock():
    return Clock()


class Root:
    """A folder that looks like / to the sources."""

    def __init__(self, path):
        self.path = path

    def __str__(self):
        return str(self.path)

    def write(self, name, text):
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(str(text), encoding="ascii")
        return path

    def cpu(self, busy, idle):
        self.write("proc/stat", CPU.format(busy, idle))

    def disk(self, device, reads, read_sectors, written_sectors):
        text = f"{reads} 0 {read_sectors} 0 7 0 {written_sectors} 0 0 0 0\n"
        self.write(f"sys/dev/block/{device}/stat", text)

    def process(self, pid, parent=1, ticks=(0, 0, 0, 0), io=(0, 0), children=None):
        """Make or change a process; `children` of None: a kernel without such files."""
        fields = f"S {parent} " + "0 " * 9 + " ".join(map(str, ticks)) + " 20 0\n"
        self.write(f"proc/{pid}/stat", f"{pid} (odd) na(me) {fields}")
        self.write(
            f"proc/{pid}/io",
            f"rchar: 9\nwchar: 9\nsyscr: 9\nsyscw: 9\nread_bytes: {io[0]}\n"
            f"write_bytes: {io[1]}\ncancelled_write_bytes: 9\n",
        )
        (self.path / f"proc/{pid}/task/{pid}").mkdir(parents=True, exist_ok=True)
        if children is not None:
            self.write(f"proc/{pid}/task/{pid}/children", " ".join(map(str, children)))


@pytest.fixture
def root(tmp_path):
    """A machine with a busy CPU, a trainer (process 100) and nothing else."""
    root = Root(tmp_path / "root")
    root.cpu(0, 0)
    root.write(
        "proc/meminfo",
        "MemTotal: 4096 kB\nMemFree: 1 kB\nMemAvailable: 1024 kB\n"
        "SwapTotal: 2048 kB\nSwapFree: 1536 kB\n",
    )
    root.process(100, children=[])
    return root


@pytest.fixture
def data_device(tmp_path):
    """Device number of the file system that holds the test's folder, as /sys names it."""
    number = os.stat(tmp_path).st_dev
    return f"{os.major(number)}:{os.minor(number)}"


class NVMLError(Exception):
    """As pynvml's: the code is an attribute."""

    def __init__(self, value):
        super().__init__(value)
        self.value = value


class FakeNvml:
    """Stands for the module pynvml; all its GPUs answer alike but for what they are.

    Parameters
    ----------
    instant_mw : what the field of instant power tells; 0: it is not supported
    broken : questions without an answer -> NVML's error
    uuids : of the machine's GPUs, in the order of the bus
    divided : those of them in MIG mode
    hidden : those that this user may not ask
    """

    NVMLError = NVMLError
    NVML_ERROR_NOT_SUPPORTED = 3
    NVML_CLOCK_GRAPHICS, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 0, 2, 0
    ANSWERS: ClassVar = {
        "nvmlDeviceGetPowerUsage": 61500,
        "nvmlDeviceGetTotalEnergyConsumption": 7250,
        "nvmlDeviceGetUtilizationRates": types.SimpleNamespace(gpu=83, memory=20),
        "nvmlDeviceGetTemperature": 47,
        "nvmlDeviceGetCurrentClocksThrottleReasons": 4,
        "nvmlDeviceGetName": b"NVIDIA Test",
        "nvmlDeviceGetArchitecture": 7,
        "nvmlDeviceGetEnforcedPowerLimit": 700000,
    }

    def __init__(self, instant_mw=0, broken=(), uuids=("GPU-1",), divided=(), hidden=()):
        self.instant_mw, self.broken = instant_mw, dict(broken)
        self.uuids, self.divided, self.hidden = list(uuids), divided, hidden
        self.asked, self.is_open = [], False

    def nvmlInit(self):
        self.is_open = True

    def nvmlShutdown(self):
        self.is_open = False

    def nvmlDeviceGetCount(self):
        return len(self.uuids)

    def nvmlDeviceGetHandleByIndex(self, index):
        if index >= len(self.uuids) or self.uuids[index] in self.hidden:
            raise NVMLError(2)
        return self.uuids[index]

    def nvmlDeviceGetUUID(self, handle):
        return handle.encode("ascii")  # as older modules

    def nvmlDeviceGetMigMode(self, handle):
        if not self.divided:
            raise NVMLError(3)
        return [int(handle in self.divided), 0]

    def nvmlDeviceGetClockInfo(self, handle, kind):
        return {0: 1980, 2: 3201}[kind]

    def nvmlDeviceGetFieldValues(self, handle, fields):
        value = types.SimpleNamespace(uiVal=self.instant_mw)
        return [types.SimpleNamespace(nvmlReturn=0 if self.instant_mw else 3, value=value)]

    def __getattr__(self, name):
        if name not in self.ANSWERS:
            raise AttributeError(name)

        def answer(handle, *kind):
            self.asked.append(name)
            if name in self.broken:
                raise NVMLError(self.broken[name])
            return self.ANSWERS[name]

        return answer


@pytest.fixture
def fake_nvml():
    """The class that stands for pynvml; make one with the faults a test is about."""
    return FakeNvml


@pytest.fixture
def folder(tmp_path):
    """The folder of an epoch under way."""
    path = Path(tmp_path / "epoch-0.unfinished")
    path.mkdir()
    return str(path)
