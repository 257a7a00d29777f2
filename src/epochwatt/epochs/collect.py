"""Make `results/runs/{run}/epochs.csv` and `energy.csv`: validate records, flag them."""

from collections.abc import Iterable
from typing import Any

from epochwatt.board.records import files
from epochwatt.board.records.run_folder import EpochRecord, RunFolder
from epochwatt.board.records.shapes import Document
from epochwatt.columns import (
    FORMER_BOARDS,
    RUN_ENERGY_COLUMNS,
    RUN_EPOCH_COLUMNS,
    SCHEMA_VERSION,
    TWIN,
    names,
)
from epochwatt.epochs import telemetry
from epochwatt.epochs.board import board_flags
from epochwatt.errors import DamagedError, RecordError
from epochwatt.tables import write_table

CACHE_POINTS = 5.0  # a resumed epoch may find so much more or less of the data set cached
OVERHEAD_TOLERANCE = 0.001  # of E2E: the clocks of two sources may disagree by that much


def collect_run(
    measured: str,
    run: str,
    n_epochs: int,
    flag_effects: dict[str, str],
    epochs_csv: str,
    energy_csv: str,
) -> None:
    """Write the rows of epochs 0..n_epochs-1 of a run, and their energies by power scope.

    Raises RecordError: a record is missing, damaged or contradicts itself; RecordWriteError: the
    CSV cannot be written.

    Parameters
    ----------
    flag_effects : flag -> "invalidates", "voids_energy" or "informs"
    epochs_csv, energy_csv : where to write
    """
    folder = RunFolder(measured, run)
    observed = (_whole(folder, epoch) for epoch in range(n_epochs))
    write_tables(run, observed, flag_effects, epochs_csv, energy_csv)


def _whole(folder: RunFolder, epoch: int) -> tuple[EpochRecord, telemetry.Samples]:
    """Return record and samples of an epoch; a damaged one goes to the trash, and nobody sees it.

    Raises RecordError; of a damaged epoch it says where it lies and that it will be measured again.
    """
    try:
        record = folder.read(epoch)
        return record, telemetry.read_all(record)
    except DamagedError as error:
        if not folder.has(epoch):
            raise
        with files.writing("the trash", folder.root):
            (moved,) = folder.discard(epoch)
        raise RecordError(
            f"{error.problem}; the epoch was moved to {moved}",
            do="start the workflow again: it measures the epoch again",
        ) from error


def write_tables(
    run: str,
    observed: Iterable[tuple[EpochRecord, telemetry.Samples]],
    flag_effects: dict[str, str],
    epochs_csv: str,
    energy_csv: str,
) -> None:
    """Write the rows of a run's epochs, and their energies by power scope.

    Parameters
    ----------
    observed : each epoch's record, checked, and its samples: source -> column -> float (n,)
    flag_effects, epochs_csv, energy_csv : as for `collect_run`
    """
    rows: list[dict[str, Any]] = []
    energy_rows: list[dict[str, Any]] = []
    metas: list[dict[str, Any]] = []
    for record, samples in observed:
        metas.append(record.meta)
        with telemetry.named(record.folder):
            is_valid(set(record.meta["flags"]), flag_effects)
            row, scopes = epoch_row(record, samples, metas[0], flag_effects)
        rows.append(row)
        energy_rows += [dict(scope, run=run, epoch=row["epoch"]) for scope in scopes]
    mark_cache(rows, metas)
    mark_from_change(rows)
    for row in rows:
        row["valid"] = is_valid(row["flags"], flag_effects)
    write_rows(epochs_csv, names(RUN_EPOCH_COLUMNS), rows)
    write_rows(energy_csv, names(RUN_ENERGY_COLUMNS), energy_rows)


def epoch_row(
    record: EpochRecord,
    samples: telemetry.Samples,
    first: dict[str, Any],
    flag_effects: dict[str, str],
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return an epoch's row (validity apart) and one row per power scope that was measured.

    `first` is the record of the run's first epoch.
    """
    meta = record.meta
    stall_s = meta["wait_s"] + meta["copy_s"]
    row: dict[str, Any] = dict.fromkeys(names(RUN_EPOCH_COLUMNS))
    row.update((k, v) for k, v in meta["factors"].items() if k in row)
    row.update((k, v) for k, v in meta.items() if k in row)
    row["schema_version"] = SCHEMA_VERSION  # of the row; its record may be older
    row["backend"] = meta.get("backend", row["backend"])  # what it really ran on
    row["stall_s"] = stall_s
    row["overhead_s"] = meta["e2e_s"] - stall_s - meta["compute_s"]
    row["cached_pct"] = _cache(meta)["before_pct"]
    row["cached_after_pct"] = _cache(meta)["after_pct"]
    row.update(telemetry.usage(record, samples))
    scopes = telemetry.energies(record, samples)
    for scope in scopes:
        if any(flag_effects[flag] == "voids_energy" for flag in scope["flags"]):
            scope.update(dict.fromkeys(_VOID))
    if scopes:
        row.update({k: v for k, v in scopes[0].items() if k != "flags"})
    row["flags"] = (
        set(meta["flags"])
        | derived_flags(meta, row["overhead_s"])
        | telemetry.telemetry_flags(record)
        | telemetry.disturbances(record, samples)
        | board_flags(record, samples)
        | {flag for scope in scopes for flag in scope["flags"]}
    )
    if changed(meta, first):
        row["flags"].add("machine_changed")
    for table in (row, *scopes):
        table.update((name, None) for name in meta.get("unknown", ()) if name in table)
    return row, scopes


_CACHE_UNKNOWN = {"before_pct": None, "after_pct": None, "action": None, "in_memory": False}


def _cache(meta: Document) -> dict[str, Any]:
    """Return what a record says of the page cache; None where it says nothing."""
    return {**_CACHE_UNKNOWN, **(meta.get("cache") or {})}


_VOID = (
    "energy_wh",
    "energy_error_pct",
    "energy_paper_wh",
    "stall_energy_j",
    "stall_energy_error_pct",
    "power_mean_w",
)


def derived_flags(meta: Document, overhead_s: float) -> set[str]:
    """Return the flags that follow from a record alone."""
    flags = set()
    if overhead_s < -OVERHEAD_TOLERANCE * meta["e2e_s"]:
        flags.add("overhead_negative")
    learns = meta.get("backend") != TWIN and meta["factors"].get("task") != "infer"
    if meta["loss"] is None and learns and "loss" not in meta.get("unknown", ()):
        flags.add("loss_not_finite")
    return flags


def changed(meta: Document, first: dict[str, Any]) -> bool:
    """Return whether machine, software or container differ from those of the run's first epoch.

    So does another number of threads, another `environment`, and another way to a board's power.
    Older records do not say which GPU it was, nor these.
    """
    records = (meta, first)
    cards = {record["gpu_uuid"] for record in records if record.get("gpu_uuid")}
    sensors = {record["power_source"] for record in records if record.get("power_source")}
    threads = {record["torch_threads_used"] for record in records if "torch_threads_used" in record}
    machines = [_machine(record) for record in records]
    environments = [_environment(record) for record in records if "environment" in record]
    # the number of JetPack follows from the release of L4T, and newer versions know more of them
    software = [{**record.get("software", {}), "jetpack": ""} for record in records]
    same = software[0] == software[1] and meta.get("inside") == first.get("inside")
    is_other = machines[0] != machines[1] or environments[:1] != environments[-1:]
    return max(map(len, (cards, threads, sensors))) > 1 or is_other or not same


def _environment(meta: Document) -> dict[str, str]:
    """Return the environment of a record without what it says in other words."""
    implied = ("_THREADS", "CUDA_VISIBLE_DEVICES")  # by torch_threads_used, gpu_uuid
    return {k: value for k, value in meta["environment"].items() if not k.endswith(implied)}


def _machine(meta: Document) -> dict[str, Any]:
    """Return what a record says about its machine, with today's name of the kind of board."""
    machine: dict[str, Any] = meta["machine"]
    kind = machine.get("board", "")
    return {**machine, "board": FORMER_BOARDS.get(kind, kind)}


def is_valid(flags: set[str], flag_effects: dict[str, str]) -> bool:
    """Return whether an epoch with these flags counts in means; RecordError for an unknown flag."""
    unknown = sorted(flags - flag_effects.keys())
    if unknown:
        raise RecordError(
            f"a record has flags that this epochwatt does not know: {', '.join(unknown)}",
            do="use the version that wrote it, or measure the epoch again (`epochwatt discard`)",
        )
    return not any(flag_effects[flag] == "invalidates" for flag in flags)


def mark_cache(rows: list[dict[str, Any]], metas: list[dict[str, Any]]) -> None:
    """Flag each resumed epoch that found another share cached than the epoch before it left."""
    for row, before, meta in zip(rows[1:], metas, metas[1:], strict=False):
        cache, left_pct = _cache(meta), _cache(before)["after_pct"]
        if "resumed" not in row["flags"] or cache["action"] is not None or cache["in_memory"]:
            continue  # dropped for this epoch, or not read in it: what was left does not matter
        if None in (left_pct, cache["before_pct"]):
            continue
        if abs(left_pct - cache["before_pct"]) > CACHE_POINTS:
            row["flags"].add("cache_changed")


def mark_from_change(rows: list[dict[str, Any]]) -> None:
    """Extend `machine_changed` to every epoch from the first that has it (rows in order)."""
    since = False
    for row in rows:
        since = since or "machine_changed" in row["flags"]
        if since:
            row["flags"].add("machine_changed")


def write_rows(path: str, columns: tuple[str, ...], rows: list[dict[str, Any]]) -> None:
    """Write rows in the order of `columns`; flags become a text."""
    cells = ({**row, "flags": " ".join(sorted(row["flags"]))} for row in rows)
    write_table(path, "the epochs of a run", columns, cells, durable=False)
