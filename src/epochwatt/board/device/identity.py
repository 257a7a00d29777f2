"""Identify a board: kind, serial number, L4T and JetPack (board side: Python 3.6 grammar)."""

import os
import re
from typing import Dict, NamedTuple, Optional, Tuple

from epochwatt.board.device.board_files import board_kind, text
from epochwatt.board.records.files import csv_rows


class Identity(NamedTuple):
    """Kind, model and releases of a board, as it names them."""

    kind: str  # a name of `kinds.KINDS`, or `unknown`
    model: str  # as the device tree names it
    serial: str  # of the module; empty: it has none
    l4t: str  # release of NVIDIA's Linux, such as 32.5.1; empty: not known
    jetpack: str  # 4.5.1; of a newer release than is known here `7.2.1 or later`


# Part number in `compatible` of the device tree -> name of the module, also of those that are of no
# kind. SOURCE: NVIDIA's and Linux's device trees, and two public tables of them (stored index
# 17575627389, 33308634859)
MODULES: Dict[str, str] = dict(csv_rows(__file__, "modules.csv"))
# L4T release -> JetPack. SOURCE: developer.nvidia.com/embedded/jetpack-archive; 35.6.2, 36.4.7 and
# 36.5 on: docs/reference/sources.md
JETPACK: Dict[str, str] = dict(csv_rows(__file__, "jetpack.csv"))

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
