"""Show the papers on the landing page: take-aways, claims, and every printed number beside ours.

Ours is the mean over a run, as the figures draw it; what no figure draws is from `printed.csv`
(`printed.py`), and how many predictions are good from `statistics.csv`. A row says whether the
simulation was fitted to its number.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from markupsafe import Markup

from epochwatt.claims.claims_table import FAILS, HOLDS, PAPER, ClaimRow
from epochwatt.claims.takeaway_counts import in_short, status_of, takeaways
from epochwatt.claims.tolerances import load_terms
from epochwatt.figures.common.published import Mark
from epochwatt.pages.numbers import (
    PRINTED,
    Line,
    Number,
    Several,
    Shown,
    Table,
    columns_of,
    graded,
    link,
    small,
    text_table,
)
from epochwatt.prediction.names import ENERGY, REFERENCE, SEARCHED, TIME
from epochwatt.published.numbers import TITLES, Fact, Relation, load_published
from epochwatt.study.runs import TWIN
from epochwatt.tables import read_cells
from epochwatt.text import label

# of a published number -> as it is written here
UNIT_WRITTEN = {"pct": "%", "x": "\u00d7", "count": "", "1/s": "/s"}
SIGNS = {"approx": "\u2248", "less_than": "<", "at_most": "\u2264", "at_least": "\u2265"}
UPPER = ("less_than", "at_most")
# unit of two numbers -> how far one is off the other, and the unit of that
DEVIATIONS = {"%": ("difference", "points"), "\u00d7": ("factor", ""), "": ("difference", "")}
WITHIN = "within"  # deviation of what keeps a bound or a range
FORMULAS = {  # of a relation -> words
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
JUDGED_METHOD = (REFERENCE, SEARCHED, "all")  # whose predictions the claims judge, in all modes
COUNTED_IN = {TIME: "fig10a", ENERGY: "fig10b"}  # what is predicted -> panel that counts it
PREDICTED = {TIME: "predicted times", ENERGY: "predicted energies"}
MOST_SHOWN = 3  # comparisons of a claim that a figure or take-away names; the claims have all
# status of a claim, or `is_off` of a number -> class of the style sheet
GRADES = {HOLDS: "good", "False": "good", FAILS: "bad", "True": "bad"}
TAKEAWAY_COLUMNS = columns_of("takeaways")
CLAIM_COLUMNS = columns_of("claims")
NUMBER_COLUMNS = columns_of("published")
FILTERS = {
    "unseen": "not used in the fit",
    "far": "off by more than the tolerance",
    "figure": "drawn in a figure",
}
Says = Mapping[tuple[str, str], Mapping[str, str]]  # (paper, take-away) -> `quote`, `numbers`
SILENT = {"quote": "", "numbers": ""}


def statements(published: Path) -> dict[tuple[str, str], dict[str, str]]:
    """Return (paper, take-away) -> its sentence (`quote`) and the numbers that come with it.

    None where there is no such file, as in a configuration that is older than it.
    """
    path = published / "statements.csv"
    rows = read_cells(path) if path.is_file() else []
    return {(row["paper"], row["takeaway"]): row for row in rows}


def compare(
    numbers: Iterable[str],
    tables: Mapping[str, str],
    findings: Sequence[ClaimRow],
    titles: Mapping[str, str],
    says: Says,
) -> dict[str, object]:
    """Return what the section shows.

    `numbers`: tables with published numbers: of figures, of the text alone, of predictions
    `tables`: paths of `printed` and `validation` (empty: it was not made), and `published`, the
    folder of the published numbers
    `says`: `statements`
    """
    published = Path(tables["published"])
    tolerances = load_terms(published.resolve().parents[1]).numbers
    facts = load_published(published).facts()
    printed = _printed(list(numbers), tables, facts, titles, tolerances)
    shown, claims = [], []
    for paper, title in TITLES.items():
        of_paper = [f for f in findings if f.paper == paper]
        own = [f for f in of_paper if f.form == PAPER]
        lines = [_number_line(n, says) for n in printed if n.fact.paper == paper]
        if lines:
            shown.append(
                {
                    "title": title,
                    "counts": [line.removeprefix(f"{title}: ") for line in in_short(own)],
                    "takeaways": _takeaways(paper, own, says),
                    "numbers": Shown(f"numbers-{paper}", NUMBER_COLUMNS, lines, FILTERS),
                }
            )
        if not all(map(_is_unmeasured, of_paper)):
            claims.append({"title": title, "table": claims_table(paper, of_paper, says)})
    return {
        "tolerance": tolerances if shown or findings else None,
        "tables": shown,
        "claims": claims,
        "wanted": wanted(findings),
    }


# -- what they state ---------------------------------------------------------------------------


def _takeaways(paper: str, claims: Sequence[ClaimRow], says: Says) -> Shown:
    """Return a line for each take-away of a paper and backend that judges any claim of it."""
    groups: dict[tuple[str, str], list[ClaimRow]] = {}
    for claim in claims:
        groups.setdefault((claim.backend, claim.takeaway), []).append(claim)
    lines = []
    for (backend, name), mine in groups.items():
        (deciding,) = takeaways(mine).values()
        status = status_of(claim.status for claim in deciding)
        if not status:
            continue
        stated, failing = says.get((paper, name), SILENT), failing_list(mine)
        verdict = "holds, with exceptions" if failing and status == HOLDS else _words(status)
        where = "" if backend == TWIN else label(backend)
        cells = {
            "section": link(f"takeaway-{name}", name),
            "says": _quoted(stated),
            "verdict": graded(verdict, GRADES[status]) + small(where),
            "failing": failing,
        }
        words = [name, *stated.values(), label(backend), *(claim.claim_text for claim in mine)]
        lines.append(Line(cells, " ".join(words).lower()))
    return Shown(f"takeaways-{paper}", TAKEAWAY_COLUMNS, lines)


def _words(status: str) -> str:
    return status.replace("_", " ")


def _quoted(stated: Mapping[str, str]) -> Markup:
    """Return a paper's sentence in quotes, with the numbers that come with it."""
    quote = f"\u201c{stated['quote']}\u201d" if stated["quote"] else ""
    return Markup("{}{}").format(quote, small(stated["numbers"]))


def _parts(cell: str) -> list[str]:
    return [part for part in cell.split("; ") if part]


def failing_list(claims: Iterable[ClaimRow]) -> Markup:
    """Return the claims that do not hold as a list: what is said, by what it fails, and why."""
    items = []
    for claim in claims:
        if claim.status != FAILS:
            continue
        numbers = _parts(claim.in_words)
        text = Markup("{} {}: {}").format(
            link(claim.claim, claim.claim), claim.claim_text, "; ".join(numbers[:MOST_SHOWN])
        )
        if len(numbers) > MOST_SHOWN:
            text += "; " + link(claim.claim, f"{len(numbers) - MOST_SHOWN} more")
        why = claim.why[:1].upper() + claim.why[1:]
        items.append(Markup("<li>{}{}</li>").format(text, small(why)))
    return Markup("<ul>{}</ul>").format(Markup("\n").join(items)) if items else Markup()


def _is_unmeasured(claim: ClaimRow) -> bool:
    """Return whether a claim only says that measured runs are missing."""
    return claim.backend != TWIN and claim.status == "not_evaluable"


def claims_table(paper: str, claims: Sequence[ClaimRow], says: Says) -> Shown:
    """Return the claims of a paper by take-away; rows that links lead to have the claim's name."""
    by_takeaway: dict[str, list[ClaimRow]] = {claim.takeaway: [] for claim in claims}
    for claim in claims:
        if not _is_unmeasured(claim):
            by_takeaway[claim.takeaway].append(claim)
    lines, linked = [], set[str]()
    for name, mine in by_takeaway.items():
        quote = _quoted(says.get((paper, name), SILENT))
        title = Markup('<span id="takeaway-{}">{} {}</span>').format(name, name, quote)
        for claim in mine:
            more = {"data-has": claim.status}
            if claim.form == PAPER and claim.claim not in linked:
                linked.add(claim.claim)
                more["id"] = claim.claim
            lines.append(_claim_line(claim, title, more))
            title = Markup("{} ").format(name)
    statuses = dict.fromkeys(line.more["data-has"] for line in lines)
    filters = {status: _words(status) for status in statuses}
    return Shown(f"claims-{paper}", CLAIM_COLUMNS, lines, filters)


def _claim_line(claim: ClaimRow, title: Markup, more: Mapping[str, str]) -> Line:
    """Return a claim; only a simulated one was held out, and rests on something."""
    source = label(claim.backend)
    computed = [Markup('<div class="code">{}</div>').format(s) for s in _parts(claim.comparison)]
    in_words = [Markup("<div>{}</div>").format(words) for words in _parts(claim.in_words)]
    reasons = [*_parts(claim.missing), *_parts(claim.why)]
    in_words += [Markup('<div class="grey">{}</div>').format(reason) for reason in reasons]
    if computed:
        folded = Markup("<details><summary>as computed</summary>{}</details>")
        in_words.append(folded.format(Markup().join(computed)))
    is_simulated = claim.backend == TWIN
    fragile = ", fragile" if claim.fragile == "yes" else ""
    cells = {
        "takeaway": title,
        "claim": f"{claim.claim} ({claim.role})",
        "says": claim.claim_text,
        "on": f"{claim.board}; {source}" if claim.board else source,
        "status": _status(claim.status),
        "held_out": _status(claim.status_held_out) if is_simulated else "",
        "rests_on": claim.rests_on + fragile if is_simulated else "",
        "in_words": Markup().join(in_words),
    }
    words = [claim.takeaway, claim.claim, claim.claim_text, cells["on"], claim.in_words]
    return Line(cells, " ".join(words).lower(), more=more)


def _status(status: str) -> Markup:
    return graded(_words(status), GRADES.get(status, "grey"))


def wanted(findings: Iterable[ClaimRow]) -> list[dict[str, object]]:
    """Return which claims measured runs are missing for, a table for each kind of runs."""
    groups: dict[tuple[str, str], list[dict[str, str]]] = {}
    for f in filter(_is_unmeasured, findings):
        row = {"claim": f.claim, "says": f.claim_text, "missing": f.missing}
        groups.setdefault((f.backend, f.board), []).append(row)
    return [
        {
            "title": f"{label(backend)}; "
            + (f"claims about any board, on {board}" if board else "the papers' own runs")
            + ": what cannot be evaluated",
            "table": text_table(f"wanted-{n}", rows),
        }
        for n, ((backend, board), rows) in enumerate(groups.items())
    ]


# -- what they print ---------------------------------------------------------------------------


@dataclass
class PrintedNumber:
    """A published number beside ours."""

    fact: Fact
    id: str
    backend: str
    source: str
    row: int
    run: str  # what it is of, in words
    quantity: str
    ours: Several
    published: Several
    deviation: Number | str | None  # of ours; `WITHIN` where a bound or a range is kept
    grade: str  # good or bad, as its table judges it; empty: it does not
    seen: str  # whether the fit has seen it: yes, no, or empty
    figures: dict[str, str] = field(default_factory=dict)  # id -> title of the panels that draw it
    held_out: Number | str | None = None  # deviation of boards that were fitted without it


def _printed(
    paths: Sequence[str],
    tables: Mapping[str, str],
    facts: Mapping[str, Fact],
    titles: Mapping[str, str],
    tolerances: Mapping[str, float],
) -> list[PrintedNumber]:
    """Return one entry per backend, published number and run, by section."""
    panels = {f"{Path(path).parent.name}-{Path(path).stem}" for path in paths}
    entries: dict[tuple[str, str, str], PrintedNumber] = {}
    for path in (*paths, tables["printed"]):
        drawn = {(entry.backend, entry.fact.id) for entry in entries.values()}
        table = Table(path)
        for n in range(len(table.rows)):
            entry = _entry(table, n, facts, titles, tolerances)
            if entry is None:
                continue
            if path == tables["printed"] and (entry.backend, entry.fact.id) in drawn:
                continue
            there = entries.setdefault((entry.backend, entry.id, entry.run), entry)
            there.figures |= entry.figures
    judged = Table(tables["validation"])
    held_out = {row["published_id"]: n for n, row in enumerate(judged.rows)}
    for entry in entries.values():
        entry.figures = {k: title for k, title in entry.figures.items() if k in panels}
        if entry.backend == TWIN and entry.fact.id in held_out:
            columns = ("held_out_prediction",), ("published_value",)
            entry.held_out = _deviation(
                judged, held_out[entry.fact.id], entry.fact, entry.fact.qualifier, *columns
            )
    return sorted(
        entries.values(), key=lambda e: (_natural(e.fact.section), e.id.startswith("R"), e.id)
    )


def _entry(
    table: Table,
    n: int,
    facts: Mapping[str, Fact],
    titles: Mapping[str, str],
    tolerances: Mapping[str, float],
) -> PrintedNumber | None:
    """Return the published number of a row with ours; None where the row has none to show."""
    cells = table.rows[n]
    ids = cells.get("published_id", "")
    fact = facts.get(ids.split()[0]) if ids else None
    if fact is None or not cells.get("published") or not cells.get("value"):
        return None
    panel, folder = Path(table.path).stem, Path(table.path).parent.name
    backend = cells.get("backend") or folder  # what is of two runs names none
    statistic = cells.get("statistic", "")
    joint, seen, is_figure, grade = " to ", "", True, GRADES.get(cells.get("is_off", ""), "")
    qualifier: str = fact.qualifier
    if "learned_from" in cells:  # what the paper counts of its predictions: `31 of 40`
        if (cells["method"], cells["learned_from"], cells["modes"]) != JUDGED_METHOD:
            return None
        run, panel = _networks(cells, titles), COUNTED_IN[cells["target"]]
        quantity = f"{PREDICTED[cells['target']]}: {statistic.removesuffix(', %')}"
        ours, theirs, joint = ("value", "n_predictions"), ("published", "n_published"), " of "
        compared: tuple[tuple[str, ...], tuple[str, ...]] = ours[:1], theirs[:1]
    else:
        run, qualifier = _run_of(fact, cells, titles), cells["published_qualifier"]
        quantity = quantity_words(fact, statistic)
        ours, theirs = ("value", "value_hi"), ("published", "published_hi")  # ends of a range
        compared = ours, theirs
        seen = {"True": "yes", "False": "no"}.get(cells["seen_by_fit"], "")
        is_figure = folder == backend and "/figures/" in table.path
    deviation = _deviation(table, n, fact, qualifier, *compared)
    if "learned_from" in cells and fact.unit == "pct":  # counts are judged by claims alone
        mark = Mark(fact.value, fact.value_hi, ids, qualifier, seen_by_fit=False)
        judged = mark.judged([float(cells["value"])], tolerances, is_percentage=True)
        grade = GRADES[str(judged.is_off)]
    return PrintedNumber(
        fact,
        ids,
        backend,
        table.path,
        n,
        run=run,
        quantity=quantity,
        ours=_several(table, n, ours, fact, joint),
        published=_several(table, n, theirs, fact, joint, SIGNS.get(qualifier, ""), PRINTED),
        deviation=deviation,
        grade=grade,
        seen=seen,
        figures={f"{backend}-{panel}": figure_title(panel)} if is_figure else {},
    )


def _networks(cells: Mapping[str, str], titles: Mapping[str, str]) -> str:
    board = f"{titles.get(cells['device'], cells['device'])} {cells['instance']}"
    networks = ", ".join(titles.get(name, name) for name in cells["networks"].split())
    return f"{board}, {networks}".replace(", all", ", all networks")


def _unit(fact: Fact) -> str:
    return UNIT_WRITTEN.get(fact.unit, fact.unit)


def _several(
    table: Table,
    n: int,
    names: Sequence[str],
    fact: Fact,
    joint: str,
    sign: str = "",
    how: str = "",
) -> Several:
    """Return the numbers of some cells of a row, without those that are not there."""
    numbers = (table.number(n, name, _unit(fact), how=how) for name in names)
    return Several([number for number in numbers if number], joint, sign)


def _deviation(
    table: Table, row: int, fact: Fact, qualifier: str, ours: Sequence[str], theirs: Sequence[str]
) -> Number | str | None:
    """Return how far ours is off the paper's number, or that it keeps a bound or a range.

    `ours`, `theirs`: columns of our and of the paper's number; a second one is the end of a range
    """
    here, printed = (
        [(n, column) for column in names if (n := table.value(row, column)) is not None]
        for names in (ours, theirs)
    )
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
    how, unit = DEVIATIONS.get(_unit(fact), ("deviation", "%"))
    return table.number(row, column, unit, per, how)


def _number_line(entry: PrintedNumber, says: Says) -> Line:
    """Return a printed number with what is searched and filtered by."""
    fact, deviation, grade = entry.fact, entry.deviation, entry.grade
    shown: object = deviation
    if isinstance(deviation, Number):
        shown = Several([deviation], grade=grade)
    elif deviation:
        shown = graded(deviation, grade)
    has = {
        "unseen": entry.seen == "no",
        "figure": bool(entry.figures),
        "far": grade == "bad",
    }
    stated = says.get((fact.paper, fact.section), {})
    origin = "" if entry.backend == TWIN else f" ({label(entry.backend)})"
    figures = [link(f"fig-{name}", title) + " " for name, title in entry.figures.items()]
    cells = {
        "section": link(f"takeaway-{fact.section}", fact.section) if stated else fact.section,
        "run": entry.run + origin,
        "quantity": entry.quantity,
        "published": entry.published,
        "ours": entry.ours,
        "deviation": shown,
        "held_out": entry.held_out,
        "seen": entry.seen,
        "figures": Markup().join(figures),
    }
    more = {"data-id": entry.id, "data-has": " ".join(name for name, is_so in has.items() if is_so)}
    words = [entry.run, entry.quantity, fact.section, label(entry.backend), entry.id]
    find = " ".join([*words, *stated.values()]).lower()
    return Line(cells, find, entry.source, entry.row, more)


def _natural(section: str) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (0, part) for part in section.split(".")]


def quantity_words(fact: Fact, statistic: str = "") -> str:
    """Return what a published number is of, for people, its unit left to the numbers."""
    name = fact.metric.replace("_ms_per_minibatch", " per mini-batch").replace("n_epochs", "epochs")
    name = name.replace("15h", "15 h").replace("preprocess", "pre-processing")
    words = re.sub(r"_(?:pct|wh|w|s|mhz)\b", "", name).replace("/", " / ").replace("+", " + ")
    words = words.replace("_", " ").replace("e2e", "epoch time").replace("iops", "reads")
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


# what parts the two runs of a change -> words before its values
ARROWS = {"num_workers": "workers", "batch_size": "batch", "power_mode": "mode", "dvfs": "DVFS"}
ARROWS |= {"device": "", "model": ""}
NAMED = ("device", "model", "storage", "power_mode")


def _run_of(fact: Fact, cells: Mapping[str, str], titles: Mapping[str, str]) -> str:
    """Return what a published number is of: a run, or the change from one to the other."""
    if not isinstance(fact, Relation):
        if cells.get("device"):
            return run_words(cells, titles)
        (config,) = fact.sides
        texts = {name: _values(name, value, titles) for name, value in config.items()}
        mode = {"power_mode": texts.get("power_mode", "").removeprefix("mode ")}
        return run_words({**texts, **mode, "epoch_set": texts.get("epoch", "")}, {})
    first, other = fact.sides[0], fact.sides[-1]
    if cells.get("model"):  # of several, the one of this row
        first, other = ({**side, "model": cells["model"]} for side in (first, other))
    shared = {name: value for name, value in first.items() if other.get(name) == value}
    words = [_values(name, shared[name], titles) for name in NAMED if name in shared]
    for name, value in other.items():
        if first.get(name) != value:
            a, b = (_values("", end, titles) for end in (first.get(name, "?"), value))
            words.append(f"{ARROWS.get(name, name)} {a} \u2192 {b}".strip())
    return ", ".join(filter(None, words))


def _values(name: str, value: Any, titles: Mapping[str, str]) -> str:
    """Return a setting in words: of power modes that follow one another the first and the last."""
    values = [str(part) for part in (value if isinstance(value, tuple) else (value,))]
    if name == "power_mode" and len(values) > 1 and all(len(mode) == 1 for mode in values):
        ends: list[list[str]] = []
        for letter in values:
            if ends and ord(letter) == ord(ends[-1][-1]) + 1:
                ends[-1] = [ends[-1][0], letter]
            else:
                ends.append([letter])
        return "modes " + ", ".join(" to ".join(pair) for pair in ends)
    words = ", ".join(titles.get(part, part) for part in values)
    return f"mode {words}" if name == "power_mode" else words


def figure_title(panel: str) -> str:
    """Return a panel's number as the papers print it: `hipcw_fig06a` is Fig. 6a."""
    number = panel.rpartition("fig")[2].lstrip("0")
    return f"Fig. {number}" if "fig" in panel else panel
