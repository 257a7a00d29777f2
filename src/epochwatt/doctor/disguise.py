"""Replace names of unit, host, user, disks and servers by neutral ones in a bug report."""

import getpass
import platform
import re

from epochwatt.device.board_files import text
from epochwatt.device.identity import identify

_WITH_NAMES = ("serial-number", "cpuinfo", "version", "boot_id")  # readings that may hold names
_NO_BOOT = "00000000-0000-0000-0000-000000000000"
# mount points that every system has; any other, and those below a folder of labels, are names
_PLAIN = re.compile(r"/((boot|dev|home|mnt|media|proc|run|sys|tmp|usr|var|etc|opt|srv)(?=/|$).*)?$")
_LABELS = re.compile(r"/(media|mnt|run/media|home|run/user|srv)/.")


def names_of(root: str) -> dict[str, str]:
    """Return each name of the machine at `root` -> its replacement in a bug report."""
    identity = identify(root)
    serial = "" if identity is None else identity.serial
    replacements = {
        **_mounts(text(root, "proc/self/mountinfo")),  # the longest names first: paths
        serial: "0" * len(serial),
        platform.node(): "host-name",
        getpass.getuser(): "user-name",
        text(root, "proc/sys/kernel/random/boot_id"): _NO_BOOT,
    }
    return {
        name: other for name, other in replacements.items() if name not in ("", "root", "localhost")
    }


def _mounts(mountinfo: str) -> dict[str, str]:
    """Return mount points that somebody named, their labels, and servers, with replacements."""
    replacements: dict[str, str] = {}
    for n, line in enumerate(mountinfo.splitlines()):
        mount_point, source = _cells(line)
        if not source:
            continue
        for point in (mount_point[4], mount_point[4].replace("\\040", " ")):
            if _is_named(point):
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


def _is_named(point: str) -> bool:
    return bool(_LABELS.match(point)) or not _PLAIN.match(point)


def disguised(text: str, names: dict[str, str]) -> str:
    """Return a text with each name replaced where it is a whole word."""
    for name, other in names.items():
        text = re.sub(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", other, text)
    return text


def disguised_value(name: str, value: bytes, names: dict[str, str]) -> bytes:
    """Return a reading without names; readings that cannot contain any are left alone."""
    kind = name.rpartition("/")[2]
    if not names or kind not in (*_WITH_NAMES, "mountinfo"):
        return value
    text = value.decode("utf-8", "replace")
    if kind == "mountinfo":
        text = "".join(_bare_mount(line, n) for n, line in enumerate(text.splitlines()))
    return disguised(text, names).encode()


def _bare_mount(line: str, n: int) -> str:
    """Return the parts of a line of mountinfo that our code reads: numbers, place, kind, device.

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
