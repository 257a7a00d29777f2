"""Identify a board: kind, serial number, L4T and JetPack (board side: Python 3.6 grammar)."""

import os
import re
from typing import Dict, NamedTuple, Optional, Tuple

from epochwatt.board.device.board_files import board_kind, text

Identity = NamedTuple(
    "Identity",
    [
        ("kind", str),  # a name of `kinds.KINDS`, or `unknown`
        ("model", str),  # as the device tree names it
        ("serial", str),  # of the module; empty: it has none
        ("l4t", str),  # release of NVIDIA's Linux, such as 32.5.1; empty: not known
        ("jetpack", str),  # 4.5.1; of a newer release than is known here `7.2.1 or later`
    ],
)

# Part number in `compatible` of the device tree -> name of the module, also of those that are of no
# kind. SOURCE: NVIDIA's and Linux's device trees, and two public tables of them (stored index
# 17575627389, 33308634859)
MODULES: Dict[str, str] = {
    "p2371-2180": "Jetson TX1",
    "p2771-0000": "Jetson TX2",
    "p3310": "Jetson TX2",
    "p3489-0888": "Jetson TX2 4GB",
    "p3489": "Jetson TX2i",
    "p3636": "Jetson TX2 NX",
    "p3448-0003": "Jetson Nano 2GB",
    "p3448": "Jetson Nano",
    "p3450": "Jetson Nano",
    "p3668-0003": "Jetson Xavier NX 16GB",
    "p3668": "Jetson Xavier NX",
    "p2888-0008": "Jetson AGX Xavier Industrial",
    "p2888": "Jetson AGX Xavier",
    "p2972": "Jetson AGX Xavier",
    "p3701-0004": "Jetson AGX Orin 32GB",
    "p3701-0005": "Jetson AGX Orin 64GB",
    "p3701-0008": "Jetson AGX Orin Industrial",
    "p3701": "Jetson AGX Orin",
    "p3767-0000": "Jetson Orin NX 16GB",
    "p3767-0001": "Jetson Orin NX 8GB",
    "p3767-0003": "Jetson Orin Nano 8GB",
    "p3767-0004": "Jetson Orin Nano 4GB",
    "p3767-0005": "Jetson Orin Nano 8GB",
    "p3834-0008": "Jetson T5000",
    "p3834-0000": "Jetson T4000",
}

# L4T release -> JetPack. SOURCE: developer.nvidia.com/embedded/jetpack-archive; 35.6.2, 36.4.7 and
# 36.5 on: docs/reference/sources.md
JETPACK: Dict[str, str] = {
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
    "34.1.0": "5.0 DP",
    "34.1.1": "5.0.1 DP",
    "35.1.0": "5.0.2",
    "35.2.1": "5.1",
    "35.3.1": "5.1.1",
    "35.4.1": "5.1.2",
    "35.5.0": "5.1.3",
    "35.6.0": "5.1.4",
    "35.6.1": "5.1.5",
    "35.6.2": "5.1.5",
    "36.2.0": "6.0 DP",
    "36.3.0": "6.0",
    "36.4.0": "6.1",
    "36.4.3": "6.2",
    "36.4.4": "6.2.1",
    "36.4.7": "6.2.1",
    "36.5.0": "6.2.2",
    "36.5.2": "6.2.3",
    "38.2.0": "7.0",
    "38.2.1": "7.0",
    "38.2.2": "7.0",
    "38.4.0": "7.1",
    "39.2.0": "7.2",
    "39.2.1": "7.2.1",
}

_RELEASE = re.compile(r"^#\s*R(\d+)\s*\(release\)\s*,\s*REVISION:\s*(\d+(?:\.\d+)*)", re.MULTILINE)


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


def module(root: str) -> str:
    """Return the name of a board's module by its part number; empty: it is not known."""
    parts = text(os.path.join(root, "proc/device-tree"), "compatible")
    return next((name for part, name in MODULES.items() if part in parts), "")


def l4t_release(release: str) -> str:
    """Return the release in the text of /etc/nv_tegra_release: `32.5.1`; empty: none."""
    match = _RELEASE.search(release)
    if match is None:
        return ""
    return ".".join((match.group(1) + "." + match.group(2)).split(".")[:3])


def jetpack(l4t: str) -> str:
    """Return the JetPack that holds an L4T release; empty: not known.

    Of a release that is not listed: the number of the last one before it, `or later`.
    """
    if l4t in JETPACK:
        return JETPACK[l4t]
    before = [release for release in JETPACK if _numbers(release) <= _numbers(l4t)]
    if not before:
        return ""
    last = max(before, key=_numbers)
    return JETPACK[last] + ("" if _numbers(last) == _numbers(l4t) else " or later")


def _numbers(release: str) -> Tuple[int, ...]:
    numbers = tuple(int(part) for part in release.split(".") if part)
    return numbers + (0,) * (3 - len(numbers))  # 32.5 is 32.5.0
