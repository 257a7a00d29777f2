"""Put one epoch on one time axis: its mini-batches, and what the sampler read meanwhile.

An epoch of more than `MOST` mini-batches is shown in groups of as many mini-batches each: means of
wait, copy and compute, and the shortest and longest mini-batch of the group. A series of more
samples than that keeps the least and the greatest of each piece, at the moments they were read.
"""

import re
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from epochwatt.board.records.run_folder import EpochRecord, RunFolder
from epochwatt.board.records.shapes import Document
from epochwatt.epochs.placement import stall_times
from epochwatt.epochs.telemetry import RATES, Samples, read_all
from epochwatt.errors import RecordError

MOST = 200  # mini-batches or samples shown one by one
ENDINGS = {  # what the name of a column ends with -> where it is drawn
    "_w": "power",
    "_mhz": "clock",
    "_c": "temperature",
    "_util_pct": "utilisation",
}
DISK = ("read_mib_s", "read_iops")  # of the data set's block device
LANES = {  # in order, with their axis titles
    "power": "power (W)",
    "clock": "clock (MHz)",
    "temperature": "temp. (°C)",
    "utilisation": "utilisation (%)",
    "read_mib_s": "disk (MiB/s)",
    "read_iops": "disk (reads/s)",
}
Numbers = NDArray[np.float64]


def read_epoch(folder: str, epoch: int) -> tuple[EpochRecord, Samples]:
    """Return the record of an epoch and its samples; RecordError: it is not there, or damaged."""
    record = _record(folder, epoch)
    return record, read_all(record)


def clocks_of(folder: str, epoch: int) -> dict[str, float]:
    """Return cores and clocks that a run's power mode was set to; empty where nobody knows."""
    try:
        board = _record(folder, epoch).meta.get("board") or {}
    except (RecordError, OSError):
        return {}
    mode = board.get("power_mode") or {}
    return {**(mode.get("read_back") or {}), **(mode.get("resolved") or {})}


def _record(folder: str, epoch: int) -> EpochRecord:
    root, _, run = folder.rpartition("/")
    return RunFolder(root, run).read(epoch)


def timeline(record: EpochRecord, samples: Samples) -> Document:
    """Return one epoch, ready for JSON; times in s from its start.

    Returns `epoch`, `e2e_s`, `n_minibatches`, `together` (mini-batches in a group), `is_placed`
    (whether it is known when they were), `minibatches` (columns), `series` (with lane, name, t_s,
    value), `missing` (lanes without a reading)
    """
    meta = record.meta
    groups, is_placed = minibatch_groups(record)
    series = _series(record, samples)
    lanes = {line.lane for line in series}
    return {
        "epoch": meta["epoch"],
        "e2e_s": round(meta["e2e_s"], 6),
        "n_minibatches": meta["n_minibatches"],
        "together": _together(meta["n_minibatches"]),
        "is_placed": is_placed,
        "minibatches": {name: _short(column) for name, column in groups.items()},
        "series": [line._asdict() for line in series],
        "missing": [lane for lane in LANES if lane not in lanes],
    }


def minibatch_groups(record: EpochRecord) -> tuple[dict[str, Numbers], bool]:
    """Return the mini-batches of an epoch in groups, and whether it is known when they were.

    Returns `start_s`, `end_s`, from the epoch's start; `wait_ms`, `copy_ms`, `compute_ms`, means of
    the group; `low_ms`, `high_ms`, its shortest and longest mini-batch
    """
    meta, times_s = record.meta, record.minibatch_s.astype(np.float64)
    if not len(times_s):  # of an imported power log
        names = ("start_s", "end_s", "wait_ms", "copy_ms", "compute_ms", "low_ms", "high_ms")
        return {name: np.empty(0) for name in names}, False
    durations_s = times_s.sum(axis=1)
    placed = stall_times(meta, record.minibatch_s)
    if placed is None:  # one after another, in proportion
        shares = np.cumsum(durations_s) / (durations_s.sum() or 1.0)  # a record may say 0
        ends_s = meta["e2e_s"] * shares
        starts_s = np.append(0.0, ends_s[:-1])
    else:
        starts_s = placed[0] - meta["t_start_mono_s"]
        ends_s = np.minimum(starts_s + durations_s, np.append(starts_s[1:], meta["e2e_s"]))
    first = np.arange(0, len(times_s), _together(len(times_s)))
    last = np.append(first[1:], len(times_s)) - 1
    means_ms = 1e3 * np.add.reduceat(times_s, first, axis=0) / (last - first + 1)[:, None]
    columns = {
        "start_s": starts_s[first],
        "end_s": ends_s[last],
        "wait_ms": means_ms[:, 0],
        "copy_ms": means_ms[:, 1],
        "compute_ms": means_ms[:, 2],
        "low_ms": 1e3 * np.minimum.reduceat(durations_s, first),
        "high_ms": 1e3 * np.maximum.reduceat(durations_s, first),
    }
    return columns, placed is not None


def _together(n: int) -> int:
    """Return how many mini-batches make a group."""
    return max(1, -(-n // MOST))


class Series(NamedTuple):
    """A column of a source, as it is drawn."""

    lane: str
    name: str
    source: str
    is_rate: bool
    t_s: list[float]
    value: list[float]


def _series(record: EpochRecord, samples: Samples) -> list[Series]:
    """Return what was read within the epoch, and once before and after it.

    Of cores whose clocks are the same all the time, there is one for all of them.
    """
    start_s, end_s = record.meta["t_start_mono_s"], record.meta["e2e_s"]
    seen: dict[object, Series] = {}
    for source, table in samples.items():
        t_s = table["t_mono_s"] - start_s
        for column, values in table.items():
            lane, is_read = lane_of(column), np.isfinite(values)
            if not lane or not is_read.any():
                continue
            t, v = thinned(*around(t_s[is_read], values[is_read], end_s))
            name, is_rate = _name(column, lane), column in RATES
            line = Series(lane, name, source, is_rate, _short(t), _short(v, 5))
            stem = re.sub(r"\d+$", "", name)
            key = repr((lane, stem, line.t_s, line.value))
            if key in seen and stem != name:
                seen[key] = seen[key]._replace(name=f"{stem}, all alike")
            else:
                seen[key] = line
    return list(seen.values())


def lane_of(column: str) -> str:
    """Return where a column of samples is drawn; empty: nowhere."""
    if column in DISK:
        return column
    if column.startswith(("swap", "tree", "write")):
        return ""
    return next((lane for end, lane in ENDINGS.items() if column.endswith(end)), "")


def _name(column: str, lane: str) -> str:
    """Return the name of a series within its lane."""
    if column in DISK:
        return "disk"
    end = next(end for end in ENDINGS if column.endswith(end))
    return re.sub("^(power|rail|temp)_", "", column.removesuffix(end)).replace("_", " ") or lane


def around(t_s: Numbers, values: Numbers, end_s: float) -> tuple[Numbers, Numbers]:
    """Return the samples from 0 to the end, with the last before and the first after."""
    first = max(0, int(np.searchsorted(t_s, 0.0, side="right")) - 1)
    last = int(np.searchsorted(t_s, end_s, side="left")) + 1
    return t_s[first:last], values[first:last]


def thinned(t_s: Numbers, values: Numbers) -> tuple[Numbers, Numbers]:
    """Return at most `MOST` samples: the least and the greatest of each piece, in order of time."""
    if len(t_s) <= MOST:
        return t_s, values
    kept = set()
    for piece in np.array_split(np.arange(len(t_s)), MOST // 2):
        kept |= {piece[np.argmin(values[piece])], piece[np.argmax(values[piece])]}
    places = np.array(sorted(kept))
    return t_s[places], values[places]


def _short(values: Numbers, figures: int = 6) -> list[float]:
    """Return numbers to a few figures: as many as a clock or a sensor has."""
    return [float(f"{value:.{figures}g}") for value in values.tolist()]
