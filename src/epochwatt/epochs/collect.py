"""Make `results/runs/{run}/epochs.csv` and `energy.csv`: validate records, flag them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from epochwatt.board.records import files
from epochwatt.board.records.run_folder import EpochRecord, MeasuredFolder, RunFolder
from epochwatt.board.records.shapes import Document
from epochwatt.columns import (
    FORMER_BOARDS,
    INVALIDATES,
    RUN_ENERGY_COLUMNS,
    RUN_EPOCH_COLUMNS,
    SCHEMA_VERSION,
    TWIN,
    VOIDS_ENERGY,
    names,
)
from epochwatt.epochs import telemetry
from epochwatt.epochs.board_flags import Samples, board_flags
from epochwatt.epochs.telemetry import Row
from epochwatt.errors import DamagedError, RecordError
from epochwatt.tables import write_table

CACHE_POINTS = 5.0  # a resumed epoch may find so much more or less of the data set cached
OVERHEAD_TOLERANCE = 0.001  # of E2E: the clocks of two sources may disagree by that much
_VOID = (  # emptied where a flag voids the energy
    *("energy_wh", "energy_error_pct", "energy_paper_wh", "stall_energy_j"),
    *("stall_energy_error_pct", "power_mean_w"),
)


def collect_run(
    measured: str,
    run: str,
    n_epochs: int,
    flag_effects: Mapping[str, str],
    epochs_csv: str,
    energy_csv: str,
) -> None:
    """Write a run's `epochs.csv` (epochs 0..n_epochs-1) and `energy.csv` (by power scope).

    Raises RecordError: a record is missing, damaged or contradicts itself; RecordWriteError: the
    CSV cannot be written.

    `flag_effects`: flag -> "invalidates", "voids_energy" or "informs"; `epochs_csv`, `energy_csv`:
    where to write
    """
    folder = RunFolder(measured, run)
    observed = (_read(folder, epoch) for epoch in range(n_epochs))
    write_tables(run, observed, flag_effects, epochs_csv, energy_csv)


def _read(folder: RunFolder, epoch: int) -> tuple[EpochRecord, Samples]:
    """Read record and samples of an epoch, or raise RecordError (`discarding_damaged`)."""
    with discarding_damaged(folder, epoch):
        record = folder.read(epoch)
        return record, telemetry.read_all(record)


@contextmanager
def discarding_damaged(folder: MeasuredFolder, key: int | Mapping[str, float]) -> Iterator[None]:
    """Move a record that is found damaged to the trash, and raise a RecordError that says where.

    `key`: of the record in the folder: an epoch, or a mode
    """
    try:
        yield
    except DamagedError as error:
        if not folder.has(key):
            raise
        with files.writing("the trash", folder.root):
            (moved,) = folder.discard(key)
        raise RecordError(
            f"{error.problem}; the {folder.key} was moved to {moved}",
            do=f"start the workflow again: it measures the {folder.key} again",
        ) from error


def write_tables(
    run: str,
    observed: Iterable[tuple[EpochRecord, Samples]],
    flag_effects: Mapping[str, str],
    epochs_csv: str,
    energy_csv: str,
) -> None:
    """Write `epochs.csv` and `energy.csv` of a run from checked records, as `collect_run`.

    `observed`: record and samples of each epoch, in order
    """
    rows: list[Row] = []
    energy_rows: list[Row] = []
    metas: list[Document] = []
    for record, samples in observed:
        metas.append(record.meta)
        with telemetry.named(record.folder):
            is_valid(set(record.meta["flags"]), flag_effects)  # raises on unknown flags
            row, scopes = epoch_row(record, samples, metas[0], flag_effects)
        if rows and "machine_changed" in rows[-1]["flags"]:  # from the first on that has it
            row["flags"].add("machine_changed")
        rows.append(row)
        energy_rows += [dict(scope, run=run, epoch=row["epoch"]) for scope in scopes]
    mark_cache(rows, metas)
    for row in rows:
        row["valid"] = is_valid(row["flags"], flag_effects)
    write_rows(epochs_csv, names(RUN_EPOCH_COLUMNS), rows)
    write_rows(energy_csv, names(RUN_ENERGY_COLUMNS), energy_rows)


def epoch_row(
    record: EpochRecord, samples: Samples, first: Document, flag_effects: Mapping[str, str]
) -> tuple[Row, list[Row]]:
    """Return an epoch's row without `valid`, and one row per power scope that was measured.

    `first`: metadata of the run's first epoch
    """
    meta = record.meta
    stall_s = meta["wait_s"] + meta["copy_s"]
    row: Row = dict.fromkeys(names(RUN_EPOCH_COLUMNS))
    row.update((k, v) for k, v in meta["factors"].items() if k in row)
    row.update((k, v) for k, v in meta.items() if k in row)
    row["schema_version"] = SCHEMA_VERSION  # of the row; its record may be older
    row["backend"] = meta.get("backend", row["backend"])  # what it really ran on
    row["stall_s"] = stall_s
    row["overhead_s"] = meta["e2e_s"] - stall_s - meta["compute_s"]
    row["cached_pct"] = _page_cache(meta).get("before_pct")
    row["cached_after_pct"] = _page_cache(meta).get("after_pct")
    row.update(telemetry.usage(record, samples))
    scopes = telemetry.energies(record, samples)
    for scope in scopes:
        if voids_energy(scope["flags"], flag_effects):
            scope.update(dict.fromkeys(_VOID))
    if scopes:
        row.update(scopes[0])
    row["flags"] = (
        set(meta["flags"])
        | derived_flags(meta, row["overhead_s"])
        | telemetry.telemetry_flags(record)
        | telemetry.disturbances(record, samples)
        | board_flags(record, samples)
        | {flag for scope in scopes for flag in scope["flags"]}
    )
    if has_changed(meta, first):
        row["flags"].add("machine_changed")
    for table in (row, *scopes):
        table.update((name, None) for name in meta.get("unknown", ()) if name in table)
    return row, scopes


def _page_cache(meta: Document) -> Document:
    """Return what a record says of the page cache; empty for older records."""
    return meta.get("cache") or {}


def derived_flags(meta: Document, overhead_s: float) -> set[str]:
    """Return `overhead_negative` and `loss_not_finite` where a record shows them."""
    flags = set()
    if overhead_s < -OVERHEAD_TOLERANCE * meta["e2e_s"]:
        flags.add("overhead_negative")
    learns = meta.get("backend") != TWIN and meta["factors"].get("task") != "infer"
    if meta["loss"] is None and learns and "loss" not in meta.get("unknown", ()):
        flags.add("loss_not_finite")
    return flags


def has_changed(meta: Document, first: Document) -> bool:
    """Return whether the machine or what ran on it differs from the run's first epoch.

    Facts that one of the two records lacks, as older ones do, are not compared.
    """
    now, before = _machine_facts(meta), _machine_facts(first)
    return any(now[name] != before[name] for name in now.keys() & before.keys())


def _machine_facts(meta: Document) -> dict[str, Any]:
    """Return what a record says of machine, software, container, GPU, threads and environment."""
    board = meta["machine"].get("board", "")
    facts = {
        "machine": {**meta["machine"], "board": FORMER_BOARDS.get(board, board)},
        # the number of JetPack follows from the release of L4T; newer versions know more
        "software": {**meta.get("software", {}), "jetpack": ""},
        "inside": meta.get("inside"),
    }
    facts.update((name, meta[name]) for name in ("gpu_uuid", "power_source") if meta.get(name))
    if "torch_threads_used" in meta:
        facts["torch_threads_used"] = meta["torch_threads_used"]
    if "environment" in meta:
        implied = ("_THREADS", "CUDA_VISIBLE_DEVICES")  # by torch_threads_used, gpu_uuid
        variables = meta["environment"].items()
        facts["environment"] = {k: v for k, v in variables if not k.endswith(implied)}
    return facts


def voids_energy(flags: Iterable[str], flag_effects: Mapping[str, str]) -> bool:
    """Return whether one of the flags leaves energy and power empty."""
    return any(flag_effects.get(flag) == VOIDS_ENERGY for flag in flags)


def is_valid(flags: set[str], flag_effects: Mapping[str, str]) -> bool:
    """Return whether an epoch counts in means by its flags; RecordError: one is unknown."""
    unknown = sorted(flags - flag_effects.keys())
    if unknown:
        raise RecordError(
            f"a record has flags that this epochwatt does not know: {', '.join(unknown)}",
            do="use the version that wrote it, or measure the epoch again (`epochwatt discard`)",
        )
    return not any(flag_effects[flag] == INVALIDATES for flag in flags)


def mark_cache(rows: list[Row], metas: list[Document]) -> None:
    """Add `cache_changed` to rows of resumed epochs that found another page cache than was left.

    `rows`, `metas`: of the same epochs, in order
    """
    caches = [_page_cache(meta) for meta in metas]
    for row, before, cache in zip(rows[1:], caches, caches[1:]):
        kept_pct, found_pct = before.get("after_pct"), cache.get("before_pct")
        if "resumed" not in row["flags"] or cache.get("action") is not None:
            continue  # dropped for this epoch
        if cache.get("in_memory") or kept_pct is None or found_pct is None:
            continue  # not read in it, or not known
        if abs(kept_pct - found_pct) > CACHE_POINTS:
            row["flags"].add("cache_changed")


def write_rows(path: str, columns: tuple[str, ...], rows: list[Row]) -> None:
    """Write rows as a CSV file with these columns; flags are joined to a sorted text."""
    cells = ({**row, "flags": " ".join(sorted(row["flags"]))} for row in rows)
    write_table(path, "the epochs of a run", columns, cells, durable=False)
