"""The landing page's section on Fulcrum: how solvers do, what random arrivals do, the claims."""

from collections.abc import Iterator, Mapping
from typing import Any

from epochwatt.claims.table_claims import read_rows
from epochwatt.figures.fulcrum.names import HOLLOW, JOBS, STUDY, look
from epochwatt.figures.powertrain.looks import PROVENANCES, SHORT
from epochwatt.pages.numbers import Number, Table
from epochwatt.pages.powertrain_tables import claims_table, in_short

COLUMNS = {  # of summary.csv -> unit
    "n_profiles": "",
    **dict.fromkeys(("kept_pct", "kept_least_pct", "kept_most_pct"), "%"),
    **dict.fromkeys(("loss_pct", "loss_least_pct", "loss_most_pct"), "%"),
    **dict.fromkeys(("late_pct", "kept_p99_pct"), "%"),
}
KEY_SOLVER, KEY_JOBS = "gmd", "train_and_infer"
ASSUMED = "public"  # provenance of tables of which something is assumed

Sentence = list[str | Number]


def section(paths: Mapping[str, str]) -> dict[str, Any] | None:
    """Return what the section shows; None where the study was not made.

    Parameters
    ----------
    paths : of `summary` and `claims`, results/fulcrum/; empty: the study was not made
    """
    if not paths:
        return None
    table = Table(paths["summary"])
    claims = read_rows(paths["claims"])
    return {
        "title": STUDY,
        "sentences": list(_sentences(table)),
        "lead": in_short(claims),
        "has_assumed": any(row["provenance"] == ASSUMED for row in table.rows),
        "rows": [_row(table, place) for place in range(len(table.rows))],
        "claims": claims_table(claims),
    }


def _sentences(table: Table) -> Iterator[Sentence]:
    """Yield the key sentence of each provenance: texts, and numbers that name their cells."""
    for place, row in enumerate(table.rows):
        if (row["solver"], row["jobs"]) != (KEY_SOLVER, KEY_JOBS):
            continue
        kept, loss, late = (
            table.number(place, name, "%") for name in ("kept_pct", "loss_pct", "late_pct")
        )
        where = PROVENANCES[row["provenance"]]
        words = f"{where[:1].upper()}{where[1:]}: training beside inference, our reading of GMD "
        if kept is not None and loss is not None:
            sentence: Sentence = [
                words + "answers ",
                kept,
                " of the problems within their budgets; its ",
            ]
            yield [*sentence, "plans train ", loss, " less than the best.", *_late(late)]


def _late(late: Number | None) -> Sentence:
    if late is None:
        return []
    return [" Played with random arrivals, ", late, " of requests are late; with steady ones none."]


def _row(table: Table, place: int) -> dict[str, Any]:
    row = table.rows[place]
    solver = look(row["solver"])[0] + (", verified" if row["solver"].endswith(HOLLOW) else "")
    words = {
        "jobs": JOBS[row["jobs"]],
        "solver": solver,
        "name": row["solver"],
        "provenance": SHORT[row["provenance"]],
    }
    numbers = {name: table.number(place, name, unit) for name, unit in COLUMNS.items()}
    find = " ".join(words.values()).lower()
    return {**words, **numbers, "source": table.path, "row": place, "find": find}
