"""What has to hold after a fault, whatever it was."""

import json
from pathlib import Path

from benchmarks import template
from benchmarks.faults.place import Place, Start, orphans
from epochwatt.tables import read_cells

ENERGY_LOST = {"sampler_lost", "power_missing"}
KNOWN = {"data", "measured", "results", "tmp", "factors.json", "receipt.json"}


def rows_of(place: Place) -> list[dict[str, str]]:
    """Return the rows of epochs.csv."""
    return read_cells(place.folder / "results/epochs.csv")


def losses_wrong(place: Place, reference: dict[int, float]) -> list[str]:
    """Return the epochs whose loss is not that of an undisturbed run, without a word of why.

    Fresh weights are said by a flag, and what is trained after them goes on from there.
    """
    rows = rows_of(place)
    if [int(row["epoch"]) for row in rows] != sorted(reference):
        return [f"epochs.csv has the epochs {[row['epoch'] for row in rows]}"]
    wrong, said = [], False
    for row in rows:
        said = said or "fresh_weights" in row["flags"].split()
        found, wanted = float(row["loss"] or "nan"), reference[int(row["epoch"])]
        if not said and found != wanted:
            wrong.append(f"epoch {row['epoch']} has loss {found}, undisturbed {wanted}")
    return wrong


def weights_wrong(place: Place, wanted: Path, before: dict[int, str]) -> list[str]:
    """Compare the last checkpoint with that of the undisturbed run, if it was trained here."""
    last = template.EPOCHS - 1
    if place.digests().get(last) == before.get(last):
        return []  # nothing is trained from it any more, so nobody looks at it
    if any("fresh_weights" in row["flags"].split() for row in rows_of(place)):
        return []
    found = list(place.epoch(last).glob("checkpoint.*"))
    if not found:
        return []
    same = found[0].read_bytes() == wanted.read_bytes()
    return [] if same else ["the last checkpoint is not that of the undisturbed run"]


def lost(place: Place, before: dict[int, str], damaged: set[int]) -> list[str]:
    """Return finished epochs that were whole before the fault and are not there as they were."""
    after = place.digests()
    return [
        f"epoch {number}, whole before, is lost or altered"
        for number, digest in before.items()
        if number not in damaged and after.get(number) != digest
    ]


def silent(place: Place, starts: list[Start]) -> list[str]:
    """Return epochs without energy of which neither a flag nor a start says that it was lost."""
    said = any(
        word in start.text for start in starts for word in ("telemetry", "cannot be written")
    )
    return [
        f"epoch {row['epoch']} has no energy and nothing says why: {row['flags']}"
        for row in rows_of(place)
        if not row["energy_wh"] and not (said and ENERGY_LOST & set(row["flags"].split()))
    ]


def trashed(place: Place, damaged: set[int]) -> list[str]:
    """Return epochs that went to the trash though nothing had damaged them."""
    found = (place.folder / "measured/.trash").glob("*/*/epoch-*/record.json")
    numbers = {int(path.parent.name.partition("-")[2]) for path in found}
    return [f"epoch {number} went to the trash" for number in sorted(numbers - damaged)]


def tracebacks(starts: list[Start]) -> list[str]:
    """Return the last line of each traceback that was printed."""
    found = []
    for start in starts:
        if "Traceback (most recent call last)" in start.text:
            text = start.text[start.text.index("Traceback (most recent call last)") :]
            frames = [line for line in text.splitlines() if "/src/epochwatt/" in line]
            where = frames[-1].strip() if frames else "outside the package"
            found.append(f"traceback: {text.strip().splitlines()[-1][:200]} at {where}")
    return found


def unnamed(starts: list[Start], names: tuple[str, ...]) -> list[str]:
    """Return a complaint unless one of the starts said one of these names."""
    said = "".join(start.text for start in starts)
    return [] if any(name in said for name in names) else [f"nobody named {' or '.join(names)}"]


def strangers(place: Place) -> list[str]:
    """Return what lies where nothing of ours belongs."""
    own = {path.name for path in place.folder.iterdir() if not path.name.startswith("screen-")}
    beside = {path.name for path in place.folder.parent.iterdir()} - {place.folder.name}
    left = [path.name for path in Path(place.runs.path).iterdir() if "." in path.name]
    return (
        [f"{name} was made in the folder" for name in sorted(own - KNOWN)]
        + [f"{name} was made outside" for name in sorted(beside)]
        + [f"{name} is left over" for name in left]
    )


def receipt_wrong(place: Place) -> list[str]:
    """Compare the receipt with the epochs that are there."""
    told = json.loads((place.folder / "results/receipt.json").read_text("utf-8"))
    epochs = [row["epoch"] for row in told["epochs"]]
    return [] if epochs == list(range(template.EPOCHS)) else [f"the receipt has {epochs}"]


def after_recovery(
    place: Place,
    source: Path,
    reference: dict[int, float],
    before: dict[int, str],
    damaged: set[int],
) -> list[str]:
    """Return all that is wrong after the last start, which ended well."""
    last = next((source / f"after-{template.EPOCHS}/measured").glob("*/epoch-*/checkpoint.*"))
    return [
        *losses_wrong(place, reference),
        *weights_wrong(place, last, before),
        *lost(place, before, damaged),
        *trashed(place, damaged),
        *strangers(place),
        *receipt_wrong(place),
        *(f"orphan: {told}" for told in orphans()),
    ]
