"""The papers' runs on the landing page: what they state and print, beside the same of ours.

Ours is the mean over a run, as the figures draw it; what no figure draws is from `printed.csv`
(`printed.py`), and how many predictions are good from `statistics.csv`. A row says whether the
simulation was fitted to its number.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from epochwatt.claims.claims_table import FAILS, HOLDS, PAPER, ClaimRow
from epochwatt.claims.summary import in_short, status_of, takeaways
from epochwatt.claims.tolerances import load_terms
from epochwatt.pages.numbers import PRINTED, Number, Table
from epochwatt.prediction.names import ENERGY, REFERENCE, SEARCHED, TIME
from epochwatt.published.numbers import TITLES, Fact, Relation, load_published
from epochwatt.study.runs import TWIN
from epochwatt.tables import read_table
from epochwatt.text import label

UNITS = {  # of a published number, where its name is another
    "pct": "%",
    "x": "\u00d7",
    "count": "",
    "1/s": "/s",
}
SIGNS = {"approx": "\u2248", "less_than": "<", "at_most": "\u2264", "at_least": "\u2265"}
UPPER = ("less_than", "at_most")
# unit of two numbers -> how far one is off the other, and the unit of that
DEVIATIONS = {"%": ("difference", "points"), "\u00d7": ("factor", ""), "": ("difference", "")}
EXCEPTIONS = "holds, with exceptions"  # a take-away of which claims fail that are not core
WITHIN = "within"  # deviation of what keeps a bound or a range
FORMULAS = {  # of a relation, by its beginning -> words
    "mean 100*(B-A)/A": "mean change",
    "100*(B-A)/A": "change",
    "100*|B-A|/A": "size of the change",
    "100*part/whole": "share",
    "100*(max-min)/max": "range, part of the most",
    "100*(max-min)/median": "range, part of the median",
    "100*max|x-median|/median": "farthest from the median",
    "A/B": "factor",
    "B/A": "factor",
}
HELD_OUT = (("held_out_prediction",), ("published_value",))  # columns of the validation
OURS, THEIRS = ("value", "value_hi"), ("published", "published_hi")  # columns
JUDGED_METHOD = (REFERENCE, SEARCHED, "all")  # whose predictions the claims judge, in all modes
COUNTED_IN = {TIME: "fig10a", ENERGY: "fig10b"}  # what is predicted -> panel that counts it
MOST_SHOWN = 3  # comparisons of a claim; its row in claims.html has all
FILTERS = (
    {"word": "unseen", "title": "not used in the fit"},
    {"word": "far", "title": "off by more than the tolerance"},
    {"word": "figure", "title": "drawn in a figure"},
)
LEAD = (
    "What both papers state and every number that they print of a run, beside ours. Where nothing "
    "else is stated, ours is simulated."
)
NONE = "No run of the papers is here: the studies of config/config.yaml hold none."
Row = dict[str, Any]


def terms(near: Mapping[str, float]) -> dict[str, str]:
    """Return what the words of the section's tables mean; `near` are the claims' tolerances."""
    return {
        "holds": "A take-away holds if all its core claims do, with exceptions where another claim "
        "fails, as on the size of an effect. Held out, they are judged on boards "
        "that were fitted without the take-away's numbers.",
        "ours": "The mean over the epochs of our run, as the figures draw it.",
        "deviation": "Ours against the paper's number: in %, in points where both are in %, as a "
        "factor (\u00d7) where both are factors. Within: a bound or a range is kept. Red: beyond "
        f"the claims' tolerance, {near['NEAR']:g} % or {near['NEAR_PP']:g} points, which is our "
        "own, as the papers give none.",
        "used in the fit": "Whether the simulated boards were fitted to this number.",
        "held out": "The deviation of boards that were fitted without this number and all others "
        "of its take-away. They make no runs, so it is that of the fit's own prediction.",
    }


def compare(
    numbers: Iterable[str],
    tables: Mapping[str, str],
    findings: Sequence[ClaimRow],
    titles: Mapping[str, str],
    says: Mapping[tuple[str, str], Mapping[str, str]],
) -> dict[str, Any]:
    """Return what the section shows.

    Parameters
    ----------
    numbers : tables with published numbers: of figures, of the text alone, of predictions
    tables : paths of `printed` and `validation` (empty: it was not made), and `published`, the
        folder of the published numbers
    findings : rows of claims.csv
    titles : model or device -> name for people
    says : `statements`
    """
    published = Path(tables["published"])
    facts = load_published(published).facts()
    judged = Table(tables["validation"]) if tables["validation"] else None
    held = {row["published_id"]: n for n, row in enumerate(judged.rows)} if judged else {}
    paths = [*numbers]
    panels = {f"{Path(path).parent.name}-{Path(path).stem}" for path in paths}
    drawn = [row for path in paths for row in _rows(Table(path), facts, titles)]
    there = {(row["backend"], row["fact"].id) for row in drawn}
    others = _rows(Table(tables["printed"]), facts, titles)
    rows = _by_number([*drawn, *(r for r in others if (r["backend"], r["fact"].id) not in there)])
    tolerance = load_terms(published.resolve().parents[1]).numbers
    finished = [_finished(row, says, tolerance) for row in rows]
    finished.sort(key=lambda row: row["order"])
    for row in finished:
        fact, place = row["fact"], held.get(row["fact"].id) if row["backend"] == TWIN else None
        if judged and place is not None:
            row["held_out"] = _deviation(judged, place, _unit(fact), fact.qualifier, *HELD_OUT)
        row["figures"] = [figure for figure in row["figures"] if figure["id"] in panels]
    papers: list[Row] = [
        {
            "id": paper,
            "title": title,
            "filters": FILTERS,
            "claims": [line.removeprefix(f"{title}: ") for line in in_short(of_paper)],
            "takeaways": _takeaways(of_paper, says),
            "rows": [row for row in finished if row["paper"] == paper],
        }
        for paper, title in TITLES.items()
        for of_paper in [[f for f in findings if (f.paper, f.form) == (paper, PAPER)]]
    ]
    papers = [paper for paper in papers if paper["rows"]]
    words = terms(tolerance) if papers else {}
    return {"lead": LEAD if papers else NONE, "terms": words, "tables": papers}


# -- what the papers state ---------------------------------------------------------------------


def statements(published: Path) -> dict[tuple[str, str], dict[str, str]]:
    """Return (paper, take-away) -> its sentence (`quote`) and the numbers that come with it.

    None where there is no such file, as in a configuration that is older than it.
    """
    path = published / "statements.csv"
    rows = [row for _, row in read_table(path)] if path.is_file() else []
    return {(row["paper"], row["takeaway"]): row for row in rows}


def _takeaways(
    findings: Sequence[ClaimRow], says: Mapping[tuple[str, str], Mapping[str, str]]
) -> list[Row]:
    """Return a row for each take-away of a paper and backend that judges any claim of it."""
    groups: dict[tuple[str, str], list[ClaimRow]] = {}
    for f in findings:
        groups.setdefault((f.backend, f.takeaway), []).append(f)
    rows = []
    for (backend, name), claims in groups.items():
        (deciding,) = takeaways(claims).values()
        status = status_of(f.status for f in deciding)
        if not status:
            continue
        stated = says.get((claims[0].paper, name), {"quote": "", "numbers": ""})
        failing = failures(claims)
        words = [name, *stated.values(), label(backend), *(f["says"] for f in failing)]
        rows.append(
            {
                "section": name,
                "quote": stated["quote"],
                "numbers": stated["numbers"],
                "origin": "" if backend == TWIN else label(backend),
                "status": status,
                "verdict": EXCEPTIONS if failing and status == HOLDS else status.replace("_", " "),
                "failing": failing,
                "find": " ".join(words).lower(),
            }
        )
    return rows


def failures(claims: Iterable[ClaimRow]) -> list[Row]:
    """Return of each claim that does not hold what it says, and by what it fails, in words."""
    return [
        {
            "claim": f.claim,
            "says": f.claim_text,
            "numbers": numbers[:MOST_SHOWN],
            "more": max(0, len(numbers) - MOST_SHOWN),
            "why": f.why[:1].upper() + f.why[1:],
        }
        for f in claims
        if f.status == FAILS
        for numbers in [[part for part in f.in_words.split("; ") if part]]
    ]


# -- what they print ---------------------------------------------------------------------------


def _by_number(drawn: Iterable[Row]) -> list[Row]:
    """Return one row per backend, published number and run, with all figures that draw it."""
    rows: dict[tuple[str, str, str], Row] = {}
    for row in drawn:
        key = (row["backend"], row["id"], row["run"])
        if key in rows:
            there = rows[key]["figures"]
            there += [figure for figure in row["figures"] if figure not in there]
        else:
            rows[key] = row
    return list(rows.values())


def _rows(table: Table, facts: Mapping[str, Fact], titles: Mapping[str, str]) -> Iterable[Row]:
    """Yield the rows of a table that have a published number."""
    panel, folder = Path(table.path).stem, Path(table.path).parent.name
    for place, cells in enumerate(table.rows):
        ids = cells.get("published_id", "")
        fact = facts.get(ids.split()[0]) if ids else None
        if fact is None or not cells.get("published") or not cells.get("value"):
            continue
        backend = cells.get("backend") or folder  # what is of two runs names none
        row = {"id": ids, "fact": fact, "backend": backend, "source": table.path, "row": place}
        if "learned_from" in cells:
            if (cells["method"], cells["learned_from"], cells["modes"]) == JUDGED_METHOD:
                yield {**row, **_prediction(table, place, fact, titles)}
            continue
        qualifier, sides = cells["published_qualifier"], (OURS, THEIRS)
        is_figure, unit = folder == backend and "/figures/" in table.path, _unit(fact)
        yield {
            **row,
            "run": _run_of(fact, cells, titles),
            "quantity": quantity_words(fact, cells.get("statistic", "")),
            "ours": _numbers(table, place, OURS, unit),
            "published": _numbers(table, place, THEIRS, unit, PRINTED),
            "joint": " to ",
            "sign": SIGNS.get(qualifier, ""),
            "deviation": _deviation(table, place, unit, qualifier, *sides),
            "seen": {"True": "yes", "False": "no"}.get(cells["seen_by_fit"], ""),
            "figures": [_figure(backend, panel)] if is_figure else [],
        }


def _prediction(table: Table, place: int, fact: Fact, titles: Mapping[str, str]) -> Row:
    """Return a row of what the paper counts of its predictions: `31 of 40`."""
    cells, unit = table.rows[place], _unit(fact)
    board = f"{titles.get(cells['device'], cells['device'])} {cells['instance']}"
    networks = [titles.get(name, name) for name in cells["networks"].split()]
    words = {TIME: "predicted times", ENERGY: "predicted energies"}[cells["target"]]
    return {
        "run": f"{board}, {', '.join(networks)}".replace(", all", ", all networks"),
        "quantity": f"{words}: {cells['statistic'].removesuffix(', %')}",
        "ours": _numbers(table, place, ("value", "n_predictions"), unit),
        "published": _numbers(table, place, ("published", "n_published"), unit, PRINTED),
        "joint": " of ",
        "sign": SIGNS.get(fact.qualifier, ""),
        "deviation": _deviation(table, place, unit, fact.qualifier, OURS[:1], THEIRS[:1]),
        "seen": "",
        "figures": [_figure(cells["backend"], COUNTED_IN[cells["target"]])],
    }


def _figure(backend: str, panel: str) -> dict[str, str]:
    return {"id": f"{backend}-{panel}", "title": figure_title(panel)}


def _unit(fact: Fact) -> str:
    return UNITS.get(fact.unit, fact.unit)


def _numbers(
    table: Table, place: int, columns: Sequence[str], unit: str, how: str = ""
) -> list[Number]:
    """Return the numbers of some cells of a row, without those that are not there."""
    numbers = (table.number(place, column, unit, how=how) for column in columns)
    return [number for number in numbers if number]


def _deviation(
    table: Table,
    place: int,
    unit: str,
    qualifier: str,
    ours: Sequence[str],
    theirs: Sequence[str],
) -> Number | str | None:
    """Return how far ours is off the paper's number, or that it keeps a bound or a range.

    Parameters
    ----------
    unit : of both
    qualifier : of the published number
    ours, theirs : columns of both; the second one, if it is filled, is the upper end of a range
    """
    here = [(n, column) for column in ours if (n := table.value(place, column)) is not None]
    printed = [(n, column) for column in theirs if (n := table.value(place, column)) is not None]
    if not here or not printed:
        return None
    (low, at_low), (high, at_high) = printed[0], printed[-1]
    is_interval = len(printed) > 1 or qualifier in (*UPPER, "at_least")
    low = -math.inf if qualifier in UPPER else low
    high = math.inf if qualifier == "at_least" else high
    outside = [(low - n, column, at_low) for n, column in here]
    outside += [(n - high, column, at_high) for n, column in here]
    off, column, per = max(outside)
    if is_interval and off <= 0:
        return WITHIN
    how, of_deviation = DEVIATIONS.get(unit, ("deviation", "%"))
    return table.number(place, column, of_deviation, per, how)


def _finished(
    row: Row, says: Mapping[tuple[str, str], Mapping[str, str]], tolerance: Mapping[str, float]
) -> Row:
    """Return a row with what is searched, filtered and sorted by."""
    fact: Fact = row["fact"]
    size = _size(row["deviation"], tolerance)
    has = ["unseen" if row["seen"] == "no" else "", "figure" if row["figures"] else ""]
    has.append("far" if size == "bad" else "")
    stated = says.get((fact.paper, fact.section), {})
    words = [row["run"], row["quantity"], fact.section, label(row["backend"]), row["id"]]
    origin = "" if row["backend"] == TWIN else f" ({label(row['backend'])})"
    return {
        "held_out": None,
        **row,
        "run": row["run"] + origin,
        "paper": fact.paper,
        "section": fact.section,
        "is_takeaway": bool(stated),
        "order": (_natural(fact.section), row["id"].startswith("R"), row["id"]),
        "size": size,
        "find": " ".join([*words, *stated.values()]).lower(),
        "has": " ".join(filter(None, has)),
    }


def _size(deviation: Number | str | None, tolerance: Mapping[str, float]) -> str:
    """Return whether a deviation is within the tolerance of the claims."""
    if not isinstance(deviation, Number):
        return "good" if deviation == WITHIN else ""
    limits = {"points": tolerance["NEAR_PP"], "%": tolerance["NEAR"]}
    if deviation.how == "factor":
        return "good" if abs(100 * (deviation.value - 1)) <= tolerance["NEAR"] else "bad"
    if deviation.unit not in limits:
        return ""
    return "good" if abs(deviation.value) <= limits[deviation.unit] else "bad"


def _natural(section: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (0, part) for part in section.split(".")]


def quantity_words(fact: Fact, statistic: str = "") -> str:
    """Return what a published number is of, for people, its unit left to the numbers."""
    name = fact.metric.replace("_ms_per_minibatch", " per mini-batch").replace("n_epochs", "epochs")
    name = name.replace("15h", "15 h").replace("preprocess", "pre-processing")
    words = re.sub(r"_(?:pct|wh|w|s|mhz)\b", "", name).replace("/", " / ").replace("+", " + ")
    words = words.replace("_", " ").replace("e2e", "E2E").replace("iops", "reads")
    words = re.sub(r"\b[cg]pu\b", lambda found: found[0].upper(), words)
    return ", ".join(filter(None, (words, FORMULAS.get(fact.formula, ""), statistic)))


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


def _run_of(fact: Fact, cells: Mapping[str, str], titles: Mapping[str, str]) -> str:
    """Return what a published number is of: a run, or the change from one to the other."""
    if isinstance(fact, Relation):
        one, other = fact.sides[0], fact.sides[-1]
        if cells.get("model"):  # of several, the one of this row
            one, other = ({**side, "model": cells["model"]} for side in (one, other))
        shared = {name: value for name, value in one.items() if other.get(name) == value}
        words = [_values(name, shared[name], titles) for name in NAMED if name in shared]
        words += [
            f"{ARROWS.get(name, name)} {_values('', one.get(name, '?'), titles)} \u2192 "
            f"{_values('', value, titles)}".strip()
            for name, value in other.items()
            if one.get(name) != value
        ]
        return ", ".join(filter(None, words))
    if cells.get("device"):
        return run_words(cells, titles)
    (config,) = fact.sides
    texts = {name: _values(name, value, titles) for name, value in config.items()}
    mode = {"power_mode": texts.get("power_mode", "").removeprefix("mode ")}
    return run_words({**texts, **mode, "epoch_set": texts.get("epoch", "")}, {})


# what parts the two runs of a change -> words before its values
ARROWS = {"num_workers": "workers", "batch_size": "batch", "power_mode": "mode", "dvfs": "DVFS"}
ARROWS |= {"device": "", "model": ""}
NAMED = ("device", "model", "storage", "power_mode")


def _values(name: str, value: Any, titles: Mapping[str, str]) -> str:
    """Return a setting in words: of power modes that follow one another the first and the last."""
    values = [str(one) for one in (value if isinstance(value, tuple) else (value,))]
    if name == "power_mode" and len(values) > 1 and all(len(one) == 1 for one in values):
        ends: list[list[str]] = []
        for letter in values:
            if ends and ord(letter) == ord(ends[-1][-1]) + 1:
                ends[-1] = [ends[-1][0], letter]
            else:
                ends.append([letter])
        return "modes " + ", ".join(" to ".join(pair) for pair in ends)
    words = ", ".join(titles.get(one, one) for one in values)
    return f"mode {words}" if name == "power_mode" else words


def figure_title(panel: str) -> str:
    """Return a panel's number as the papers print it: `hipcw_fig06a` is Fig. 6a."""
    number = panel.rpartition("fig")[2].lstrip("0")
    return f"Fig. {number}" if "fig" in panel else panel
