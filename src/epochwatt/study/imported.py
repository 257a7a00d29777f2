"""Read runs that the workflow has not measured: imported from logs, or of somebody's own loop.

Their records lie in `measured/` like all others; `source.json` beside them says what they are.
"""

from pathlib import Path

from epochwatt import columns
from epochwatt.board.records import files
from epochwatt.board.records.record_shapes import FACTORS
from epochwatt.board.records.run_folder import RunFolder
from epochwatt.board.records.shapes import TEXT, WHOLE, WORD
from epochwatt.errors import ConfigError, RecordError
from epochwatt.study.runs import MEASURED, Run

IMPORTED, OWN = "imported", "own"  # the names that select them in config/config.yaml
SOURCE = "source.json"
_SOURCE = {
    "run": WORD,
    "schema_version": WHOLE,
    "factors": {name: FACTORS[name + "?"] for name in columns.FACTOR_NAMES},
    "canonical": TEXT,
    "study?": WORD,
}
_AGAIN = "import its logs again, or move its folder away"


def imported_runs(root: Path = Path(), measured: str = MEASURED) -> dict[str, Run]:
    """Return the runs of a checkout by id that are imported or of `EpochMonitor`.

    None of them is ever measured by the workflow. `measured` is the folder's name in `root`.

    Raises RecordError when one is damaged or renamed, ConfigError for those of an older version.
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
