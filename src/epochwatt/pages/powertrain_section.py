"""The landing page's section on PowerTrain: the paper's numbers beside ours, and the claims."""

from collections.abc import Mapping
from typing import Any

from epochwatt.claims.table_claims import read_rows
from epochwatt.figures.powertrain import looks
from epochwatt.pages.numbers import PRINTED, Table
from epochwatt.pages.powertrain_tables import STATISTICS, in_short
from epochwatt.published.paper_numbers import SIGNS


def section(paths: Mapping[str, str]) -> dict[str, Any] | None:
    """Return what the section shows; None where the study was not made.

    Parameters
    ----------
    paths : of `numbers` and `claims`, results/powertrain/; empty: the study was not made
    """
    if not paths:
        return None
    table = Table(paths["numbers"])
    rows = [_row(table, place) for place, row in enumerate(table.rows) if row["ours"]]
    return {"title": looks.STUDY, "lead": in_short(read_rows(paths["claims"])), "rows": rows}


def _row(table: Table, place: int) -> dict[str, Any]:
    row = table.rows[place]
    target = looks.TARGETS.get(row["target"], "")
    statistic = STATISTICS.get(row["statistic"], row["statistic"])
    title = looks.looks([row["method"]])[row["method"]].title
    stand_in = row["workload"] in looks.STAND_INS
    words = {
        "place": row["place"],
        "workload": row["paper_workload"]
        + (f" (ours: {looks.workload(row['workload'])})" if stand_in else ""),
        "from": looks.workload(row["reference"]) if row["reference"] else "",
        "method": title,
        "what": f"{statistic} of {target}" if target else statistic,
        "provenance": row["provenance"],
        "exactness": row["exactness"],
    }
    return {
        **words,
        "source": table.path,
        "row": place,
        "find": " ".join(words.values()).lower(),
        "sign": SIGNS[row["qualifier"]],
        "n": table.number(place, "n_profiled", how=PRINTED),
        "published": table.number(place, "published", row["unit"], how=PRINTED),
        **{name: table.number(place, name, row["unit"]) for name in ("ours", "low", "high")},
    }
