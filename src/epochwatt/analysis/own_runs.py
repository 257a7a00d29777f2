"""Make tables of runs of `EpochMonitor` from their records, without a workflow."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

from epochwatt.analysis.collect_study import export_tables, read_epochs
from epochwatt.study.imported import write_own_tables
from epochwatt.study.runs import Run


def read_own_epochs(folder: Path, runs: Iterable[Run]) -> pd.DataFrame:
    """Return the epochs of runs of `EpochMonitor`, as `read_epochs`, from their records.

    `folder`: that holds them (`find_own_runs`). Raises RecordError.
    """
    with TemporaryDirectory(prefix="epochwatt-") as scratch:
        return read_epochs(write_own_tables(folder, runs, Path(scratch)))


@contextmanager
def own_results(folder: Path, runs: Mapping[str, Run]) -> Iterator[Path]:
    """Yield a temporary `results/` folder with the tables of these runs, as the workflow's."""
    with TemporaryDirectory(prefix="epochwatt-") as scratch:
        results = Path(scratch)
        paths = write_own_tables(folder, runs.values(), results / "runs")
        studies = {name: " ".join(run.studies) for name, run in runs.items()}
        tables = (str(results / f"tables/{name}.csv") for name in ("epochs", "runs"))
        export_tables(map(str, paths), studies, *tables)
        yield results
