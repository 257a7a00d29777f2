"""Runs that were taken over from elsewhere: what `epochwatt import-2023` left in `imported/`."""

from pathlib import Path

from epochwatt import fields
from epochwatt.errors import RecordError
from epochwatt.records import files
from epochwatt.records.record_shapes import FACTORS
from epochwatt.records.shapes import COUNT, TEXT, WHOLE, WORD
from epochwatt.study.runs import Run

IMPORTED = "imported"  # their folder, and the name that selects them in config/config.yaml
SOURCE = "source.json"
_SOURCE = {
    "run": WORD,
    "schema_version": WHOLE,
    "factors": {
        **{name: FACTORS[name + "?"] for name in fields.names(fields.FACTORS)},
        "imported": WORD,
    },
    "canonical": TEXT,
    "epochs": COUNT,
}


def imported_runs(root: Path = Path()) -> dict[str, Run]:
    """Return the imported runs of a checkout by id; none of them is ever measured here.

    Raises RecordError when one of them says that it is another, or has an older form.
    """
    runs = {}
    for path in sorted((root / IMPORTED).glob(f"[!.]*/{SOURCE}")):
        try:
            source = files.read_json(str(path), _SOURCE)
        except RecordError as error:
            raise RecordError(f"{error}\n  import its logs again, or remove its folder") from error
        told = source["run"], source["schema_version"]
        if told[0] != path.parent.name or told[1] not in fields.READABLE_SCHEMAS:
            raise RecordError(
                f"{path} is that of run {told[0]} in schema version {told[1]}\n"
                f"  wanted: its folder's name, {' or '.join(map(str, fields.READABLE_SCHEMAS))}; "
                "import its logs again"
            )
        runs[source["run"]] = Run(
            id=source["run"],
            factors=source["factors"],
            canonical=source["canonical"],
            epochs=source["epochs"],
            studies=(IMPORTED,),
            data_root="",
            python=(),
            machine="{}",
            here=False,
        )
    return runs
