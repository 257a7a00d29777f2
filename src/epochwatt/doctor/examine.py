"""`epochwatt doctor`: check the machine within a minute, and say how to fix what does not work.

It reads files, samples for some seconds, and changes no setting of the machine.
"""

import os
import platform
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from epochwatt import __version__
from epochwatt.board.device import host, page_cache, remedies, storage
from epochwatt.board.device.board_files import text
from epochwatt.board.device.host import meminfo_kib
from epochwatt.board.device.identity import identify
from epochwatt.board.device.jetson import JetsonBoard
from epochwatt.board.device.locks import machine_lock
from epochwatt.board.device.storage import Medium
from epochwatt.board.records.shapes import Document
from epochwatt.doctor import board as board_checks
from epochwatt.doctor import sensors
from epochwatt.doctor.finding import Finding, finding_lines, info, ok, problem, warning
from epochwatt.doctor.subject import Recording, Subject, choose, libraries, recording, running
from epochwatt.errors import EpochwattError, LockedError
from epochwatt.study.place import CACHE_ELSEWHERE, MEASURED, medium_is_here, no_medium
from epochwatt.study.settings import ALLOW_ROOT
from epochwatt.text import counted

SECONDS = 10.0  # of samples
LOW_RAM_GIB = 4.5  # a board of 4 GB reports 3.9
LOW_SPACE_GIB = {MEASURED: 2.0, "data": 3.5}  # a checkpoint of VGG-11 twice; GLD-23k
BUSY_PCT = 10.0  # as the flag machine_busy
RESULTS = (MEASURED, "results")
_SESSIONS = ("gnome-shell", "compiz", "lxsession", "xfce4-session", "plasmashell", "kwin_wayland")
DESKTOP = frozenset(("gdm", "gdm3", "lightdm", "sddm", "lxdm", "Xorg", "X", "Xwayland", *_SESSIONS))
_DROP_CACHES = "/proc/sys/vm/drop_caches"

Check = Callable[[], Iterator[Finding]]


def doctor_lines(
    device: str | None = None, seconds: float = SECONDS, checkout: Path = Path()
) -> tuple[list[str], int]:
    """Check a device on this machine; return report lines and exit status, 1: there is a problem.

    `device`: a file of config/devices/; None: the board at hand, else `host`
    `seconds`: how long the sampler runs
    """
    subject = choose(checkout, device)
    findings = examine(subject, seconds)
    return report_lines(subject, findings), int(any(f.level == "problem" for f in findings))


def report_lines(subject: Subject, findings: list[Finding]) -> list[str]:
    """Format the findings as lines, under one that names version and device."""
    head = f"epochwatt {__version__} doctor: device {subject.name}, {subject.device.title}"
    return [head, "", *finding_lines(findings)]


def examine(
    subject: Subject,
    seconds: float,
    on_recording: Callable[[Recording], None] = lambda recorded: None,
) -> list[Finding]:
    """Run all checks of a device; return their findings in order.

    `on_recording` is called with the samples of `seconds`, before their files are removed.
    """
    findings: list[Finding] = []

    def helper_answers() -> bool:
        return any(f.topic == "root helper" and f.level == "ok" for f in findings)

    def sampled() -> Iterator[Finding]:
        with recording(subject, seconds) as recorded:
            yield from sensors.sampler(recorded)
            yield from sensors.power(subject, recorded)
            yield from sensors.other_sources(subject, recorded)
            on_recording(recorded)

    checks: list[tuple[str, Check]] = [
        ("machine", lambda: _machine(subject)),
        *_board_checks(subject),
        ("user", lambda: user(subject)),
        ("cache", home),
        ("desktop", desktop),
        ("load", lambda: load(subject)),
        ("memory", lambda: memory(subject)),
        ("memory", memory_limits),
        ("shared memory", shared_memory),
        ("swap", lambda: swap(subject)),
        ("interpreter", lambda: interpreter(subject, libraries(subject))),
        ("storage", lambda: media(subject)),
        ("results", lambda: results_place(subject)),
        ("page cache", lambda: cache(subject, helper_answers())),
        ("sampler", sampled),
        ("temperature", lambda: sensors.temperatures(subject)),
    ]
    for topic, check in checks:
        findings += _run_check(topic, check)
    return findings


def _board_checks(subject: Subject) -> list[tuple[str, Check]]:
    """Return the checks of a Jetson board; only the first where none is described."""
    board = subject.machine
    if not isinstance(board, JetsonBoard):
        return []
    checks: list[tuple[str, Check]] = [
        ("board", lambda: board_checks.identity(subject, board)),
        ("unit", lambda: board_checks.unit(subject, board.unit_names())),
        ("clocks", lambda: board_checks.tables(board)),
        ("power modes", lambda: board_checks.modes(subject, board)),
        ("root helper", lambda: board_checks.helper(board)),
        ("root helper", lambda: board_checks.left_over(board)),
        ("throttling", lambda: board_checks.alarms_now(board)),
    ]
    return checks if board.identity is not None else checks[:1]


def _run_check(topic: str, check: Check) -> list[Finding]:
    """Run a check; an error that it raises becomes a finding, so that the other checks go on."""
    try:
        return list(check())
    except LockedError:
        return [
            info(
                topic,
                "left out: it would disturb what is measured on this machine now "
                f"({machine_lock().describe()})",
                "give the command again when that has ended",
            )
        ]
    except EpochwattError as error:
        do, error.do = error.do, None
        return [problem(topic, str(error), do if isinstance(do, str) else "")]
    except (OSError, ValueError, LookupError) as error:
        return [problem(topic, str(error) or repr(error))]


def _machine(subject: Subject) -> Iterator[Finding]:
    machine: Document = subject.machine.describe()["machine"]
    yield info(
        "machine",
        f"{machine['cpu_model']}, {machine['n_cpus']} CPUs, {machine['architecture']}, Linux "
        f"{platform.release()}",
    )
    board = identify(subject.machine.root)
    if board is not None and not subject.device.board:
        yield warning(
            "board",
            f"this is a Jetson board, {board.model} ({board.kind}); {subject.file} describes none",
            "write a device file (docs/how-to/add-a-board.md); attach `epochwatt bug-report` to an "
            "issue",
        )


def user(subject: Subject) -> Iterator[Finding]:
    """Check that the user is not root."""
    if os.geteuid() != 0:
        yield ok("user", "an ordinary user")
        return
    refused = bool(subject.device.board) and not os.environ.get(ALLOW_ROOT)
    yield Finding(
        "problem" if refused else "warning",
        "user",
        "root" + ("; the workflow refuses to run as root on a board" if refused else ""),
        "run it as an ordinary user: jobs of root can change anything, and their files belong to "
        f"root. In a container or CI: {ALLOW_ROOT}=1",
    )


def home() -> Iterator[Finding]:
    """Check that Snakemake can keep its cache, without which it does not start."""
    top = Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))
    existing = _existing(top / "snakemake/snakemake/source-cache/snakemake-runtime-cache")
    if existing.is_dir() and os.access(existing, os.W_OK | os.X_OK):
        yield ok("cache", f"Snakemake keeps its cache below {top}")
    else:
        yield problem("cache", f"Snakemake cannot write its cache at {existing}", CACHE_ELSEWHERE)


def _existing(path: Path) -> Path:
    """Return a path, or the innermost folder above it that exists."""
    return next(p for p in (path, *path.absolute().parents) if p.exists())


def desktop(proc: Path = Path("/proc")) -> Iterator[Finding]:
    """Check that no desktop takes memory, CPU and GPU."""
    if programs := sorted(set(running(DESKTOP, proc).values())):
        yield warning(
            "desktop",
            f"a desktop is running ({', '.join(programs)}): it takes memory and a share of the GPU",
            "sudo systemctl set-default multi-user.target, then reboot (undo: graphical.target)",
        )
    else:
        yield ok("desktop", "none is running")


def load(subject: Subject) -> Iterator[Finding]:
    """Check that other programs are idle."""
    busy_pct = subject.machine.busy_pct(1.0)
    if busy_pct is None:
        yield info("load", "not known on this machine")
    elif busy_pct > BUSY_PCT:
        yield warning(
            "load",
            f"{busy_pct:.0f} % of the CPUs are busy with other programs",
            "stop them before measuring; on a board such epochs are flagged machine_busy",
        )
    else:
        yield ok("load", f"{busy_pct:.0f} % of the CPUs are busy")


def memory(subject: Subject) -> Iterator[Finding]:
    """Check that training and Snakemake both fit into memory."""
    total_kib, free_kib = (
        meminfo_kib(subject.machine.root, name) for name in ("MemTotal", "MemAvailable")
    )
    if total_kib is None:
        yield info("memory", "not known on this machine")
        return
    gib = total_kib / 2**20
    message = f"{gib:.1f} GiB"
    if free_kib is not None:
        message += f", {free_kib / 2**20:.1f} of them free"
    if gib < LOW_RAM_GIB:
        do = "turn off the desktop; run Snakemake on a PC over ssh (docs/how-to/jetson-remote.md)"
        yield warning("memory", f"{message}: little for training and Snakemake together", do)
    else:
        yield ok("memory", message)


def memory_limits() -> Iterator[Finding]:
    """Report what lets a job have less memory than the machine has."""
    for limit in host.memory_limits():
        yield warning(
            "memory",
            f"a job that is started like this one has less: {limit}",
            "raise the limit (ulimit -v unlimited, --memory of the container, MemoryMax): CUDA's "
            "libraries alone map several GiB",
        )


def shared_memory() -> Iterator[Finding]:
    """Check that loader workers can hand over mini-batches."""
    sizes = host.shm_bytes()
    if sizes is None or sizes[1] < remedies.ENOUGH_SHM:
        yield warning(
            "shared memory",
            f"{host.shm_words()}: little for loader workers, which hand over mini-batches there",
            remedies.MORE_SHARED_MEMORY,
        )
    elif not os.access(host.SHM, os.W_OK):
        yield warning(
            "shared memory",
            f"{host.SHM} may not be written by this user: loader workers cannot start",
            f"sudo chmod 1777 {host.SHM}; or num_workers: 0",
        )
    else:
        yield ok("shared memory", host.shm_words())


def swap(subject: Subject) -> Iterator[Finding]:
    """Check that memory is not swapped, above all not into zram, which costs CPU time."""
    rows = text(subject.machine.root, "proc/swaps").splitlines()[1:]
    used_kib = {row.split()[0]: int(row.split()[3]) for row in rows}  # by swap area
    used_mib = sum(used_kib.values()) / 1024
    zram = [name for name in used_kib if "zram" in name]
    if zram:
        n_areas = counted(len(zram), "areas")
        yield warning(
            "swap",
            f"zram, compressed by the CPU ({n_areas}): {used_mib:.0f} MiB in use",
            "sudo systemctl disable --now nvzramconfig, then reboot; if memory is short, use a "
            "swap file on a disk that is not measured",
        )
    elif used_kib:
        finding = warning if used_mib >= 1 else ok
        yield finding("swap", f"{', '.join(used_kib)}: {used_mib:.0f} MiB in use")
    else:
        yield ok("swap", "none")


def interpreter(subject: Subject, installed: Document) -> Iterator[Finding]:
    """Check that the measuring interpreter has torch, the GPU and the other libraries."""
    names = ("torch", "torchvision", "numpy", "PIL")
    errors = installed["errors"]
    versions = ", ".join(f"{name} {installed[name]}" for name in names if installed[name])
    python = f"{' '.join(subject.python)}: Python {installed['python']}"
    failed = [name for name in ("numpy", "PIL", "torch", "torchvision") if name in errors]
    if failed:
        not_tried = [n for n in names if not installed[n] and n not in errors]
        message, do = _explain_failure(subject, installed, failed[0])
        message = f"{python}, without {', '.join(failed)} ({message})"
        if not_tried:
            message += f"; not tried: {', '.join(not_tried)}"
        yield problem(
            "interpreter",
            message,
            do
            or f"set `python:` in {subject.file} to the interpreter that has torch "
            f"({remedies.SOFTWARE}: how to install it on each JetPack)",
        )
    else:
        yield ok("interpreter", f"{python}, {versions}")
    if "together" in errors:
        message, do = _explain_failure(subject, installed, "together")
        yield problem("interpreter", f"torch and numpy do not work together: {message}", do)
    if installed["gpu"]:
        yield ok("GPU", f"{installed['gpu']}, CUDA {installed['cuda']}: torch computes on it")
    elif installed["torch"] and subject.machine.backend == "jetson":
        message, do = _explain_failure(subject, installed, "gpu")
        yield problem(
            "GPU",
            f"torch cannot use it: {message}",
            do or f"install NVIDIA's build of torch: {remedies.SOFTWARE}",
        )
    elif installed["torch"]:
        why = errors.get("gpu", "training runs on the CPU")
        yield info("GPU", f"torch finds none: {why}")
    if subject.power == "jtop" and installed["jtop"]:
        yield info("jtop", f"jetson-stats {installed['jtop']}")


def _explain_failure(subject: Subject, installed: Document, step: str) -> tuple[str, str]:
    """Explain why a step of the interpreter's trial failed: cause, and what to do, or empty."""
    why = installed["errors"].get(step) or installed.get("no_gpu") or "unknown"
    if step in installed.get("remedies", {}):  # the step ended the process
        return why, installed["remedies"][step]
    remedy = remedies.remedy_of(why, " ".join(subject.python), installed["python"])
    return (why, "") if remedy is None else (f"{remedy.cause}: {why}", remedy.do)


def media(subject: Subject) -> Iterator[Finding]:
    """Check that each storage medium is mounted and has space."""
    configured = set()
    first = next(iter(subject.device.storage), "")
    for name, medium in subject.device.storage.items():
        root = subject.checkout / medium.root
        if why := no_medium(medium):
            yield Finding(
                "problem" if name == first else "info",
                "storage",
                f"{name} ({medium.title}): {why}",
                f"mount it, or correct {subject.file}; until then its runs are skipped",
            )
            continue
        disk = storage.medium_of(str(root))
        configured.add(disk_of(disk))
        yield _free_space("storage", f"{name}: {root}", disk, root, LOW_SPACE_GIB["data"])
    for mounted in storage.media("/"):
        if disk_of(mounted.medium) not in configured:
            yield info(
                "storage",
                f"also here: {_describe_medium(mounted.medium)}, {mounted.free_gib:.0f} GiB free",
                f"to measure it, add it to `storage` in {subject.file}",
            )


def results_place(subject: Subject) -> Iterator[Finding]:
    """Check that records are not written to a medium that is measured."""
    measured: dict[tuple[str, str], list[str]] = {}  # disk -> names of the storage on it
    for name, medium in subject.device.storage.items():
        if medium_is_here(medium):
            disk = disk_of(storage.medium_of(str(subject.checkout / medium.root)))
            measured.setdefault(disk, []).append(name)
    folders_on: dict[Medium, list[str]] = {}
    for folder in RESULTS:
        target = storage.medium_of(str((subject.checkout / folder).absolute()))
        folders_on.setdefault(target, []).append(folder)
    for target, folders in folders_on.items():
        names, path = "/ and ".join(folders) + "/", subject.checkout / folders[0]
        yield _free_space("results", names, target, path, LOW_SPACE_GIB[MEASURED])
        if storage_names := measured.get(disk_of(target)):
            yield warning(
                "results",
                f"{names} share a disk with storage that is measured: {', '.join(storage_names)}",
                "records and checkpoints are written to it between epochs; to avoid that, "
                f"give `storage` in {subject.file} a root on another disk",
            )


def disk_of(medium: Medium) -> tuple[str, str]:
    """Return the identity of the disk below a medium, which its partitions share."""
    if not medium.device:
        return medium.mount, medium.source
    disk = re.sub(r"^((?:sd|vd|hd|xvd)[a-z]+)\d+$|^(\w+\d)p\d+$", r"\1\2", medium.device)
    return disk, ""


def _describe_medium(medium: Medium) -> str:
    turns = medium.rotational and medium.transport != "virtual"  # virtio claims it of any disk
    kind = f"{medium.transport}, rotating" if turns else medium.transport
    return f"{medium.device or medium.source} ({kind}) at {medium.mount}"


def _free_space(topic: str, what: str, medium: Medium, path: Path, low_gib: float) -> Finding:
    """Report the medium of a path and its free space; a warning below `low_gib`."""
    free = os.statvfs(_existing(path))
    gib = free.f_bavail * free.f_frsize / 2**30
    message = f"{what} on {_describe_medium(medium)}, {gib:.1f} GiB free"
    if gib < low_gib:
        return warning(topic, message, f"free some space: at least {low_gib:g} GiB")
    return ok(topic, message)


def cache(subject: Subject, helped: bool) -> Iterator[Finding]:
    """Check that the page cache can be dropped, and that the kernel shows what is in it.

    `helped`: the root helper answers; on a board it drops the page cache
    """
    if helped or os.access(_DROP_CACHES, os.W_OK):
        how = "by the root helper" if helped else "by this user"
        yield ok("page cache", f"it can be dropped {how}")
    else:
        yield Finding(
            "warning" if subject.device.board else "info",
            "page cache",
            "this user may not drop it: only the pages of the data set are released (flag "
            "cache_advised)",
            "make setup-jetson" if subject.device.board else "",
        )
    share_pct = page_cache.resident_pct([__file__])
    if share_pct is None:
        yield warning("page cache", "the kernel does not show what is in it")
    else:
        is_owner = os.geteuid() in (0, os.stat(__file__).st_uid)
        limit = "" if is_owner else " (only the owner of the data set sees the truth)"
        yield ok("page cache", f"the kernel shows which pages are in it{limit}")
