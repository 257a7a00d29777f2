"""Name figures for the gallery of the landing page; nothing here draws."""

from collections.abc import Mapping
from pathlib import Path
from typing import TypedDict


class FigureEntry(TypedDict):
    """A figure as the rules name it."""

    stem: str  # path of its files without ending
    backend: str
    paper: str
    section: str
    title: str
    caption: str  # where no job writes one beside it
    claims: list[str]  # of its panel
    words: list[str]  # that a search finds it by


def study_entries(paper: str, section: str, titles: Mapping[str, str]) -> list[FigureEntry]:
    """Return gallery entries of a study's figures, without caption and claims.

    `titles`: stem -> title; a stem's folder is its backend.
    """
    entries = []
    for stem, title in titles.items():
        backend = Path(stem).parent.name
        entry = FigureEntry(
            stem=stem, backend=backend, paper=paper, section=section, title=title, caption="",
            claims=[], words=[paper, backend],
        )  # fmt: skip
        entries.append(entry)
    return entries
