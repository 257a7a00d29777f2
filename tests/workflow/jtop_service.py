"""The real jtop service on a made-up AGX Orin, in a mount namespace that leaves no trace.

Imported, it is `JtopService`. Run as a program by `unshare`, it makes a root of its own (all of the
machine's, but the made-up tree as /fake_sys and /sys, an empty /run and a group `jtop`) and turns
into the service there. With JTOP_TESTING=1 that service reads /fake_sys; its temperatures
come from /sys all the same.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

GROUP = "jtop:x:64999:\n"
START_S = 30.0
HWMON = "bus/i2c/devices/{}/hwmon/hwmon{}"
# label, mV, mA of the channels 1 to 3: 8, 4, 9 W, and 2 W below the last
CHANNELS = {
    HWMON.format("1-0040", 3): [
        ("VDD_GPU_SOC", 20000, 400),
        ("VDD_CPU_CV", 20000, 200),
        ("VIN_SYS_5V0", 5000, 1800),
    ],
    HWMON.format("1-0041", 4): [("NC", 0, 0), ("VDDQ_VDD2_1V8AO", 5000, 400), ("NC", 0, 0)],
}
SUPPLY = "class/power_supply/ucsi-source-psy-1-00081"  # USB-C: 5 V, 0.6 A
GPU, EMC = "devices/17000000.ga10b", "kernel/debug/bpmp/debug/clk/emc"
FILES = {
    "bus/i2c/devices/1-0040/name": "ina3221",
    "bus/i2c/devices/1-0041/name": "ina3221",
    f"{SUPPLY}/type": "USB",
    f"{SUPPLY}/online": 1,
    f"{SUPPLY}/voltage_now": 5_000_000,
    f"{SUPPLY}/current_now": 600_000,
    f"{GPU}/of_node/name": "ga10b\0",
    f"{GPU}/load": 625,
    f"{GPU}/devfreq/17000000.ga10b/cur_freq": 918_000_000,
    f"{GPU}/devfreq/17000000.ga10b/max_freq": 1_300_500_000,
    f"{EMC}/rate": 2_133_000_000,
    f"{EMC}/max_rate": 3_199_000_000,
    "kernel/actmon_avg_activity/mc_all": 63_990_000,
    "kernel/debug/clk/nvdec/clk_rate": 0,
    "class/hwmon/hwmon5/name": "pwmfan",
    "class/hwmon/hwmon5/pwm1": 51,
    "devices/virtual/thermal/thermal_zone0/type": "CPU-therm",
    "devices/virtual/thermal/thermal_zone0/temp": 48_500,
    "devices/virtual/thermal/thermal_zone1/type": "CV0-therm",
    "devices/virtual/thermal/thermal_zone1/temp": -256_000,
    "devices/virtual/dmi/id/sys_vendor": "made up",
    "stat": "cpu  10 0 10 80 0 0 0 0 0 0\n",
}
SERVICE = """
import runpy, sys
sys.base_prefix = "/run/prefix"  # where it keeps its configuration
sys.argv = ["jtop", "--force"]
runpy.run_module("jtop", run_name="__main__")
"""


def write(path: Path, value: object) -> None:
    """Write a file of a tree at once: the service may be reading it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(".new")
    new.write_text(str(value))
    new.rename(path)


def make_board(root: Path) -> None:
    """Make the files of the board: proc/device-tree and sys."""
    write(root / "proc/device-tree/compatible", "nvidia,p3701-0000\0nvidia,tegra234\0")
    sys_folder = root / "sys"
    for name, value in FILES.items():
        write(sys_folder / name, value)
    for core in range(12):
        (sys_folder / f"devices/system/cpu/cpu{core}").mkdir(parents=True)
    for monitor, channels in CHANNELS.items():
        for n, (label, mv, ma) in enumerate(channels, 1):
            write(sys_folder / monitor / f"in{n}_label", label)
            write(sys_folder / monitor / f"in{n}_input", mv)
            write(sys_folder / monitor / f"curr{n}_input", ma)
    (sys_folder / "bus/i2c/drivers/ina3221").mkdir(parents=True)
    for chip in ("1-0040", "1-0041"):
        (sys_folder / f"bus/i2c/drivers/ina3221/{chip}").symlink_to(f"../../devices/{chip}")
    clock = f"{GPU}/devfreq/17000000.ga10b"
    (sys_folder / "class/devfreq").mkdir(parents=True)
    (sys_folder / "class/devfreq/17000000.ga10b").symlink_to(f"../../{clock}")
    (sys_folder / clock / "device").symlink_to("../..")


class JtopService:
    """The service of one version, from `with` to its end.

    Parameters
    ----------
    python : interpreter that has jetson-stats
    folder : an empty folder of its own

    Attributes
    ----------
    board : root of the made-up board
    inside : a program that runs that interpreter where the service can be reached
    """

    def __init__(self, python: Path, folder: Path) -> None:
        self.board = folder / "board"
        self.inside = folder / "python"
        self._python = python
        self._folder = folder
        self._pid = folder / "pid"

    def __enter__(self) -> "JtopService":
        make_board(self.board)
        root = self._folder / "root"
        root.mkdir()
        words = ["setpriv", "--pdeathsig=KILL", "unshare", "--mount", "--pid", "--kill-child"]
        words += [sys.executable, __file__, self.board / "sys", root, self._pid, self._python]
        self._log = self._folder / "service.log"
        with self._log.open("w") as log:
            self._process = subprocess.Popen(words, stdout=log, stderr=log, start_new_session=True)
        self._wait_for_socket()
        enter = f"nsenter --target={self._pid.read_text()} --mount --root"
        self.inside.write_text(f"#!/bin/sh\nexec {enter} '{self._python}' \"$@\"\n")
        self.inside.chmod(0o755)
        return self

    def signal(self, number: int) -> None:
        """Send a signal to all processes of the service."""
        os.killpg(self._process.pid, number)

    def _wait_for_socket(self) -> None:
        end_s = time.monotonic() + START_S
        while not self._listens():
            if self._process.poll() is not None or time.monotonic() > end_s:
                self.__exit__()
                raise RuntimeError("the jtop service does not start:\n" + self._log.read_text())
            time.sleep(0.05)

    def _listens(self) -> bool:
        if not self._pid.exists():
            return False
        return Path(f"/proc/{self._pid.read_text()}/root/run/jtop.sock").exists()

    def __exit__(self, *exception: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.signal(signal.SIGKILL)
        self._process.wait()


def mount(*words: object) -> None:
    subprocess.run(["mount", *map(str, words)], check=True)


def make_root(tree: Path, root: Path) -> None:
    """Mount what the service is to see below `root`."""
    mount("-t", "tmpfs", "none", root)
    for entry in Path("/").iterdir():
        if entry.is_symlink():
            (root / entry.name).symlink_to(entry.readlink())
        elif entry.is_dir() and entry.name not in ("sys", "run"):
            (root / entry.name).mkdir()
            mount("--rbind", entry, root / entry.name)
    for name in ("sys", "fake_sys"):
        (root / name).mkdir()
        mount("--bind", tree, root / name)
    (root / "run").mkdir()
    groups = root / "run/group"
    shutil.copy("/etc/group", groups)
    with groups.open("a") as file:
        file.write(GROUP)
    mount("--bind", groups, root / "etc/group")


def main() -> None:
    tree, root, pid, python = map(Path, sys.argv[1:])
    make_root(tree, root)
    os.chroot(root)
    os.chdir("/")
    pid.write_text(os.readlink("/proc/self"))
    environment = {**os.environ, "JTOP_SERVICE": "1", "JTOP_TESTING": "1"}
    os.execve(python, [str(python), "-c", SERVICE], environment)


if __name__ == "__main__":
    main()
