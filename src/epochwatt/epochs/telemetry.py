"""Make an epoch's columns from its samples: energy by scope, utilisation, memory, disk."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Dict, NamedTuple

import numpy as np

from epochwatt.board.records.run_folder import EpochRecord
from epochwatt.board.records.samples import read_source, samples_path
from epochwatt.board.records.shapes import Document
from epochwatt.columns import COLUMNS, EPOCH_COLUMNS, POWER_SCOPES
from epochwatt.epochs.board_flags import BUSY_PCT, window_of
from epochwatt.epochs.board_flags import Samples as Samples
from epochwatt.epochs.energy import (
    J_PER_WH,
    TICK_S,
    counted,
    paper_energy_wh,
    paper_missing_pct,
    trapezoid,
)
from epochwatt.epochs.placement import stall_times
from epochwatt.epochs.sensor import AGE, recorded_sensor, sensor_in
from epochwatt.epochs.stalls import stall_energy
from epochwatt.epochs.windows import Array, window_mean, window_median
from epochwatt.errors import DamagedError, RecordError

COUNTER, TRAPEZOID = "counter", "trapezoid"

# Columns of the host that are means since the row before, not readings of an instant.
RATES = ("cpu_util_pct", "read_iops", "read_mib_s")

STUCK_S = 30.0  # a total that does not move for so long is no reading of a machine at work
# of the readings; rails are converted one after another, so single ones may contradict each other
CONTRADICTED = 0.05
MISSING_PCT = 10.0  # of an epoch; the papers' sum of less would pass for all of it
FROZEN_S, FROZEN_SHARE = 3.0, 0.8  # the host is read each second; even a starved sampler does

Row = Dict[str, Any]  # cells of epochs.csv or energy.csv; `flags` is a set


@contextmanager
def named(folder: str) -> Iterator[None]:
    """Raise RecordErrors within again, with the folder of the record they are about."""
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
        table = samples[name] = read_source(record.folder, name, source)
        path, n_rows = samples_path(record.folder, name), len(table["t_mono_s"])
        n_written = int(source.get("n_samples") or 0) - int(source.get("rows_dropped") or 0)
        if n_rows < n_written and not source.get("write_error"):
            raise DamagedError(f"{path} has {n_rows} rows; {n_written} were written")
        if source["scope"] and source["total"]:
            if source["total"] not in table:
                total = source["total"]
                raise RecordError(f"{path} has no column {total}, which telemetry.json names")
            if "tail_s" not in record.meta:
                lacks = "record.json lacks tail_s, which stall energy needs"
                raise RecordError(f"{record.folder}: {lacks}")
    return samples


def usage(record: EpochRecord, samples: Samples) -> dict[str, float | None]:
    """Return the mean of each sampled column over the epoch; None where nothing was read.

    Where there is a column for the median (`cpu_util_median_pct`), that too.
    """
    cells: dict[str, float | None] = {}
    sampled = [(column.name, source) for column in EPOCH_COLUMNS for source in column.sampled_by]
    for name, source in sampled:
        # a source may come in parts (`host-disk`), read at instants of their own
        parts = (samples[part] for part in samples if part.split("-")[0] == source)
        table = next((part for part in parts if name in part), None)
        if table is not None:
            sampled_in = (table["t_mono_s"], table[name], *window_of(record))
            mean = rate_mean if name in RATES else window_mean
            cells[name] = _none_if_nan(mean(*sampled_in))
            stem, _, unit = name.rpartition("_")
            if f"{stem}_median_{unit}" in COLUMNS:
                cells[f"{stem}_median_{unit}"] = _none_if_nan(window_median(*sampled_in))
    return cells


def rate_mean(t_s: Array, rate: Array, start_s: float, end_s: float) -> float:
    """Return the mean over a window of a column whose rows are means since the row before.

    `t_s`, `rate`: float (n,); NaN: not known since the row before. NaN is returned where nothing
    is known inside the window.
    """
    since_s = np.clip(t_s[:-1], start_s, end_s)
    weights_s = np.clip(t_s[1:], start_s, end_s) - since_s
    usable = np.isfinite(rate[1:]) & (weights_s > 0)
    if not usable.any():
        return math.nan
    return float(np.average(rate[1:][usable], weights=weights_s[usable]))


def energies(record: EpochRecord, samples: Samples) -> list[Row]:
    """Return one row per power scope that was measured, the widest first, with its `flags`."""
    sources = record.telemetry.get("sources", {})
    rows = {
        source["scope"]: energy_row(record, samples[name], source)
        for name, source in sources.items()
        if source["scope"] and source["total"]
    }
    return [rows[scope] for scope in POWER_SCOPES if scope in rows]


def energy_row(record: EpochRecord, table: dict[str, Array], source: Document) -> Row:
    """Return the cells of one power scope: energy, the papers' energy, stall energy, and `flags`.

    The papers' sum is given too, unless it lacks over a tenth of the epoch besides its usual two
    seconds: it has neither the time before its first reading nor that after its last.
    """
    window, t_s, power_w = window_of(record), table["t_mono_s"], table[source["total"]]
    stalls = stall_times(record.meta, record.minibatch_s)
    energy = scope_energy(window, table, source, stalls)
    flags, stall_j, stall_error_pct = set(energy.flags), math.nan, math.nan
    if stalls is None:
        flags.add("stalls_not_placed")
    else:
        # what lies between mini-batches is overhead, and where in there is not known
        between_s = np.diff(stalls[0]) - record.minibatch_s[:-1].sum(axis=1, dtype=np.float64)
        overhead_s = max(float(between_s.mean()), 0.0) if between_s.size else 0.0
        # a reading may be of any moment while it was taken, and its stamp is the middle of that:
        # most take less than twice the mean
        slack_s = overhead_s + (source.get("read_mean_s") or 0.0)
        sensor = sensor_in(source, table, window)
        stall = stall_energy(t_s, power_w, window, stalls, sensor, table.get(AGE), slack_s)
        stall_j, stall_error_pct = stall.energy_j, stall.error_pct
        if math.isnan(stall_j) and "power_missing" not in flags:
            flags.add("stall_power_unresolved")
    missing_pct = paper_missing_pct(t_s, power_w, *window)
    paper_wh = paper_energy_wh(t_s, power_w, *window)
    if missing_pct > MISSING_PCT + 100.0 * 2 * TICK_S / (window[1] - window[0]):
        paper_wh = math.nan
    numbers = {
        "energy_wh": energy.energy_j / J_PER_WH,
        "energy_error_pct": energy.error_pct,
        "energy_paper_wh": paper_wh,
        "energy_paper_missing_pct": missing_pct,
        "stall_energy_j": stall_j,
        "stall_energy_error_pct": stall_error_pct,
        "power_mean_w": energy.energy_j / record.meta["e2e_s"],
    }
    return {
        "power_scope": source["scope"],
        "energy_method": energy.method,
        "sampler_period_s": source["step_mean_s"],
        **{name: _none_if_nan(value) for name, value in numbers.items()},
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
    table: dict[str, Array],
    source: Document,
    stalls: tuple[Array, Array] | None,
) -> ScopeEnergy:
    """Return the energy of a scope: the sensor's own counter where it has one, else the trapezoid.

    `window`: begin and end, s on the monotonic clock
    `table`: samples of the source, column -> float (n,); a counter is called `energy_..._j`
    `stalls`: starts and ends, those of mini-batches; empty: nothing repeats; None: not known
    """
    t_s, power_w = table["t_mono_s"], table[source["total"]]
    sensor, recorded = sensor_in(source, table, window), recorded_sensor(source)
    energy = trapezoid(t_s, power_w, *window, sensor, table.get(AGE), *(stalls or ()))
    flags = frozenset(power_flags(source, energy.flags))
    counters = [c for c in table if c.startswith("energy_") and c.endswith("_j")]
    if counters:
        counter = counted(t_s, table[counters[0]], *window, recorded.get("counter_update_s"))
        if not math.isnan(counter.energy_j):
            error_pct = counter.error_pct
            if _sees_a_part(source):  # the card counts what it has seen
                error_pct = float(np.maximum(error_pct, energy.error_pct))
            return ScopeEnergy(counter.energy_j, error_pct, COUNTER, flags)
    return ScopeEnergy(energy.energy_j, energy.error_pct, TRAPEZOID, flags)


def _sees_a_part(source: Document) -> bool:
    return float(recorded_sensor(source).get("seen_share") or 1.0) < 1.0


def power_flags(source: Document, reading_flags: frozenset[str]) -> set[str]:
    """Return the flags against a power sensor's readings (names in `columns.FLAGS`)."""
    contradictions = source.get("settings", {}).get("contradictions") or 0
    return set(reading_flags) | _true_flags(
        power_negative=source["n_negative"],
        power_stuck=source["stuck_s"] > STUCK_S,
        power_part_time=_sees_a_part(source),
        power_contradicted=contradictions > CONTRADICTED * source.get("n_samples", 0),
    )


def telemetry_flags(record: EpochRecord) -> set[str]:
    """Return the flags of an epoch that its sampler's statistics show, whatever was sampled."""
    meta, statistics = record.meta, record.telemetry
    sources = statistics.get("sources", {}).values()
    lacks = ("rows_dropped", "n_failed", "write_error")
    wanted = meta.get("factors", {}).get("board_settings", {}).get("power_source", "none")
    has_power = any(source["scope"] for source in sources)
    return _true_flags(
        clock_jumped=statistics.get("clock_jumps"),
        sampler_gap=any(source.get(lack) for source in sources for lack in lacks),
        # the sampler gave it, and it could not be written
        sampler_lost=meta.get("telemetry_lost") is False
        and not statistics
        and "power_elsewhere" not in meta["flags"],  # there is none
        power_missing=wanted != "none" and sources and not has_power,
        power_total_unknown=any(source["scope"] and not source["total"] for source in sources),
        gpu_power_unknown=meta.get("power_refused"),
        power_source_replaced=any("fallback" in source.get("settings", {}) for source in sources),
    )


def _true_flags(**flags: Any) -> set[str]:
    """Return the names of the flags that hold."""
    return {name for name, is_so in flags.items() if is_so}


def disturbances(record: EpochRecord, samples: Samples) -> set[str]:
    """Return `stopped` or `machine_shared` where samples show an epoch frozen or not alone.

    A container or a virtual machine that is frozen stops sampler and training alike: nobody read
    anything for some seconds, and one mini-batch took as long. Virtual machines beside ours count
    as others: the kernel counts what they take (steal) as busy.
    """
    longest_s = float(record.minibatch_s.sum(axis=1).max(initial=0.0))
    host, window = samples.get("host", {}), window_of(record)
    t_s = host.get("t_mono_s", np.empty(0))
    silent_s = float(np.diff(np.clip(t_s, *window)).max(initial=0.0))
    others_pct = 0.0
    if {"cpu_util_pct", "tree_cpu_pct"} <= host.keys():
        columns = host["cpu_util_pct"], host["tree_cpu_pct"]
        all_pct, ours_pct = (rate_mean(t_s, column, *window) for column in columns)
        facts = record.telemetry
        n_cpus = facts["sources"].get("host", {}).get("settings", {}).get("n_cpus") or 1
        sampler = facts.get("cpu_s", 0.0) / (facts.get("wall_s") or math.inf)  # of one CPU
        others_pct = all_pct - ours_pct - 100.0 * sampler / n_cpus
    return _true_flags(
        stopped=silent_s > FROZEN_S and longest_s > FROZEN_SHARE * silent_s,
        machine_shared=others_pct > BUSY_PCT,
    )


def _none_if_nan(value: float) -> float | None:
    """Return None for what could not be computed: an empty cell, never 0 or nan."""
    return None if math.isnan(value) else value
