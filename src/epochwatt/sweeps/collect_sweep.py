"""Make the table of a sweep from the records of its modes: validate, flag, average."""

import logging
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from epochwatt.board.records import files
from epochwatt.board.records.mode_folder import RECORD, SweepFolder
from epochwatt.board.records.run_folder import EpochRecord
from epochwatt.board.records.shapes import ANY_KEY, NUMBER, Document
from epochwatt.columns import CLOCKS
from epochwatt.epochs import telemetry
from epochwatt.epochs.board_flags import board_flags
from epochwatt.epochs.collect import derived_flags, discarding_damaged, is_valid, voids_energy
from epochwatt.sweeps.mode_table import SweepRow, tables_of, write_mode_tables
from epochwatt.sweeps.modes import SweepFacts
from epochwatt.text import counted

log = logging.getLogger(__name__)


def collect_sweep(
    measured: str, facts: Document, flag_effects: Mapping[str, str], table: Path
) -> None:
    """Make the table of a sweep from its records below `measured`; logs modes that are not valid.

    Moves a damaged record to the trash. Raises RecordError: a record is missing, damaged or
    contradicts itself; RecordWriteError: the table cannot be written.

    `facts`: `SweepFacts` as plain values; without modes all recorded ones count
    `flag_effects`: flag -> "invalidates", "voids_energy" or "informs"
    """
    sweep = SweepFacts(**facts)
    folder = SweepFolder(measured, sweep.id)
    modes = sweep.mode_settings() or recorded_modes(folder)
    rows = []
    for mode in modes:
        with discarding_damaged(folder, mode):
            record = folder.verify(mode)
        rows.append(mode_row(record, sweep, flag_effects))
    write_mode_tables(table, tables_of(rows))
    if not_valid := [row for row in rows if not row.valid]:
        n_modes = counted(len(not_valid), "modes")
        flags = ", ".join(sorted({flag for row in not_valid for flag in row.flags.split()}))
        log.warning("%s: %s of %d are not valid (%s)", sweep.name, n_modes, len(rows), flags)


def recorded_modes(folder: SweepFolder) -> list[dict[str, float]]:
    """Return the modes of all records, weakest first."""
    paths = (Path(folder.path, name, RECORD) for name in folder.measured())
    modes = [files.read_json(str(path), {"mode": {ANY_KEY: NUMBER}})["mode"] for path in paths]
    return sorted(modes, key=lambda mode: [mode.get(part, 0.0) for part in CLOCKS])


def mode_row(record: EpochRecord, sweep: SweepFacts, flag_effects: Mapping[str, str]) -> SweepRow:
    """Compute the row of one mode from its record: time, power of the widest scope, flags.

    Without power where a flag voids it. Raises RecordError: the record contradicts itself, or a
    flag is unknown.
    """
    meta = record.meta
    samples = telemetry.read_all(record)
    overhead_s = float(meta["e2e_s"] - meta["wait_s"] - meta["copy_s"] - meta["compute_s"])
    power_w, power_scope = None, ""
    with telemetry.named(record.folder):
        flags = set(meta["flags"]) | derived_flags(meta, overhead_s)
        flags |= telemetry.telemetry_flags(record) | telemetry.disturbances(record, samples)
        flags |= board_flags(record, samples)
        for widest in telemetry.energies(record, samples)[:1]:  # none without a power sensor
            flags |= widest["flags"]
            is_void = voids_energy(widest["flags"], flag_effects)
            if widest["power_mean_w"] is not None and not is_void:
                power_w, power_scope = widest["power_mean_w"], widest["power_scope"]
        valid = is_valid(flags, flag_effects)
    loops_s = record.minibatch_s.sum(axis=1, dtype=np.float64)
    return SweepRow(
        **sweep.columns(),
        **mode_columns(meta),
        repeat=meta["repeat"],
        n_minibatches=len(loops_s),
        time_s=meta["e2e_s"] / len(loops_s),
        time_sd_s=float(loops_s.std(ddof=1)) if len(loops_s) > 1 else None,
        power_w=power_w,
        power_scope=power_scope,
        valid=valid,
        flags=" ".join(sorted(flags)),
    )


def mode_columns(meta: Document) -> Document:
    """Return the cells of a mode's parts: as set, or as read back where they were left alone."""
    board = meta.get("board")
    if not board:
        return {part: meta["mode"].get(part) for part in CLOCKS}
    read_back = board["power_mode"]["read_back"] or {}
    parts = {part: meta["mode"].get(part, read_back.get(part)) for part in CLOCKS}
    return {**parts, "gpu_share": 1.0}  # modes made of numbers gate no part of the GPU off
