"""Access to the files of a fake board, for its tools and its process.

A file is written in place and never shortened (what is left over becomes newlines): a reader never
sees half a number, and a handle that stays open sees the new one.
"""

import json
import os
import time
from collections.abc import Sequence
from typing import Any

FACTS = "etc/epochwatt-stand-in.json"
CPU = "sys/devices/system/cpu/"
NVFANCONTROL = "run/epochwatt-stand-in/nvfancontrol"  # 1 = the service of JetPack 5 and 6 runs


def nearest(value: float, steps: Sequence[int]) -> int:
    """Return the step nearest to a value."""
    return min(steps, key=lambda step: abs(step - value))


def cpu_list(cpus: Sequence[int]) -> str:
    """Return CPUs, ascending, as the kernel lists them: `0-3,6`."""
    runs: list[list[int]] = []
    for cpu in cpus:
        if runs and cpu == runs[-1][1] + 1:
            runs[-1][1] = cpu
        else:
            runs.append([cpu, cpu])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


class BoardFiles:
    """Reads and writes the files below a root; names are relative to it, or begin with a slash."""

    def __init__(self, root: str) -> None:
        self.root = root
        with open(self.path(FACTS), encoding="utf-8") as file:
            self.facts: dict[str, Any] = json.load(file)
        self.emc: dict[str, str] = self.facts["emc_files"]
        self._faults: dict[str, Any] = {}
        self._faults_at = 0

    def path(self, name: str) -> str:
        """Return the path of a board's file on the machine that plays the board."""
        return os.path.join(self.root, name.lstrip("/"))

    def exists(self, name: str) -> bool:
        """Say whether there is such a file."""
        return os.path.exists(self.path(name))

    def text(self, name: str) -> str:
        """Return what a file holds, stripped; raises OSError.

        Others empty a file before they write into it: one that is empty is read again.
        """
        for _ in range(20):
            with open(self.path(name), encoding="utf-8", errors="replace") as file:
                content = file.read().strip()
            if content:
                break
            time.sleep(0.001)
        return content

    def number(self, name: str) -> int:
        """Return the number that a file holds; raises OSError and ValueError."""
        return int(self.text(name))

    def write(self, name: str, value: object) -> None:
        """Write one line into a file that is there; raises OSError."""
        data = f"{value}\n".encode()
        fd = os.open(self.path(name), os.O_WRONLY)
        try:
            os.pwrite(fd, data.ljust(os.fstat(fd).st_size, b"\n"), 0)
        finally:
            os.close(fd)

    def clusters(self) -> list[tuple[str, list[int]]]:
        """Return cpufreq folder and CPUs of each cluster."""
        folder = (CPU + "cpufreq/policy{}/").format
        return [(folder(cpus[0]), list(cpus)) for cpus in self.facts["clusters"]]

    def cpus(self) -> list[int]:
        """Return all CPUs."""
        return [cpu for _, cpus in self.clusters() for cpu in cpus]

    def online(self) -> list[int]:
        """Return the CPUs that are switched on."""
        return [n for n in self.cpus() if self.text(f"{CPU}cpu{n}/online") == "1"]

    def emc_limit_hz(self) -> int:
        """Return the memory clock's highest step under the mode's cap; a cap of 0 is none."""
        steps, cap = self.facts["emc_hz"], self.number(self.facts["emc_cap"])
        allowed = [step for step in steps if not 0 < cap < step]
        return max(allowed or steps[:1])

    def faults(self) -> dict[str, Any]:
        """Return the faults that are on now (`model.FAULTS`)."""
        path = self.path("run/epochwatt-stand-in/faults.json")
        changed_at = os.stat(path).st_mtime_ns
        if changed_at != self._faults_at:
            with open(path, encoding="utf-8") as file:
                self._faults = json.load(file)
            self._faults_at = changed_at
        return self._faults

    def set_clocks(
        self, cpu: float = 0.0, gpu: float = 0.0, limit: float = 1.0, gpu_limit: float = 1.0
    ) -> dict[str, float]:
        """Let the clocks follow the load (0 to 1) within their bounds, as governors do.

        The memory is as busy as the busier of the two; the limits are the shares of the highest
        clock that are left when the hardware throttles. Returns the clocks `cpu` (mean over the
        CPUs online), `gpu` and `emc` as shares of their highest.
        """
        online = self.online()
        self.write(CPU + "online", cpu_list(online))  # the kernel's own lists
        self.write(CPU + "offline", cpu_list([n for n in self.cpus() if n not in online]))
        shares = []
        for folder, cpus in self.clusters():
            cores = [n for n in cpus if n in online]
            if cores:
                shares.extend([self._set_cpu(folder, cpu, limit)] * len(cores))
        folder = self.facts["gpu"] + "/"
        low, high = self.number(folder + "min_freq"), self.number(folder + "max_freq")
        gpu_hz = _step(self.facts["gpu_hz"], low, high, gpu, gpu_limit)
        self.write(folder + "cur_freq", gpu_hz)
        steps = self.facts["emc_hz"]
        if "locked" in self.emc and self.number(self.emc["locked"]):
            emc_hz = nearest(self.number(self.emc["wanted"]), steps)  # whatever the mode's cap is
        else:
            low, high = self.number(self.emc["min"]), self.emc_limit_hz()
            emc_hz = _step(steps, low, high, max(cpu, gpu), 1.0)
        self.write(self.emc["now"], emc_hz)
        return {
            "cpu": sum(shares) / len(shares),
            "gpu": gpu_hz / float(self.facts["gpu_hz"][-1]),
            "emc": emc_hz / float(self.facts["emc_hz"][-1]),
        }

    def _set_cpu(self, folder: str, load: float, limit: float) -> float:
        steps = self.facts["cpu_khz"]
        low, high = (self.number(folder + f"scaling_{end}_freq") for end in ("min", "max"))
        governor = self.text(folder + "scaling_governor")
        if governor == "userspace":
            low = high = self.number(folder + "scaling_setspeed")
        elif governor == "performance":
            low = high
        khz = _step(steps, low, high, load, limit)
        self.write(folder + "scaling_cur_freq", khz)
        held_back = float(self.faults().get("held_back", 1.0))
        measured = int(held_back * (khz - khz // 1000))  # a bit less, when all is well
        self.write(folder + "cpuinfo_cur_freq", measured)
        return held_back * khz / float(steps[-1])


def _step(steps: Sequence[int], low: int, high: int, load: float, limit: float) -> int:
    """Return the lowest step that serves a load, within bounds and below a throttling limit."""
    wanted = low + (high - low) * min(1.0, 1.25 * load)  # a governor leaves a fifth free
    ceiling = min(high, int(limit * steps[-1]))
    allowed = [step for step in steps if step <= ceiling] or list(steps[:1])
    return next((step for step in allowed if step >= wanted), allowed[-1])
