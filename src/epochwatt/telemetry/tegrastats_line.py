"""Read a line of `tegrastats` in any of its dialects (board side: Python 3.6 grammar).

It differs with the JetPack release, the board and the user: without root there are no clocks of
memory and GPU, one board prints no rails at all, and units and numbers per rail vary. Anything
unknown is kept as it is and never guessed.
"""

import re
from typing import Any, Callable, Dict, List, Match, Optional, Pattern, Tuple

from epochwatt.telemetry.columns import OFFLINE_C
from epochwatt.telemetry.rails import is_connected

Parsed = Dict[str, Any]

# At most nine digits: longer ones are not readings, and would not fit a float exactly.
_N = "[0-9]{1,9}"
_R = r"-?[0-9]{1,9}(?:\.[0-9]{1,9})?"
_CLOCK = r"(?:(?P<pct>{n})%)?(?:@(?P<mhz>{n}|\[{n}(?:,{n})*\]))?".format(n=_N)
_ENGINES = "APE|ISP|MSENC|NVCSI|NVDEC|NVDLA|NVENC|NVJPG|OFA|PVA|SE|TSEC|VI|VIC"


def parse_line(line: str) -> Parsed:
    """Parse a line of tegrastats; never raises, whatever the text.

    Only `unknown` is always there; any other key is there where the line has it:

    ram, swap : {used_mib, total_mib, ...}; RAM with the number of its largest free blocks and
        their size in `lfb_mib` or `lfb_kib`, swap with `cached_mib`
    iram : {used_kib, total_kib, lfb_kib}
    cpu : one per core: {util_pct, mhz}; None: the core is off; mhz of None: it is not printed
    emc : {util_pct, mhz}; mhz is None where the user may not know it, and util_pct then is a 0 that
        stands for nothing
    gpu, gpu2 : {util_pct, mhz}; mhz is a list with one clock per cluster, None where unknown
    mts : {fg_pct, bg_pct}
    engines : by name: {util_pct, mhz}; None: it is off
    temps_c : by zone; None: its unit is off
    rails_mw : by label, now; the numbers behind it, means since tegrastats began, are left out, and
        so are channels that are not connected
    time : date and time as printed
    unknown : words that are none of these, or were there before; in order
    """
    words = " ".join(line.split())
    result: Parsed = {"unknown": []}
    place = 0
    while place < len(words):
        for pattern, take in _WORDS:
            match = pattern.match(words, place)
            if match is not None and take(result, match):
                place = match.end() + 1
                break
        else:
            word = words[place:].partition(" ")[0]
            result["unknown"].append(word)
            place += len(word) + 1
    return result


def _put(result: Parsed, key: str, value: Any) -> bool:
    """Keep a value unless there is one: what comes twice is not understood."""
    if key in result:
        return False
    result[key] = value
    return True


def _under(result: Parsed, key: str, name: str, value: Any) -> bool:
    return _put(result.setdefault(key, {}), name, value)


def _numbers(match: Match) -> Dict[str, Optional[int]]:
    return {name: int(n) if n is not None else None for name, n in match.groupdict().items()}


def _memory(key: str) -> Callable[[Parsed, Match], bool]:
    def take(result: Parsed, match: Match) -> bool:
        numbers = {name: n for name, n in _numbers(match).items() if n is not None}
        return _put(result, key, numbers)

    return take


def _mts(result: Parsed, match: Match) -> bool:
    return _put(result, "mts", _numbers(match))


def _time(result: Parsed, match: Match) -> bool:
    return match.start() == 0 and _put(result, "time", match.group())


def _cpu(result: Parsed, match: Match) -> bool:
    of_all = match.group("of_all")  # one clock for all of them, in R21 to R24
    cores: List[Optional[Dict[str, Optional[int]]]] = []
    for item in match.group("cores").split(","):
        util, _, mhz = item.partition("%")
        clock = mhz.lstrip("@") or of_all
        cores.append(
            None if item == "off" else {"util_pct": int(util), "mhz": int(clock) if clock else None}
        )
    return _put(result, "cpu", cores)


def _load(match: Match) -> Dict[str, Any]:
    """Return `7%@768`, `7%`, `@1600` or `12%@[1300,1300]` as load and list of clocks."""
    util, mhz = match.group("pct"), match.group("mhz")
    return {
        "util_pct": int(util) if util is not None else None,
        "mhz": [int(n) for n in mhz.strip("[]").split(",")] if mhz is not None else None,
    }


def _emc(result: Parsed, match: Match) -> bool:
    load = _load(match)
    if load["mhz"] is not None:
        load["mhz"] = load["mhz"][0]
    return _put(result, "emc", load)


def _gpu(result: Parsed, match: Match) -> bool:
    return _put(result, "gpu" + match.group("number"), _load(match))


def _engine(result: Parsed, match: Match) -> bool:
    if match.group("off"):
        return _under(result, "engines", match.group("name"), None)
    util, mhz = match.group("pct"), match.group("mhz")
    load = {"util_pct": int(util) if util else None, "mhz": int(mhz)}
    return _under(result, "engines", match.group("name"), load)


def _temperature(result: Parsed, match: Match) -> bool:
    celsius = float(match.group("celsius"))
    return _under(result, "temps_c", match.group("zone"), celsius if celsius > OFFLINE_C else None)


def _rail(result: Parsed, match: Match) -> bool:
    label = match.group("label")
    if not is_connected(label):
        return True
    return _under(result, "rails_mw", label, int(match.group("now")))


def _words() -> List[Tuple[Pattern, Callable[[Parsed, Match], bool]]]:
    """Return each kind of word, to be tried in order, with what takes it."""
    used = "(?P<used_mib>{n})/(?P<total_mib>{n})MB".format(n=_N)
    iram = "(?P<used_kib>{n})/(?P<total_kib>{n})kB".format(n=_N)
    block = "(?:(?P<lfb_mib>{n})MB|(?P<lfb_kib>{n})kB)".format(n=_N)
    lfb = r"(?: \(lfb (?P<lfb_blocks>{n})x{b}\))?".format(n=_N, b=block)
    core = "(?:off|{n}%(?:@{n})?)".format(n=_N)
    shapes: List[Tuple[str, Callable[[Parsed, Match], bool]]] = [
        (r"[0-9]{2}-[0-9]{2}-[0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2}", _time),
        ("RAM " + used + lfb, _memory("ram")),
        ("SWAP " + used + r"(?: \(cached (?P<cached_mib>{n})MB\))?".format(n=_N), _memory("swap")),
        ("IRAM " + iram + r"(?: ?\(lfb (?P<lfb_kib>{n})kB\))?".format(n=_N), _memory("iram")),
        # one recorded line begins with the list itself: only the CPU has one of that shape
        (
            r"(?:CPU |cpu )?\[(?P<cores>{c}(?:,{c})*)\](?:@(?P<of_all>{n}))?".format(c=core, n=_N),
            _cpu,
        ),
        ("EMC(?:_FREQ)? (?=[0-9@])" + _CLOCK, _emc),
        ("GR3D(?P<number>2?)(?:_FREQ)? (?=[0-9@])" + _CLOCK, _gpu),
        ("MTS fg (?P<fg_pct>{n})% bg (?P<bg_pct>{n})%".format(n=_N), _mts),
        (
            "(?P<name>(?:{e})[0-9]{{0,2}})(?:_FREQ)? "
            "(?:(?P<off>off)|(?:(?P<pct>{n})%)?@?(?P<mhz>{n}))".format(e=_ENGINES, n=_N),
            _engine,
        ),
        ("(?P<zone>[A-Za-z][A-Za-z0-9_-]*)@(?P<celsius>{r})C(?:/{r}C)*".format(r=_R), _temperature),
        (
            "(?P<label>[A-Z][A-Z0-9_]*) (?P<now>-?{n})(?P<unit>mW|)/-?{n}(?P=unit)"
            "(?:/-?{n}(?P=unit))?".format(n=_N),
            _rail,
        ),
    ]
    return [(re.compile(shape + "(?= |$)"), take) for shape, take in shapes]


_WORDS = _words()
