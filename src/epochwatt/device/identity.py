"""Identity of a board: kind, serial number, L4T and JetPack (board side: Python 3.6 grammar)."""

import re
from typing import NamedTuple, Optional

from epochwatt.device.board_files import board_kind, text

Identity = NamedTuple(
    "Identity",
    [
        ("kind", str),  # nano, xavier_nx, agx_xavier, orin_agx, orin_nx, orin_nano, unknown
        ("model", str),  # as the device tree names it
        ("serial", str),  # of the module; empty: it does not tell
        ("l4t", str),  # release of NVIDIA's Linux, such as 32.5.1; empty: not found
        ("jetpack", str),  # 4.5.1; of a release that is not listed here only 4; empty: not known
    ],
)

_RELEASE = re.compile(r"^#\s*R(\d+)\s*\(release\)\s*,\s*REVISION:\s*(\d+(?:\.\d+)*)", re.MULTILINE)

# L4T release -> JetPack; the longest beginning counts.
# SOURCE: developer.nvidia.com/embedded/jetpack-archive; families: docs/sources.md. A release that
# is missing is told by its family alone, never by a neighbour.
_JETPACK = {
    "32": "4",
    "32.4.3": "4.4",
    "32.4.4": "4.4.1",
    "32.5.0": "4.5",
    "32.5.1": "4.5.1",
    "32.5.2": "4.5.1",
    "32.6.1": "4.6",
    "32.7.1": "4.6.1",
    "32.7.2": "4.6.2",
    "32.7.3": "4.6.3",
    "32.7.4": "4.6.4",
    "32.7.5": "4.6.5",
    "32.7.6": "4.6.6",
    "34": "5",
    "34.1.0": "5.0 DP",
    "34.1.1": "5.0.1 DP",
    "35": "5",
    "35.1.0": "5.0.2",
    "35.2.1": "5.1",
    "35.3.1": "5.1.1",
    "35.4.1": "5.1.2",
    "35.5.0": "5.1.3",
    "35.6.0": "5.1.4",
    "35.6.1": "5.1.5",
    "36": "6",
    "36.2.0": "6.0 DP",
    "36.3.0": "6.0",
    "36.4.0": "6.1",
    "36.4.3": "6.2",
    "36.4.4": "6.2.1",
    "38": "7",
    "38.2": "7.0",
    "39": "7",
    "39.2": "7.2",
}


def identify(root: str) -> Optional[Identity]:
    """Return what the board below `root` is; None: it is no Jetson."""
    kind = board_kind(root)
    if not kind:
        return None
    l4t = l4t_release(text(root, "etc/nv_tegra_release"))
    return Identity(
        kind,
        text(root, "proc/device-tree/model"),
        text(root, "proc/device-tree/serial-number"),
        l4t,
        jetpack(l4t),
    )


def l4t_release(release: str) -> str:
    """Return the release that /etc/nv_tegra_release tells: `32.5.1`; empty when it tells none."""
    found = _RELEASE.search(release)
    if found is None:
        return ""
    return ".".join((found.group(1) + "." + found.group(2)).split(".")[:3])


def jetpack(l4t: str) -> str:
    """Return the JetPack that holds an L4T release, or its family (`4`); empty: not known."""
    parts = l4t.split(".")
    for n in range(len(parts), 0, -1):
        known = _JETPACK.get(".".join(parts[:n]))
        if known:
            return known
    return ""
