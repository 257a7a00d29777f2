"""The caption beside a panel, as plain text: what a reader of the picture alone has to know."""

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from epochwatt.figures.common.published import deviation_pct, is_marked
from epochwatt.figures.common.runs import WHISKERS
from epochwatt.study.runs import TWIN
from epochwatt.text import NOT_DRAWN, POWER_SENSORS

COLUMNS = 88  # of a line
NOT_MEASURED = "not measured"
OWN = "none"  # paper of a user's own figure
ORIGINS = {
    TWIN: "Simulated, not measured.",
    "fake": "From a fake board, not measured.",
    "host": "Measured on this machine, which is none of the paper's boards.",
    "jetson": "Measured on a board.",
}
MARKS = (
    "Black marks are the paper's printed numbers, each at its value. A percentage beside a mark "
    "says by how much ours is above (+) or below (-) it, where that is more than 10 %; "
    "of a number that is a percentage it says so in points, where that is more than 3."
)
RELATIONS = (
    'Of changes and shares the paper\'s number stands first, ours after "here"; ÷ and × are what '
    "leads from the left bar to the right one."
)
ABOUT = 'Some of them are printed with "about": those with approx in the CSV.'
FITTED = (
    "Filled marks and solid lines: the simulation was fitted to the number. Open marks and dashed "
    "lines: it was not, so that they test it."
)


def caption_text(
    panel: str,
    title: str,
    parts: Mapping[str, Any],
    backend: str,
    rows: Sequence[Mapping[str, Any]],
    note: str,
    failing: Iterable[str] = (),
) -> str:
    """Return a panel's caption.

    Parameters
    ----------
    panel, title : which
    parts : `Settings.caption` of its figure; empty: none is known
    backend : of its runs
    rows : of its CSV
    note : from its corner
    failing : lines on claims that do not hold
    """
    paragraphs = [f"{panel}: {title}."]
    if reason := why_empty(rows):
        paragraphs.append(f"{NOT_DRAWN}: {reason}.")
        note = note.partition(WHISKERS)[0]
    else:
        of_panel = [p["text"] for p in parts.get("panels", []) if p["title"] == title]
        paragraphs += [part for part in (*of_panel, parts.get("figure", "")) if part]
    shown = [] if reason else rows
    if any(map(is_marked, shown)):
        paragraphs.append(_on_marks(shown, backend))
    if any(row.get("is_relation") for row in shown):
        paragraphs.append(RELATIONS)
    lines = list(failing)
    if lines:
        paragraphs += ["What does not hold here:", *(f"* {line}" for line in lines)]
    else:
        paragraphs += [farthest] if (farthest := _farthest(shown)) else []
    paragraphs.append(_origin(backend, parts))
    paragraphs.append(f"{note}.")
    return "\n\n".join(map(_filled, paragraphs)) + "\n"


def _on_marks(rows: Sequence[Mapping[str, Any]], backend: str) -> str:
    is_rounded = any(row.get("published_qualifier") == "approx" for row in rows)
    return " ".join([MARKS, *[ABOUT] * is_rounded, *[FITTED] * (backend == TWIN)])


def _filled(paragraph: str) -> str:
    """Return a paragraph in lines; ids with a hyphen stay whole."""
    return textwrap.fill(paragraph, COLUMNS, break_on_hyphens=False)


def why_empty(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return why no row has a number; empty where one has, or where there are no rows."""
    if not rows or any(row.get("value") is not None for row in rows):
        return ""
    reasons = list(dict.fromkeys(_reason(row) for row in rows))
    return "; ".join(reasons[:3]) + ("; and other reasons" if len(reasons) > 3 else "")


def _reason(row: Mapping[str, Any]) -> str:
    reason, quantity = row.get("missing") or "no number", str(row.get("quantity", ""))
    if reason == NOT_MEASURED and quantity.startswith(("energy", "power")):
        return f"energy was not measured, as no power could be read. {POWER_SENSORS}"
    return str(reason)


def _farthest(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a sentence on the mark that is farthest from ours."""
    judged = [(deviation_pct(row), row) for row in rows if is_marked(row)]
    off = [(value, row) for value, row in judged if value is not None]
    if not off:
        return ""
    worst, row = max(off, key=lambda pair: abs(pair[0]))
    return (
        f"The mark farthest from ours: {row['published_id']}, {row['published']:g} published, "
        f"{row['value']:.4g} here ({worst:+.0f} %)."
    )


def _origin(backend: str, parts: Mapping[str, Any]) -> str:
    if backend == "host" and parts.get("paper") == OWN:
        return "Measured on this machine."
    remark = parts.get("simulated", "") if backend == TWIN else ""
    return f"{ORIGINS.get(backend, '')} {remark}".strip()
