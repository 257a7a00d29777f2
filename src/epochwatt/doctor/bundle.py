"""`epochwatt bug-report`: everything that a bug report about a board needs, in one archive.

::

    epochwatt-bundle/bundle.json          versions, kind of board, its modes, links, errors
                    /doctor.txt, .json    findings of `epochwatt doctor`
                    /files/{name}         the value of each file of the board that our code reads
                    /recording/           some seconds of samples, and statistics of the sampler
                    /tegrastats.txt       some lines of that tool, if installed

NVIDIA's nvpmodel.conf may not be redistributed, so the archive holds only its facts.
`tests.fakeboard.replay.unpack` makes a fake board of such an archive.
"""

import errno
import getpass
import glob
import io
import json
import os
import platform
import re
import subprocess
import tarfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from epochwatt import __version__
from epochwatt.board.device import board_files
from epochwatt.board.device.board_files import text
from epochwatt.board.device.identity import identify
from epochwatt.board.device.locks import machine_lock
from epochwatt.board.records.files import csv_rows
from epochwatt.board.records.shapes import Document
from epochwatt.doctor.examine import SECONDS, examine, report_lines
from epochwatt.doctor.subject import Recording, Subject, choose
from epochwatt.errors import EpochwattError
from epochwatt.text import counted

TOP = "epochwatt-bundle"
SCHEMA_VERSION = 1
TEGRASTATS_LINES, TEGRASTATS_S = 5, 10.0


@dataclass
class Readings:
    """The values of a board's files."""

    values: dict[str, bytes] = field(default_factory=dict)  # real name below the root -> content
    links: dict[str, str] = field(default_factory=dict)  # name -> name, both below the root
    errors: dict[str, Document] = field(default_factory=dict)  # name -> errno, at, text


def make_bundle(
    path: Path | None = None,
    device: str | None = None,
    keep_names: bool = False,
    seconds: float = SECONDS,
    checkout: Path = Path(),
) -> list[str]:
    """Write the archive of a bug report; return lines that describe it.

    Raises EpochwattError: the file exists already or cannot be written; LockedError: something is
    measured on this machine.

    `path`: of the file; None: named after the device and the time, in the current folder
    `device`: a file of config/devices/; None: the board at hand, else `host`
    `keep_names`: leave serial number, names of host, user, disks and servers unchanged
    """
    subject = choose(checkout, device)
    when = time.strftime("%Y%m%d-%H%M%S")
    path = path or Path(f"{TOP}-{subject.name}-{when}.tar.gz")
    if path.exists():
        raise EpochwattError(f"{path} exists already", do="choose another file")
    names = {} if keep_names else names_of(subject.machine.root)
    with machine_lock().acquire({"bug report in": str(checkout)}):
        pass  # the self-test would leave out the samples, which a report is about
    members = _members(subject, seconds, names)
    new = path.with_name(f".{path.name}.new")
    try:
        with tarfile.open(new, "w:gz") as archive:
            for name, content in sorted(members.items()):
                member = tarfile.TarInfo(f"{TOP}/{name}")
                member.size, member.mtime = len(content), int(time.time())
                archive.addfile(member, io.BytesIO(content))
        new.replace(path)
    except OSError as error:
        new.unlink(missing_ok=True)
        raise EpochwattError(f"cannot write {path}: {error.strerror}") from error
    n_files = sum(name.startswith("files/") for name in members)
    state = "kept" if keep_names else "replaced"
    return [
        f"{path}  {path.stat().st_size / 1024:.0f} KiB, {counted(n_files, 'files')} of the board",
        f"serial number, names of host, user, disks and servers are {state}",
        "it is plain text: look through it before you send it",
    ]


def _members(subject: Subject, seconds: float, names: dict[str, str]) -> dict[str, bytes]:
    """Return name -> content of everything in the archive."""
    texts: dict[str, str] = {}

    def keep(recording: Recording) -> None:
        for file in sorted(recording.folder.iterdir()):
            texts[f"recording/{file.name}"] = file.read_text("utf-8")

    findings = examine(subject, seconds, on_recording=keep)
    root = subject.machine.root
    readings = read_all(root)
    texts["doctor.txt"] = "\n".join([*report_lines(subject, findings), ""])
    texts["doctor.json"] = json.dumps([f._asdict() for f in findings], indent=1)
    texts["tegrastats.txt"] = _tegrastats(root)
    members = {name: disguised(text, names).encode() for name, text in texts.items() if text}
    for name, value in readings.values.items():
        members[f"files/{name}"] = disguised_value(name, value, names)
    summary = json.dumps(_summary(subject, readings), indent=1, sort_keys=True)
    members["bundle.json"] = summary.encode()
    return members


def _summary(subject: Subject, readings: Readings) -> Document:
    root = subject.machine.root
    identity = identify(root)
    board = None if identity is None else {**identity._asdict(), "serial": None}
    return {
        "schema_version": SCHEMA_VERSION,
        "epochwatt": __version__,
        "made_unix_s": time.time(),
        "python": platform.python_version(),
        "kernel": platform.release(),
        "device": subject.name,
        "backend": subject.machine.backend,
        "power_source": subject.power,
        "board": board,
        "nvpmodel": _nvpmodel(root),
        "links": readings.links,
        "errors": readings.errors,
    }


def _nvpmodel(root: str) -> Document | None:
    """Return the facts of the board's nvpmodel.conf; None: there is none that can be read.

    `lines` are those of the file, word by word but without comments.
    """
    try:
        conf = board_files.board_conf(root)
    except ValueError:
        return None
    lines = (line.partition("#")[0].strip() for line in conf.text.split("\n"))
    return {
        "params": {name: param._asdict() for name, param in conf.params.items()},
        "modes": [mode._asdict() for mode in conf.modes],
        "default_id": conf.default_id,
        "lines": [line for line in lines if line],
    }


def _tegrastats(root: str) -> str:
    """Return the first lines of tegrastats; empty if it is not installed or prints nothing."""
    tool = os.path.join(root, "usr/bin/tegrastats")
    command = ["timeout", str(TEGRASTATS_S), tool, "--interval", "500"]
    if not os.path.exists(tool):
        return ""
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as child:
        assert child.stdout is not None
        lines = [child.stdout.readline() for _ in range(TEGRASTATS_LINES)]
        child.terminate()
    return b"".join(lines).decode("utf-8", "replace")


_MAY_HOLD_NAMES = ("serial-number", "cpuinfo", "version", "boot_id")  # readings that may hold names
_NO_BOOT = "00000000-0000-0000-0000-000000000000"
# mount points that every system has; any other, and those below a folder of labels, are names
_STANDARD_MOUNTS = re.compile(
    r"/((boot|dev|home|mnt|media|proc|run|sys|tmp|usr|var|etc|opt|srv)(?=/|$).*)?$"
)
_LABELS = re.compile(r"/(media|mnt|run/media|home|run/user|srv)/.")


def names_of(root: str) -> dict[str, str]:
    """Find the names to hide in a bug report: serial, host, user, mount points, servers, boot.

    Returns name -> replacement, paths first and the longest of them first.
    """
    identity = identify(root)
    serial = "" if identity is None else identity.serial
    replacements = {
        **_mounts(text(root, "proc/self/mountinfo")),
        serial: "0" * len(serial),
        platform.node(): "host-name",
        getpass.getuser(): "user-name",
        text(root, "proc/sys/kernel/random/boot_id"): _NO_BOOT,
    }
    for harmless in ("", "root", "localhost"):
        replacements.pop(harmless, None)
    return replacements


def _mounts(mountinfo: str) -> dict[str, str]:
    """Return user-named mount points, their labels, and servers -> replacement, longest first."""
    replacements: dict[str, str] = {}
    for n, line in enumerate(mountinfo.splitlines()):
        mount_point, source = _cells(line)
        if not source:
            continue
        for point in (mount_point[4], mount_point[4].replace("\\040", " ")):
            if _is_user_named(point):
                replacements[point] = f"/mount-{n}"
            if _LABELS.match(point):
                replacements[point.rpartition("/")[2]] = f"mount-{n}"
        server = re.match(r"(?://)?(?:[^/:@]+@)?([A-Za-z0-9.-]{2,})[:/]", source[1])
        if server and not source[1].startswith("/dev/"):
            replacements[server.group(1)] = f"server-{n}"
    return dict(sorted(replacements.items(), key=lambda pair: -len(pair[0])))


def _cells(line: str) -> tuple[list[str], list[str]]:
    """Return the cells of a line of mountinfo before and after its dash; [] and [] if malformed."""
    before, _, after = line.partition(" - ")
    fields, source = before.split(), after.split()
    return (fields, source) if len(fields) > 5 and len(source) > 1 else ([], [])


def _is_user_named(point: str) -> bool:
    return bool(_LABELS.match(point)) or not _STANDARD_MOUNTS.match(point)


def disguised(text: str, names: dict[str, str]) -> str:
    """Replace each name (name -> replacement) where it is a whole word of a text."""
    for name, replacement in names.items():
        text = re.sub(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", replacement, text)
    return text


def disguised_value(name: str, value: bytes, names: dict[str, str]) -> bytes:
    """Replace names in the content of a file `name`; files that cannot hold any are unchanged."""
    kind = name.rpartition("/")[2]
    if not names or kind not in (*_MAY_HOLD_NAMES, "mountinfo"):
        return value
    text = value.decode("utf-8", "replace")
    if kind == "mountinfo":
        text = "".join(_anonymous_mount(line, n) for n, line in enumerate(text.splitlines()))
    return disguised(text, names).encode()


def _anonymous_mount(line: str, n: int) -> str:
    """Reduce line `n` of mountinfo to what our code reads: numbers, mount point, type, device.

    The folder that was mounted, sources other than devices, and the options can contain labels,
    servers, addresses and users.
    """
    mount_point, source = _cells(line)
    if not source:
        return ""
    folder = "/" if mount_point[3] == "/" else f"/folder-{n}"
    options = "ro" if "ro" in mount_point[5].split(",") else "rw"
    device = source[1] if source[1] == source[0] else f"source-{n}"
    if source[1].startswith("/dev/"):
        plain = re.match(r"/dev/[a-z0-9]+$", source[1])
        device = source[1] if plain else f"/dev/mapper/device-{n}"
    cells = [*mount_point[:3], folder, mount_point[4], options, "-", source[0], device, "rw"]
    return " ".join(cells) + "\n"


LIMIT_BYTES = 65536  # read of a file; none of these is longer
MAX_LINKS = 40  # in a chain, as in Linux


def read_all(root: str) -> Readings:
    """Read every file of `readings.csv`; note the error of each that cannot be read.

    `root`: `/`, or the folder of a fake board
    """
    readings = Readings()
    for folder, names, _ in csv_rows(__file__, "readings.csv"):
        for name in names.split():
            pattern = os.path.join(folder, name)
            paths = glob.glob(os.path.join(glob.escape(root), pattern))
            for path in sorted(paths):
                _read(root, os.path.relpath(path, root), readings)
            if not paths:
                _note_hidden(root, pattern, readings)
    return readings


def _read(root: str, name: str, readings: Readings) -> None:
    """Read a file of the board into `readings`, or the error that it gives."""
    real = _real_name(root, name, readings)
    if real is None or real in readings.values or real in readings.errors:
        return
    step = "open"
    try:
        with open(os.path.join(root, real), "rb") as handle:
            step = "read"
            content = handle.read(LIMIT_BYTES)
            if content is None:  # what Python makes of EAGAIN
                raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
            readings.values[real] = content
    except IsADirectoryError:
        return  # a link to another device; only the link counts
    except OSError as error:
        readings.errors[real] = {"errno": error.errno, "at": step, "text": str(error.strerror)}


def _note_hidden(root: str, pattern: str, readings: Readings) -> None:
    """Note a file in a folder that this user may not enter (the debugfs of the kernel)."""
    if glob.has_magic(pattern):
        return
    try:
        os.stat(os.path.join(root, pattern))
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EPERM):
            text = str(error.strerror)
            readings.errors[pattern] = {"errno": error.errno, "at": "open", "text": text}


def _real_name(root: str, name: str, readings: Readings) -> str | None:
    """Resolve the links in a file's name below the root, and note each in `readings.links`.

    A link that leads out of the root counts as the file itself. None: an endless chain of links.
    """
    parts, resolved, n_links = name.split("/"), "", 0
    while parts:
        candidate = os.path.join(resolved, parts.pop(0))
        path = os.path.join(root, candidate)
        target = _link_target(root, resolved, os.readlink(path)) if os.path.islink(path) else None
        if target is None:
            resolved = candidate
            continue
        n_links += 1
        if n_links > MAX_LINKS:
            return None
        readings.links[candidate] = target
        parts, resolved = target.split("/") + parts, ""  # the target may hold links, too
    return resolved


def _link_target(root: str, folder: str, target: str) -> str | None:
    """Return the target of a link in a folder, relative to the root; None: outside of it."""
    if os.path.isabs(target) and root != "/":
        return None
    return os.path.normpath(os.path.join("/", folder, target)).lstrip("/") or None
