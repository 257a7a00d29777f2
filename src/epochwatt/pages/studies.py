"""Show studies on the landing page or their own: PowerTrain, Fulcrum, rounds, pairs of runs."""

import os
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pandas as pd

from epochwatt import columns
from epochwatt.analysis.pairs import METRICS, UNDECIDED
from epochwatt.claims.table_claims import read_rows
from epochwatt.figures.federated.names import RULES, data_title
from epochwatt.figures.federated.names import STUDY as FEDERATED
from epochwatt.figures.frames import read_texts
from epochwatt.figures.fulcrum.names import HOLLOW, JOBS, look
from epochwatt.figures.fulcrum.names import STUDY as FULCRUM
from epochwatt.figures.powertrain import looks
from epochwatt.figures.powertrain.rows import ALL, MATRIX, PROFILED, learning_rows, limit_rows
from epochwatt.pages.numbers import (
    PRINTED,
    Column,
    Line,
    Number,
    Several,
    Shown,
    Table,
    columns_of,
    small,
    text_table,
)
from epochwatt.published.numbers import SIGNS

Row = Mapping[str, str]
STATUSES = {"holds": "holds", "does_not_hold": "does not hold"}
STATUSES |= {"not_evaluable": "cannot be evaluated"}
CLAIM_COLUMNS = columns_of("study claims")


def claim_rows(claims: Iterable[Row]) -> list[dict[str, str]]:
    """Return the claims and what our tables say, rows of results/{study}/claims.csv."""
    return [
        {
            "claim": row["claim"],
            "says": row["sentence"],
            "the paper's": f"{row['section']}: {row['paper_value']}",
            "on": looks.SHORT.get(row["provenance"], row["provenance"]),
            "verdict": STATUSES[row["status"]],
            "ours": row["our_value"] or row["missing"],
        }
        for row in claims
    ]


def in_short(claims: Sequence[Row]) -> list[str]:
    """Return how many claims hold, a sentence for each provenance."""
    sentences = []
    for name in dict.fromkeys(row["provenance"] for row in claims):
        mine = [row["status"] for row in claims if row["provenance"] == name]
        n_hold, n_fail = mine.count("holds"), mine.count("does_not_hold")
        where = looks.PROVENANCES.get(name, name or "no table")
        sentences.append(
            f"{where[:1].upper()}{where[1:]}: of {len(mine)} claims {n_hold} hold, {n_fail} do "
            f"not, {len(mine) - n_hold - n_fail} cannot be evaluated."
        )
    return sentences


def drawing(svg: str, page: str) -> dict[str, str]:
    """Return a drawing as a page of its own shows it, with the caption that lies beside it."""
    text = Path(svg).with_suffix(".txt").read_text("utf-8")
    title, _, caption = text.partition(".\n\n")
    path = os.path.relpath(svg, Path(page).parent)
    return {"path": path, "title": title, "caption": " ".join(caption.split())}


# -- PowerTrain ----------------------------------------------------------------------------------

STATISTICS = {  # of the paper's numbers -> words
    "mape_pct": "error (MAPE)",
    "penalty_pct": "time penalty, median",
    "over_1w_pct": "limits broken by more than 1 W",
    "epoch_s": "epoch, observed",
    "power_w": "power, observed",
    "predicted_epoch_s": "epoch, predicted",
    "predicted_power_w": "power, predicted",
}
JUDGED = {  # column of `limit_rows` -> title
    "value": "time penalty, %",
    "over_pct": "limits broken, %",
    "over_1w_pct": "by more than 1 W, %",
    "unanswered_pct": "no answer, %",
}
POWERTRAIN_COLUMNS = columns_of("powertrain")


def powertrain(
    tables: Mapping[str, str], drawings: Sequence[dict[str, str]] = ()
) -> dict[str, object]:
    """Return what the section shows.

    `tables`: paths of `numbers`, `claims`, `errors` and `penalties` of results/powertrain/; a
    missing file has no rows
    `drawings`: as of `drawing`, where the figures are in no gallery
    """
    numbers, claims = Table(tables["numbers"]), read_rows(tables["claims"])
    errors, penalties = (read_texts(tables[name]) for name in ("errors", "penalties"))
    methods = [
        {"title": words[:1].upper() + words[1:], "table": text_table(f"methods-{name}", rows)}
        for name, words in looks.PROVENANCES.items()
        if (rows := methods_rows(errors, penalties, name))
    ]
    lines = [_powertrain_line(numbers, n) for n in range(len(numbers.rows))]
    return {
        "title": looks.STUDY,
        "lead": in_short(claims),
        "methods": methods,
        "drawings": drawings,
        "table": Shown("numbers-study", POWERTRAIN_COLUMNS, lines),
        "claims": text_table("claims-powertrain", claim_rows(claims), *CLAIM_COLUMNS),
    }


def _powertrain_line(table: Table, n: int) -> Line:
    row = table.rows[n]
    target = looks.TARGETS.get(row["target"], "")
    statistic = STATISTICS.get(row["statistic"], row["statistic"])
    is_stand_in = row["workload"] in looks.STAND_INS
    words = {
        "place": row["place"],
        "workload": row["paper_workload"]
        + (f" (ours: {looks.workload(row['workload'])})" if is_stand_in else "")
        + ("" if row["device"] in ("", "orin") else f", {row['device']}"),
        "from": looks.workload(row["reference"]) if row["reference"] else "",
        "method": looks.looks([row["method"]])[row["method"]].title,
        "what": f"{statistic} of {target}" if target else statistic,
        "provenance": row["provenance"] or row["missing"],
        "exactness": row["exactness"],
    }
    published = table.number(n, "published", row["unit"], how=PRINTED)
    cells: dict[str, object] = {
        **words,
        "n": table.number(n, "n_profiled", how=PRINTED),
        "published": Several([published] if published else [], sign=SIGNS[row["qualifier"]]),
        **{name: table.number(n, name, row["unit"]) for name in ("ours", "low", "high")},
    }
    return Line(cells, " ".join(words.values()).lower(), table.path, n)


def methods_rows(
    errors: pd.DataFrame, penalties: pd.DataFrame, provenance: str
) -> list[dict[str, str]]:
    """Return a row per board and method: errors and what choices cost, from fifty profiled modes.

    Of every number the median over the board's workloads (and references: `workloads` counts these
    pairs), with the least and the most; `draws` of profiled modes at most.
    """
    parts = []
    for table in (errors, penalties):
        if table.empty:
            continue
        mine = table[table.provenance.eq(provenance) & table.group.ne(MATRIX)]
        if table is penalties:
            rows = limit_rows(mine, mine)
            parts += [rows.assign(title=title, number=rows[name]) for name, title in JUDGED.items()]
            continue
        for target, word in looks.TARGETS.items():
            rows = learning_rows(mine, target)
            rows = rows[rows.n_profiled.eq(PROFILED) | rows.method.isin(ALL)]
            parts.append(rows.assign(title=f"error of {word}, %", number=rows.value))
    numbers = pd.concat(parts).dropna(subset="number") if parts else pd.DataFrame()
    shown = []
    for device in numbers.device.unique() if len(numbers) else ():
        of_device = numbers[numbers.device.eq(device)]
        for name, method in looks.looks(of_device.method).items():
            of_method = of_device[of_device.method.eq(name)]
            groups = of_method.groupby("title").number
            spans = groups.agg(_span)
            row = {"board": looks.BOARDS.get(device, device), "method": method.title}
            row |= {title: spans.get(title, "") for title in numbers.title.unique()}
            row |= {"workloads": str(groups.size().max()), "draws": str(of_method.n_draws.max())}
            shown.append(row)
    return shown


def _span(values: Iterable[float]) -> str:
    """Return the median of numbers with the least and the most of them."""
    ordered = sorted(values)
    low, middle, high = (
        f"{value:.3g}" for value in (ordered[0], statistics.median(ordered), ordered[-1])
    )
    return middle if low == high else f"{middle} ({low} to {high})"


# -- Fulcrum -------------------------------------------------------------------------------------

KEY_SOLVER, KEY_JOBS = "gmd", "train_and_infer"
FULCRUM_COLUMNS = columns_of("fulcrum")  # numbers: columns of summary.csv


def fulcrum(tables: Mapping[str, str]) -> dict[str, object]:
    """Return what the section shows; `tables`: paths of `summary` and `claims`."""
    table, claims = Table(tables["summary"]), read_rows(tables["claims"])
    lines = [_fulcrum_line(table, n) for n in range(len(table.rows))]
    return {
        "title": FULCRUM,
        "answers": list(_answers(table)),
        "lead": in_short(claims),
        # of tables of others something is assumed
        "has_assumed": any(row["provenance"] == "public" for row in table.rows),
        "table": Shown("numbers-solvers", FULCRUM_COLUMNS, lines),
        "claims": text_table("claims-fulcrum", claim_rows(claims), *CLAIM_COLUMNS),
    }


def _answers(table: Table) -> Iterator[dict[str, str | Number | None]]:
    """Yield what the key solver answers, for each provenance: numbers that name their cells."""
    for n, row in enumerate(table.rows):
        names = {"kept": "kept_pct", "loss": "loss_pct", "late": "late_pct"}
        numbers = {key: table.number(n, name, "%") for key, name in names.items()}
        is_key = (row["solver"], row["jobs"]) == (KEY_SOLVER, KEY_JOBS)
        if is_key and numbers["kept"] and numbers["loss"]:
            where = looks.PROVENANCES[row["provenance"]]
            yield {"where": f"{where[:1].upper()}{where[1:]}", **numbers}


def _fulcrum_line(table: Table, n: int) -> Line:
    row = table.rows[n]
    verified = ", verified" if row["solver"].endswith(HOLLOW) else ""
    solver = look(row["solver"])[0] + verified
    words = [JOBS[row["jobs"]], solver, row["solver"], looks.SHORT[row["provenance"]]]
    cells: dict[str, object] = {"jobs": words[0], "tables": words[3]}
    cells["solver"] = solver + small(row["solver"])
    for column in FULCRUM_COLUMNS[3:]:
        unit = columns.unit(column.name) if column.name != "n_profiles" else ""
        cells[column.name] = table.number(n, column.name, unit)
    return Line(cells, " ".join(words).lower(), table.path, n)


# -- federated rounds ----------------------------------------------------------------------------

FEDERATED_COLUMNS = columns_of("federated")  # numbers: columns of summary.csv
TRAINING_COLUMNS = columns_of("federated trainings")  # numbers: columns of trainings_summary.csv


def federated(tables: Mapping[str, str]) -> dict[str, object]:
    """Return what the section shows; paths of `summary`, `trainings_summary` and `claims`."""
    claims = read_rows(tables["claims"])
    shown = {}
    for name, numbers in (("summary", FEDERATED_COLUMNS), ("trainings_summary", TRAINING_COLUMNS)):
        table = Table(tables[name])
        lines = [_federated_line(table, n, numbers) for n in range(len(table.rows))]
        fleets = dict.fromkeys(row["boards"] for row in table.rows)
        filters = {f"fleet-{n}": f"{n} boards" for n in fleets} if len(fleets) > 1 else {}
        shown[name] = Shown(f"numbers-federated-{name}", numbers, lines, filters)
    return {
        "title": FEDERATED,
        "answers": list(_federated_answers(Table(tables["summary"]))),
        "lead": in_short(claims),
        **shown,
        "claims": text_table("claims-federated", claim_rows(claims), *CLAIM_COLUMNS),
    }


def _federated_answers(table: Table) -> Iterator[dict[str, object]]:
    """Yield what a plan saves with each power of waiting, on the fleet that both are judged on."""
    for n, row in enumerate(table.rows):
        asked = {"rule": "plan", "waiting_factor": "1", "boards": table.rows[-1]["boards"]}
        if row["data"] == table.rows[0]["data"] and asked.items() <= row.items():
            names = {"saved": "saved_pct", "early": "early_pct"}
            numbers = {key: table.number(n, name, "%") for key, name in names.items()}
            yield {**row, "data": data_title(row["data"]), **numbers}


def _federated_line(table: Table, n: int, shown: Sequence[Column]) -> Line:
    row = table.rows[n]
    words = {"data": data_title(row["data"]), "rule": RULES[row["rule"]][0]}
    words["waiting"] = row["waiting"]
    if "disturbed" in row:
        words["disturbed"] = {"True": "yes", "False": "no"}[row["disturbed"]]
    cells: dict[str, object] = {
        column.name: words.get(column.name)
        or table.number(n, column.name, columns.unit(column.name))
        for column in shown
    }
    if row.get("trained_pct") != "100" or abs(float(row["saved_pct"])) < 1:
        cells["rests_on_waiting_pct"] = None  # a part of nothing, or of other training
    more = {"data-has": f"fleet-{row['boards']}"}
    return Line(cells, " ".join(words.values()).lower(), table.path, n, more)


# -- pairs ---------------------------------------------------------------------------------------


def pairs(
    pairs: str, verdicts: str, figure: str, claims: Sequence[str] | str, page: str
) -> dict[str, object]:
    """Return what the page of a study in pairs shows.

    `pairs`, `verdicts`: tables of `analysis.pairs`
    `figure`: drawing (SVG), beside its caption (.txt)
    `claims`: table of claims; empty: nobody claims anything of this study
    """
    rows, all_pairs = read_rows(verdicts), read_rows(pairs)
    first = rows[0] if rows else {}
    by_verdict: dict[str, dict[str, None]] = {}
    for row in rows:
        if row["difference_pct"]:
            by_verdict.setdefault(row["verdict"], {})[METRICS[row["metric"]].title] = None
    lead = [f"{verdict}: {', '.join(titles)}" for verdict, titles in by_verdict.items()]
    flags = {(row["run_a"], row["run_b"]): row["flags"].split() for row in all_pairs}
    n_shared = sum("machine_shared" in names for names in flags.values())
    if n_shared:  # then little can be decided
        took = f"other programs took CPUs during {n_shared} of {len(flags)} pairs"
        lead.append(f"{took}: repeat it in quiet")
    other_software = {(r["run_a"], r["run_b"]): r["differs"] for r in all_pairs if r["differs"]}
    return {
        "title": f"In pairs: {first['b']} against {first['a']}" if rows else "No pair was measured",
        "provenance": first.get("provenance", ""),
        "in_short": lead,
        "verdicts": [_verdict(row) for row in rows],
        "figure": drawing(figure, page),
        "claims": [_claim(row) for row in read_rows(str(claims))] if claims else [],
        "left_out": [
            {"A": a, "B": b, "other software": text} for (a, b), text in other_software.items()
        ],
    }


def _verdict(row: Row) -> dict[str, str]:
    """Return a comparison of pairs as a row of the page."""

    def number(name: str) -> str:
        return f"{float(row[name]):.4g}" if row[name] else ""

    reason = f" ({row['reason']})" if row["verdict"] == UNDECIDED else ""
    return {
        "what": METRICS[row["metric"]].title,
        "where": f"{row['device']}, {row['model']}, {row['num_workers']} workers, "
        f"batch {row['batch_size']}, mode {row['power_mode']}",
        "pairs": row["n_pairs"],
        row["a"]: number("mean_a"),
        row["b"]: number("mean_b"),
        "difference %": number("difference_pct"),
        "90 % interval": f"{number('low_pct')} to {number('high_pct')}" if row["low_pct"] else "",
        "margin %": number("margin_pct"),
        "verdict": row["verdict"] + reason,
    }


def _claim(row: Row) -> dict[str, str]:
    names = ("claim", "sentence", "paper_value", "our_value", "provenance")
    verdict = STATUSES[row["status"]].replace("cannot be evaluated", "not known")
    return {**{name: row[name] for name in names}, "verdict": verdict}
