"""The machine at hand on the landing page: cards of its networks, and every measured run.

Numbers are cells of results/tables/: means over the valid epochs after the first. Runs of a fake
board have a section of their own, named so; simulated runs have none here.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from epochwatt.analysis.summary import SETTING
from epochwatt.columns import SHARED_FLAGS
from epochwatt.epochs.bottleneck import find_longest_part
from epochwatt.pages import explained
from epochwatt.pages.numbers import Number, Table
from epochwatt.text import counted, label, origin

MEASURED, FAKE = ("host", "jetson"), ("fake",)
DATA = ("model", "dataset", "dataset_source", "dataset_scale")
TIME_KEY = {
    "stall": "stall (waiting for data and copying)",
    "compute": "compute",
    "overhead": "overhead",
}
ENERGY_CLASS = {  # part of the energy -> class of the style sheet
    "constant power": "baseload",
    "above it": "above_baseload",
    "CPU": "cpu",
    "CPU package": "cpu",
    "GPU": "gpu",
    "CPU and GPU": "cpu_gpu",
    "GPU and SoC": "gpu",
    "CPU and SoC": "cpu",
    "memory": "memory",
    "rest": "rest",
}
ENERGY_WORDS = {
    "constant power": "energy: constant power",
    "above it": "energy above it",
    "rest": "energy that no rail of these tells",
}
# of a sensor that does not see the whole board
SCOPES = {"gpu": " of the GPU", "cpu_package": " of the CPU", "socket": " at the plug"}
BOUND = {"loader": "the loader", "": "too short to tell"}
NOTHING = (
    "No epoch was measured on this machine, so there is nothing to say on it. The command make run "
    "with the study host-pipeline measures some on any computer within minutes; on a board follow "
    "docs/tutorials/jetson.md."
)
NOT_MADE = (
    "The table of runs could not be made, so this part of the page is empty; above is the reason. "
    "What was measured lies in measured/ and is kept."
)
NONE_COUNTS = (
    "The first epoch of a run is left out of means: give its study two or more epochs in "
    "config/studies.yaml, and only the missing ones are measured. Where it has them, the column "
    "flags of results/tables/epochs.csv says why they are not valid (docs/reference/columns.md)."
)
NO_SENSOR = (
    "No power sensor was found on this machine, so there is no energy and no power: it has no "
    "NVIDIA GPU, RAPL counter or INA3221 that may be read. The command epochwatt doctor names what "
    "it tried."
)
NO_CONSTANT = (
    "How much of the energy is constant power is not known: the idle power of this machine was "
    "not measured."
)
SHARED_MARK = "while others used the machine"
SHARED_WORDS = (
    "Other programs took more than 10 % of the CPUs while {what} were measured: this machine can "
    "do better. To measure them again once it is quiet: epochwatt discard --shared, then start "
    "again."
)
NOTE = "Means over the valid epochs after the first. How well the networks learn is not judged."


class Cell(NamedTuple):
    """A text of a table with its place."""

    text: str
    source: str
    row: int
    kind: str = ""
    reason: str = ""


class Machine(NamedTuple):
    """The tables that tell of measured runs.

    Attributes
    ----------
    runs, advice, parts : results/tables/{runs,advice,energy_parts}.csv
    explanations : results/tables/explanations.csv; None: no ceilings were measured
    epochs, ceilings : results/tables/epochs.csv, results/roofline/ceilings.csv: what of them was
        measured while others used the machine; None: not known
    """

    runs: Table
    advice: Table
    parts: Table
    explanations: Table | None = None
    epochs: Table | None = None
    ceilings: Table | None = None

    def n_shared(self, run: str) -> int:
        """Return how many epochs of a run were measured while others used the machine."""
        rows = self.epochs.rows if self.epochs else []
        return sum(
            row["run"] == run and bool(SHARED_FLAGS & {*row["flags"].split()}) for row in rows
        )


def describe(tables: Machine, titles: Mapping[str, str]) -> dict[str, Any]:
    """Return what the section shows.

    Parameters
    ----------
    tables : that it is read from
    titles : model or device -> name for people
    """
    places: dict[tuple[str, str, str], list[int]] = {}
    for place, row in enumerate(tables.runs.rows):
        if row["backend"] in MEASURED + FAKE and _is_mean(row):
            key = (row["backend"], row["device"], row["instance"])
            places.setdefault(key, []).append(place)
    measured = [_place(tables, key, rows, titles) for key, rows in places.items()]
    return {"places": measured, "nothing": _nothing(tables.runs)}


def _nothing(runs: Table) -> dict[str, str]:
    """Return what to say where no run has a mean: whether any was measured, and what to do."""
    if not runs.path:
        return {"title": "This machine", "lead": NOT_MADE}
    keys = dict.fromkeys(
        (row["backend"], row["device"], row["instance"])
        for row in runs.rows
        if row["backend"] in MEASURED + FAKE
    )
    if not keys:
        return {"title": "Nothing was measured yet", "lead": NOTHING}
    sentences = [
        f"{origin([key[0]]).capitalize()} {key[1]}/{key[2]}: {sentence}"
        for key in keys
        for sentence in _without_mean(runs, key)
    ]
    return {"title": "No epoch counts yet", "lead": " ".join([*sentences, NONE_COUNTS])}


def _without_mean(runs: Table, key: tuple[str, str, str]) -> list[str]:
    """Return a sentence on the runs of a machine that have no row, where there are any."""
    ids: dict[str, bool] = {}
    for row in runs.rows:
        if (row["backend"], row["device"], row["instance"]) == key:
            ids[row["run"]] = ids.get(row["run"], False) or _is_mean(row)
    n_without = list(ids.values()).count(False)
    verb = "has" if n_without == 1 else "have"
    words = f"{counted(n_without, 'runs')} {verb} no valid epoch after the first, and no row here."
    return [words] if n_without else []


def _is_mean(row: Mapping[str, str]) -> bool:
    chosen = row["epoch_set"] == "1+" and row["statistic"] == "mean"
    return chosen and int(row["n_epochs"] or 0) > 0


def _place(
    tables: Machine, key: tuple[str, str, str], places: Sequence[int], titles: Mapping[str, str]
) -> dict[str, Any]:
    backend, device, instance = key
    rows = [tables.runs.rows[place] for place in places]
    n_epochs = sum(int(row["n_epochs"]) for row in rows)
    named = titles.get(device, device)
    title = named[:1].upper() + named[1:]
    lead = (
        f"{origin([backend]).capitalize()} {device}/{instance}: {counted(len(rows), 'runs')}, "
        f"{counted(n_epochs, 'epochs')} after the first. {NOTE}"
    )
    is_metered = any(row["energy_wh"] for row in rows)
    groups: dict[tuple[str, ...], list[int]] = {}
    for place in places:
        groups.setdefault(tuple(tables.runs.rows[place][name] for name in DATA), []).append(place)
    sentences = _without_mean(tables.runs, key) + ([] if is_metered else [NO_SENSOR])
    stacks = {stack for row in rows for stack in _stacks(tables, row["run"])}
    sentences += [NO_CONSTANT] if is_metered and "constant" not in stacks else []
    is_explained = any(explained.why(tables.explanations, row["run"]) for row in rows)
    sentences += [] if is_explained else [explained.NOT_MEASURED]
    sentences += _shared(tables, key, [row["run"] for row in rows])
    longest = [_longest(tables.runs, group) for group in groups.values()]
    return {
        "id": f"{backend}-{device}-{instance}",
        "title": title if backend != "fake" else f"{title}: a fake board, not measured",
        "lead": lead,
        "sentences": sentences,
        "cards": [_card(tables, group, titles, is_metered) for group in groups.values()],
        "key": TIME_KEY
        | (explained.KEY if is_explained else {})
        | _energy_key(tables, [row["run"] for row in rows]),
        "columns": [*_columns(is_metered), *([explained.COLUMN] if is_explained else [])],
        "rows": [
            _run(tables, place, titles, most)
            for group, most in zip(groups.values(), longest, strict=True)
            for place in group
        ],
    }


def _shared(tables: Machine, key: tuple[str, str, str], runs: Sequence[str]) -> list[str]:
    """Return what was measured while others used the machine, and what to do about it."""
    counts = [n for run in runs if (n := tables.n_shared(run))]
    what = []
    if counts:
        what.append(f"{counted(sum(counts), 'epochs')} of {counted(len(counts), 'runs')}")
    if tables.ceilings and any(
        row["provenance"] == "measured"
        and row["instance"] == key[2]
        and SHARED_FLAGS & {*row["flags"].split()}
        for row in tables.ceilings.rows
    ):
        what.append("the ceilings")
    return [SHARED_WORDS.format(what=" and ".join(what))] if what else []


def _columns(is_metered: bool) -> list[dict[str, str]]:
    energy = [("energy_wh", "energy"), ("power_mean_w", "power")] if is_metered else []
    numbers = [
        ("e2e_s", "epoch"),
        *((part, part) for part in TIME_KEY),
        *energy,
    ]
    return [
        {"name": "network", "title": "network", "kind": ""},
        {"name": "setting", "title": "setting", "kind": ""},
        {"name": "bars", "title": "where it goes", "kind": "bars"},
        *({"name": name, "title": title, "kind": "n"} for name, title in numbers),
        {"name": "advice", "title": "what holds it back", "kind": "advice"},
    ]


def _longest(runs: Table, places: Sequence[int]) -> tuple[float, float]:
    """Return the longest epoch and the most energy of a workload: the full width of its bars."""
    rows = [runs.rows[place] for place in places]
    most = [max(float(row[name] or 0) for row in rows) for name in ("e2e_s", "energy_wh")]
    return most[0], most[1]


def _scope(tables: Machine, run: str) -> str:
    """Return what the energy of a run is of; empty: it has none."""
    return next((row["power_scope"] for row in tables.parts.rows if row["run"] == run), "")


def _stacks(tables: Machine, run: str) -> dict[str, dict[str, float]]:
    """Return stack -> part -> share, %, of a run's energy; nothing where no sensor tells."""
    stacks: dict[str, dict[str, float]] = {}
    for row in tables.parts.rows:
        if row["run"] == run:
            stacks.setdefault(row["stack"], {})[row["part"]] = float(row["share_pct"])
    return stacks


def _energy_key(tables: Machine, runs: Sequence[str]) -> dict[str, str]:
    names = [part for run in runs for parts in _stacks(tables, run).values() for part in parts]
    return {ENERGY_CLASS[part]: ENERGY_WORDS.get(part, part) for part in dict.fromkeys(names)}


def _bars(tables: Machine, place: int, most: tuple[float, float]) -> list[dict[str, Any]]:
    """Return the stacked time of a run and, where there is a sensor, its stacked energy."""
    row = tables.runs.rows[place]
    e2e_s = float(row["e2e_s"])
    parts = {part: 100.0 * float(row[f"{part}_s"] or 0) / e2e_s for part in TIME_KEY}
    bars = [
        {"length": 100.0 * e2e_s / most[0], "parts": parts, "title": "time: " + ", ".join(parts)}
    ]
    bars += explained.bars(tables.explanations, row["run"], 100.0 * e2e_s / most[0])
    stacks = _stacks(tables, row["run"]).values()
    energy_length = 100.0 * float(row["energy_wh"] or 0) / (most[1] or 1.0)
    return bars + [
        {
            "length": energy_length,
            "parts": {ENERGY_CLASS[part]: share for part, share in shares.items()},
            "title": f"energy: {', '.join(shares)}",
        }
        for shares in stacks
    ]


def _shared_mark(tables: Machine, run: str) -> str:
    return f" ({SHARED_MARK})" if tables.n_shared(run) else ""


def _numbers(runs: Table, place: int) -> dict[str, Number | None]:
    shares = {
        part: runs.number(place, f"{part}_s", "%", per="e2e_s", how="share") for part in TIME_KEY
    }
    return {
        "e2e_s": runs.number(place, "e2e_s", "s"),
        **shares,
        "energy_wh": runs.number(place, "energy_wh", "Wh"),
        "power_mean_w": runs.number(place, "power_mean_w", "W"),
    }


def _network(row: Mapping[str, str], titles: Mapping[str, str]) -> str:
    return titles.get(row["model"], row["model"])


def _data(row: Mapping[str, str]) -> str:
    scale = float(row["dataset_scale"] or 1)
    return f"{row['dataset']} {row['dataset_source']}" + ("" if scale == 1 else f" x{scale:g}")


def setting(row: Mapping[str, str]) -> str:
    """Return what a run is set to, in words: workers, batch, medium, mode."""
    words = [
        SETTING["num_workers"].format(row["num_workers"]),
        SETTING["batch_size"].format(row["batch_size"]),
        row["storage"],
        *([] if row["power_mode"] == "asis" else [f"mode {row['power_mode']}"]),
    ]
    return ", ".join(words).replace("1 workers", "1 worker", 1 if row["num_workers"] == "1" else 0)


def _advice(advice: Table, run: str) -> Cell | None:
    for place, row in enumerate(advice.rows):
        if row["run"] == run:
            return Cell(row["advice"], advice.path, place, row["kind"], row["reason"])
    return None


def _find(row: Mapping[str, str], titles: Mapping[str, str]) -> str:
    run = row["run"].rpartition("-")[0]  # no hash: its digits would be hits
    words = [run, _network(row, titles), titles.get(row["device"], ""), _data(row)]
    return " ".join([*words, setting(row), label(row["backend"])]).lower()


def _run(
    tables: Machine, place: int, titles: Mapping[str, str], most: tuple[float, float]
) -> dict[str, Any]:
    row = tables.runs.rows[place]
    cells: dict[str, Any] = {
        "network": f"{_network(row, titles)}, {_data(row)}",
        "setting": setting(row) + _shared_mark(tables, row["run"]),
        "bars": _bars(tables, place, most),
        **_numbers(tables.runs, place),
        "advice": _advice(tables.advice, row["run"]),
        "why": explained.why(tables.explanations, row["run"]),
    }
    return {"source": tables.runs.path, "row": place, "find": _find(row, titles), "cells": cells}


def _card(
    tables: Machine, places: Sequence[int], titles: Mapping[str, str], is_metered: bool
) -> dict[str, Any]:
    """Return the card of a network: its fastest run."""
    runs = tables.runs
    place = min(places, key=lambda p: float(runs.rows[p]["e2e_s"]))
    row, numbers = runs.rows[place], _numbers(runs, place)
    advice = _advice(tables.advice, row["run"])
    bound = (
        tables.advice.rows[advice.row]["bound_by"] if advice else find_longest_part(row).bound_by
    )
    scope = SCOPES.get(_scope(tables, row["run"]), "")
    energy = [(f"energy{scope}", "energy_wh"), (f"power{scope}", "power_mean_w")]
    tiles = [("epoch", "e2e_s"), *(energy if is_metered else []), ("stall", "stall")]
    fastest = "the only run" if len(places) == 1 else f"the fastest of {len(places)} runs"
    return {
        "title": _network(row, titles),
        "origin": row["backend"],
        "label": label(row["backend"]),
        "setting": f"{_data(row)}; {fastest}: {setting(row)}{_shared_mark(tables, row['run'])}",
        "tiles": [
            *({"name": name, "number": numbers[key], "word": "\u2013"} for name, key in tiles),
            {"name": "held back by", "number": None, "word": BOUND.get(bound, bound)},
        ],
        "bars": [{**bar, "length": 100.0} for bar in _bars(tables, place, (1.0, 1.0))],
        "advice": advice,
        "kind": advice.kind if advice else "none",
        "find": _find(row, titles),
    }
