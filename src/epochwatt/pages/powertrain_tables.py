"""Tables of the study of PowerTrain: methods beside each other, the paper's numbers, the claims.

Each function returns rows of texts, for a page or for the documentation.
"""

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from epochwatt.figures.powertrain import looks
from epochwatt.published.paper_numbers import SIGNS
from epochwatt.templates import Rows

Row = Mapping[str, str]
JUDGED = {  # column of `limit_rows` -> title
    "value": "time penalty, %",
    "over_pct": "limits broken, %",
    "over_1w_pct": "by more than 1 W, %",
    "unanswered_pct": "no answer, %",
}
STATISTICS = {
    "mape_pct": "error (MAPE)",
    "penalty_pct": "time penalty, median",
    "over_1w_pct": "limits broken by more than 1 W",
    "epoch_s": "epoch, observed",
    "power_w": "power, observed",
    "predicted_epoch_s": "epoch, predicted",
    "predicted_power_w": "power, predicted",
}
STATUSES = {
    "holds": "holds",
    "does_not_hold": "does not hold",
    "not_evaluable": "cannot be evaluated",
}


def methods_table(errors: Sequence[Row], penalties: Sequence[Row], provenance: str) -> Rows:
    """Return a row per board and method: errors and what choices cost, from fifty profiled modes.

    Of every number the median over the board's workloads (and references: `workloads` counts these
    pairs), with the least and the most; `draws` of profiled modes at most.

    Parameters
    ----------
    errors, penalties : rows of errors.csv and penalties.csv
    """
    mine = [_own(rows, provenance) for rows in (errors, penalties)]
    numbers: dict[tuple[str, str], dict[str, list[float]]] = {}
    n_draws: dict[tuple[str, str], int] = {}
    for title, column, row in _judged(*mine):
        if row[column] != "":
            key = (row["device"], row["method"])
            numbers.setdefault(key, {}).setdefault(title, []).append(float(row[column]))
            n_draws[key] = max(row["n_draws"], n_draws.get(key, 0))
    titles = dict.fromkeys(title for by_title in numbers.values() for title in by_title)
    order = looks.looks(method for _, method in numbers)
    return [
        {
            "board": looks.BOARDS.get(device, device),
            "method": look.title,
            **{title: _span(numbers[device, name].get(title, [])) for title in titles},
            "workloads": max(map(len, numbers[device, name].values())),
            "draws": n_draws[device, name],
        }
        for device in dict.fromkeys(device for device, _ in numbers)
        for name, look in order.items()
        if (device, name) in numbers
    ]


def _judged(
    errors: Sequence[Row], penalties: Sequence[Row]
) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield title, column and row of each number of a table of methods."""
    # these import matplotlib, and the landing page needs none of it
    from epochwatt.figures.powertrain.learning import learning_rows
    from epochwatt.figures.powertrain.limits import ALL, PROFILED, limit_rows

    for target, word in looks.TARGETS.items():
        for row in learning_rows(errors, target):
            if row["n_profiled"] == PROFILED or row["method"] in ALL:
                yield f"error of {word}, %", "value", row
    for row in limit_rows(penalties, penalties):
        for column, title in JUDGED.items():
            yield title, column, row


def _own(rows: Iterable[Row], provenance: str) -> list[Row]:
    from epochwatt.figures.powertrain.limits import MATRIX

    return [row for row in rows if row["provenance"] == provenance and row["group"] != MATRIX]


def _span(values: Sequence[float]) -> str:
    """Return the median of numbers with the least and the most of them."""
    if not values:
        return ""
    middle = f"{statistics.median(values):.3g}"
    is_one = f"{min(values):.3g}" == f"{max(values):.3g}"
    return middle if is_one else f"{middle} ({min(values):.3g} to {max(values):.3g})"


def numbers_table(numbers: Iterable[Row]) -> Rows:
    """Return the paper's numbers with ours beside them, rows of numbers.csv."""
    return [
        {
            "the paper's": row["place"],
            "workload": _workload(row),
            "from": looks.workload(row["reference"]) if row["reference"] else "",
            "method": looks.looks([row["method"]])[row["method"]].title,
            "profiled modes": row["n_profiled"],
            "what": _what(row),
            "paper": f"{SIGNS[row['qualifier']]}{row['published']} {row['unit']}",
            "ours": f"{float(row['ours']):.3g} {row['unit']}" if row["ours"] else "",
            "quartiles": f"{_short(row['low'])} to {_short(row['high'])}" if row["low"] else "",
            "ours is": row["provenance"] or row["missing"],
            "the paper's is": row["exactness"],
        }
        for row in numbers
    ]


def _workload(row: Row) -> str:
    """Return the paper's workload, and ours where it is another."""
    stand_in = row["workload"] in looks.STAND_INS
    ours = f" (ours: {looks.workload(row['workload'])})" if stand_in else ""
    board = "" if row["device"] in ("", "orin") else f", {row['device']}"
    return f"{row['paper_workload']}{ours}{board}"


def _what(row: Row) -> str:
    target = looks.TARGETS.get(row["target"])
    statistic = STATISTICS.get(row["statistic"], row["statistic"])
    return f"{statistic} of {target}" if target else statistic


def _short(cell: str) -> str:
    return f"{float(cell):.3g}"


def claims_table(claims: Iterable[Row]) -> Rows:
    """Return the claims and what our tables say, rows of claims.csv."""
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
