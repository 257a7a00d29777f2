"""A job of study `powertrain`, from files to files."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from epochwatt.errors import ConfigError
from epochwatt.prediction.transfer.config import Job, PowertrainGroup
from epochwatt.prediction.transfer.names import OF_JOBS
from epochwatt.prediction.transfer.tables import write_rows
from epochwatt.prediction.transfer.trials import run_job
from epochwatt.sweeps.mode_table import ModeTable, read_mode_tables


def write_job(
    job: Mapping[str, str],
    group: Mapping[str, Any],
    workload: str,
    reference: str | None,
    folder: Path,
    cache: Path,
    say: Callable[[str], None] = print,
) -> None:
    """Run one job and write its tables.

    Raises EpochwattError: a table that cannot be read or used (`trials.run_job`).

    Raises RecordWriteError: a table cannot be written.

    Parameters
    ----------
    workload, reference : paths of their tables of modes; None: no reference
    """
    table = _only(Path(workload))
    other = None if reference is None else _only(Path(reference))
    rows = run_job(Job(**job), PowertrainGroup(**group), table, other, cache, say=say)
    for name in OF_JOBS:
        write_rows(folder / f"{name}.csv", name, rows[name])


def _only(path: Path) -> ModeTable:
    tables = read_mode_tables(path)
    if len(tables) > 1:
        raise ConfigError(
            f"a sweep of {len(tables)} workloads",
            where=str(path),
            allowed="one workload: its name stands for it in the tables",
        )
    return tables[0]
