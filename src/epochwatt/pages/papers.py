"""The papers' runs on the landing page: published numbers beside ours.

Ours are those that the figures draw; what no figure draws (changes, shares, bounds) is from
`results/twin/validation.csv`. A row says whether the simulation was fitted to its number.
"""

import csv
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from epochwatt.claims.claims_table import ClaimRow
from epochwatt.claims.summary import in_short
from epochwatt.pages.numbers import PRINTED, Number, Table
from epochwatt.published.numbers import TITLES
from epochwatt.study.runs import TWIN
from epochwatt.text import label

UNITS = {
    "_ms_per_minibatch": "ms",
    "_pct": "%",
    "_wh": "Wh",
    "_w": "W",
    "_s": "s",
}
SIGNS = {"approx": "\u2248", "less_than": "<", "at_most": "\u2264", "at_least": "\u2265"}
CLOSE_PCT, FAR_PCT = 10.0, 25.0
FILTERS = (
    {"word": "unseen", "title": "not used in the fit"},
    {"word": "far", "title": "more than 10 % off"},
    {"word": "figure", "title": "drawn in a figure"},
)
LEAD = (
    "Every number that the papers print and that can be compared, beside ours. Ours is simulated "
    "where nothing else is said, by boards that were fitted to the numbers marked as seen. Held "
    "out: the error of boards that were fitted without the number's take-away, as a ratio in %, or "
    "in points where both are in %."
)
NONE = "No run of the papers is here: the studies of config/config.yaml hold none."
Row = dict[str, Any]


def compare(
    numbers: Iterable[str],
    validation: str,
    published: str,
    findings: Iterable[ClaimRow],
    titles: Mapping[str, str],
) -> dict[str, Any]:
    """Return what the section shows.

    Parameters
    ----------
    numbers : tables with a column `published`: of the figures, and of what only the text tells
    validation : results/twin/validation.csv; empty: it was not made
    published : folder of the published numbers
    findings : rows of claims.csv
    titles : model or device -> name for people
    """
    facts = _facts(Path(published))
    judged = Table(validation) if validation else None
    held = {row["published_id"]: n for n, row in enumerate(judged.rows)} if judged else {}
    rows = _by_number(row for path in numbers for row in _drawn(Table(path), facts, titles))
    for (backend, identity), row in rows.items():
        row["held_out"] = _held_out(judged, held.get(identity)) if backend == TWIN else None
    drawn_ids = {identity for _, ids in rows for identity in ids.split()}
    more = [
        _judged(judged, place, facts[name], titles)
        for name, place in held.items()
        if judged and name not in drawn_ids and name in facts
    ]
    all_rows = [_finished(row) for row in [*rows.values(), *more]]
    claims = list(findings)
    tables: list[Row] = [
        {
            "id": paper,
            "title": title,
            "filters": FILTERS,
            "claims": " ".join(_claims(claims, paper, title)),
            "rows": sorted(
                (row for row in all_rows if row["paper"] == paper), key=lambda row: row["order"]
            ),
        }
        for paper, title in TITLES.items()
    ]
    tables = [table for table in tables if table["rows"]]
    return {"lead": LEAD if tables else NONE, "tables": tables}


def _by_number(drawn: Iterable[Row]) -> dict[tuple[str, str], Row]:
    """Return one row per backend and published number, with all figures that draw it."""
    rows: dict[tuple[str, str], Row] = {}
    for row in drawn:
        key = (row["backend"], row["id"])
        if key in rows:
            rows[key]["figures"] += row["figures"]
        else:
            rows[key] = row
    return rows


def _claims(findings: Iterable[ClaimRow], paper: str, title: str) -> list[str]:
    """Return how many claims of a paper hold in simulation; nothing where none was simulated."""
    simulated = [f for f in findings if f.paper == paper and f.backend == TWIN]
    return [line.removeprefix(f"{title}. ") for line in in_short(simulated)] if simulated else []


def _facts(folder: Path) -> dict[str, dict[str, str]]:
    """Return published number -> its row in measurements.csv or relations.csv."""
    facts = {}
    for name in ("measurements.csv", "relations.csv"):
        with (folder / name).open(newline="", encoding="utf-8") as handle:
            facts.update({row["id"]: row for row in csv.DictReader(handle)})
    return facts


def _drawn(
    table: Table, facts: Mapping[str, dict[str, str]], titles: Mapping[str, str]
) -> Iterable[Row]:
    """Yield the rows of a figure's table that have a published number.

    Relations between runs are taken from the validation (`_judged`), which has all of them.
    """
    for place, cells in enumerate(table.rows):
        if cells.get("is_relation") == "True":
            continue
        ids = cells.get("published_id", "")
        fact = facts.get(ids.split()[0]) if ids else None
        if fact is None or not cells.get("published") or not cells.get("quantity"):
            continue
        unit = unit_of(cells["quantity"])
        how = "difference" if unit == "%" else "deviation"
        is_range = bool(cells.get("published_hi"))
        has_bound = is_range or cells["published_qualifier"] in ("less_than", "at_most", "at_least")
        panel = Path(table.path).stem
        is_figure = "/figures/" in table.path
        identity = f"{cells['backend']}-{panel}"
        yield {
            "id": ids,
            "backend": cells["backend"],
            "fact": fact,
            "source": table.path,
            "row": place,
            "run": run_words(cells, titles),
            "quantity": quantity_words(cells["quantity"], cells.get("statistic", "")),
            "ours": table.number(place, "value", unit),
            "published": table.number(place, "published", unit, how=PRINTED),
            "published_text": "",
            "deviation": None if has_bound else table.number(place, "value", "%", "published", how),
            "sign": SIGNS.get(cells["published_qualifier"], ""),
            "seen": {"True": "yes", "False": "no"}.get(cells["seen_by_fit"], ""),
            "figures": [{"id": identity, "title": figure_title(panel)}] if is_figure else [],
        }


def _judged(
    table: Table | None, place: int, fact: Mapping[str, str], titles: Mapping[str, str]
) -> Row:
    """Return the row of a number that no figure draws, as the validation judges it."""
    assert table is not None
    cells = table.rows[place]
    unit = {"pct": "%", "x": "x"}.get(cells["unit"], cells["unit"])
    ours = table.number(place, "fitted_prediction", unit)
    published = table.number(place, "published_value", unit, how=PRINTED)
    error = table.number(place, "fitted_error_pct", "%")
    return {
        "id": cells["published_id"],
        "backend": TWIN,
        "fact": fact,
        "source": table.path,
        "row": place,
        "run": _fact_words(fact, titles),
        "quantity": quantity_words(cells["metric"], ""),
        "ours": ours,
        "ours_text": "" if ours else cells["fitted_prediction"],
        "ours_column": "fitted_prediction",
        "published": published,
        "published_text": "" if published else cells["published_value"],
        "published_column": "published_value",
        "deviation": error,
        "held_out": _held_out(table, place),
        "sign": SIGNS.get(cells["qualifier"], ""),
        "seen": cells["seen_by_fit"],
        "figures": [],
    }


def _held_out(table: Table | None, place: int | None) -> Number | None:
    if table is None or place is None:
        return None
    return table.number(place, "held_out_error_pct", "%")


def _finished(row: Row) -> Row:
    """Return a row with what is searched, filtered and sorted by."""
    fact, deviation = row["fact"], row["deviation"]
    size_pct = (
        abs(float(deviation.text.replace("\u2212", "-").replace(",", ""))) if deviation else 0
    )
    has = ["unseen" if row["seen"] == "no" else "", "figure" if row["figures"] else ""]
    has.append("far" if size_pct > CLOSE_PCT else "")
    words = [row["run"], row["quantity"], fact["section"], label(row["backend"]), row["id"]]
    origin = "" if row["backend"] == TWIN else f" ({label(row['backend'])})"
    return {
        "ours_text": "",
        **row,
        "run": row["run"] + origin,
        "paper": fact["paper"],
        "section": fact["section"],
        "order": (_natural(fact["section"]), row["id"].startswith("R"), row["id"]),
        "size": "" if not deviation else _size(size_pct),
        "find": " ".join(words).lower(),
        "has": " ".join(filter(None, has)),
    }


def _size(size_pct: float) -> str:
    return "good" if size_pct <= CLOSE_PCT else "bad" if size_pct > FAR_PCT else ""


def _natural(section: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (0, part) for part in section.split(".")]


def unit_of(quantity: str) -> str:
    """Return the unit that ends a quantity's name."""
    return next((unit for end, unit in UNITS.items() if quantity.endswith(end)), "")


def quantity_words(quantity: str, statistic: str) -> str:
    """Return a quantity's name for people, its unit left to the numbers."""
    name = quantity.replace("_ms_per_minibatch", " per mini-batch")
    words = re.sub(r"_(?:pct|wh|w|s)\b", "", name).replace("/", " / ").replace("+", " + ")
    words = words.replace("_", " ").replace("e2e", "E2E").replace("iops", "reads/s")
    return f"{words}, {statistic}" if statistic else words


def run_words(cells: Mapping[str, str], titles: Mapping[str, str]) -> str:
    """Return a run's board, network and settings in words."""
    device, model = cells.get("device", ""), cells.get("model", "")
    workers, batch = cells.get("num_workers", ""), cells.get("batch_size", "")
    scale = cells.get("dataset_scale", "")
    epochs = cells.get("epoch_set", "")
    words = [
        f"{titles.get(device, device)} {cells.get('instance', '')}".strip(),
        titles.get(model, model),
        cells.get("storage", ""),
        f"{workers} worker{'' if workers == '1' else 's'}" if workers else "",
        f"batch {batch}" if batch else "",
        f"mode {cells['power_mode']}" if cells.get("power_mode") else "",
        "DVFS on" if cells.get("dvfs") == "on" else "",
        f"data x{float(scale):g}" if scale and float(scale) != 1 else "",
        f"state {cells['state']}" if cells.get("state") else "",
        f"epochs {epochs}" if epochs else "",
    ]
    return ", ".join(filter(None, words))


def _fact_words(fact: Mapping[str, str], titles: Mapping[str, str]) -> str:
    """Return what a published number is of: a run, or the change from one to the other."""
    if "config_a" not in fact:
        return run_words({**fact, "epoch_set": fact.get("epoch", "")}, titles)
    sides = [
        dict(pair.split("=", 1) for pair in fact[name].split(";") if "=" in pair)
        for name in ("config_a", "config_b")
    ]
    one, other = sides[0], sides[1] or sides[0]
    shared = {name: value for name, value in one.items() if other.get(name) == value}
    words = [titles.get(value, value) for name, value in shared.items() if name in NAMED]
    words += [
        f"{name.replace('num_', '').replace('_', ' ')} {one.get(name, '?')} \u2192 {value}"
        for name, value in other.items()
        if one.get(name) != value
    ]
    return ", ".join(words) or fact["section"]


NAMED = ("device", "model", "storage", "power_mode")


def figure_title(panel: str) -> str:
    """Return a panel's number as the papers print it: `hipcw_fig06a` is Fig. 6a."""
    number = panel.rpartition("fig")[2].lstrip("0")
    return f"Fig. {number}" if "fig" in panel else panel
