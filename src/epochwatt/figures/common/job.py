"""Give a figure its runs and marks; open and save its panels."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from epochwatt.columns import TWIN
from epochwatt.errors import ConfigError
from epochwatt.figures.common import style
from epochwatt.figures.common.published import (
    Marks,
    NumberOf,
    Related,
    deviation_pct,
    handles,
    is_marked,
    load_relations,
    numbers_of,
    published_marks,
    related,
    seen_ids,
)
from epochwatt.figures.common.runs import RunData, measured_note, note, read_runs, why_empty
from epochwatt.published.numbers import Relation
from epochwatt.text import label

DEVICES = ("agx", "nx", "nano")  # in the order of the paper's figures
MOST_ENTRIES = 6  # of a legend
FAILS = "red: does not hold"


@dataclass(frozen=True)
class Failing:
    """A comparison that a claim of a panel fails by: a row of results/tables/comparisons.csv."""

    claim: str
    ids: frozenset[str]
    device: str
    model: str
    metric: str


@dataclass
class Drawn:
    """Parts of a panel's caption."""

    rows: Sequence[Mapping[str, Any]]
    note: str
    remarks: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Job:
    """One figure of one backend, as its rule gives it.

    Attributes
    ----------
    figure, backend : which
    draw, parameters : `module.function` that draws it, and its keyword arguments
    folder : where its panels go
    style : matplotlib style file
    epochs : `epochs.csv` of each of its runs
    published, twin : folders config/published and config/twin
    paper : whose figure it is; `none`: nothing is published of it
    panels : panel -> `title`, `width_in`, `height_in`, `claims`
    palette : thing -> colour
    titles : model or device -> name for people
    captions : `Settings.caption` of the figure, for the text beside each panel
    missing : factors, `run` and `reason` of runs that are not available
    lacking : studies of the paper that would belong to it and are not selected
    records : run -> folder with the records of its epochs, of measured runs always
    idle : table of idle powers
    predictions : table of predictions
    comparisons : results/tables/comparisons.csv; empty: nothing is judged
    notes : whether lines stand below the panels; print has them in its own caption
    failing : panel -> comparisons that its claims fail by (`draw_figure` finds them)
    verdicts : panel -> how many of its take-aways do not hold, in words
    drawn : panel -> what was drawn
    """

    figure: str
    backend: str
    draw: str
    folder: str
    style: str
    epochs: Sequence[str]
    published: str
    twin: str
    paper: str
    panels: Mapping[str, Mapping[str, Any]]
    palette: Mapping[str, str]
    titles: Mapping[str, str]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    captions: Mapping[str, Any] = field(default_factory=dict)
    missing: Sequence[Mapping[str, Any]] = ()
    lacking: Sequence[str] = ()
    records: Mapping[str, str] = field(default_factory=dict)
    idle: str = ""
    predictions: str = ""
    comparisons: str = ""
    notes: bool = True
    failing: Mapping[str, Sequence[Failing]] = field(default_factory=dict)
    verdicts: Mapping[str, str] = field(default_factory=dict)
    drawn: dict[str, Drawn] = field(default_factory=dict)

    @cached_property
    def runs(self) -> list[RunData]:
        """Its runs, read once: boards in the paper's order, then models in that of the titles."""
        order = {name: n for n, name in enumerate(dict.fromkeys([*DEVICES, *self.titles]))}
        runs = read_runs(self.epochs, self.missing)
        return sorted(
            runs,
            key=lambda run: [order.get(run.factors[k], len(order)) for k in ("device", "model")],
        )

    @cached_property
    def marks(self) -> Marks:
        """Numbers that its paper printed."""
        return published_marks(self.published, self.twin, self.paper, self.backend)

    @cached_property
    def relations(self) -> list[Relation]:
        """Ratios, changes, shares and spreads of several runs that its paper printed."""
        return load_relations(self.published, self.paper)

    @cached_property
    def seen(self) -> frozenset[str]:
        """Ids of the published numbers that the simulated boards were fitted to."""
        return seen_ids(self.twin, self.backend)

    def related(self, *metrics: str, number_of: NumberOf | None = None) -> list[Related]:
        """Return the relations of these metrics whose runs are drawn, with what they are here.

        Parameters
        ----------
        number_of : finds a number that the runs' tables of epochs do not have
        """
        return related(self.relations, number_of or numbers_of(self.runs), self.seen, metrics)

    def title(self, name: str) -> str:
        """Return the name for people of a model or a device."""
        return self.titles.get(name, name)

    def colours(self, *keys: str) -> dict[str, str]:
        """Return the colours of things; ConfigError lists those the palette lacks."""
        return style.colours(self.palette, keys)

    def ink(self, row: Mapping[str, Any]) -> str:
        """Return the colour of what is published of a row: red where a claim fails by its id."""
        ids = set(str(row.get("published_id") or "").split())
        wrong = any(ids & one.ids for of_panel in self.failing.values() for one in of_panel)
        key = "warning" if wrong else "published"
        return self.colours(key)[key]

    def fails(self, panel: str, **wanted: str) -> bool:
        """Say whether a claim of a panel fails by a comparison of this claim, device, model, ..."""
        return any(
            all(getattr(one, name) == value for name, value in wanted.items())
            for one in self.failing.get(panel, ())
        )

    @contextmanager
    def panel(
        self, name: str, runs: Sequence[RunData] | None = None, corner_note: str = ""
    ) -> Iterator[tuple[Figure, Axes]]:
        """Open a panel with its title, and where its numbers are from below; close it afterwards.

        Parameters
        ----------
        name : of the panel
        runs : that it draws, for the note; None: all of the figure
        corner_note : another note, where no runs are drawn
        """
        if name not in self.panels:
            raise ConfigError(
                f"figures.{self.figure}.panels.{name} is missing",
                where="config/plotting.yaml",
                do="add it, with title, width_in and height_in",
            )
        drawn = self.runs if runs is None else runs
        if not corner_note:
            corner_note = note(drawn, self.lacking) + measured_note(drawn, self.records)
        settings = self.panels[name]
        shown = {**settings, "title": style.titled(settings["title"], self._origin)}
        self.drawn[name] = Drawn((), corner_note)
        with style.panel(self.style, shown, "") as opened:
            yield opened

    @property
    def _origin(self) -> str:
        """Return where its numbers are from, as titles begin with it."""
        return label(self.backend).split(",")[0]

    def remark(self, name: str, sentence: str) -> None:
        """Add a sentence to the caption of a panel; nothing where it is empty."""
        if sentence:
            self.drawn[name].remarks.append(sentence)

    def legend(
        self,
        figure: Figure,
        drawn: Sequence[Artist],
        rows: Sequence[Mapping[str, Any]] = (),
        relations: Sequence[Artist] = (),
        *,
        red: bool = False,
    ) -> None:
        """Draw a legend of at most six entries: what was drawn, what is published, what is red.

        Parameters
        ----------
        rows : of the CSV, of which the published numbers are marks
        relations : entries of brackets and the like
        red : whether something else than a published number of the rows is red
        """
        black = self.palette["published"]
        ids = [{"published_id": " ".join(map(str, {r.get("published_id") for r in rows}))}]
        is_red = red or any(self.ink(row) != black for row in ids)
        marks = handles(rows, black)
        room = MOST_ENTRIES - len(drawn) - len(relations) - is_red
        if len(marks) > room:
            marks = handles(rows, black, together=True)
        shown = [*drawn, *marks, *relations][: MOST_ENTRIES - is_red]
        if is_red:
            shown.append(Patch(facecolor=self.colours("warning")["warning"], label=FAILS))
        style.legend(figure, shown)

    def save(self, figure: Figure, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write a panel and the numbers in it: SVG, PNG and CSV.

        At most two lines below say what it is and how many take-aways do not hold. A panel without
        a number is not drawn: its picture says why.
        """
        self.drawn[name].rows = rows
        if reason := why_empty(rows):
            shown = style.titled(self.panels[name]["title"], self._origin)
            style.notice(figure, f"{shown}: not drawn. {reason[0].upper()}{reason[1:]}.")
        elif self.notes:
            verdict = self.verdicts.get(name, "")
            red = self.colours("warning")["warning"] if verdict else style.GREY
            style.set_notes(figure, [self.drawn[name].note + self._looks(rows), verdict], red)
        noted = [{**row, "deviation_pct": deviation_pct(row)} for row in rows]
        style.save(figure, f"{self.folder}/{name}", noted)

    def _looks(self, rows: Sequence[Mapping[str, Any]]) -> str:
        """Return what filled and open marks mean; nothing was fitted to what is measured."""
        seen = {bool(row["seen_by_fit"]) for row in rows if row.get("published") is not None}
        if not any(map(is_marked, rows)) and not any(row.get("is_relation") for row in rows):
            return ""
        if self.backend != TWIN:
            return "; black: published"
        words = {True: "filled: used in the fit", False: "open: not"}
        return "".join(f"; {words[one]}" for one in words if one in seen)
