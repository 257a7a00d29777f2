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

import io
import json
import os
import platform
import subprocess
import tarfile
import time
from pathlib import Path
from typing import Any

from epochwatt import __version__
from epochwatt.device import board_files
from epochwatt.device.identity import identify
from epochwatt.device.locks import machine_lock
from epochwatt.doctor.disguise import disguised, disguised_value, names_of
from epochwatt.doctor.examine import SECONDS, examine, report_lines
from epochwatt.doctor.readings import Readings, read_all
from epochwatt.doctor.subject import Recording, Subject, choose
from epochwatt.errors import EpochwattError
from epochwatt.text import counted

TOP = "epochwatt-bundle"
SCHEMA_VERSION = 1
TEGRASTATS_LINES, TEGRASTATS_S = 5, 10.0


def make_bundle(
    path: Path | None = None,
    device: str | None = None,
    keep_names: bool = False,
    seconds: float = SECONDS,
    checkout: Path = Path(),
) -> list[str]:
    """Write the archive; return lines that describe it.

    Parameters
    ----------
    path : of the file; None: named after the device and the time, in the current folder
    device : a file of config/devices/; None: the board at hand, else `host`
    keep_names : leave serial number, names of host, user, disks and servers unchanged
    seconds : how long to sample
    checkout : the folder that holds config/

    Raises
    ------
    EpochwattError : the file exists already or cannot be written
    LockedError : something is measured on this machine
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

    findings = examine(subject, seconds, and_then=keep)
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


def _summary(subject: Subject, readings: Readings) -> dict[str, Any]:
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


def _nvpmodel(root: str) -> dict[str, Any] | None:
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
