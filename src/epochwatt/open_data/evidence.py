"""Records behind what is called measured: their checksums, and the machines they were made on."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from epochwatt import columns
from epochwatt.board.records import files
from epochwatt.board.records.checksums import SUMS
from epochwatt.board.records.mode_folder import RECORD as MODE
from epochwatt.board.records.mode_folder import SweepFolder
from epochwatt.errors import DataError
from epochwatt.open_data import layout
from epochwatt.sweeps.mode_table import ModeTable, Workload

MEASURED = Path("measured")
EPOCH = "record.json"

Records = dict[str, dict[str, str]]


def records_of(tables: Sequence[ModeTable], runs: Mapping[str, Mapping[str, str]]) -> Records:
    """Return the records of measured sweeps and runs: SHA-256 of the list of checksums of each.

    Raises DataError: something is measured, and its records are not in this checkout.

    Parameters
    ----------
    tables : those that are not `measured` have no records
    runs : id -> factors

    Returns
    -------
    name of a sweep or id of a run -> folder below `measured/` -> SHA-256
    """
    records: Records = {}
    for run, row in runs.items():
        is_measured = layout.provenance_of(row["backend"], row["imported"]) == "measured"
        folders = sorted(path.parent for path in (MEASURED / run).glob(f"epoch-*/{EPOCH}"))
        _add(records, run, folders, is_measured)
    for table in tables:
        if table.key.provenance == "measured":
            _add(records, table.key.sweep, _mode_folders(table.key), True)
    return records


def _add(records: Records, name: str, folders: Sequence[Path], is_measured: bool) -> None:
    if is_measured and not folders:
        raise DataError(
            f"no record of {name} is in {MEASURED}/, and it is called measured",
            do="export it in the checkout that measured it",
        )
    for folder in folders:
        # records from before there were checksums have no list of them
        path = next(p for p in (folder / SUMS, folder / EPOCH, folder / MODE) if p.is_file())
        place = str(folder.relative_to(MEASURED))
        records.setdefault(name, {})[place] = files.sha256_of(str(path))


def _mode_folders(workload: Workload) -> list[Path]:
    """Return the records of the modes of a workload: those of its factors."""
    folders: list[Path] = []
    for path in sorted(MEASURED.glob("*")):
        here = [path / name for name in SweepFolder(str(MEASURED), path.name).measured()]
        if here and _fits(files.read_json(str(here[0] / MODE)).get("factors", {}), workload):
            folders += here
    return folders


def _fits(factors: Mapping[str, Any], workload: Workload) -> bool:
    """Return whether factors of a record are those of a workload; what it leaves open counts."""
    recorded = {**columns.FACTOR_DEFAULTS, **factors}
    ours = {
        "model": workload.workload,
        "instance": workload.instance,
        "batch_size": workload.batch_size,
        "task": workload.task,
        "precision": workload.precision or recorded["precision"],
    }
    return all(recorded.get(name) == value for name, value in ours.items())


def machines(places: Iterable[str]) -> list[dict[str, Any]]:
    """Return the different machines of some records, with their software."""
    different: dict[str, dict[str, Any]] = {}
    for place in places:
        path = next(p for name in (EPOCH, MODE) if (p := MEASURED / place / name).is_file())
        record = files.read_json(str(path))
        facts = {key: record[key] for key in ("machine", "software") if key in record}
        different[json.dumps(facts, sort_keys=True)] = facts
    return list(different.values())
