"""Make an epoch's columns from its samples: energy by scope, utilisation, memory, disk."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from epochwatt.board.records.run_folder import EpochRecord
from epochwatt.board.records.samples import read_source, samples_path
from epochwatt.board.records.shapes import Document
from epochwatt.epochs.board import BUSY_PCT
from epochwatt.epochs.counter import counted
from epochwatt.epochs.energy import (
    J_PER_WH,
    TICK_S,
    paper_energy_wh,
    paper_missing_pct,
    trapezoid,
)
from epochwatt.epochs.placement import stall_times
from epochwatt.epochs.sensor import AGE, Sensor, recorded_sensor, sensor_in
from epochwatt.epochs.stalls import StallEnergy, stall_energy
from epochwatt.epochs.windows import window_mean, window_median
from epochwatt.errors import DamagedError, RecordError

# The widest scope is in epochs.csv; all of them are in energy.csv.
SCOPES = ("module", "socket", "gpu", "cpu_package")
COUNTER, TRAPEZOID = "counter", "trapezoid"

# Columns of the host that are means since the row before, not readings of an instant.
RATES = ("cpu_util_pct", "read_iops", "read_mib_s")

STUCK_S = 30.0  # a total that does not move for so long is no reading of a machine at work
# of the readings; rails are converted one after another, so single ones may contradict each other
CONTRADICTED = 0.05
MISSING_PCT = 10.0  # of an epoch; the papers' sum of less would pass for all of it
# Column of epochs.csv, source, column of its samples. A source may come in parts (`host-disk`),
# whose columns were read at instants of their own.
USAGE = (
    ("cpu_util_pct", "host", "cpu_util_pct"),
    ("gpu_util_pct", "nvml", "gpu_util_pct"),
    ("gpu_util_pct", "board", "gpu_util_pct"),
    ("ram_used_mib", "host", "ram_used_mib"),
    ("read_iops", "host", "read_iops"),
    ("read_mib_s", "host", "read_mib_s"),
)
FROZEN_S, FROZEN_SHARE = 3.0, 0.8  # the host is read each second; even a starved sampler does
MEDIANS = ("cpu_util_pct", "gpu_util_pct")

Samples = dict[str, dict[str, np.ndarray]]


@contextmanager
def named(folder: str) -> Iterator[None]:
    """Say of errors in what a record holds which record that is, by its folder."""
    try:
        yield
    except RecordError as error:
        raise type(error)(
            error.problem,
            where=error.where or folder,
            found=error.found,
            allowed=error.allowed,
            do=error.do,
        ) from error


def read_all(record: EpochRecord) -> Samples:
    """Return the samples of every source of an epoch; nothing where telemetry was lost.

    Raises DamagedError, too, where a file has fewer rows than the sampler says that it wrote, and
    RecordError where it lacks the power that telemetry.json says is in it.
    """
    samples = {}
    for name, source in record.telemetry.get("sources", {}).items():
        samples[name] = read_source(record.folder, name, source)
        path = samples_path(record.folder, name)
        n_rows = len(samples[name]["t_mono_s"])
        n_least = 0 if source.get("write_error") else _n_written(source)
        if n_rows < n_least:
            raise DamagedError(f"{path} has {n_rows} rows; {n_least} were written")
        if source["scope"] and source["total"] and source["total"] not in samples[name]:
            raise RecordError(f"{path} has no column {source['total']}, which telemetry.json names")
        if source["scope"] and source["total"] and "tail_s" not in record.meta:
            raise RecordError(
                f"{record.folder}: record.json lacks tail_s, which stall energy needs"
            )
    return samples


def _n_written(source: Document) -> int:
    """Return how many rows of a source must be in its file, by the sampler's own count."""
    return int(source.get("n_samples") or 0) - int(source.get("rows_dropped") or 0)


def usage(record: EpochRecord, samples: Samples) -> dict[str, float | None]:
    """Return means over the epoch (and medians of utilisation); None where nothing was read."""
    window = record.meta["t_start_mono_s"], record.meta["t_end_mono_s"]
    columns: dict[str, float | None] = {}
    for name, source, column in USAGE:
        parts = (samples[part] for part in samples if part.split("-")[0] == source)
        table = next((part for part in parts if column in part), None)
        if table is None:
            continue
        mean = rate_mean if name in RATES else window_mean
        columns[name] = _none_if_nan(mean(table["t_mono_s"], table[column], *window))
        if name in MEDIANS:
            median = window_median(table["t_mono_s"], table[column], *window)
            columns[name.replace("_pct", "_median_pct")] = _none_if_nan(median)
    return columns


def rate_mean(t_s: np.ndarray, rate: np.ndarray, start_s: float, end_s: float) -> float:
    """Return the mean over a window of a column whose rows are means since the row before.

    Parameters
    ----------
    t_s : float (n,), s, ascending
    rate : float (n,), any unit; NaN: unknown since the row before
    start_s, end_s : bounds of the window, s

    Returns
    -------
    float : NaN where nothing is known inside the window
    """
    since_s = np.clip(t_s[:-1], start_s, end_s)
    weights_s = np.clip(t_s[1:], start_s, end_s) - since_s
    usable = np.isfinite(rate[1:]) & (weights_s > 0)
    if not usable.any():
        return math.nan
    return float(np.average(rate[1:][usable], weights=weights_s[usable]))


def energies(record: EpochRecord, samples: Samples) -> list[dict[str, Any]]:
    """Return one row per power scope that was measured, the widest first, with its `flags`."""
    sources = record.telemetry.get("sources", {})
    rows = {
        source["scope"]: energy_row(record, samples[name], source)
        for name, source in sources.items()
        if source["scope"] and source["total"]
    }
    return [rows[scope] for scope in SCOPES if scope in rows]


def energy_row(
    record: EpochRecord, table: dict[str, np.ndarray], source: Document
) -> dict[str, Any]:
    """Return the energy of one scope.

    Where the sensor counts energy itself (a column `energy_..._j`) the counter's difference is
    taken; else the trapezoid. The papers' sum is given too, unless it lacks a large part.
    """
    meta = record.meta
    window = meta["t_start_mono_s"], meta["t_end_mono_s"]
    t_s, power_w = table["t_mono_s"], table[source["total"]]
    stalls = stall_times(meta, record.minibatch_s)
    energy = scope_energy(window, table, source, stalls)
    sensor = sensor_in(source, table, window)
    stall = stall_part(record, table, source, sensor, stalls)
    missing_pct = paper_missing_pct(t_s, power_w, *window)
    paper_wh = paper_energy_wh(t_s, power_w, *window)
    if lacks_much(missing_pct, window[1] - window[0]):
        paper_wh = math.nan
    flags = set(energy.flags)
    if stalls is None:
        flags.add("stalls_not_placed")
    elif math.isnan(stall.energy_j) and "power_missing" not in flags:
        flags.add("stall_power_unresolved")
    return {
        "power_scope": source["scope"],
        "energy_method": energy.method,
        "sampler_period_s": source["step_mean_s"],
        "energy_wh": _none_if_nan(energy.energy_j / J_PER_WH),
        "energy_error_pct": _none_if_nan(energy.error_pct),
        "energy_paper_wh": _none_if_nan(paper_wh),
        "energy_paper_missing_pct": _none_if_nan(missing_pct),
        "stall_energy_j": _none_if_nan(stall.energy_j),
        "stall_energy_error_pct": _none_if_nan(stall.error_pct),
        "power_mean_w": _none_if_nan(energy.energy_j / meta["e2e_s"]),
        "flags": flags,
    }


class ScopeEnergy(NamedTuple):
    """Energy of one scope in a window."""

    energy_j: float  # NaN where there is none
    error_pct: float
    method: str  # COUNTER or TRAPEZOID
    flags: frozenset[str]  # what speaks against the readings (`power_flags`)


def scope_energy(
    window: tuple[float, float],
    table: dict[str, np.ndarray],
    source: Document,
    stalls: tuple[np.ndarray, np.ndarray] | None,
) -> ScopeEnergy:
    """Return the energy of a scope: the sensor's own counter where it has one, else the trapezoid.

    Parameters
    ----------
    window : begin and end, s on the monotonic clock
    table : samples of the source, column -> float (n,)
    stalls : starts and ends, those of mini-batches; empty: nothing repeats; None: not known
    """
    t_s, power_w = table["t_mono_s"], table[source["total"]]
    sensor = sensor_in(source, table, window)
    energy = trapezoid(t_s, power_w, *window, sensor, table.get(AGE), *(stalls or ()))
    flags = frozenset(power_flags(source, energy.flags))
    counters = [c for c in table if c.startswith("energy_") and c.endswith("_j")]
    if not counters:
        return ScopeEnergy(energy.energy_j, energy.error_pct, TRAPEZOID, flags)
    recorded = recorded_sensor(source)
    counter = counted(t_s, table[counters[0]], *window, recorded.get("counter_update_s"))
    if math.isnan(counter.energy_j):
        return ScopeEnergy(energy.energy_j, energy.error_pct, TRAPEZOID, flags)
    # a card that looks at a part of the time counts what it has seen
    sees_all = (recorded.get("seen_share") or 1.0) >= 1.0
    both = float(np.maximum(counter.error_pct, energy.error_pct))
    return ScopeEnergy(counter.energy_j, counter.error_pct if sees_all else both, COUNTER, flags)


def lacks_much(missing_pct: float, length_s: float) -> bool:
    """Return whether the papers' sum lacks over a tenth of an epoch, besides its usual two seconds.

    The sum has neither the time before its first reading nor that after its last.
    """
    return missing_pct > MISSING_PCT + 100.0 * 2 * TICK_S / length_s


def stall_part(
    record: EpochRecord,
    table: dict[str, np.ndarray],
    source: Document,
    sensor: Sensor,
    stalls: tuple[np.ndarray, np.ndarray] | None,
) -> StallEnergy:
    """Return the energy of an epoch's stalls as far as a source can tell it.

    `stalls` are starts and ends; None: when they were is not known. A reading may be of any moment
    while it was taken, and its stamp is the middle of that: most take less than twice the mean.
    """
    if stalls is None:
        return StallEnergy(math.nan, math.nan, "when the stalls were is not known")
    meta = record.meta
    # what lies between mini-batches is overhead, and where in there is not known
    between_s = np.diff(stalls[0]) - record.minibatch_s[:-1].sum(axis=1, dtype=np.float64)
    overhead_s = max(float(between_s.mean()), 0.0) if between_s.size else 0.0
    return stall_energy(
        table["t_mono_s"],
        table[source["total"]],
        (meta["t_start_mono_s"], meta["t_end_mono_s"]),
        stalls,
        sensor,
        age_s=table.get(AGE),
        slack_s=overhead_s + (source.get("read_mean_s") or 0.0),
    )


def power_flags(source: Document, reading_flags: frozenset[str]) -> set[str]:
    """Return what speaks against a power sensor's readings (names in `columns.FLAGS`)."""
    flags = set(reading_flags)
    if source["n_negative"]:
        flags.add("power_negative")
    if source["stuck_s"] > STUCK_S:
        flags.add("power_stuck")
    sensor = source.get("settings", {}).get("sensor") or {}
    if (sensor.get("seen_share") or 1.0) < 1.0:
        flags.add("power_part_time")
    contradictions = source.get("settings", {}).get("contradictions") or 0
    if contradictions and contradictions > CONTRADICTED * source.get("n_samples", 0):
        flags.add("power_contradicted")
    return flags


def telemetry_flags(record: EpochRecord) -> set[str]:
    """Return the flags that concern the sampler as a whole."""
    statistics = record.telemetry
    flags = set()
    if statistics.get("clock_jumps"):
        flags.add("clock_jumped")
    sources = statistics.get("sources", {}).values()
    lacks = ("rows_dropped", "n_failed", "write_error")
    if any(source.get(lack) for source in sources for lack in lacks):
        flags.add("sampler_gap")
    if record.meta.get("telemetry_lost") is False and not statistics:
        flags.add("sampler_lost")  # the sampler gave it, and it could not be written
    wanted = record.meta.get("factors", {}).get("board_settings", {}).get("power_source", "none")
    if wanted != "none" and sources and not any(source["scope"] for source in sources):
        flags.add("power_missing")
    if any(source["scope"] and not source["total"] for source in sources):
        flags.add("power_total_unknown")
    if record.meta.get("power_refused"):
        flags.add("gpu_power_unknown")
    if any("fallback" in source.get("settings", {}) for source in sources):
        flags.add("power_source_replaced")
    return flags


def disturbances(record: EpochRecord, samples: Samples) -> set[str]:
    """Return what the samples say of an epoch that stood still or was not alone on the machine.

    A container or a virtual machine that is frozen stops sampler and training alike: nobody read
    anything for some seconds, and one mini-batch took as long.
    """
    flags = set()
    longest_s = float(record.minibatch_s.sum(axis=1).max(initial=0.0))
    host = samples.get("host", {})
    t_s = host.get("t_mono_s", np.empty(0))
    window = record.meta["t_start_mono_s"], record.meta["t_end_mono_s"]
    silent_s = float(np.diff(np.clip(t_s, *window)).max(initial=0.0))
    if silent_s > FROZEN_S and longest_s > FROZEN_SHARE * silent_s:
        flags.add("stopped")
    if others_pct(record, host) > BUSY_PCT:
        flags.add("machine_shared")
    return flags


def others_pct(record: EpochRecord, host: dict[str, np.ndarray]) -> float:
    """Return what others than training and sampler took of all CPUs over the epoch; NaN: unknown.

    Virtual machines beside ours are in it: the kernel counts what they take (steal) as busy.
    """
    if not {"cpu_util_pct", "tree_cpu_pct"} <= host.keys():
        return math.nan
    window = record.meta["t_start_mono_s"], record.meta["t_end_mono_s"]
    columns = host["cpu_util_pct"], host["tree_cpu_pct"]
    all_pct, ours_pct = (rate_mean(host["t_mono_s"], column, *window) for column in columns)
    statistics = record.telemetry
    n_cpus = statistics["sources"].get("host", {}).get("settings", {}).get("n_cpus") or 1
    sampler_pct = (
        100.0 * statistics.get("cpu_s", 0.0) / (statistics.get("wall_s") or math.inf) / n_cpus
    )
    return all_pct - ours_pct - sampler_pct


def _none_if_nan(value: float) -> float | None:
    """Return None for what could not be computed: an empty cell, never 0 or nan."""
    return None if math.isnan(value) else value
