"""Show the gallery of the landing page: all figures by paper and section, and their claims."""

import base64
import gzip
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from epochwatt.claims.claims_table import FAILS, PAPER, ClaimRow
from epochwatt.claims.takeaway_counts import status_of, takeaway_counts, takeaways
from epochwatt.figures.entries import FigureEntry
from epochwatt.pages.papers import failing_list, figure_title
from epochwatt.published.numbers import TITLES
from epochwatt.tables import read_cells
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
OWN = "Own figures"
SIZE = (468, 252)  # of a figure whose file does not tell


class Panel(NamedTuple):
    """A drawn panel as the page shows it."""

    id: str  # `{backend}-{panel}`
    stem: str  # of its files, relative to the page
    number: str  # as the paper prints it; empty: the figure is ours
    title: str
    caption: str
    backend: str
    label: str
    failing: Sequence[str]  # its claims that do not hold
    # what fails and by how much: rows of the table that its job wrote, if it did
    differing: Sequence[Mapping[str, str]]
    reason: str  # why it was not drawn; empty: it was
    width: int
    height: int
    find: str


def gallery(
    figures: Iterable[FigureEntry],
    findings: Sequence[ClaimRow],
    says: Mapping[tuple[str, str], Mapping[str, str]],
) -> tuple[list[dict[str, object]], dict[str, str]]:
    """Return the figures in groups by paper and section, and the pictures that the page embeds.

    A group is its heading with its `figures`, each a `Panel`. The pictures are `Panel.id` -> SVG,
    compressed by gzip, in base64; a figure that was not drawn has none.

    `says`: (paper, take-away) -> cells, of them `quote`, the paper's words: the page's search finds
    a figure by the quotes of its claims
    """
    quotes = {f.claim: says.get((f.paper, f.takeaway), {}).get("quote", "") for f in findings}
    groups: dict[tuple[str, str], list[Panel]] = {}
    images = {}
    for figure in figures:
        svg = Path(f"{figure['stem']}.svg").read_bytes()
        panel = _panel(figure, svg, findings, quotes)
        sections = SECTIONS.get(figure["paper"], {})
        section = next((s for s in sections if figure["section"].startswith(s)), figure["section"])
        groups.setdefault((figure["paper"], section), []).append(panel)
        if not panel.reason:  # mtime=0: without a time inside, the bytes are the same in each build
            images[panel.id] = base64.b64encode(gzip.compress(svg, 9, mtime=0)).decode("ascii")
    listed = [
        {**_heading(paper, section, findings), "figures": panels}
        for (paper, section), panels in groups.items()
    ]
    return listed, images


def _panel(
    figure: FigureEntry, svg: bytes, findings: Sequence[ClaimRow], quotes: Mapping[str, str]
) -> Panel:
    """Describe a drawn panel for the gallery: caption, claims that fail, words to find it by."""
    stem, backend = figure["stem"], figure["backend"]
    name = Path(stem).name
    number = figure_title(name) if figure["paper"] in TITLES else ""
    caption, reason = figure["caption"], ""
    written = Path(f"{stem}.txt")
    if written.exists():  # the caption that the figure's job wrote beside it
        _, *paragraphs = (" ".join(p.split()) for p in written.read_text("utf-8").split("\n\n"))
        reasons = [p for p in paragraphs if p.startswith(f"{NOT_DRAWN}: ")]
        caption = " ".join(p for p in paragraphs if p not in reasons) or caption
        reason = " ".join(reasons).removeprefix(f"{NOT_DRAWN}: ")
    words = [number, figure["title"], caption, label(backend), name, figure["section"]]
    words += [*dict.fromkeys(quotes.get(claim, "") for claim in figure["claims"])]
    box = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg[:2000].decode("utf-8", "replace"))
    width, height = (round(float(box[1])), round(float(box[2]))) if box else SIZE
    mine = [f for f in findings if f.claim in figure["claims"] and f.backend == backend]
    differing = f"{stem}.claims.csv"
    return Panel(
        id=f"{backend}-{name}",
        stem=stem.removeprefix("results/"),  # the page lies there
        number=number,
        title=figure["title"],
        caption=caption,
        backend=backend,
        label=label(backend),
        failing=[f.claim for f in mine if f.status == FAILS],
        differing=read_cells(differing) if Path(differing).is_file() else [],
        reason=reason or not_drawn(f"{stem}.csv"),
        width=width,
        height=height,
        find=" ".join([*words, *figure["words"]]).lower(),
    )


def not_drawn(table: str) -> str:
    """Return why a figure has nothing drawn: the reasons of its rows; empty: it has something."""
    rows = read_cells(table) if Path(table).exists() else []
    if not rows or "missing" not in rows[0] or any(row.get("value") for row in rows):
        return ""
    return "; ".join(dict.fromkeys(row["missing"] for row in rows if row["missing"]))


def _heading(paper: str, section: str, findings: Sequence[ClaimRow]) -> dict[str, object]:
    """Return a group's title and how many take-aways of its section hold, by backend."""
    if paper not in TITLES:
        return {"title": section or OWN, "status": [], "failing": ""}
    title, starts = SECTIONS[paper].get(section, (section, (section,)))
    here = [
        f for f in findings if (f.paper, f.form) == (paper, PAPER) and f.takeaway.startswith(starts)
    ]
    status, judged = [], list[ClaimRow]()
    for backend in dict.fromkeys(f.backend for f in here):
        rows = [f for f in here if f.backend == backend]
        if counts := takeaway_counts(rows):
            judged += rows
            verdicts = [status_of(f.status for f in of) for of in takeaways(rows).values()]
            status.append((f"{label(backend)}: {counts}", "bad" if FAILS in verdicts else "good"))
    title = f"{TITLES[paper]}, {title}"
    return {"title": title, "status": status, "failing": failing_list(judged)}
