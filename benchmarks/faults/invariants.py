"""What has to hold after a fault, whatever it was. Each returns what is wrong."""

import json
from pathlib import Path

from benchmarks import template
from benchmarks.faults.injections import Injected
from benchmarks.faults.place import HANGS, Place, orphans
from epochwatt.tables import read_cells

ENERGY_LOST = {"sampler_lost", "power_missing"}
KNOWN = {"data", "measured", "results", "tmp", "factors.json", "receipt.json"}
LAST = template.EPOCHS - 1


def wrong_after(place: Place, before: dict[int, str], injected: Injected) -> list[str]:
    """Return all that is wrong after the last start, which ended well."""
    said = "".join(start.text for start in place.starts)
    rows = read_cells(place.folder / "results/epochs.csv")
    wrong = []
    if injected.names and not any(name in said for name in injected.names):
        wrong.append(f"nobody named {' or '.join(injected.names)}")
    wrong += weights_wrong(place, rows, before)
    # finished epochs that were whole before the fault
    after, whole = place.digests(), before.keys() - injected.damaged
    altered = [number for number in sorted(whole) if after.get(number) != before[number]]
    wrong += [f"epoch {number}, whole before, is lost or altered" for number in altered]
    trash = (place.folder / "measured/.trash").glob("*/*/epoch-*/record.json")
    numbers = {int(path.parent.name.partition("-")[2]) for path in trash} - injected.damaged
    wrong += [f"epoch {number} went to the trash undamaged" for number in sorted(numbers)]
    explained = "telemetry" in said or "cannot be written" in said
    wrong += [
        f"epoch {row['epoch']} has no energy and nothing says why: {row['flags']}"
        for row in rows
        if not row["energy_wh"] and not (explained and ENERGY_LOST & set(row["flags"].split()))
    ]
    receipt = json.loads((place.folder / "results/receipt.json").read_text("utf-8"))
    if [row["epoch"] for row in receipt["epochs"]] != list(range(template.EPOCHS)):
        wrong.append(f"the receipt has {receipt['epochs']}")
    return wrong + strangers(place) + orphans()


def weights_wrong(place: Place, rows: list[dict[str, str]], before: dict[int, str]) -> list[str]:
    """Compare losses and the last checkpoint with those of an undisturbed run, bit by bit.

    Fresh weights are said by a flag, and what is trained after them goes on from there.
    """
    reference = place.source / f"after-{template.EPOCHS}/measured" / template.RUN
    if [int(row["epoch"]) for row in rows] != list(range(template.EPOCHS)):
        return [f"epochs.csv has the epochs {[row['epoch'] for row in rows]}"]
    for row in rows:
        if "fresh_weights" in row["flags"].split():
            return []
        record = json.loads((reference / f"epoch-{row['epoch']}/record.json").read_text("utf-8"))
        if float(row["loss"] or "nan") != record["loss"]:
            return [f"epoch {row['epoch']} has loss {row['loss']}, undisturbed {record['loss']}"]
    if place.digests().get(LAST) == before.get(LAST):
        return []  # nothing is trained from its checkpoint any more, so nobody looks at it
    (wanted,) = reference.glob(f"epoch-{LAST}/checkpoint.*")
    found = list(place.epoch(LAST).glob("checkpoint.*"))
    same = not found or found[0].read_bytes() == wanted.read_bytes()
    return [] if same else ["the last checkpoint is not that of the undisturbed run"]


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


def broken_starts(place: Place) -> list[str]:
    """Return starts that hang, and the last line of each traceback that was printed."""
    wrong = [f"start {n} hangs" for n, s in enumerate(place.starts, 1) if s.wait() == HANGS]
    for start in place.starts:
        _, is_there, text = start.text.partition("Traceback (most recent call last)")
        if is_there:
            frames = [line for line in text.splitlines() if "/src/epochwatt/" in line]
            where = frames[-1].strip() if frames else "outside the package"
            wrong.append(f"traceback: {text.strip().splitlines()[-1][:200]} at {where}")
    return wrong
