"""Make the table of a sweep from the records of its modes: validate, flag, average."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from epochwatt.board.records import files
from epochwatt.board.records.mode_folder import RECORD, SweepFolder
from epochwatt.board.records.run_folder import EpochRecord
from epochwatt.board.records.shapes import ANY_KEY, NUMBER
from epochwatt.columns import CLOCKS
from epochwatt.epochs import telemetry
from epochwatt.epochs.board import board_flags
from epochwatt.epochs.collect import derived_flags, is_valid
from epochwatt.errors import DamagedError, RecordError
from epochwatt.sweeps.facts import SweepFacts
from epochwatt.sweeps.mode_table import SweepRow, tables_of, write_mode_tables
from epochwatt.text import counted

log = logging.getLogger(__name__)


class Power(NamedTuple):
    """Mean power of a mode's mini-batches."""

    power_w: float | None  # None where it was not measured, or a flag voids it
    scope: Literal["", "module", "socket", "gpu", "cpu_package"]


def collect_sweep(
    measured: str, facts: Mapping[str, Any], flag_effects: Mapping[str, str], table: Path
) -> None:
    """Write the row of each mode of a sweep; those whose flags say so are not valid.

    Raises RecordError: a record is missing, damaged or contradicts itself; RecordWriteError: the
    table cannot be written.

    Parameters
    ----------
    measured : folder of all measurements
    facts : `epochwatt.sweeps.facts.SweepFacts` as plain values; without modes all that are there
        count
    flag_effects : flag -> "invalidates", "voids_energy" or "informs"
    table : where to write
    """
    sweep = SweepFacts(**facts)
    folder = SweepFolder(measured, sweep.id)
    modes = sweep.mode_settings() or recorded_modes(folder)
    rows = [mode_row(_whole(folder, mode), sweep, flag_effects) for mode in modes]
    write_mode_tables(table, tables_of(rows))
    if not_valid := [row for row in rows if not row.valid]:
        flags = sorted({flag for row in not_valid for flag in row.flags.split()})
        log.warning(
            "%s: %s of %d are not valid (%s)",
            sweep.name,
            counted(len(not_valid), "modes"),
            len(rows),
            ", ".join(flags),
        )


def recorded_modes(folder: SweepFolder) -> list[dict[str, float]]:
    """Return the modes of all records, weakest first."""
    paths = (Path(folder.path, name, RECORD) for name in folder.measured())
    modes = [files.read_json(str(path), {"mode": {ANY_KEY: NUMBER}})["mode"] for path in paths]
    return sorted(modes, key=lambda mode: [mode.get(part, 0.0) for part in CLOCKS])


def _whole(folder: SweepFolder, mode: Mapping[str, float]) -> EpochRecord:
    """Return a mode's record; a damaged one goes to the trash, and the next start measures it."""
    try:
        return folder.verify(mode)
    except DamagedError as error:
        if not folder.has(mode):
            raise
        with files.writing("the trash", folder.root):
            (moved,) = folder.discard(mode)
        raise RecordError(
            f"{error.problem}; the mode was moved to {moved}",
            do="start the workflow again: it measures the mode again",
        ) from error


def mode_row(record: EpochRecord, sweep: SweepFacts, flag_effects: Mapping[str, str]) -> SweepRow:
    """Return the row of one mode. RecordError: it contradicts itself, or a flag is unknown."""
    meta = record.meta
    samples = telemetry.read_all(record)
    with telemetry.named(record.folder):
        flags = set(meta["flags"]) | derived_flags(meta, _overhead_s(meta))
        flags |= telemetry.telemetry_flags(record) | telemetry.disturbances(record, samples)
        flags |= board_flags(record, samples)
        power, power_flags = _power(record, samples, flag_effects)
        flags |= power_flags
        valid = is_valid(flags, dict(flag_effects))
    loops_s = record.minibatch_s.sum(axis=1, dtype=np.float64)
    return SweepRow(
        **sweep.columns(),
        **mode_columns(meta),
        repeat=meta["repeat"],
        n_minibatches=len(loops_s),
        time_s=meta["e2e_s"] / len(loops_s),
        time_sd_s=float(loops_s.std(ddof=1)) if len(loops_s) > 1 else None,
        power_w=power.power_w,
        power_scope=power.scope,
        valid=valid,
        flags=" ".join(sorted(flags)),
    )


def _overhead_s(meta: Mapping[str, Any]) -> float:
    return float(meta["e2e_s"] - meta["wait_s"] - meta["copy_s"] - meta["compute_s"])


def mode_columns(meta: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parts of a mode: as they were set, and as read where they were left alone."""
    board = meta.get("board")
    if not board:
        return {part: meta["mode"].get(part) for part in CLOCKS}
    read_back = board["power_mode"]["read_back"] or {}
    parts = {part: meta["mode"].get(part, read_back.get(part)) for part in CLOCKS}
    return {**parts, "gpu_share": 1.0}  # modes made of numbers gate no part of the GPU off


def _power(
    record: EpochRecord, samples: telemetry.Samples, flag_effects: Mapping[str, str]
) -> tuple[Power, set[str]]:
    """Return the power of the widest scope, and what is known against it."""
    scopes = telemetry.energies(record, samples)
    if not scopes:
        return Power(None, ""), set()
    widest = scopes[0]
    flags: set[str] = widest["flags"]
    power_w = widest["power_mean_w"]
    voided = any(flag_effects.get(flag) == "voids_energy" for flag in flags)
    if voided or power_w is None:
        return Power(None, ""), flags
    return Power(power_w, widest["power_scope"]), flags
