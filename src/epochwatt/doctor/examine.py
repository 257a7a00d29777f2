"""`epochwatt doctor`: a self-test of at most a minute that tells what works and what to do.

It reads, samples for some seconds, and changes no setting of the machine.
"""

import os
import platform
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from epochwatt import __version__
from epochwatt.device import page_cache, storage
from epochwatt.device.board_files import text
from epochwatt.device.identity import identify
from epochwatt.device.jetson import JetsonBoard
from epochwatt.device.storage import Medium
from epochwatt.doctor import board as board_checks
from epochwatt.doctor import sensors
from epochwatt.doctor.finding import Finding, finding_lines
from epochwatt.doctor.subject import Recording, Subject, choose, libraries, recording, running
from epochwatt.errors import EpochwattError, LockedError
from epochwatt.study.place import MEASURED, medium_is_here, no_medium
from epochwatt.study.settings import ALLOW_ROOT
from epochwatt.text import counted

SECONDS = 10.0  # of samples
LOW_RAM_GIB = 4.5  # a board of 4 GB tells 3.9
LOW_SPACE_GIB = {MEASURED: 2.0, "data": 3.5}  # a checkpoint of VGG-11 twice; GLD-23k
BUSY_PCT = 10.0  # as the flag machine_busy
RESULTS = (MEASURED, "results")
_SESSIONS = ("gnome-shell", "compiz", "lxsession", "xfce4-session", "plasmashell", "kwin_wayland")
DESKTOP = frozenset(("gdm", "gdm3", "lightdm", "sddm", "lxdm", "Xorg", "X", "Xwayland", *_SESSIONS))
_DROP_CACHES = "/proc/sys/vm/drop_caches"


def doctor_lines(
    device: str | None = None, seconds: float = SECONDS, checkout: Path = Path()
) -> tuple[list[str], int]:
    """Look at a device on this machine.

    Parameters
    ----------
    device : a file of config/devices/; None: the board at hand, else `host`
    seconds : how long to sample
    checkout : the folder that holds config/

    Returns
    -------
    list of str : what was found, what to do
    int : exit status, 1 where there is a problem
    """
    subject = choose(checkout, device)
    findings = examine(subject, seconds)
    return report_lines(subject, findings), int(any(f.level == "problem" for f in findings))


def report_lines(subject: Subject, findings: list[Finding]) -> list[str]:
    """Return the findings under a line that says what was looked at."""
    head = f"epochwatt {__version__} doctor: device {subject.name}, {subject.device.title}"
    return [head, "", *finding_lines(findings)]


def examine(
    subject: Subject,
    seconds: float,
    and_then: Callable[[Recording], None] = lambda recorded: None,
) -> list[Finding]:
    """Return all findings, in order.

    Parameters
    ----------
    subject : what is looked at
    seconds : how long to sample
    and_then : what else to do with the samples before they are removed
    """
    machine = subject.machine
    findings = _of("machine", lambda: _machine(subject))
    if isinstance(machine, JetsonBoard):
        findings += _board(subject, machine)
    findings += _of("user", lambda: user(subject))
    findings += _of("desktop", desktop)
    findings += _of("load", lambda: load(subject))
    findings += _of("memory", lambda: memory(subject))
    findings += _of("swap", lambda: swap(subject))
    findings += _of("interpreter", lambda: interpreter(subject, libraries(subject)))
    findings += _of("storage", lambda: media(subject))
    findings += _of("results", lambda: results_place(subject))
    helped = any(f.topic == "root helper" and f.level == "ok" for f in findings)
    findings += _of("page cache", lambda: cache(subject, helped))
    return findings + _sensors(subject, seconds, and_then)


def _board(subject: Subject, board: JetsonBoard) -> list[Finding]:
    findings = _of("board", lambda: board_checks.identity(subject, board))
    if board.identity is None:
        return findings
    findings += _of("unit", lambda: board_checks.unit(subject, board.unit_names()))
    findings += _of("clocks", lambda: board_checks.tables(board))
    findings += _of("power modes", lambda: board_checks.modes(subject, board))
    findings += _of("root helper", lambda: board_checks.helper(board))
    findings += _of("root helper", lambda: board_checks.left_over(board))
    return findings + _of("throttling", lambda: board_checks.alarms_now(board))


def _of(topic: str, check: Callable[[], Iterator[Finding]]) -> list[Finding]:
    """Return what a check finds; one that fails is a finding itself and does not end the others."""
    try:
        return list(check())
    except LockedError:
        raise
    except (EpochwattError, OSError, ValueError, LookupError) as error:
        return [Finding("problem", topic, str(error) or repr(error))]


def _sensors(
    subject: Subject, seconds: float, and_then: Callable[[Recording], None]
) -> list[Finding]:
    """Return what the sampler and its sources tell."""

    def check() -> Iterator[Finding]:
        with recording(subject, seconds) as recorded:
            yield from sensors.sampler(recorded)
            yield from sensors.power(subject, recorded)
            yield from sensors.other_sources(subject, recorded)
            and_then(recorded)

    findings = _of("sampler", check)
    return findings + _of("temperature", lambda: sensors.temperatures(subject))


def _machine(subject: Subject) -> Iterator[Finding]:
    about: dict[str, Any] = subject.machine.describe()["machine"]
    yield Finding(
        "info",
        "machine",
        f"{about['cpu_model']}, {about['n_cpus']} CPUs, {about['architecture']}, Linux "
        f"{platform.release()}",
    )
    found = identify(subject.machine.root)
    if found is not None and not subject.device.board:
        yield Finding(
            "warning",
            "board",
            f"this is a Jetson board, {found.model} ({found.kind}), and {subject.file} is of none",
            "write a device file for it: docs/add-a-board.md; send `epochwatt bundle` in an issue",
        )


def user(subject: Subject) -> Iterator[Finding]:
    """Whether root is at work."""
    if os.geteuid() != 0:
        yield Finding("ok", "user", "an ordinary user")
        return
    refused = bool(subject.device.board) and not os.environ.get(ALLOW_ROOT)
    yield Finding(
        "problem" if refused else "warning",
        "user",
        "root" + ("; the workflow refuses to run as root on a board" if refused else ""),
        "run it as an ordinary user: jobs of root could change anything, and their files are "
        f"root's. In a container or CI: {ALLOW_ROOT}=1",
    )


def desktop(proc: Path = Path("/proc")) -> Iterator[Finding]:
    """Whether a desktop takes memory, CPU and GPU."""
    found = sorted(set(running(DESKTOP, proc).values()))
    if found:
        yield Finding(
            "warning",
            "desktop",
            f"a desktop runs ({', '.join(found)}): it takes memory and a share of the GPU",
            "sudo systemctl set-default multi-user.target, then restart (graphical.target is back)",
        )
    else:
        yield Finding("ok", "desktop", "none runs")


def load(subject: Subject) -> Iterator[Finding]:
    """Whether other programs are at work."""
    busy_pct = subject.machine.busy_pct(1.0)
    if busy_pct is None:
        yield Finding("info", "load", "this machine does not tell")
    elif busy_pct > BUSY_PCT:
        yield Finding(
            "warning",
            "load",
            f"{busy_pct:.0f} % of the CPUs are busy with other things",
            "end them before measuring; such epochs are flagged machine_busy on a board",
        )
    else:
        yield Finding("ok", "load", f"{busy_pct:.0f} % of the CPUs are busy")


def memory(subject: Subject) -> Iterator[Finding]:
    """Whether there is memory for a training beside Snakemake."""
    told = text(subject.machine.root, "proc/meminfo")
    kib = {key: int(n) for key, n in re.findall(r"^(\w+): +(\d+) kB$", told, re.M)}
    if "MemTotal" not in kib:
        yield Finding("info", "memory", "this machine does not tell")
        return
    gib = kib["MemTotal"] / 2**20
    found = f"{gib:.1f} GiB, {kib.get('MemAvailable', 0) / 2**20:.1f} of them free"
    if gib < LOW_RAM_GIB:
        do = "run Snakemake on a host over ssh (docs/jetson.md), and no desktop on the board"
        found += ": little for a training with Snakemake beside it"
        yield Finding("warning", "memory", found, do)
    else:
        yield Finding("ok", "memory", found)


def swap(subject: Subject) -> Iterator[Finding]:
    """Whether memory is swapped, above all into compressed memory, which costs CPU time."""
    rows = text(subject.machine.root, "proc/swaps").splitlines()[1:]
    areas = [(row.split()[0], int(row.split()[2]), int(row.split()[3])) for row in rows]
    used_mib = sum(used for *_, used in areas) / 1024
    zram = [name for name, *_ in areas if "zram" in name]
    if zram:
        n_areas = counted(len(zram), "areas")
        yield Finding(
            "warning",
            "swap",
            f"zram, which the CPU compresses ({n_areas}): {used_mib:.0f} MiB in use",
            "sudo systemctl disable --now nvzramconfig, then restart; where memory is short, a "
            "swap file on a disk that is not measured",
        )
    elif areas:
        level = "warning" if used_mib >= 1 else "ok"
        names = ", ".join(name for name, *_ in areas)
        yield Finding(level, "swap", f"{names}: {used_mib:.0f} MiB in use")  # type: ignore[arg-type]
    else:
        yield Finding("ok", "swap", "none")


def interpreter(subject: Subject, found: dict[str, Any]) -> Iterator[Finding]:
    """Whether the interpreter that measures has torch and the GPU, and which other libraries.

    Parameters
    ----------
    subject : what is looked at
    found : answer of `subject.libraries`
    """
    names = ("torch", "torchvision", "numpy", "PIL")
    versions = ", ".join(f"{name} {found[name]}" for name in names if found[name])
    python = f"{' '.join(subject.python)}: Python {found['python']}"
    missing = [name for name in names if not found[name]]
    if missing:
        yield Finding(
            "problem",
            "interpreter",
            f"{python}, without {', '.join(missing)} ({found['errors'][missing[0]]})",
            f"name the interpreter that owns torch under `python:` in {subject.file} "
            "(docs/jetson.md says how each JetPack gets one)",
        )
    else:
        yield Finding("ok", "interpreter", f"{python}, {versions}")
    if found["gpu"]:
        yield Finding("ok", "GPU", f"{found['gpu']}, CUDA {found['cuda']}: torch computes on it")
    elif found["torch"]:
        board = subject.machine.backend == "jetson"
        yield Finding(
            "problem" if board else "info",
            "GPU",
            f"torch sees none: {found['errors'].get('gpu', 'training is on the CPU')}",
            "install NVIDIA's own build of torch for this JetPack: docs/jetson.md" if board else "",
        )
    if subject.power == "jtop" and found["jtop"]:
        yield Finding("info", "jtop", f"jetson-stats {found['jtop']}")


def media(subject: Subject) -> Iterator[Finding]:
    """Whether each medium of the device is there, what it is and how much space it has."""
    named = set()
    for n, (name, medium) in enumerate(subject.device.storage.items()):
        root = subject.checkout / medium.root
        if why := no_medium(medium):
            yield Finding(
                "problem" if n == 0 else "info",
                "storage",
                f"{name} ({medium.title}): {why}",
                f"mount it, or correct {subject.file}; its runs are left alone meanwhile",
            )
            continue
        found = storage.medium_of(str(root))
        named.add(disk_of(found))
        yield _space("storage", f"{name}: {root}", found, root, LOW_SPACE_GIB["data"])
    for mounted in storage.media("/"):
        if disk_of(mounted.medium) not in named:
            found = mounted.medium
            yield Finding(
                "info",
                "storage",
                f"also here: {_told(found)}, {mounted.free_gib:.0f} GiB free",
                f"to measure it, name it under `storage` in {subject.file}",
            )


def results_place(subject: Subject) -> Iterator[Finding]:
    """Whether records are written to a medium that is measured."""
    tested: dict[tuple[str, str], list[str]] = {}
    for name, medium in subject.device.storage.items():
        if medium_is_here(medium):
            disk = disk_of(storage.medium_of(str(subject.checkout / medium.root)))
            tested.setdefault(disk, []).append(name)
    places: dict[Medium, list[str]] = {}
    for folder in RESULTS:
        lies_on = storage.medium_of(str((subject.checkout / folder).absolute()))
        places.setdefault(lies_on, []).append(folder)
    for found, folders in places.items():
        what, path = "/ and ".join(folders) + "/", subject.checkout / folders[0]
        yield _space("results", what, found, path, LOW_SPACE_GIB[MEASURED])
        if names := tested.get(disk_of(found)):
            yield Finding(
                "warning",
                "results",
                f"{what} share a disk with what is under test: {', '.join(names)}",
                "records and checkpoints are written to it between epochs; to keep them off it, "
                f"give `storage` in {subject.file} a root on another disk",
            )


def disk_of(medium: Medium) -> tuple[str, str]:
    """Return what tells the disk below a medium from others: partitions of one disk are equal."""
    if not medium.device:
        return medium.mount, medium.source
    disk = re.sub(r"^((?:sd|vd|hd|xvd)[a-z]+)\d+$|^(\w+\d)p\d+$", r"\1\2", medium.device)
    return disk, ""


def _told(medium: Medium) -> str:
    turns = medium.rotational and medium.transport != "virtual"  # virtio says so of any disk
    kind = f"{medium.transport}, turning" if turns else medium.transport
    return f"{medium.device or medium.source} ({kind}) at {medium.mount}"


def _space(topic: str, what: str, medium: Medium, path: Path, low_gib: float) -> Finding:
    """Return where something lies and how much space is left there."""
    there = next(p for p in (path, *path.absolute().parents) if p.exists())
    free = os.statvfs(there)
    gib = free.f_bavail * free.f_frsize / 2**30
    found = f"{what} on {_told(medium)}, {gib:.1f} GiB free"
    if gib < low_gib:
        return Finding("warning", topic, found, f"free some space: at least {low_gib:g} GiB")
    return Finding("ok", topic, found)


def cache(subject: Subject, helped: bool) -> Iterator[Finding]:
    """Whether the page cache can be dropped, and whether the kernel tells what is in it.

    Parameters
    ----------
    subject : what is looked at
    helped : the root helper answers; it drops the page cache on a board
    """
    if helped or os.access(_DROP_CACHES, os.W_OK):
        how = "by the root helper" if helped else "by this user"
        yield Finding("ok", "page cache", f"it can be dropped {how}")
    else:
        yield Finding(
            "warning" if subject.device.board else "info",
            "page cache",
            "this user may not drop it: the data set's pages alone are forgotten (flag "
            "cache_advised)",
            "make setup-jetson" if subject.device.board else "",
        )
    share_pct = page_cache.resident_pct([__file__])
    own = os.stat(__file__).st_uid == os.geteuid()
    if share_pct is None:
        yield Finding("warning", "page cache", "the kernel does not tell what is in it")
    else:
        whose = "" if own or os.geteuid() == 0 else " (truly only to the owner of the data set)"
        yield Finding("ok", "page cache", f"the kernel tells which pages are in it{whose}")
