"""What tells this unit, its host, its disks and its user from others, and what stands for it."""

import getpass
import platform
import re

from epochwatt.device.board_files import text
from epochwatt.device.identity import identify

_WITH_NAMES = ("serial-number", "cpuinfo", "version", "boot_id")  # readings that may hold names
_NO_BOOT = "00000000-0000-0000-0000-000000000000"
# mount points that every system has; any other, and what lies below a folder of labels, is a name
_PLAIN = re.compile(r"/((boot|dev|home|mnt|media|proc|run|sys|tmp|usr|var|etc|opt|srv)(?=/|$).*)?$")
_LABELS = re.compile(r"/(media|mnt|run/media|home|run/user|srv)/.")


def names_of(root: str) -> dict[str, str]:
    """Return each name of the machine at `root` -> what stands for it in a bundle."""
    identity = identify(root)
    serial = "" if identity is None else identity.serial
    known = {
        **_mounts(text(root, "proc/self/mountinfo")),  # the longest names first: paths
        serial: "0" * len(serial),
        platform.node(): "host-name",
        getpass.getuser(): "user-name",
        text(root, "proc/sys/kernel/random/boot_id"): _NO_BOOT,
    }
    return {name: other for name, other in known.items() if name not in ("", "root", "localhost")}


def _mounts(mountinfo: str) -> dict[str, str]:
    """Return mount points with a name of somebody's choice, their labels, and servers."""
    known: dict[str, str] = {}
    for n, line in enumerate(mountinfo.splitlines()):
        place, told = _cells(line)
        if not told:
            continue
        for point in (place[4], place[4].replace("\\040", " ")):
            if _is_named(point):
                known[point] = f"/mount-{n}"
            if _LABELS.match(point):
                known[point.rpartition("/")[2]] = f"mount-{n}"
        server = re.match(r"(?://)?(?:[^/:@]+@)?([A-Za-z0-9.-]{2,})[:/]", told[1])
        if server and not told[1].startswith("/dev/"):
            known[server.group(1)] = f"server-{n}"
    return dict(sorted(known.items(), key=lambda pair: -len(pair[0])))


def _cells(line: str) -> tuple[list[str], list[str]]:
    """Return the cells of a line of mountinfo before and after its dash; twice [] for no such."""
    before, _, after = line.partition(" - ")
    place, told = before.split(), after.split()
    return (place, told) if len(place) > 5 and len(told) > 1 else ([], [])


def _is_named(point: str) -> bool:
    return bool(_LABELS.match(point)) or not _PLAIN.match(point)


def disguised(text: str, names: dict[str, str]) -> str:
    """Return a text with each name, where it stands as a word, replaced."""
    for name, other in names.items():
        text = re.sub(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", other, text)
    return text


def disguised_value(name: str, value: bytes, names: dict[str, str]) -> bytes:
    """Return a reading without names; most hold none, and their words are never touched."""
    kind = name.rpartition("/")[2]
    if not names or kind not in (*_WITH_NAMES, "mountinfo"):
        return value
    told = value.decode("utf-8", "replace")
    if kind == "mountinfo":
        told = "".join(_bare_mount(line, n) for n, line in enumerate(told.splitlines()))
    return disguised(told, names).encode()


def _bare_mount(line: str, n: int) -> str:
    """Return a line of mountinfo with what our code reads of it: numbers, place, kind, device.

    The folder that was mounted, the source of what is no device, and the options hold labels,
    servers, addresses and users.
    """
    place, told = _cells(line)
    if not told:
        return ""
    folder = "/" if place[3] == "/" else f"/folder-{n}"
    options = "ro" if "ro" in place[5].split(",") else "rw"
    source = told[1] if told[1] == told[0] else f"source-{n}"
    if told[1].startswith("/dev/"):
        plain = re.match(r"/dev/[a-z0-9]+$", told[1])
        source = told[1] if plain else f"/dev/mapper/device-{n}"
    return f"{' '.join([*place[:3], folder, place[4], options])} - {told[0]} {source} rw\n"
