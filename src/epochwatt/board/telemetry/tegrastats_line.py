"""Read power, temperatures and loads from a line of `tegrastats` (board side: Python 3.6 grammar).

Lines differ with the JetPack release, the board and the user: without root there are no clocks of
memory and GPU, one board prints no rails at all, and units and numbers per rail vary. Only what the
sampler records is read; all other words are skipped.
"""

import re
from typing import Dict, NamedTuple, Optional, Pattern, Tuple

from epochwatt.board.telemetry.rails import is_connected
from epochwatt.board.telemetry.source import OFFLINE_C


class Line(NamedTuple):
    """Readings of a line; what it does not have is missing or None."""

    rails_mw: Dict[str, int]  # by label, now; the means that follow are left out
    temps_c: Dict[str, Optional[float]]  # by zone; None: its unit is off
    gpu_pct: Optional[int]
    gpu_mhz: Optional[int]  # of the fastest cluster
    emc_pct: Optional[int]  # without a clock it is a 0 that stands for nothing
    emc_mhz: Optional[int]


def _words(pattern: str) -> Pattern:
    """Return a pattern of whole words; {n} is a number, {r} one that may have decimals."""
    n = "[0-9]{1,9}"  # longer ones are not readings, and would not fit a float exactly
    r = rf"-?{n}(?:\.{n})?"
    return re.compile(r"(?<!\S)" + pattern.format(n=n, r=r) + r"(?!\S)")


_LOAD = r"(?:_FREQ)? (?=[0-9@])(?:(?P<pct>{n})%)?(?:@(?P<mhz>{n}|\[{n}(?:,{n})*\]))?"
_GPU, _EMC = _words("GR3D" + _LOAD), _words("EMC" + _LOAD)
_TEMPERATURE = _words("(?P<zone>[A-Za-z][A-Za-z0-9_-]*)@(?P<celsius>{r})C(?:/{r}C)*")
_RAIL = _words(
    "(?P<label>[A-Z][A-Z0-9_]*) (?P<now>-?{n})(?P<unit>mW|)/-?{n}(?P=unit)(?:/-?{n}(?P=unit))?"
)


def parse_line(line: str) -> Line:
    """Return the readings of a line of tegrastats; never raises, whatever the text.

    Of what comes twice the first counts. Channels that are not connected are left out.
    """
    words = " ".join(line.split())
    rails_mw: Dict[str, int] = {}
    for match in _RAIL.finditer(words):
        if is_connected(match.group("label")):
            rails_mw.setdefault(match.group("label"), int(match.group("now")))
    temps_c: Dict[str, Optional[float]] = {}
    for match in _TEMPERATURE.finditer(words):
        celsius = float(match.group("celsius"))
        temps_c.setdefault(match.group("zone"), celsius if celsius > OFFLINE_C else None)
    return Line(rails_mw, temps_c, *_load(_GPU, words), *_load(_EMC, words))


def _load(pattern: Pattern, words: str) -> Tuple[Optional[int], Optional[int]]:
    """Return load, %, and highest clock, MHz: of `7%@768`, `7%`, `@1600` or `12%@[1300,1300]`."""
    match = pattern.search(words)
    if match is None:
        return None, None
    pct, mhz = match.group("pct"), match.group("mhz")
    clocks = [int(n) for n in mhz.strip("[]").split(",")] if mhz is not None else []
    return None if pct is None else int(pct), max(clocks, default=None)
