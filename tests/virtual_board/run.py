"""Start of a virtual board, and the checks that run inside it, a line for each."""

import compileall
import json
import random
import re
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from py_compile import PycInvalidationMode
from typing import Any

from epochwatt.board.device.kinds import Kind
from epochwatt.errors import EpochwattError
from tests.fakeboard.board import make_board
from tests.fakeboard.kinds import FakeKind

from .build import CACHE, HERE, Kernel, make_image, run
from .device_tree import write_blob

REPOSITORY = HERE.parents[1]
MEMORY_MIB = 1536
CPU = "max,pauth=off,sve=off"  # of QEMU's the one that takes least time
BOARD_PYTHON = (3, 11)
LIMIT_S = 900  # of a board; its checks take two to four minutes, on a busy machine longer
N_AT_ONCE = 3  # boards: each waits for seconds at a time
FIRST_ADDRESS = 0x40
N_CUTS, SEED = 5, 0
LATEST_CUT_S = 5.0  # after an epoch has ended; the next takes two seconds, its record one or two
MARK = "CHECK "
MEDIA = {  # transport -> what QEMU plays it by; check.py looks for each
    "sd": ["-device", "sdhci-pci", "-device", "sd-card,drive=sd"],
    "nvme": ["-device", "nvme,serial=1,drive=nvme"],
    "usb": ["-device", "qemu-xhci", "-device", "usb-storage,drive=usb"],
}

_running: set[subprocess.Popen[str]] = set()  # boards
_is_over = threading.Event()  # no further board starts
Line = dict[str, Any]  # of a check; without a verdict it is the end
Boot = Callable[..., Iterator[str]]


def check_board(kernel: Kernel, fake: FakeKind) -> bool:
    """Boot boards, print a line for each of their checks; return whether all are as expected."""
    start_s, cpu_s = time.monotonic(), _cpu_s()
    with tempfile.TemporaryDirectory(prefix="epochwatt-virtual-board-") as work:
        boot = _prepared(kernel, fake, Path(work))
        parts: list[Callable[[], list[Line]]] = [
            lambda: cut_power(boot, Path(work)),
            lambda: list(shown(boot("faults"))),
            lambda: list(shown(boot("check", "power"))),
            lambda: list(shown(boot("check", "settings"))),
        ]
        with ThreadPoolExecutor(N_AT_ONCE) as pool:
            try:
                lines = [line for done in pool.map(lambda part: part(), parts) for line in done]
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                _is_over.set()
                for board in list(_running):
                    board.kill()
                raise
    what = f"{fake.name} with Linux {kernel.version}, {_cpu_s() - cpu_s:.0f} s of CPU"
    return has_passed(what, lines, len(parts), time.monotonic() - start_s, kernel.folder)


def has_passed(what: str, lines: list[Line], n_boots: int, seconds: float, log: Path) -> bool:
    """Print a verdict; return whether every board came to its end and nothing differs."""
    n_failed = sum(line["is_right"] not in (True, None) for line in lines)
    n_ended = sum(line["is_right"] is None for line in lines)
    early = "" if n_ended == n_boots else ", and a board did not end where it should"
    print(
        f"{what}: {len(lines) - n_ended} checks, {n_failed} differ{early} "
        f"({seconds:.0f} s; console: {log})"
    )
    return n_ended == n_boots and not n_failed


def _cpu_s() -> float:
    """Return the CPU time of all boards that have ended, s."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def cut_power(boot: Boot, work: Path) -> list[Line]:
    """Kill a board again and again while it records epochs; return what it finds after each cut.

    What the board has not flushed is in its own memory and lost, as in a power cut.
    """
    disks = [work / "root.img", work / "data.img"]
    run("cp", "--sparse=always", CACHE / "root.img", disks[0])
    make_image(None, disks[1], 64)
    draw, n_ended = random.Random(SEED), 0
    lines: list[Line] = []
    for n in range(1, N_CUTS + 1):
        cut_s = draw.uniform(0.0, LATEST_CUT_S)
        ended: list[str] = []
        board = boot("faults", f"cut:{n_ended}", disks, cut_s)
        lines += shown(line for line in board if not _tells_epoch(line, ended))
        n_ended = int(ended[-1]) + 1 if ended else n_ended
        when = f"{cut_s:.2f} s after epoch {ended[0]} had ended" if ended else "not at all"
        _say(f"power cut {n} of {N_CUTS}, drawn with seed {SEED}: {when}")
    return lines + list(shown(boot("faults", f"end:{n_ended}", disks)))


def _tells_epoch(line: str, ended: list[str]) -> bool:
    """Note the number of an epoch that a board says has ended; return whether the line said so."""
    match = re.fullmatch(r"EPOCH (\d+)", line.strip())
    if match:
        ended.append(match.group(1))
    return match is not None


def _prepared(kernel: Kernel, fake: FakeKind, work: Path) -> Boot:
    """Make the files that belong to a board; return a function that starts it.

    That takes the program that checks and a word for it, disks to be written to, the root first
    (none: a fresh root that forgets, and one disk of each medium), and when to cut its power; it
    gives the lines of the console.
    """
    command = [*machine(kernel, fake, work, MEMORY_MIB), "-nic", "none"]
    fill(kernel, fake, work / "content")
    make_image(work / "content", work / "board.img", 64)
    for medium in MEDIA:
        make_image(None, work / f"{medium}.img", 64)

    def boot(
        program: str, word: str = "", disks: Sequence[Path] = (), cut_s: float | None = None
    ) -> Iterator[str]:
        forgets = ",snapshot=on"
        root = (disks[0], "") if disks else (CACHE / "root.img", forgets)
        drives = [root, (work / "board.img", forgets), *((path, "") for path in disks[1:])]
        words = [f"console=ttyAMA0 quiet panic=-1 mitigations=off CHECK={program} WORD={word}"]
        options = ["-append", *words]
        for n, (path, how) in enumerate(drives):
            options += ["-drive", f"file={path},format=raw,if=none,id=disk{n}{how}"]
            options += ["-device", f"virtio-blk-pci,drive=disk{n}"]
        for medium, devices in () if disks else MEDIA.items():
            image = f"file={work}/{medium}.img,format=raw{forgets}"
            options += ["-drive", f"{image},if=none,id={medium}", *devices]
        log = kernel.folder / f"console-{fake.name}-{program}-{word.replace(':', '-')}.log"
        return console([*command, *options], log, cut_s)

    return boot


def machine(kernel: Kernel, fake: FakeKind, work: Path, memory_mib: int) -> list[str]:
    """Return the words that start a board but for its disks; its device tree is written."""
    options = ["-M", "virt,gic-version=3", "-cpu", CPU, "-smp", str(fake.board.cores)]
    options += ["-m", str(memory_mib)]
    write_blob(options, fake.board, fake.release, work / "board.dtb")
    return [
        *("qemu-system-aarch64", *options, "-accel", "tcg,thread=multi", "-nodefaults"),
        *("-display", "none", "-serial", "stdio", "-no-reboot", "-dtb", f"{work}/board.dtb"),
        *("-kernel", f"{kernel.folder}/vmlinuz", "-initrd", f"{kernel.folder}/initrd.img"),
    ]


def fill(kernel: Kernel, fake: FakeKind, folder: Path) -> None:
    """Gather what a board has beside its root: our code, its modules and its text files."""
    no_bytecode = shutil.ignore_patterns("__pycache__")
    for package, target in (
        ("src/epochwatt", "src/epochwatt"),
        ("tests/fakeboard", "src/tests/fakeboard"),
    ):
        shutil.copytree(REPOSITORY / package, folder / target, ignore=no_bytecode)
    if sys.version_info[:2] == BOARD_PYTHON:  # each of its processes would compile what it imports
        compileall.compile_dir(
            folder / "src",
            quiet=1,
            stripdir=folder,
            prependdir="/board",
            invalidation_mode=PycInvalidationMode.UNCHECKED_HASH,
        )
    for name in ("start.sh", "check.py", "faults.py", "trainer.py"):
        shutil.copy(HERE / name, folder)
    for name in ("vboard.ko", "ina3221.ko"):
        shutil.copy(kernel.folder / "modules" / name, folder)
    parameters = {
        "cluster": [fake.board.cluster_cores],
        "cpu_khz": fake.cpu_khz,
        "gpu_khz": [hz // 1000 for hz in fake.gpu_hz],
        "gpu_device": [_below_devices(fake.release.gpu_device)],
        "gpu_links": [_below_devices(link) for link in fake.gpu_links if "devfreq" not in link],
        "zones": fake.release.zones,
        **planted(fake.board),
        "files": [_below_devices(path.replace("sys/kernel/", "kernel/")) for path in fake.caps],
    }
    words = (f"{key}={','.join(map(str, values))}" for key, values in parameters.items())
    (folder / "vboard.parameters").write_text(" ".join(words))
    with tempfile.TemporaryDirectory() as place:
        board = make_board(Path(place, "board"), fake.name)
        shutil.copytree(board.root / "etc", folder / "files/etc")
    for tool in ("usr/sbin/nvpmodel", "usr/bin/jetson_clocks"):
        path = folder / "files" / tool
        path.parent.mkdir(parents=True)
        shutil.copy(HERE / "stand_in.py", path)
        path.chmod(0o755)


def planted(kind: Kind) -> dict[str, list[int]]:
    """Return voltage and current of each channel of both chips; rails below others have less."""
    mv, ma = [0] * 6, [0] * 6
    for rail in kind.rails:
        n = 3 * (int(rail.chip.partition("-")[2], 16) - FIRST_ADDRESS) + rail.channel - 1
        mv[n] = rail.volt_mv
        ma[n] = (300 if rail.parent else 1500) + 100 * n
    return {"mv": mv, "ma": ma}


def _below_devices(path: str) -> str:
    return path.removeprefix("sys/devices/")


def console(
    command: list[str], log: Path, cut_s: float | None, limit_s: float = LIMIT_S
) -> Iterator[str]:
    """Start a board, give the lines of its console, keep them in a file; it never outlives this.

    With `cut_s` it is killed that long after it has said that an epoch has ended.
    """
    if _is_over.is_set():
        raise EpochwattError("ended before this board was started")
    with (
        open(log, "w", encoding="utf-8") as copy,
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as board,
    ):
        copy.write(shlex.join(command) + "\n")
        _running.add(board)
        end = threading.Timer(limit_s, board.kill)
        end.start()
        try:
            for line in board.stdout or ():
                copy.write(line)
                copy.flush()
                if cut_s is not None and line.startswith("EPOCH "):
                    threading.Timer(cut_s, board.kill).start()
                    cut_s = None
                yield line.rstrip()
        finally:
            end.cancel()
            board.kill()
            board.wait()
            _running.discard(board)


def shown(console: Iterator[str]) -> Iterator[Line]:
    """Print the checks that a console tells of, and give them; the last has no verdict."""
    for line in console:
        _, mark, words = line.partition(MARK)
        if not mark:
            continue
        one, _ = json.JSONDecoder().raw_decode(words)
        if one["is_right"] is not None:
            verdict = "ok      " if one["is_right"] is True else "DIFFERS "
            words = [_in_short(one[key]) for key in ("expected", "seen")]
            _say(f"{verdict}{one['check']:<52} expected {words[0]}   seen {words[1]}")
        yield one


def _say(line: str) -> None:
    """Print a line at once and whole, whichever board it is of."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _in_short(value: object) -> str:
    """Return a value in one line; of long words, as an error's, the beginning."""
    if isinstance(value, dict):
        value = ", ".join(f"{key} {item}" for key, item in value.items())
    return " ".join(str(value).split())[:110]
