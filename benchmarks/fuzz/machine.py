"""What a machine tells, damaged: /proc, /sys, nvpmodel.conf, tegrastats, jtop."""

import json
import os
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.fuzz.target import Target, on_file
from epochwatt.board.device import alarms, board_files, clocks, host, root_helper, storage
from epochwatt.board.device.identity import identify
from epochwatt.board.device.jetson import JetsonBoard
from epochwatt.board.device.machine import Machine
from epochwatt.board.telemetry import jtop_source
from epochwatt.board.telemetry.board import BoardSource
from epochwatt.board.telemetry.host import HostSource
from epochwatt.board.telemetry.ina3221 import Ina3221Source
from epochwatt.board.telemetry.rapl import RaplSource
from epochwatt.board.telemetry.source import READ_ERRORS
from epochwatt.board.telemetry.tegrastats import parse_line
from tests.fakeboard.board import make_board

BOARDS = ("agx_xavier", "agx_orin-jp6", "nano")
TEGRASTATS = (
    b"11-21-2025 08:49:48 RAM 13983/62780MB (lfb 424x4MB) SWAP 126/31390MB (cached 0MB) CPU "
    b"[90%@2201,off] EMC_FREQ 1%@2133 GR3D_FREQ 0%@[0,114] NVENC off cpu@48.5C tj@-256C "
    b"VDD_GPU_SOC 3197mW/3197mW VIN_SYS_5V0 5045mW/5045mW",
    b"RAM 1766/3964MB (lfb 197x4MB) SWAP 0/2048MB (cached 0MB) IRAM 0/252kB(lfb 252kB) CPU "
    b"[24%@1224,15%@1224,off] EMC_FREQ 6%@1600 GR3D_FREQ 7%@768 APE 25 PLL@30C POM_5V_IN 2518/2518",
)
JTOP = {
    "power": {
        "rail": {"VDD_GPU_SOC": {"power": 8000, "online": True}, "VIN_SYS_5V0": {"power": 9000}},
        "tot": {"power": 17000, "name": "VDD_IN"},
    },
    "gpu": {"ga10b": {"status": {"load": 62.5}, "freq": {"cur": 918000}}},
    "memory": {"RAM": {"tot": 1}, "EMC": {"cur": 2133000, "val": 30}},
    "fan": {"pwmfan": {"speed": [20.0]}},
    "temperature": {"CPU": {"temp": 48.5, "online": True}, "CV0": {"temp": -256}},
}
JTOP_3 = {
    "power": [{"cur": 9000, "avg": 1}, {"GPU": {"cur": 8000}, "SYS5V": {"cur": 1000}}],
    "gpu": {"val": 17, "frq": 921600},
    "emc": {"val": 6, "frq": 1600000},
    "fan": {"measure": 33.5},
    "temperature": {"CPU": 31.5, "thermal": 30.0},
}
PROC = {
    "proc/stat": "cpu  100 0 100 700 50 0 0 0 0 0\ncpu0 1 2 3\n",
    "proc/meminfo": "MemTotal: 4096 kB\nMemAvailable: 1024 kB\n"
    "SwapTotal: 2048 kB\nSwapFree: 9 kB\n",
    "proc/cpuinfo": "processor\t: 0\nmodel name\t: Intel(R) Xeon(R)\n",
    "proc/self/mountinfo": "26 1 8:1 / / rw,noatime shared:1 - ext4 /dev/sda1 rw\n"
    "30 26 0:22 / /mnt/a\\040b rw - tmpfs tmpfs rw\n",
    "proc/100/stat": "100 (odd) na(me) S 1 0 0 0 0 0 0 0 0 0 5 6 7 8 20 0\n",
    "proc/100/io": "rchar: 9\nread_bytes: 4096\nwrite_bytes: 8192\n",
    "proc/100/task/100/children": "101 102 ",
    "proc/sys/kernel/random/boot_id": "e49086e4-5926-4b04-b926-e87bcce2e55c\n",
    "sys/dev/block/8:1/stat": "10 0 20 0 7 0 30 0 0 0 0\n",
    "sys/class/powercap/intel-rapl:0/name": "package-0\n",
    "sys/class/powercap/intel-rapl:0/energy_uj": "123456\n",
    "sys/class/powercap/intel-rapl:0/max_energy_range_uj": "262143328850\n",
    "sys/block/sda/queue/rotational": "1\n",
}


def targets(folder: Path) -> Iterator[Target]:
    """Return what reads the machine; `folder` takes its made-up files."""
    yield from _host(folder / "targets/host")
    for kind in BOARDS:
        yield from _board(folder / "targets" / kind, kind)
    goods = [*TEGRASTATS, *(line[: len(line) // 2] for line in TEGRASTATS)]
    read = lambda c: parse_line(c.decode("utf-8", "replace"))  # noqa: E731
    yield Target("tegrastats line", "text", goods, read, share=20)
    for name, told in (("jtop 4", JTOP), ("jtop 3", JTOP_3)):
        good = json.dumps(told).encode("utf-8")
        yield Target(name, "json", [good], _jtop(told), "", READ_ERRORS)
    yield from _clocks(folder / "targets/clocks")


def _jtop(good: dict[str, Any]) -> Callable[[bytes], Any]:
    """Return a reader of what jtop's client shows; what no client could show is left out."""

    def read(content: bytes) -> Any:
        try:
            told = json.loads(content)
        except (ValueError, RecursionError):
            return None
        shown = {key: told.get(key) if isinstance(told, dict) else None for key in good}
        if isinstance(shown["power"], list):
            shown["power"] = tuple(shown["power"])
        if isinstance(good["power"], list):
            fan = shown["fan"]
            shown["fan"] = types.SimpleNamespace(**fan) if isinstance(fan, dict) else None
        return jtop_source.reading(types.SimpleNamespace(**shown), "agx_xavier")

    return read


def _write(root: Path, texts: dict[str, str]) -> list[Path]:
    for name, text in texts.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return [root / name for name in texts]


def _host(root: Path) -> Iterator[Target]:
    paths = _write(root, PROC)
    settings = {"backend": "host", "root": str(root), "kind": "", "unit": "", "storage": {}}
    machine = Machine(settings)

    def read() -> None:
        machine.events()
        machine.busy_pct(0.0)
        storage.media(str(root))
        storage.medium_of("/mnt/a b/c", str(root))
        _sampled(lambda: HostSource(str(root), 100, str(root)))
        _sampled(lambda: RaplSource(str(root), sleep=lambda s: None))
        with _proc_of(root):
            host.describe()
            host.boot_id()

    for path in paths:
        yield on_file(path, "text", read, str(path.relative_to(root)), "", 3)


class _proc_of:  # noqa: N801  a context manager
    """Lets `host` read below another root."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def __enter__(self) -> None:
        self.read = host._read
        host._read = lambda path: self.read(str(self.root) + path)

    def __exit__(self, *_: Any) -> None:
        host._read = self.read


def _sampled(make: Callable[[], Any]) -> None:
    """Read a source twice; what it documents is caught by `discover` and by the sampler."""
    source = None
    try:
        source = make()
        source.start()
        for _ in range(2):
            source.values(source.take())
        source.settings()
    except READ_ERRORS:
        pass
    finally:
        if source is not None:
            source.close()


def _board(root: Path, kind: str) -> Iterator[Target]:
    make_board(root, kind)
    _write(root, {n: t for n, t in PROC.items() if not (root / n).exists()})
    settings = {"backend": "fake", "root": str(root), "kind": "", "unit": "", "storage": {}}

    def read() -> None:
        board = JetsonBoard(settings)
        board.describe()
        board.events()
        identity = identify(str(root))
        clocks.summary(board_files.read_clocks(str(root)))
        alarms.throttling(str(root))
        alarms.over_current(str(root))
        _sampled(lambda: BoardSource(str(root)))
        _sampled(lambda: Ina3221Source(str(root), identity.kind if identity else ""))

    for path in _read_files(root):
        name = f"{kind}: {path.relative_to(root)}"
        yield on_file(path, "text", read, name, "", 0.3)


def _read_files(root: Path) -> list[Path]:
    """Return files of a made-up board that are read, but for the programs."""
    found = []
    for place in ("sys", "proc", "etc"):
        for folder, _, names in os.walk(root / place):
            paths = (Path(folder) / name for name in names)
            found += [p for p in paths if p.is_file() and not p.is_symlink()]
    return sorted(found)


def _clocks(root: Path) -> Iterator[Target]:
    make_board(root, "agx_xavier")
    path = root / "etc/nvpmodel.conf"
    steps = {"cpu_mhz": [100.0, 200.0], "gpu_mhz": [], "emc_mhz": [300.0]}

    def read() -> None:
        conf = board_files.board_conf(str(root))
        for mode in conf.modes:
            clocks.limits(mode, steps)
        board_files.custom_conf(conf, 0, 0, 0, 0, board_files.tables(str(root)))

    target = on_file(path, "text", read, "nvpmodel.conf", "")
    yield target._replace(allowed=(ValueError,))  # its docstring; the callers say where
    state = {"boot_id": "a", "mode": 1, "pinned": False, "fan_is_max": False, "fan": {}}
    good = json.dumps({**state, "fan_service": False}).encode("utf-8")
    helper = root / "state"
    helper.mkdir()

    def restore(content: bytes) -> None:
        (helper / root_helper.STATE).write_bytes(content)
        before = os.getcwd()
        os.chdir(helper)
        try:
            root_helper.stored()
        finally:
            os.chdir(before)

    errors = (root_helper.HelperError,)
    yield Target("root helper's state", "json", [good], restore, "", errors)
