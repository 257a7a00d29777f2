"""Find the storage medium of a path, and the mounted media (board side: Python 3.6 grammar).

Source: proc(5), `/proc/self/mountinfo`; the kernel's Documentation/ABI, `sysfs-block` and `mmc`.
"""

import os
import re
from typing import Dict, List, NamedTuple, Optional, Tuple

from epochwatt.board.device.board_files import text
from epochwatt.errors import BoardError

TRANSPORTS = ("nvme", "sd", "emmc", "usb", "sata", "ram", "network", "virtual", "unknown")


class Medium(NamedTuple):
    """A storage medium, as it is mounted."""

    mount: str  # where it is mounted; empty: not known
    source: str  # of the mount, as the kernel names it
    device: str  # its block device, such as nvme0n1p1; empty: it has none
    transport: str  # one of TRANSPORTS
    rotational: Optional[bool]  # a disk that turns; None: not known


Mounted = NamedTuple("Mounted", [("medium", Medium), ("free_gib", float)])

Mount = NamedTuple(
    "Mount", [("number", str), ("point", str), ("options", str), ("kind", str), ("source", str)]
)

_IN_RAM = ("tmpfs", "ramfs")
_NETWORK = ("nfs", "nfs4", "cifs", "smb3", "ceph", "glusterfs", "fuse.sshfs", "afs", "lustre")
_PSEUDO = ("overlay", "9p", "virtiofs", "squashfs", "devtmpfs")
_NOT_FOR_DATA = ("/boot", "/snap", "/var/snap")

_GIB = 2.0**30


def medium_of(path: str, root: str = "/") -> Medium:
    """Find the storage medium of a path, which need not exist yet; links are followed.

    `root` is `/`, or the folder of a made-up system (its /proc and /sys).
    """
    real = os.path.realpath(path)
    innermost = Mount("", "", "", "", "")
    for mount in mounts(root):
        if _within(real, mount.point) and len(mount.point) >= len(innermost.point):
            innermost = mount  # of two on one point the later hides the earlier
    return _medium(innermost, root)


def media(root: str = "/") -> List[Mounted]:
    """Return the mounted media that can hold data sets, each once, with their free space."""
    mounted: Dict[str, Mounted] = {}
    for mount in mounts(root):
        writable = "rw" in mount.options.split(",")
        medium = _medium(mount, root)
        if not writable or not medium.device or medium.transport == "ram":
            continue
        if medium.device.startswith("loop") or any(_within(mount.point, p) for p in _NOT_FOR_DATA):
            continue
        known = mounted.get(medium.device)
        if known is not None and len(known.medium.mount) <= len(mount.point):
            continue  # mounted a second time, deeper
        try:
            free = os.statvfs(os.path.join(root, mount.point.lstrip("/")))
        except OSError:
            continue
        mounted[medium.device] = Mounted(medium, free.f_bavail * free.f_frsize / _GIB)
    return sorted(mounted.values(), key=lambda entry: entry.medium.mount)


def check_medium(path: str, mount: str, block_device: str, root: str = "/") -> None:
    """Check that a path is on the medium that the configuration names.

    That is by its mount point, and by how the name of its block device begins; empty: not checked.
    Raises BoardError: it is on another medium.
    """
    medium = medium_of(path, root)
    if mount and os.path.realpath(mount) != medium.mount:
        key, wanted, do = "mount", mount, "mount the medium there"
    elif block_device and not medium.device.startswith(block_device):
        key, wanted, do = "block_device", block_device, "move the data set"
    else:
        return
    name = medium.device or medium.source or "an unknown medium"
    raise BoardError(
        f"{path} is on another medium than its row; nothing was measured",
        found=f"{name} ({medium.transport}, mounted at {medium.mount or '?'})",
        allowed=f"`{key}` in config/devices/: {wanted}",
        do=f"{do}, or correct the configuration",
    )


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def mounts(root: str) -> List[Mount]:
    """Return the mounts of this process in the order they were made."""
    found = []
    try:
        with open(os.path.join(root, "proc/self/mountinfo"), errors="surrogateescape") as handle:
            lines = handle.read().replace("\0", "?").split("\n")
    except OSError:
        return []
    for line in lines:
        # id, parent, major:minor, root, mount point, options, ... - type, source, options
        mount, _, file_system = line.partition(" - ")
        cells, source = mount.split(), file_system.split()
        if len(cells) >= 6 and len(source) >= 2:
            point = _unescaped(cells[4])
            found.append(Mount(cells[2], point, cells[5], source[0], _unescaped(source[1])))
    return found


def _unescaped(word: str) -> str:
    r"""Return a word of mountinfo with its blanks, which are \040 there."""
    plain = re.sub(r"\\([0-7]{3})", lambda m: chr(int(m.group(1), 8)), word)
    return plain.replace("\0", "?")  # no path holds a NUL


def _medium(mount: Mount, root: str) -> Medium:
    """Return the medium of a mount, by the type of its file system or by its block device."""
    for kinds, transport in ((_IN_RAM, "ram"), (_NETWORK, "network"), (_PSEUDO, "virtual")):
        if mount.kind in kinds:
            return Medium(mount.point, mount.source, "", transport, None)
    device = _block_device(mount, root)
    transport, rotational = _connection(device, root) if device else ("unknown", None)
    return Medium(mount.point, mount.source, device, transport, rotational)


def _block_device(mount: Mount, root: str) -> str:
    """Return the name of the partition or disk below a mount; empty: there is none.

    For a file system that spans devices (btrfs) it is the device that was mounted; for an encrypted
    or logical volume the one device below it.
    """
    path = os.path.realpath(os.path.join(root, "sys/dev/block", mount.number))
    if not mount.number or not os.path.exists(path):
        source = os.path.realpath(os.path.join(root, mount.source.lstrip("/")))
        path = os.path.realpath(os.path.join(root, "sys/class/block", os.path.basename(source)))
        if not mount.source.startswith("/dev/") or not os.path.exists(path):
            return ""
    while True:
        below = os.path.join(path, "slaves")
        names = os.listdir(below) if os.path.isdir(below) else []
        if len(names) != 1:
            return os.path.basename(path)
        path = os.path.realpath(os.path.join(below, names[0]))


def _connection(device: str, root: str) -> Tuple[str, Optional[bool]]:
    """Return a block device's transport, one of TRANSPORTS, and whether it rotates; None: unknown.

    It is told by the disk's name, and else by its place in /sys.
    """
    path = os.path.realpath(os.path.join(root, "sys/class/block", device))
    disk = os.path.dirname(path) if os.path.exists(os.path.join(path, "partition")) else path
    rotational = {"0": False, "1": True}.get(text(disk, "queue/rotational"))
    name, where = os.path.basename(disk), disk[len(os.path.realpath(root)) :]
    if name.startswith("nvme"):
        return "nvme", rotational
    if name.startswith("mmcblk"):
        cards = {"SD": "sd", "MMC": "emmc"}
        return cards.get(text(disk, "device/type"), "unknown"), rotational
    if name.startswith(("zram", "ram")):
        return "ram", rotational
    for part, transport in (("/usb", "usb"), ("/ata", "sata"), ("/virtio", "virtual")):
        if part in where:
            return transport, rotational
    if name.startswith(("vd", "xvd", "loop", "dm-", "md")) or "/virtual/" in where:
        return "virtual", rotational
    return "unknown", rotational
