"""Page of the checks against measurements by others: what agrees, what differs, what is missing."""

import csv
from collections import Counter
from pathlib import Path

from markupsafe import Markup

from epochwatt.templates import Rows, render
from epochwatt.text import counted

VERDICTS = ("agrees", "differs", "not available")
KEPT = ("subject", "unit", "expected", "observed", "deviation_pct", "verdict", "provenance", "note")


def write_external(table: str, figure: str, path: str) -> None:
    """Write the page."""
    with open(table, newline="", encoding="utf-8") as handle:
        rows = list(csv.DictReader(handle))
    questions = {
        title: [row for row in rows if row["question"] == title]
        for title in dict.fromkeys(row["question"] for row in rows)
    }
    page = render(
        "external.html",
        title="Checked against measurements by others",
        in_short=_in_short(rows),
        figure=Markup(Path(figure).read_text("utf-8").partition("<svg")[2]),
        questions={
            f"{title}: {_in_short(some)}": _by_source(some) for title, some in questions.items()
        },
    )
    Path(path).write_text(page, "utf-8")


def _in_short(rows: Rows) -> str:
    """Return how many checks have which verdict."""
    counts = Counter(row["verdict"] for row in rows)
    words = {"agrees": "agree", "differs": "differ"}
    parts = [f"{counts[name]} {words.get(name, name)}" for name in VERDICTS if counts[name]]
    return f"{counted(len(rows), 'checks')}, {', '.join(parts)}"


def _by_source(rows: Rows) -> dict[str, Rows]:
    """Return the rows of each source, with its licence in the title; columns without text go."""
    sources = dict.fromkeys((row["source"], row["licence"]) for row in rows)
    return {
        f"{source} (licence: {licence})": _shown([row for row in rows if row["source"] == source])
        for source, licence in sources
    }


def _shown(rows: Rows) -> Rows:
    names = [name for name in KEPT if any(row[name] for row in rows)]
    return [{name: row[name] for name in names} for row in rows]
