"""Make the tables of ceilings, from the records of modes, and of points, from measured runs."""

import logging
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from epochwatt.board.records.mode_folder import CeilingFolder, CeilingRecord
from epochwatt.board.records.run_folder import EpochRecord
from epochwatt.board.records.shapes import Document
from epochwatt.columns import CLOCKS, widest_scope
from epochwatt.counting.kernel_counts import load_kernel_counts
from epochwatt.epochs import telemetry
from epochwatt.epochs.board_flags import board_flags, mean_clocks_mhz
from epochwatt.epochs.collect import is_valid, voids_energy
from epochwatt.epochs.table import read_rows
from epochwatt.epochs.windows import window_mean
from epochwatt.errors import RecordError
from epochwatt.roofline.ceilings import CeilingRow, write_ceilings
from epochwatt.roofline.points import Point, RunInMode, write_points
from epochwatt.sweeps.collect_sweep import mode_columns
from epochwatt.text import counted

log = logging.getLogger(__name__)

Provenance = Literal["measured", "fake"]
NOTHING_REPEATS = (np.empty(0), np.empty(0))  # that a sensor's instants could keep to
FEWEST_READINGS = 3  # of power, in a mean
SHARED = (  # columns of a run and of its point
    *("provenance", "device", "instance", *CLOCKS),
    *("precision", "workload", "task", "batch_size"),
)


class Place(NamedTuple):
    """One device whose ceilings were measured."""

    id: str  # of its folder in `measured/`
    provenance: Provenance
    device: str
    instance: str
    modes: list[dict[str, float]]  # what was set in each, as it names the folder of the mode


def collect_ceilings(
    measured: str, places: Iterable[Document], flag_effects: Mapping[str, str], table: Path
) -> None:
    """Write a row for each micro-kernel in each mode of each device.

    Raises RecordError: a record is missing or damaged, or the flags are of another version;
    RecordWriteError: the table cannot be written.

    `places`: `Place` as plain values; `flag_effects`: flag -> "invalidates", "voids_energy" or
    "informs"
    """
    rows: list[CeilingRow] = []
    for place in (Place(**values) for values in places):
        folder = CeilingFolder(measured, place.id)
        for mode in place.modes:
            record = folder.verify(mode)
            with telemetry.named(record.folder):
                rows += ceiling_rows(record, place, flag_effects)
    write_ceilings(table, rows)
    if n_not_valid := sum(not row.valid for row in rows):
        flags = sorted({flag for row in rows if not row.valid for flag in row.flags.split()})
        log.warning("%s not valid (%s)", counted(n_not_valid, "ceilings"), ", ".join(flags))


def ceiling_rows(
    record: CeilingRecord, place: Place, flag_effects: Mapping[str, str]
) -> list[CeilingRow]:
    """Return a row for each micro-kernel that was timed in one mode; RecordError: damaged."""
    meta = record.meta
    whole_record = _as_epoch(record, meta["t_start_mono_s"], meta["t_end_mono_s"])
    samples = telemetry.read_all(whole_record)
    flags = set(meta["flags"]) | telemetry.telemetry_flags(whole_record)
    flags |= telemetry.disturbances(whole_record, samples)
    shared = {
        "provenance": place.provenance,
        "device": place.device,
        "instance": place.instance,
        **{name: value for name, value in mode_columns(meta).items() if name != "gpu_share"},
        "processor": meta["processor"],
    }
    rows = []
    for entry in meta["kernels"]:
        window = _as_epoch(record, entry["start_s"], entry["end_s"])
        power_w, scope, power_flags = _power(window, samples, flag_effects)
        all_flags = flags | board_flags(window, samples) | power_flags
        valid = is_valid(all_flags, flag_effects)
        rows.append(
            CeilingRow(
                **shared,
                **_times(entry, record.folder),
                power_w=power_w,
                power_scope=scope,
                clock_mhz=_clock_mhz(window, samples),
                valid=valid,
                flags=" ".join(sorted(all_flags)),
            )
        )
    return rows


def _as_epoch(record: CeilingRecord, start_s: float, end_s: float) -> EpochRecord:
    """Return the record as that of an epoch of these bounds, whose mini-batches nobody knows."""
    meta = dict(record.meta, t_start_mono_s=start_s, t_end_mono_s=end_s, tail_s=0.0)
    return EpochRecord(meta, np.zeros((1, 3), np.float32), record.telemetry, record.folder)


def _times(entry: Document, folder: str) -> Document:
    """Return the cells of one micro-kernel: its work and times per call; RecordError: not timed."""
    if not entry["blocks_s"] or not entry["n_calls"] or min(entry["blocks_s"]) <= 0:
        raise RecordError(f"a micro-kernel was not timed: {entry['kernel']}", where=folder)
    calls_s = np.array(entry["blocks_s"]) / entry["n_calls"]
    names = ("precision", "kernel", "size", "flops", "bytes")
    return {
        **{name: entry[name] for name in names},
        "repeats": len(calls_s),
        "time_s": float(np.median(calls_s)),
        "time_sd_s": float(calls_s.std(ddof=1)) if len(calls_s) > 1 else None,
        "best_s": float(calls_s.min()),
    }


def _power(
    window: EpochRecord, samples: telemetry.Samples, flag_effects: Mapping[str, str]
) -> tuple[float | None, Any, set[str]]:
    """Return mean power, W, and name of the widest scope, and flags; None and "": not usable."""
    sources = window.telemetry.get("sources", {})
    scopes = {s["scope"]: name for name, s in sources.items() if s["scope"] and s["total"]}
    scope = widest_scope(scopes)
    if scope is None:
        return None, "", set()
    table, source = samples[scopes[scope]], sources[scopes[scope]]
    bounds = window.meta["t_start_mono_s"], window.meta["t_end_mono_s"]
    t_s = table["t_mono_s"][np.isfinite(table[source["total"]])]
    n_readings = int(((t_s >= bounds[0]) & (t_s <= bounds[1])).sum())
    if n_readings < FEWEST_READINGS:
        return None, "", {"few_power_samples"}
    energy = telemetry.scope_energy(bounds, table, source, NOTHING_REPEATS)
    if voids_energy(energy.flags, flag_effects):
        return None, "", set(energy.flags)
    power_w = energy.energy_j / (bounds[1] - bounds[0])
    if not (np.isfinite(power_w) and power_w >= 0):
        return None, "", set(energy.flags)
    return power_w, scope, set(energy.flags)


def _clock_mhz(window: EpochRecord, samples: telemetry.Samples) -> float | None:
    """Return the mean clock of the processor while it computed; None: nothing tells it."""
    name = f"{window.meta['processor']}_mhz"
    if window.meta.get("board"):
        return mean_clocks_mhz(window, samples).get(name)
    bounds = window.meta["t_start_mono_s"], window.meta["t_end_mono_s"]
    pattern = re.compile(r"cpu[0-9]{1,9}_mhz" if name == "cpu_mhz" else "gpu_mhz")
    means = [
        window_mean(table["t_mono_s"], table[column], *bounds)
        for table in samples.values()
        for column in table
        if pattern.fullmatch(column)
    ]
    # which of a host's CPUs computed is not known, but the one that did has the highest clock
    return max((mean for mean in means if mean > 0), default=None)


def place_points(runs: Iterable[Document], path: str) -> None:
    """Write a point, work and time of computing, for each run that has a valid epoch with both.

    Work and time are those of the mean mini-batch; the last of an epoch may be smaller.

    `runs`: `RunInMode` as plain values.

    Raises RecordError: a table or the counts of a network cannot be read; RecordWriteError: the
    points cannot be written.
    """
    points = []
    for run in (RunInMode(**values) for values in runs):
        epochs = [row for row in read_rows(run.epochs) if row["valid"] and row["n_samples"]]
        # the first epoch holds what is done once; where there is no other, it has to do
        epochs = [row for row in epochs if row["epoch"] > 0] or epochs
        if not any(row["compute_s"] for row in epochs):
            continue
        counts = load_kernel_counts(run.counts)
        n_minibatches = sum(row["n_minibatches"] for row in epochs)
        sizes: list[tuple[int, int]] = []  # of mini-batches, and how many are of it
        for row in epochs:
            n_full, n_rest = divmod(row["n_samples"], run.batch_size)
            sizes.append((run.batch_size, n_full))
            if n_rest:
                sizes.append((n_rest, 1))
        flops = sum(n * float(counts.flops(size).sum()) for size, n in sizes)
        moved_bytes = sum(n * float(counts.bytes(size).sum()) for size, n in sizes)
        points.append(
            Point(
                **{name: getattr(run, name) for name in SHARED},
                processor="gpu" if "cuda" in (epochs[0]["timing_method"] or "") else "cpu",
                flops=flops / n_minibatches,
                bytes=moved_bytes / n_minibatches,
                launches=len(counts.name),
                time_s=sum(row["compute_s"] for row in epochs) / n_minibatches,
            )
        )
    write_points(path, points)
