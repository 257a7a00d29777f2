"""Read runs that the workflow has not measured: imported from logs, or of somebody's own loop.

Their records lie in `measured/` like all others; `source.json` beside them says what they are.
"""

from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path

from epochwatt import columns
from epochwatt.board.records import files
from epochwatt.board.records.record_shapes import FACTORS
from epochwatt.board.records.run_folder import RunFolder
from epochwatt.board.records.shapes import TEXT, WHOLE, WORD
from epochwatt.errors import ConfigError, DamagedError, RecordError
from epochwatt.study.runs import MEASURED, Run

IMPORTED, OWN = "imported", "own"  # the names that select them in config/config.yaml
OWN_LOOP = "EpochMonitor"  # the program whose records they are
SOURCE = "source.json"
COUNTS = "counts.json"  # beside it, where the network was counted (`EpochMonitor.count`)
_SOURCE = {
    "run": WORD,
    "schema_version": WHOLE,
    "factors": {name: FACTORS[name + "?"] for name in columns.FACTOR_NAMES},
    "canonical": TEXT,
    "study?": WORD,
}
_AGAIN = "import its logs again, or move its folder away"


def imported_runs(root: Path = Path(), measured: str = MEASURED) -> dict[str, Run]:
    """Return the runs below `root` by id that are imported or of `EpochMonitor`.

    The workflow measures none of them. `measured`: name of the folder in `root` that holds them

    Raises RecordError: one is damaged or renamed; ConfigError: an older version imported it.
    """
    if old := sorted((root / IMPORTED).glob(f"[!.]*/{SOURCE}")):
        raise ConfigError(
            f"{old[0].parent} was imported by an older version, which kept no records",
            do=f"import its logs again; they go to {measured}/. Then remove {IMPORTED}/",
        )
    runs = {}
    for path in sorted((root / measured).glob(f"[!.]*/{SOURCE}")):
        try:
            source = files.read_json(str(path), _SOURCE)
        except RecordError as error:
            raise RecordError(str(error), do=_AGAIN) from error
        if source["run"] != path.parent.name:
            raise RecordError(f"{path} belongs to run {source['run']}", do=_AGAIN)
        epochs = RunFolder(str(root / measured), source["run"]).measured()
        runs[source["run"]] = Run(
            id=source["run"],
            factors=source["factors"],
            canonical=source["canonical"],
            epochs=len(epochs),
            studies=(source.get("study", IMPORTED),),
            data_root="",
            python=(),
            machine="{}",
            here=False,
        )
    return runs


def find_own_runs(name: str | Path) -> tuple[Path, dict[str, Run]]:
    """Find imported runs, or those of `EpochMonitor`; return their folder and run by id.

    `name`: a folder of runs; the folder of one, which stands for all ranks of its training; or, in
    `measured/`, the beginning of an id or a pattern. Runs without an epoch are left out. Raises as
    `imported_runs`.
    """
    path = Path(name).resolve()
    if not path.is_dir():
        folder, pattern = Path(MEASURED).resolve(), f"{name}*"
    elif (path / SOURCE).is_file():
        folder, pattern = path.parent, f"{path.name}*"
    else:
        folder, pattern = path, "*"
    runs = imported_runs(folder.parent, folder.name) if folder.is_dir() else {}
    return folder, {i: run for i, run in runs.items() if run.epochs and fnmatchcase(i, pattern)}


def write_own_tables(folder: Path, runs: Iterable[Run], results: Path) -> list[Path]:
    """Write `RUN/epochs.csv` and `RUN/energy.csv` of runs in `folder`; return paths of the former.

    Raises RecordError: a record is damaged; it stays where it is.
    """
    from epochwatt.epochs.collect import write_tables  # here: a list of runs needs no numpy
    from epochwatt.epochs.telemetry import read_all

    paths = []
    for run in runs:
        records, run_results = RunFolder(str(folder), run.id), results / run.id
        try:
            epochs = map(records.read, records.measured())
            observed = ((epoch, read_all(epoch)) for epoch in epochs)
            csv, energy_csv = str(run_results / "epochs.csv"), str(run_results / "energy.csv")
            write_tables(run.id, observed, columns.FLAG_EFFECTS, csv, energy_csv)
        except DamagedError as error:
            raise RecordError(
                error.problem,
                where=run.id,
                found=error.found,
                do="move that epoch's folder away and ask again; the others are shown then",
            ) from error
        paths.append(run_results / "epochs.csv")
    return paths
