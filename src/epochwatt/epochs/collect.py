"""`results/runs/{run}/epochs.csv`: records validated, flagged, one row per epoch."""

import csv
from pathlib import Path
from typing import Any

from epochwatt import fields
from epochwatt.records import files
from epochwatt.records.run_folder import EpochRecord, RunFolder

OVERHEAD_TOLERANCE = 0.001  # of E2E: the clocks of two sources may disagree by that much


def collect_run(
    measured: str, run: str, n_epochs: int, flag_effects: dict[str, str], output: str
) -> None:
    """Write the rows of epochs 0..n_epochs-1 of a run.

    Parameters
    ----------
    measured : folder of all measured runs
    run : its id
    n_epochs : number of epochs wanted
    flag_effects : flag -> "invalidates" or "informs"
    output : path of the CSV

    Raises
    ------
    RecordError : a record is missing, damaged or contradicts itself
    RecordWriteError : the CSV cannot be written
    """
    folder = RunFolder(measured, run)
    records = [folder.read(epoch) for epoch in range(n_epochs)]
    rows = [epoch_row(record, records[0], flag_effects) for record in records]
    mark_from_change(rows, flag_effects)
    write_rows(output, rows)


def epoch_row(
    record: EpochRecord, first: EpochRecord, flag_effects: dict[str, str]
) -> dict[str, Any]:
    """Return one row: factors, times and what can be derived from them, validity and flags."""
    meta = record.meta
    stall_s = meta["wait_s"] + meta["copy_s"]
    row: dict[str, Any] = dict.fromkeys(fields.names(fields.RUN_EPOCH_COLUMNS))
    row.update((k, v) for k, v in meta["factors"].items() if k in row)
    row.update((k, v) for k, v in meta.items() if k in row)
    row["stall_s"] = stall_s
    row["overhead_s"] = meta["e2e_s"] - stall_s - meta["compute_s"]
    row["flags"] = set(meta["flags"]) | derived_flags(meta, row["overhead_s"])
    if changed(meta, first.meta):
        row["flags"].add("machine_changed")
    row["valid"] = is_valid(row["flags"], flag_effects)
    return row


def derived_flags(meta: dict[str, Any], overhead_s: float) -> set[str]:
    """Return the flags that follow from a record alone."""
    flags = set()
    if overhead_s < -OVERHEAD_TOLERANCE * meta["e2e_s"]:
        flags.add("overhead_negative")
    if meta["loss"] is None:
        flags.add("loss_not_finite")
    return flags


def changed(meta: dict[str, Any], first: dict[str, Any]) -> bool:
    """Say whether machine or software differ from those of the run's first epoch."""
    return any(meta[key] != first[key] for key in ("machine", "software"))


def is_valid(flags: set[str], flag_effects: dict[str, str]) -> bool:
    """Say whether an epoch with these flags counts in means."""
    return not any(flag_effects[flag] == "invalidates" for flag in flags)


def mark_from_change(rows: list[dict[str, Any]], flag_effects: dict[str, str]) -> None:
    """Extend `machine_changed` to every epoch from the first that has it (rows in order)."""
    since = False
    for row in rows:
        since = since or "machine_changed" in row["flags"]
        if since:
            row["flags"].add("machine_changed")
            row["valid"] = is_valid(row["flags"], flag_effects)


def write_rows(path: str, rows: list[dict[str, Any]]) -> None:
    """Write epoch rows in the column order of `fields`; None becomes an empty cell."""
    with files.writing("the epochs of a run", path):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        with open(path, "w", newline="", encoding="utf-8") as handle:
            writer = csv.writer(handle, lineterminator="\n")
            writer.writerow(fields.names(fields.RUN_EPOCH_COLUMNS))
            for row in rows:
                told = dict(row, flags=" ".join(sorted(row["flags"])))
                writer.writerow([told[name] for name in fields.names(fields.RUN_EPOCH_COLUMNS)])
