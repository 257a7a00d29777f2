"""Flag an epoch from the board's part of its record: mode, clocks, throttling, load, swap."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Dict

from epochwatt.board.records.run_folder import EpochRecord
from epochwatt.board.records.shapes import Document

if TYPE_CHECKING:
    from epochwatt.epochs.windows import Array

MET = 0.95  # of the requested clock: the papers' own margin (SIGMETRICS 2023, section 4.2)
BUSY_PCT = 10.0  # of all cores, taken by other programs before the start
RAILGATE_S = 0.5  # BOARD: an idle GPU is switched off after that, unless jetson_clocks keeps it on
SWAP_KIB = 1024  # less than that is somebody else's page

Samples = Dict[str, Dict[str, "Array"]]  # source -> column -> float (n,)


def window_of(record: EpochRecord) -> tuple[float, float]:
    """Return when an epoch began and ended, s on the monotonic clock."""
    return record.meta["t_start_mono_s"], record.meta["t_end_mono_s"]


def board_flags(record: EpochRecord, samples: Samples) -> set[str]:
    """Return the flags of an epoch measured on a board; none on a host.

    Reads `board` and `events` of its record (training.preparation, training.observation).
    """
    board = record.meta.get("board")
    if not board:
        return set()
    mode, means_mhz = board["power_mode"], mean_clocks_mhz(record, samples)
    flags = {
        "mode_not_verified": not mode["verified"],
        "clock_below_request": mode["dvfs"] == "off"
        and any(
            means_mhz[name] < MET * mhz
            for name, mhz in pinned_mhz(mode).items()
            if name in means_mhz
        ),
        "gpu_slept": mode["dvfs"] == "on" and gpu_may_have_slept(record),
        "machine_busy": (board["busy_pct"] or 0.0) > BUSY_PCT,
        "settle_timeout": board["settled"] is not None and not board["settled"]["steady"],
    }
    if (mode["read_back"] or {}).get("held_back"):  # older records do not tell
        flags["throttled"] = True
    return {flag for flag, holds in flags.items() if holds} | event_flags(record.meta["events"])


def gpu_may_have_slept(record: EpochRecord) -> bool:
    """Return whether CUDA events timed a wait so long that the GPU may have been switched off.

    The event after such a wait passes only when the GPU is awake again, milliseconds later: this
    time counts as wait and is missing from the copy. The first wait, in which the workers start, is
    not looked at.
    """
    timed_by_events = str(record.meta.get("timing_method")).startswith("cuda_events")
    return timed_by_events and bool((record.minibatch_s[1:, 0] > RAILGATE_S).any())


def event_flags(events: dict[str, dict[str, int]]) -> set[str]:
    """Return flags for throttling, over-current and swap, by counters before and after an epoch."""
    before, after = events["before"], events["after"]
    grown = {name: after[name] - before[name] for name in before.keys() & after.keys()}
    flags = {
        "throttled": grown.get("throttle", 0) > 0,
        "over_current": grown.get("over_current", 0) > 0,
        "swap_grown": grown.get("swap_kib", 0) > SWAP_KIB,
    }
    return {flag for flag, holds in flags.items() if holds}


def pinned_mhz(mode: Document) -> dict[str, float]:
    """Return column -> pinned clock of CPU, GPU and memory: as resolved, else as read back."""
    clocks = {**(mode["read_back"] or {}), **(mode["resolved"] or {})}
    return {k: clocks[k] for k in ("cpu_mhz", "gpu_mhz", "emc_mhz") if clocks.get(k)}


def mean_clocks_mhz(record: EpochRecord, samples: Samples) -> dict[str, float]:
    """Return the mean sampled clocks of an epoch by column; `cpu_mhz`: of the slowest online CPU.

    A CPU that is offline may go on reporting its last clock, so it does not count.
    """
    from epochwatt.epochs.windows import window_mean  # here: the rest needs no numpy

    online = (record.meta["board"]["power_mode"]["read_back"] or {}).get("cores_online")
    means: dict[str, float] = {}
    for source in ("host", "board"):
        table = samples.get(source, {})
        for column, clock_mhz in table.items():
            cpu = re.fullmatch(r"cpu([0-9]{1,9})_mhz", column)
            if source == "host" and cpu and (online is None or int(cpu[1]) in online):
                name = "cpu_mhz"
            elif source == "board" and column in ("gpu_mhz", "emc_mhz"):
                name = column
            else:
                continue
            mean_mhz = window_mean(table["t_mono_s"], clock_mhz, *window_of(record))
            if not math.isnan(mean_mhz):
                means[name] = min(mean_mhz, means.get(name, math.inf))
    return means
