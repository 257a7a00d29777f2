"""Checks inside a virtual board: our code against the kernel's drivers, each with a planted truth.

It runs as root, because it plants; what an ordinary user does runs in a process of that user.
"""

import glob
import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, "/board/src")

import numpy as np

from epochwatt.board.device import board_files, page_cache, storage
from epochwatt.board.device.helper_file import helper_file
from epochwatt.board.device.jetson import JetsonBoard
from epochwatt.board.device.root_helper import FOLDER, INSTALLED, STATE
from epochwatt.board.records.samples import read_source
from epochwatt.board.telemetry.client import Sampler
from epochwatt.epochs.telemetry import scope_energy
from epochwatt.errors import EpochwattError
from tests.fakeboard.kinds import find_kind
from tests.fakeboard.tools.board_files import FACTS, NVFANCONTROL
from tests.fakeboard.tools.nvpmodel import GPU_IN_USE

USER = 1000
PARAMETERS = Path("/sys/module/vboard/parameters")
CHIPS = "/sys/bus/i2c/drivers/ina3221/*/hwmon/hwmon*"
CYCLE_S = 3 * 2 * 1.1e-3  # three channels, current and voltage: the chip's default
CPU = "/sys/devices/system/cpu"
NOTHING = np.empty(0), np.empty(0)  # no loop runs, so nothing repeats

facts = json.loads(Path("/", FACTS).read_text())
kind, release = find_kind(facts["name"]).board, find_kind(facts["name"]).release
GPU = "/" + facts["gpu"]


def check(name, expected, seen, is_right=None):
    """Tell of a check; without a verdict the two have to be equal."""
    right = bool(expected == seen if is_right is None else is_right)
    told = {"check": name, "expected": expected, "seen": seen, "is_right": right}
    print("CHECK " + json.dumps(told, default=str), flush=True)


def plant(**values):
    for name, value in values.items():
        (PARAMETERS / name).write_text(f"{value}\n")


def planted(name):
    return [int(number) for number in (PARAMETERS / name).read_text().strip().split(",")]


def number(path):
    return int(Path(path).read_text())


def as_user(function, *words):
    """Return what a function returns in a process of the ordinary user, an error as its words."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.setgroups([])
        os.setgid(USER)
        os.setuid(USER)
        os.environ.update(HOME="/home/me", USER="me")
        os.setsid()
        try:
            answer = function(*words)
        except EpochwattError as error:
            answer = f"{type(error).__name__}: {error}"
        except Exception as error:  # noqa: BLE001
            answer = f"unexpected {error!r}"
        os.write(write, json.dumps(answer, default=str).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        answer = json.load(pipe)
    os.waitpid(child, 0)
    return answer


# -- power ---------------------------------------------------------------------------------------
def rails():
    """Return the planted power of each rail, W, by its label, the square wave apart."""
    mv, ma, places = planted("mv"), planted("ma"), {}
    for rail in kind.rails:
        n = 3 * (int(rail.chip[-2:], 16) - 0x40) + rail.channel - 1
        places[rail.label] = mv[n] * ma[n] / 1e6
    return places


def parts():
    return [rail.label for rail in kind.rails if rail.parent is None]


def truth_j(start_s, end_s):
    """Return the energy that the planted registers stand for in a window."""
    constant_w = sum(rails()[label] for label in parts())
    half_s, more_w = planted("square_ms")[0] / 1e3, planted("square_ma")[0] * planted("mv")[0] / 1e6
    if not half_s:
        return constant_w * (end_s - start_s)

    def high_s(until_s):
        whole, rest_s = divmod(until_s, 2 * half_s)
        return whole * half_s + max(0.0, rest_s - half_s)

    return constant_w * (end_s - start_s) + more_w * (high_s(end_s) - high_s(start_s))


class Window:
    """What the sampler has measured in some seconds, and the energy that was planted."""

    def __init__(self, sampler, name, seconds, midway=None):
        folder = f"/tmp/{name}"
        os.mkdir(folder)
        sampler.begin(folder)
        start_s = time.monotonic()
        time.sleep(seconds / 2)
        if midway:
            midway()
        time.sleep(seconds / 2)
        end_s = time.monotonic()
        statistics = sampler.end()
        self.truth_j = truth_j(start_s, end_s)
        self.middle_s = (start_s + end_s) / 2
        self.source = statistics["sources"]["sysfs"]
        self.board = statistics["sources"].get("board", {})
        self.table = read_source(folder, "sysfs", self.source)
        self.folder = folder
        if self.source["total"]:
            self.energy = scope_energy((start_s, end_s), self.table, self.source, NOTHING)

    def column(self, label):
        return self.table["power_module_w" if label == "module" else f"rail_{label.lower()}_w"]

    def mean(self, label):
        return round(float(np.nanmean(self.column(label))), 3)


def check_energy(name, window):
    """Check that the truth lies within the bound that we give of an energy."""
    energy = window.energy
    off_pct = 100 * (energy.energy_j / window.truth_j - 1)
    check(
        name,
        f"{window.truth_j:.2f} J",
        f"{energy.energy_j:.2f} J, off {off_pct:+.2f} %, bound {energy.error_pct:.2f} %",
        abs(energy.energy_j - window.truth_j) <= energy.error_pct / 100 * energy.energy_j,
    )


def check_power():
    with Sampler.start(os.getpid(), "/", 7, root="/", power="sysfs") as sampler:
        check("sources of the sampler", "module", sampler.sources.get("sysfs"))
        window = Window(sampler, "level", 8)
        for label, power_w in rails().items():
            check(f"power of {label}, W", round(power_w, 3), window.mean(label))
        total_w = round(sum(rails()[label] for label in parts()), 3)
        check("power of the module, W", total_w, window.mean("module"))
        check_energy("energy of a level load", window)
        check_memory_clock(window)

        square_ma = 1000
        for average in (1, 4, 16, 64):
            for chip in glob.glob(CHIPS):
                Path(chip, "samples").write_text(f"{average}\n")
            plant(square_ms=700, square_ma=square_ma)
            window = Window(sampler, f"square-{average}", 12)
            sensor = window.source["settings"]["sensor"]
            check(
                f"what an average of {average} covers, s",
                round((2 * average - 1) * CYCLE_S, 4),
                round(sensor["averaging_s"] or math.nan, 4),
            )
            check_energy(f"energy of a square wave, average of {average}", window)
            plant(square_ms=0, square_ma=0)
        for chip in glob.glob(CHIPS):
            Path(chip, "samples").write_text("1\n")
        check_faults(sampler)


def check_memory_clock(window):
    """Check the memory's clock, which is in an attribute of debugfs that knows no pread."""
    table = read_source(window.folder, "board", window.board)
    planted_mhz = number("/" + facts["emc_files"]["now"]) / 1e6
    check("memory clock as root sees it, MHz", planted_mhz, float(table["emc_mhz"][-1]))


def check_faults(sampler):
    first = sorted(glob.glob(CHIPS))[0]
    label = Path(first, "in1_label").read_text().strip()
    off = Window(sampler, "channel-off", 6, lambda: Path(first, "in1_enable").write_text("0\n"))
    late = off.table["t_mono_s"] > off.middle_s + 0.5
    check("a channel is switched off: its rail", "no reading", _none(off.column(label)[late]))
    check("a channel is switched off: the module", "no reading", _none(off.column("module")[late]))
    Path(first, "in1_enable").write_text("1\n")

    plant(i2c_hang_ms=0)
    hang = Window(sampler, "hang", 10, lambda: plant(i2c_hang_ms=3000))
    lost = int(np.isnan(hang.column("module")).sum())
    after = hang.table["t_mono_s"] > hang.middle_s + 3.5
    check("the bus hangs 3 s: rows without a reading", "1 to 3", lost, 1 <= lost <= 3)
    check("the bus hangs 3 s: rows after it", "some", int(after.sum()), after.sum() >= 5)

    broken = Window(sampler, "broken", 6, lambda: plant(i2c_errno=121))
    late = broken.table["t_mono_s"] > broken.middle_s + 0.5
    check("the bus fails: rows after it", "no reading", _none(broken.column("module")[late]))
    why = str(broken.source)
    check(
        "the bus fails: the cause is named",
        "Remote I/O",
        "Remote I/O" if "Remote I/O" in why else why[-300:],
    )
    plant(i2c_errno=0)
    check_energy("energy after the bus is whole again", Window(sampler, "mended", 4))


def _none(values):
    return "no reading" if np.isnan(values).all() else values.tolist()[:3]


# -- settings ------------------------------------------------------------------------------------
def settings():
    """Return how the board is set, out of the kernel's files."""
    online = [
        n for n in range(kind.cores) if Path(f"{CPU}/cpu{n}/online").read_text().strip() == "1"
    ]
    fan = board_files.fan_files("/")
    now = {"cores": len(online), "fan": [board_files.text(folder, name) for folder, name, _ in fan]}
    for end in ("min", "max"):
        now[f"cpu_{end}_khz"] = [number(f"{CPU}/cpu{n}/cpufreq/scaling_{end}_freq") for n in online]
        now[f"gpu_{end}_hz"] = number(f"{GPU}/{end}_freq")
    now["emc_cap_hz"] = number("/" + facts["emc_cap"])
    return now


def machine():
    return JetsonBoard(
        {
            "backend": "fake",
            "root": "/",
            "kind": kind.name,
            "unit": "",
            "storage": {"root": "/", "mount": "", "block_device": ""},
        }
    )


def applied(mode, dvfs):
    return machine().apply(mode, dvfs)["verified"]


def asked(verb, *numbers):
    return machine().ask_helper(verb, *numbers)


def check_settings():
    conf, before = board_files.board_conf("/"), settings()
    start = board_files.strongest(conf)
    status = as_user(asked, "status")
    shown = [status["kind"], status["nvpmodel"]["id"]]
    check("status: kind and mode", [kind.name, start.id], shown)
    check("it is never taken for a real board", "fake", as_user(lambda: machine().backend))

    if another_mode() is not None:
        check_named_mode(another_mode())
        check_restored(f"{another_mode().name}, fan-max", before)

    cpu_khz, gpu_hz, emc_hz = board_files.tables("/")
    middle = {"cores": kind.cores // 2, "cpu_mhz": cpu_khz[len(cpu_khz) // 2] / 1e3}
    middle["gpu_mhz"] = gpu_hz[len(gpu_hz) // 2] / 1e6
    if emc_hz:
        middle["emc_mhz"] = emc_hz[-2] / 1e6
    check("custom-mode and pin-clocks are verified", True, as_user(applied, middle, "off"))
    now = settings()
    check(f"{in_words(middle)}: in the kernel", middle, as_mode(now, "max", middle))
    check("pin-clocks: the lower limits", middle, as_mode(now, "min", middle))
    clocks = as_user(asked, "read-clocks")
    check("read-clocks: cores", list(range(middle["cores"])), clocks["cores_online"])
    cpu_mhz = sorted({khz / 1e3 for khz in clocks["cpu_khz"].values()})
    check("read-clocks: CPU, MHz", [middle["cpu_mhz"]], cpu_mhz)
    check("read-clocks: GPU, MHz", middle["gpu_mhz"], clocks["gpu_hz"] / 1e6)
    check_restored("custom-mode, pin-clocks, cores off", before)

    lowest = {"cores": 1, "cpu_mhz": cpu_khz[0] / 1e3, "gpu_mhz": gpu_hz[0] / 1e6}
    check("one core at the lowest clocks is verified", True, as_user(applied, lowest, "on"))
    check("one core: in the kernel", lowest, as_mode(settings(), "max", lowest))
    check_restored("one core", before)

    refused = as_user(asked, "custom-mode", 2, cpu_khz[0] + 1, gpu_hz[0], 0)
    check("a clock of no table", "was refused", refused, "was refused" in str(refused))
    for mode in conf.modes:
        if board_files.masks(mode) != board_files.masks(start):
            gated = as_user(applied, {"nvpmodel": mode.name}, "on")
            is_right = str(gated).startswith("RebootNeeded")
            check(f"{mode.name}, which has another mask", "RebootNeeded", gated, is_right)
            break
    check_as(before, "after what was refused")
    plant(gpu_stuck_khz=gpu_hz[0] // 1000)
    unmet = as_user(applied, middle, "off")
    is_right = str(unmet).startswith("BoardError: the board did not take")
    check("a GPU that does not follow", "BoardError", unmet, is_right)
    plant(gpu_stuck_khz=0)
    check_restored("a clock that is not met", before)


def another_mode():
    """Return a mode that the running one can be left for without a restart; None: there is none."""
    conf = board_files.board_conf("/")
    start = board_files.strongest(conf)
    masks = board_files.masks(start)
    return next((m for m in conf.modes if m != start and board_files.masks(m) == masks), None)


def check_named_mode(mode):
    stock = next(one for one in release.modes if one.id == mode.id)
    limits = {"cores": stock.cores}
    for key, top, steps in (
        ("cpu_mhz", stock.cpu_khz[1] / 1e3, facts["cpu_khz"]),
        ("gpu_mhz", stock.gpu_hz[1] / 1e6, facts["gpu_hz"]),
    ):
        mhz = [step / (1e3 if key == "cpu_mhz" else 1e6) for step in steps]
        limits[key] = min(mhz, key=lambda step: abs(step - top)) if top > 0 else mhz[-1]
    check(f"{mode.name} is verified", True, as_user(applied, {"nvpmodel": mode.name}, "on"))
    now = settings()
    check(f"{mode.name}: in the kernel", limits, as_mode(now, "max", limits))
    check("fan-max", ["255"], now["fan"])


def in_words(mode):
    return ", ".join(f"{key} {value:g}" for key, value in mode.items())


def as_mode(now, end, keys):
    """Return settings in the words of a mode; clocks that differ between cores as a list."""
    cpu_mhz = sorted({khz / 1e3 for khz in now[f"cpu_{end}_khz"]})
    mode = {
        "cores": now["cores"],
        "cpu_mhz": cpu_mhz[0] if len(cpu_mhz) == 1 else cpu_mhz,
        "gpu_mhz": now[f"gpu_{end}_hz"] / 1e6,
        "emc_mhz": now["emc_cap_hz"] / 1e6,
    }
    return {key: mode[key] for key in keys}


def check_events():
    board, chip = machine(), sorted(glob.glob(CHIPS))[0]
    check("alarms of a healthy board", {"throttle": 0, "over_current": 0}, alarms_of(board))
    limit = Path(chip, "curr1_crit").read_text()
    Path(chip, "curr1_crit").write_text(f"{planted('ma')[0] // 2}\n")
    check("a current beyond its limit", {"throttle": 0, "over_current": 1}, alarms_of(board))
    Path(chip, "curr1_crit").write_text(limit)
    plant(throttling=1)
    check("a board that throttles", {"throttle": 1, "over_current": 1}, alarms_of(board))
    plant(throttling=0)
    check("alarms that are over stay counted", {"throttle": 1, "over_current": 1}, alarms_of(board))


def alarms_of(board):
    events = board.events()
    return {key: events[key] for key in ("throttle", "over_current")}


def check_as(before, what):
    now = settings()
    differs = {key: [before[key], now[key]] for key in before if before[key] != now[key]}
    check(what, "as before", differs or "as before")


def check_restored(what, before):
    as_user(lambda: machine().restore())
    check_as(before, f"restore after {what}")
    check(f"restore after {what}: nothing waits", False, os.path.exists(f"/{FOLDER}/{STATE}"))


def check_zones():
    """Check how a thermal zone is read whose part has no power: vboard.c answers EAGAIN."""
    for folder in sorted(glob.glob("/sys/class/thermal/thermal_zone*")):
        name = board_files.text(folder, "type")
        if name.lower().startswith("cv"):
            fd = os.open(f"{folder}/temp", os.O_RDONLY)
            try:
                answer = os.read(fd, 64)
            except OSError as error:
                answer = error.strerror
            os.close(fd)
            seen = board_files.text(folder, "temp")
            check(f"{name}, which has no power ({answer}): its text", "", seen)


# -- page cache and media --------------------------------------------------------------------------
def check_page_cache():
    path = "/home/me/data"
    Path(path).write_bytes(os.urandom(16 << 20))
    os.chown(path, USER, USER)
    os.sync()
    as_user(page_cache.fill, [path])
    check("page cache: filled, %", 100.0, as_user(page_cache.resident_pct, [path]))
    check("drop-caches", "dropped", as_user(lambda: machine().drop_page_cache([path])))
    check("page cache: dropped, %", 0.0, as_user(page_cache.resident_pct, [path]))


def check_media():
    devices = {"sd": "mmcblk0", "nvme": "nvme0n1", "usb": "sda"}
    for transport, device in devices.items():
        point = f"/data/{transport}"
        os.makedirs(point)
        deadline_s = time.monotonic() + 20
        while not os.path.exists("/dev/" + device) and time.monotonic() < deadline_s:
            time.sleep(0.2)
        subprocess.run(["busybox", "mount", "-t", "ext4", f"/dev/{device}", point], check=True)
        medium = storage.medium_of(point + "/data")
        check(
            f"medium of a {transport} disk", [device, transport], [medium.device, medium.transport]
        )
    try:
        storage.check_medium("/data/usb", "/data/usb", "nvme")
        seen = "taken"
    except EpochwattError:
        seen = "refused"
    check("a data set on another medium than its row", "refused", seen)
    everything = sorted(one.medium.transport for one in storage.media())
    check("all media", ["nvme", "sd", "usb", "virtual", "virtual"], everything)


# -- set-up --------------------------------------------------------------------------------------
def start_board(is_first=True):
    """Start the board in a mode, as nvpmodel does; at first, install the helper as a user does."""
    fan = Path(os.path.realpath(board_files.fan_files("/")[0][0]), "pwm1")
    facts["fan"].update(pwm=str(fan)[1:], now=str(fan)[1:], rpm=str(fan)[1:])
    Path("/", FACTS).write_text(json.dumps(facts))
    Path("/", NVFANCONTROL).parent.mkdir(parents=True)
    Path("/", NVFANCONTROL).write_text("1\n")
    strongest = board_files.strongest(board_files.board_conf("/"))
    remembered = int(Path("/var/lib/nvpmodel/status").read_text().partition(":")[2])
    first_id = strongest.id if is_first else remembered
    subprocess.run(["/usr/sbin/nvpmodel", "-m", str(first_id)], check=is_first)
    Path("/", GPU_IN_USE).touch()
    if not is_first:
        return None
    return subprocess.run(
        [sys.executable, "-m", "epochwatt.maintenance.board_setup", "setup"],
        env=dict(os.environ, SUDO_USER="me"),
        capture_output=True,
        text=True,
        check=False,
    )


def set_up():
    done = start_board()
    check("what `make setup-jetson` calls", 0, done.returncode and done.stderr)
    check("the helper is ours", True, Path("/", INSTALLED).read_bytes() == helper_file())
    check("kind of board, by the kernel's device tree", kind.name, board_files.board_kind("/"))
    tables = board_files.tables("/")
    check("CPU clocks, kHz", facts["cpu_khz"], list(tables.cpu_khz))
    check("GPU clocks, Hz", facts["gpu_hz"], list(tables.gpu_hz))


def run_parts(parts):
    """Run parts one by one; what breaks one differs from what is expected, and the next goes on."""
    for part in parts:
        start_s = time.monotonic()
        try:
            part()
        except Exception as error:  # noqa: BLE001
            import traceback

            traceback.print_exc()
            check(part.__name__, "no error", repr(error))
        print(f"{part.__name__}: {time.monotonic() - start_s:.0f} s", flush=True)
    print('CHECK {"is_right": null, "check": "end"}', flush=True)


PARTS = {  # a board for each, so that one computes while the other waits
    "settings": (set_up, check_settings, check_events, check_zones, check_page_cache, check_media),
    "power": (start_board, check_power),
}


def main():
    run_parts(PARTS[sys.argv[1]])


if __name__ == "__main__":
    main()
