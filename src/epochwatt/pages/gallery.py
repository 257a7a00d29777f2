"""The gallery of the landing page: all figures by paper and section, with what their claims say."""

import base64
import gzip
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from epochwatt.claims.claims_table import FAILS, PAPER, ClaimRow
from epochwatt.claims.summary import status_of, takeaway_counts, takeaways
from epochwatt.pages.numbers import Table
from epochwatt.pages.papers import failures, figure_title
from epochwatt.published.numbers import TITLES
from epochwatt.text import NOT_DRAWN, label

# paper -> section of the figures -> title, and what the take-aways behind them begin with
SECTIONS: Mapping[str, Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "sigmetrics2023": {
        "5.1": ("5.1 Loader workers and page cache", ("5.1",)),
        "5.2": ("5.2 Storage media", ("5.2",)),
        "5.3": ("5.3 Mini-batch size", ("5.3",)),
        "5.4": ("5.4 Spread over epochs and boards", ("5.4",)),
        "5.5": ("5.5 Clocks set by the governors", ("5.5",)),
        "5.6": ("5.6 Idle power and power modes", ("5.6",)),
        "5.7": ("5.7 Prediction", ("5.7",)),
        "A": ("Appendix: power modes, clock by clock", ("A.",)),
    },
    "hipcw2021": {
        "III.A": (
            "III.A to D Loader workers and storage media",
            ("III.A", "III.B", "III.C", "III.D"),
        ),
        "III.E": ("III.E, F Size of the data set", ("III.E", "III.F")),
    },
}
SIMULATION, OWN = "The simulation against the papers", "Own figures"
LEAD = (
    "A click enlarges a figure. Marks in the figures are published numbers. Measured and simulated "
    "runs never share one."
)
NOTHING = (
    "No figure is drawn of the selected studies. To draw one, add its name to "
    "figures.fig02.studies in config/plotting.yaml and start again."
)
SIZE = (468, 252)  # of a figure whose file does not tell


def gallery(
    figures: Iterable[Mapping[str, Any]],
    findings: Sequence[ClaimRow],
    says: Mapping[tuple[str, str], Mapping[str, str]],
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return what the section shows, and figure -> its SVG, compressed, in base64.

    Parameters
    ----------
    figures : `stem` of the files, `backend`, `paper`, `section`, `title`, `caption`, `claims`
    findings : rows of claims.csv
    says : (paper, take-away) -> what the paper says of it; a figure is found by these words
    """
    quotes = {f.claim: says.get((f.paper, f.takeaway), {}).get("quote", "") for f in findings}
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    images = {}
    for figure in figures:
        shown = _figure(figure, findings, quotes)
        groups.setdefault((figure["paper"], _section(figure)), []).append(shown)
        if not shown["reason"]:
            images[shown["id"]] = _packed(shown["svg"])
    listed = [
        {**_heading(paper, section, findings), "figures": of_group}
        for (paper, section), of_group in groups.items()
    ]
    return {"lead": LEAD if listed else NOTHING, "groups": listed}, images


def _section(figure: Mapping[str, Any]) -> str:
    sections = SECTIONS.get(figure["paper"], {})
    return next(
        (name for name in sections if figure["section"].startswith(name)), figure["section"]
    )


def _figure(
    figure: Mapping[str, Any], findings: Sequence[ClaimRow], quotes: Mapping[str, str]
) -> dict[str, Any]:
    stem = figure["stem"]
    panel = Path(stem).name
    failing = [
        f.claim
        for f in findings
        if f.claim in figure["claims"] and f.backend == figure["backend"] and f.status == FAILS
    ]
    number = figure_title(panel) if figure["paper"] in TITLES else ""
    written, reason = _beside(stem)
    caption = written or figure["caption"]
    words = [number, figure["title"], caption, label(figure["backend"]), panel, figure["section"]]
    words += dict.fromkeys(quotes.get(name, "") for name in figure["claims"])
    # links are relative to the page, which lies in results/
    relative = stem.removeprefix("results/")
    width, height = _size(f"{stem}.svg")
    return {
        "id": f"{figure['backend']}-{panel}",
        "stem": relative,
        "svg": f"{stem}.svg",
        "number": number,
        "title": figure["title"],
        "caption": caption,
        "origin": figure["backend"],
        "label": label(figure["backend"]),
        "failing": failing,
        "reason": reason or not_drawn(f"{stem}.csv"),
        "width": width,
        "height": height,
        "find": " ".join([*words, *figure["words"]]).lower(),
    }


def _beside(stem: str) -> tuple[str, str]:
    """Return the caption that the figure's job wrote beside it, and why it was not drawn.

    The caption is without the title and this reason; both are empty where there is no such file.
    """
    path = Path(f"{stem}.txt")
    if not path.exists():
        return "", ""
    _, *paragraphs = (" ".join(p.split()) for p in path.read_text("utf-8").split("\n\n"))
    reasons = [p for p in paragraphs if p.startswith(f"{NOT_DRAWN}: ")]
    caption = " ".join(p for p in paragraphs if p not in reasons)
    return caption, " ".join(reasons).removeprefix(f"{NOT_DRAWN}: ")


def not_drawn(table: str) -> str:
    """Return why a figure has nothing drawn: the reasons of its rows; empty: it has something."""
    path = Path(table)
    if not path.exists():
        return ""
    rows = Table(table).rows
    if not rows or "missing" not in rows[0] or any(row.get("value") for row in rows):
        return ""
    return "; ".join(dict.fromkeys(row["missing"] for row in rows if row["missing"]))


def _size(svg: str) -> tuple[int, int]:
    """Return width and height of a drawing, in points."""
    with Path(svg).open(encoding="utf-8") as handle:
        found_box = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', handle.read(2000))
    if found_box is None:
        return SIZE
    return round(float(found_box[1])), round(float(found_box[2]))


def _packed(svg: str) -> str:
    """Return a file, compressed in the same bytes each time, in base64."""
    return base64.b64encode(gzip.compress(Path(svg).read_bytes(), 9, mtime=0)).decode("ascii")


def _heading(paper: str, section: str, findings: Sequence[ClaimRow]) -> dict[str, Any]:
    """Return a group's title and how many take-aways of its section hold, by backend."""
    if paper not in TITLES:
        return {"title": section or OWN, "status": [], "failing": []}
    title, starts = SECTIONS[paper].get(section, (section, (section,)))
    status, failing = [], []
    for backend in dict.fromkeys(f.backend for f in findings):
        rows = [
            f
            for f in findings
            if (f.backend, f.paper, f.form) == (backend, paper, PAPER)
            and f.takeaway.startswith(starts)
        ]
        counts = takeaway_counts(rows)
        if not counts:
            continue
        failing += failures(rows)
        statuses = {status_of(row.status for row in some) for some in takeaways(rows).values()}
        grade = "bad" if FAILS in statuses else "good"
        status.append({"text": f"{label(backend)}: {counts}", "grade": grade})
    return {
        "title": f"{TITLES[paper]}, {title}",
        "status": status,
        "failing": failing,
    }
