"""Pages for the report: self-contained, and the same bytes each time.

Text is escaped; what is `Markup` already goes in as it is.
"""

import html
from collections.abc import Mapping, Sequence
from typing import Any

STYLE = (
    "body{font-family:sans-serif;font-size:14px;margin:1.2em;max-width:80em}"
    "table{margin-bottom:2em;border-collapse:collapse}"
    "td,th{padding:.3em .45em;text-align:left;vertical-align:top;border-bottom:1px solid #ddd}"
    "th{vertical-align:bottom;position:sticky;top:0;background:#fff}td.short{white-space:nowrap}"
    "tr.published{color:#555}p,ul{max-width:60em}pre{background:#f4f4f4;padding:1em;overflow:auto}"
    "summary{cursor:pointer;margin:.3em 0}.good{color:#00694a}.bad{color:#a33f00}.grey{color:#666}"
)
SHORT = 20  # characters of a cell that is never broken into lines
BAR_PX = (100, 12)  # width and height of a bar

Rows = Sequence[Mapping[str, Any]]


class Markup(str):
    """Text that is HTML already."""


def element(tag: str, *content: str, css: str = "") -> Markup:
    """Return an element around texts and markup.

    Parameters
    ----------
    css : its class
    """
    inner = "".join(text if isinstance(text, Markup) else html.escape(text) for text in content)
    return Markup(f"<{tag}{_css(css)}>{inner}</{tag}>")


def _css(name: str) -> str:
    return f" class='{html.escape(name)}'" if name else ""


def page(title: str, *parts: Markup) -> str:
    """Return parts below their title as a page of its own."""
    head = f"<meta charset='utf-8'><title>{html.escape(title)}</title><style>{STYLE}</style>"
    body = "".join([element("h1", title), *parts])
    return f"<!DOCTYPE html><html lang='en'>{head}<body>{body}</body></html>\n"


def paragraphs(lines: Sequence[str]) -> Markup:
    """Return a paragraph per line."""
    return Markup("".join(element("p", line) for line in lines))


def folded(title: str, *parts: Markup) -> Markup:
    """Return parts that a click on their title shows."""
    return element("details", element("summary", title), *parts)


def table(rows: Rows) -> Markup:
    """Return rows as a table; its columns are those of all rows, in order.

    The row's `source` is its class: what is published is grey.
    """
    if not rows:
        return Markup()
    names = columns(rows)
    head = element("tr", *(element("th", name.replace("_", " ")) for name in names))
    body = [
        element(
            "tr",
            *(_cell(said(row.get(name))) for name in names),
            css=str(row.get("source", "")),
        )
        for row in rows
    ]
    return element("table", head, *body)


def _cell(text: str) -> Markup:
    is_short = len(text) <= SHORT and not isinstance(text, Markup)
    return element("td", text, css="short" if is_short else "")


def columns(rows: Rows) -> list[str]:
    """Return the names of all cells, in order."""
    return list(dict.fromkeys(name for row in rows for name in row))


def said(value: Any) -> str:
    """Return a cell for people: numbers to six figures, nothing for what is not there."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def bar(shares: Mapping[str, float], colours: Mapping[str, str]) -> Markup:
    """Return shares of a whole as a stacked bar.

    Parameters
    ----------
    shares : name -> share of 1; what a bar is too short for is cut off
    colours : name -> colour
    """
    width, height = BAR_PX
    words = ", ".join(f"{name} {100 * share:.1f} %" for name, share in shares.items())
    start, parts = 0.0, []
    for name, share in shares.items():
        length = max(0.0, min(share, 1.0 - start)) * width
        parts.append(
            f"<rect x='{start * width:.2f}' width='{length:.2f}' height='{height}' "
            f"fill='{html.escape(colours[name])}'/>"
        )
        start += length / width
    return Markup(
        f"<svg width='{width}' height='{height}' role='img' aria-label='{html.escape(words)}'>"
        f"<title>{html.escape(words)}</title>{''.join(parts)}</svg>"
    )


def key(colours: Mapping[str, str]) -> Markup:
    """Return what each colour of a bar stands for."""
    squares = [
        f"<svg width='10' height='10'><rect width='10' height='10' fill='{html.escape(colour)}'/>"
        f"</svg> {html.escape(name)} "
        for name, colour in colours.items()
    ]
    return element("p", Markup("&ensp;".join(squares)))
