"""Compare a power mode with the clocks read back (board side: Python 3.6 grammar).

A mode has the keys `cores` (how many are on), `cpu_mhz`, `gpu_mhz` and `emc_mhz` (memory). `clocks`
is always the result of `board_files.read_clocks`.
"""

from typing import Dict, List, Optional, Tuple

from epochwatt.board.device.board_files import Mode
from epochwatt.board.device.frequencies import WITHIN
from epochwatt.board.records.shapes import Document
from epochwatt.columns import CLOCKS
from epochwatt.errors import ConfigError

MET = 0.05  # what is read back may differ by this share: the paper counts 95 % as met
# BOARD: after an over-current event at its start an AGX Thor ran at a quarter of each clock that
# was set, and told the kernel no error: `scaling_cur_freq` showed 2601 MHz, the counters behind
# `cpuinfo_cur_freq` 649 (NVIDIA forum topic 361188). ASSUME: below this share it is no noise
HELD_BACK = 0.75
HELD_BACK_DO = (
    "the hardware holds the CPUs below the clock that cpufreq shows, as after an over-current "
    "event: use a stronger power supply, then start the board again"
)


def limits(mode: Mode, steps_mhz: Dict[str, List[float]]) -> Document:
    """Return the limits that a mode of nvpmodel.conf sets, by the keys of CLOCKS that it limits.

    They may be round numbers, which nvpmodel rounds to steps without a word. Clusters of CPUs with
    different limits have no `cpu_mhz`. `steps_mhz` are the board's clocks, of which the highest
    stands for `no limit` (-1; for the memory 0).
    """
    result: Document = {}
    switches = [value for param, _, value in mode.settings if param == "CPU_ONLINE"]
    if switches:
        result["cores"] = sum(value != "0" for value in switches)
    for key, prefix, per_mhz in (
        ("cpu_mhz", "CPU_", 1e3),
        ("gpu_mhz", "GPU", 1e6),
        ("emc_mhz", "EMC", 1e6),
    ):
        top_mhz = max(steps_mhz[key], default=None)
        limits_mhz = {
            _limit(int(value), per_mhz, top_mhz)
            for param, argument, value in mode.settings
            if argument == "MAX_FREQ" and param.startswith(prefix)
        }
        if len(limits_mhz) == 1 and None not in limits_mhz:
            result[key] = limits_mhz.pop()
    return result


def need_same(mode: Document, actual: Document) -> None:
    """Check that the numbers a device file gives beside a mode's name are those of nvpmodel.conf.

    `mode` is as a device file has it: its name in `nvpmodel`, and perhaps numbers; `actual` are its
    `limits`, and `gpu_share` where parts of the GPU are gated off. What is missing or None is not
    known, and not compared.

    Raises ConfigError: a number differs by more than nominal and real clocks do.
    """
    if not any(key in mode for key in CLOCKS):
        return
    whole_gpu = {"gpu_share": 1.0}
    numbers, actual = dict(whole_gpu, **mode), dict(whole_gpu, **actual)
    for key in CLOCKS + ("gpu_share",):
        number, limit = numbers.get(key), actual.get(key)
        if number is None or limit is None:
            continue
        tolerance = 0 if key == "cores" else WITHIN * limit
        if abs(number - limit) > tolerance:
            raise ConfigError(
                "power mode {}: {} differs from this board's nvpmodel.conf".format(
                    mode["nvpmodel"], key
                ),
                found=f"{number:g}",
                allowed=f"{limit:g}",
                do="correct it in config/devices/, or leave all numbers out",
            )


def _limit(value: int, per_mhz: float, top_mhz: Optional[float]) -> Optional[float]:
    if value <= 0:  # no limit
        return top_mhz
    return value / per_mhz if top_mhz is None else min(value / per_mhz, top_mhz)


def exact(resolved: Document) -> Tuple[int, int, int, int]:
    """Return cores, CPU kHz, GPU Hz and EMC Hz for the root helper; 0: not set by the mode."""
    return (
        resolved.get("cores", 0),
        round(resolved.get("cpu_mhz", 0) * 1e3),
        round(resolved.get("gpu_mhz", 0) * 1e6),
        round(resolved.get("emc_mhz", 0) * 1e6),
    )


def pinned(clocks: Document) -> Dict[str, float]:
    """Return `cpu_mhz` and `gpu_mhz` with DVFS off: the upper limits that are read, where known."""
    limits_khz = {khz for khz in clocks["cpu_max_khz"].values() if khz is not None}
    cpu_mhz = limits_khz.pop() / 1e3 if len(limits_khz) == 1 else None  # as in `limits`
    limits_mhz = {"cpu_mhz": cpu_mhz, "gpu_mhz": _mhz(clocks["gpu_max_hz"])}
    return {key: mhz for key, mhz in limits_mhz.items() if mhz is not None}


def compare(
    clocks: Document, wanted: Document, dvfs: str, emc_top_mhz: Optional[float]
) -> Tuple[Dict[str, float], List[str]]:
    """Compare the clocks read back with those wanted, of which any of CLOCKS may be missing.

    With DVFS off the clocks themselves are compared; with DVFS on they vary, so their upper limits
    are. `emc_top_mhz` is the highest memory clock, which no cap (0) means.

    Returns what was read back of each key that is not met, the value furthest from it, and the keys
    that cannot be read back.
    """
    unmet, unread = {}, []
    for key in CLOCKS:
        if key not in wanted:
            continue
        values = _values(key, clocks, dvfs == "off", emc_top_mhz)
        if not values or None in values:
            unread.append(key)
            continue
        tolerance = 0 if key == "cores" else MET * wanted[key]
        deviations = [(abs(value - wanted[key]), value) for value in values if value is not None]
        largest, furthest = max(deviations, key=lambda pair: pair[0])
        if largest > tolerance:
            unmet[key] = furthest
    return unmet, unread


def complaints(unmet: Dict[str, float], wanted: Document) -> str:
    """Return in words what `compare` gave."""
    return "; ".join(f"{key} is {value:g}, wanted {wanted[key]:g}" for key, value in unmet.items())


def _values(
    key: str, clocks: Document, is_pinned: bool, emc_top_mhz: Optional[float]
) -> List[Optional[float]]:
    """Return the readings of a clock or limit to compare; None for one that cannot be read."""
    if key == "cores":
        return [float(len(clocks["cores_online"]))]
    if key == "cpu_mhz":
        khz = clocks["cpu_khz" if is_pinned else "cpu_max_khz"]
        return [None if value is None else value / 1e3 for value in khz.values()]
    if key == "gpu_mhz":
        hz = clocks["gpu_hz" if is_pinned else "gpu_max_hz"]
        # BOARD: Thor's GPU shows 0 while it is off; it will run at its lower limit at least
        return [_mhz(clocks["gpu_min_hz"] if hz == 0 else hz)]
    if is_pinned:
        return [_mhz(clocks["emc_hz"])]
    cap_mhz = _mhz(clocks["emc_cap_hz"])
    if cap_mhz is None or emc_top_mhz is None:
        return [cap_mhz or None]
    return [min(cap_mhz or emc_top_mhz, emc_top_mhz)]


def _mhz(hz: Optional[int]) -> Optional[float]:
    return None if hz is None else hz / 1e6


def summary(clocks: Document) -> Document:
    """Return the clocks for a record, MHz; of the CPUs that are on the lowest; None: not read.

    `held_back`: the CPUs run far below the clock that cpufreq shows, which nothing else tells.
    """
    mhz = _lowest(clocks["cpu_khz"])
    # the lower one, as the governor may act in between; an older root helper tells neither
    shown = [_lowest(clocks.get(key, {})) for key in ("cpu_shown_khz", "cpu_shown_after_khz")]
    shown_mhz = min((value for value in shown if value is not None), default=None)
    return {
        "cores": len(clocks["cores_online"]),
        "cores_online": clocks["cores_online"],
        "cpu_mhz": mhz,
        "cpu_shown_mhz": shown_mhz,
        "held_back": mhz is not None and shown_mhz is not None and mhz < HELD_BACK * shown_mhz,
        "cpu_max_mhz": _lowest(clocks["cpu_max_khz"]),
        "gpu_mhz": _mhz(clocks["gpu_hz"]),
        "gpu_max_mhz": _mhz(clocks["gpu_max_hz"]),
        "emc_mhz": _mhz(clocks["emc_hz"]),
        "emc_cap_mhz": _mhz(clocks["emc_cap_hz"]),  # 0: no cap
    }


def _lowest(khz: Dict[str, Optional[int]]) -> Optional[float]:
    readings = [value for value in khz.values() if value is not None]
    return min(readings) / 1e3 if readings else None
