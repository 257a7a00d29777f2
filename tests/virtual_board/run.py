"""Start of a virtual board, and the checks that run inside it, a line for each."""

import json
import random
import shlex
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from epochwatt.device.kinds import Kind
from tests.fakeboard.board import make_board
from tests.fakeboard.kinds import FakeKind

from .build import CACHE, HERE, Kernel, make_image, run
from .device_tree import write_blob

REPOSITORY = HERE.parents[1]
MEMORY_MIB = 1536
LIMIT_S = 900  # checks take two to four minutes; a busy machine takes longer
FIRST_ADDRESS = 0x40
N_CUTS = 2
MARK = "CHECK "
MEDIA = {  # transport -> what QEMU plays it by; check.py looks for each
    "sd": ["-device", "sdhci-pci", "-device", "sd-card,drive=sd"],
    "nvme": ["-device", "nvme,serial=1,drive=nvme"],
    "usb": ["-device", "qemu-xhci", "-device", "usb-storage,drive=usb"],
}

Line = dict[str, Any]  # of a check; without a verdict it is the end
Boot = Callable[..., Iterator[str]]


def check_board(kernel: Kernel, fake: FakeKind) -> bool:
    """Boot a board, print a line for each of its checks; return whether all are as expected.

    A second board is killed while it records epochs, and started again from its disks.
    """
    log = kernel.folder / f"console-{fake.name}.log"
    log.unlink(missing_ok=True)
    start_s = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="epochwatt-virtual-board-") as work:
        boot = _prepared(kernel, fake, Path(work), log)
        lines = list(shown(boot("", [])))
        n_boots = 1 + cut_power(boot, Path(work), lines)
    what = f"{fake.name} with Linux {kernel.version}"
    return has_passed(what, lines, n_boots, time.monotonic() - start_s, log)


def has_passed(what: str, lines: list[Line], n_boots: int, seconds: float, log: Path) -> bool:
    """Print a verdict; return whether every board came to its end and nothing differs."""
    n_failed = sum(line["is_right"] not in (True, None) for line in lines)
    n_ended = sum(line["is_right"] is None for line in lines)
    early = "" if n_ended == n_boots else ", and a board ended before its last"
    print(
        f"{what}: {len(lines) - n_ended} checks, {n_failed} differ{early} "
        f"({seconds:.0f} s; console: {log})"
    )
    return n_ended == n_boots and not n_failed


def cut_power(boot: Boot, work: Path, lines: list[Line]) -> int:
    """Kill a board at drawn moments while it records, check what is left; return how often.

    What the board has not flushed is in its own memory and lost, as in a power cut.
    """
    draw = random.Random(0)
    for nth in range(N_CUTS):
        disks = [work / f"root-{nth}.img", work / f"data-{nth}.img"]
        run("cp", "--sparse=always", CACHE / "root.img", disks[0])
        make_image(None, disks[1], 64)
        n_finished = sum("EPOCH" in line for line in boot("cut", disks, draw.uniform(0.0, 2.0)))
        print(f"the power was cut after epoch {n_finished - 1}", flush=True)
        lines += shown(boot(str(n_finished), disks))
        for disk in disks:
            disk.unlink()
    return N_CUTS


def _prepared(kernel: Kernel, fake: FakeKind, work: Path, log: Path) -> Boot:
    """Make the files that belong to a board; return a function that starts it.

    That takes a word for the board, disks to be written to, the root first (none: a fresh root
    that forgets, and one disk of each medium), and when to cut its power; it gives the lines of
    the console.
    """
    command = [*machine(kernel, fake, work, MEMORY_MIB), "-nic", "none"]
    fill(kernel, fake, work / "content")
    make_image(work / "content", work / "board.img", 64)
    for medium in MEDIA:
        make_image(None, work / f"{medium}.img", 64)

    def boot(word: str, disks: Sequence[Path], cut_s: float | None = None) -> Iterator[str]:
        kept = [*disks[:1], work / "board.img", *disks[1:]] if disks else []
        fresh = [] if disks else [CACHE / "root.img", work / "board.img"]
        words = [f"console=ttyAMA0 quiet panic=-1 mitigations=off WORD={word}"]
        drives = [(path, "") for path in kept] + [(path, ",snapshot=on") for path in fresh]
        options = ["-append", *words]
        for n, (path, how) in enumerate(drives):
            options += ["-drive", f"file={path},format=raw,if=none,id=disk{n}{how}"]
            options += ["-device", f"virtio-blk-pci,drive=disk{n}"]
        for medium, devices in () if disks else MEDIA.items():
            options += ["-drive", f"file={work}/{medium}.img,format=raw,if=none,id={medium}"]
            options += devices
        return console([*command, *options], log, cut_s)

    return boot


def machine(kernel: Kernel, fake: FakeKind, work: Path, memory_mib: int) -> list[str]:
    """Return the words that start a board but for its disks; its device tree is written."""
    options = ["-M", "virt,gic-version=3", "-cpu", "cortex-a57", "-smp", str(fake.board.cores)]
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
    for name in ("start.sh", "check.py"):
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

    With `cut_s` it is killed that long after it has recorded its second epoch.
    """
    with open(log, "a", encoding="utf-8") as copy:
        copy.write(shlex.join(command) + "\n")
        board = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        end = threading.Timer(limit_s, board.kill)
        end.start()
        try:
            for line in board.stdout or ():
                copy.write(line)
                copy.flush()
                if cut_s is not None and line.strip() == "EPOCH 1":
                    threading.Timer(cut_s, board.kill).start()
                yield line.rstrip()
        finally:
            end.cancel()
            board.kill()
            board.wait()


def shown(console: Iterator[str]) -> Iterator[Line]:
    """Print the checks that a console tells of, and give them; the last has no verdict."""
    for line in console:
        _, mark, words = line.partition(MARK)
        if not mark:
            continue
        one, _ = json.JSONDecoder().raw_decode(words)
        if one["is_right"] is not None:
            verdict = "ok      " if one["is_right"] is True else "DIFFERS "
            told = [_in_short(one[key]) for key in ("expected", "seen")]
            print(f"{verdict}{one['check']:<52} expected {told[0]}   seen {told[1]}", flush=True)
        yield one


def _in_short(value: object) -> str:
    """Return a value in one line; of long words, as an error's, the beginning."""
    if isinstance(value, dict):
        value = ", ".join(f"{key} {item}" for key, item in value.items())
    return " ".join(str(value).split())[:110]
