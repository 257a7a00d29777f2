"""Give a figure its runs and marks; open and save its panels."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from epochwatt.claims.tolerances import load_terms
from epochwatt.columns import TWIN, unit
from epochwatt.errors import ConfigError
from epochwatt.figures.common import published as paper
from epochwatt.figures.common import style
from epochwatt.figures.common.published import (
    DASHES,
    Mark,
    Marks,
    NumberOf,
    Plotted,
    Related,
)
from epochwatt.figures.common.runs import (
    Cells,
    Number,
    RunData,
    csv_row,
    measured_on,
    note,
    read_runs,
    why_empty,
)
from epochwatt.published.numbers import Published, Relation, load_published
from epochwatt.text import label

DEVICES = ("agx", "nx", "nano")  # in the order of the paper's figures
MOST_ENTRIES = 6  # of a legend
FAILS = "red: ours is over {NEAR:g} % off (percentages: {NEAR_PP:g} points)"
PUT_IN = "How boards and epochs differ is put in: neither a match nor a gap is evidence"
CHANGE = "published change, then ours"

Row = Plotted | Related | Cells  # of the CSV; a row of cells has no mark


class Failing(NamedTuple):
    """A comparison that a claim of a panel fails by: a row of results/tables/comparisons.csv."""

    claim: str
    ids: frozenset[str]  # of the printed numbers that it is about
    device: str
    model: str
    metric: str
    printed: str = ""  # number of the paper


@dataclass
class Drawn:
    """Parts of a panel's caption."""

    rows: Sequence[Cells]
    note: str  # what it is: below the picture, too
    machine: str = ""  # that measured it: in the second line below the picture
    is_put_in: bool = False  # the changes that it draws are inputs of the simulation
    remarks: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Job:
    """One figure of one backend, as its rule gives it."""

    figure: str
    backend: str
    draw: str  # `module.function` that draws it
    folder: str  # where its panels go
    style: str  # matplotlib style file
    epochs: Sequence[str]  # `epochs.csv` of each of its runs
    published: str  # folder config/published
    twin: str  # folder config/twin
    paper: str  # whose figure it is; `none`: nothing is published of it
    panels: Mapping[str, Cells]  # panel -> `title`, `width_in`, `height_in`, `claims`
    palette: Mapping[str, str]  # thing -> colour
    titles: Mapping[str, str]  # model or device -> name for people
    parameters: Cells = field(default_factory=dict)  # keyword arguments of `draw`
    captions: Cells = field(default_factory=dict)  # `Settings.caption` of the figure
    missing: Sequence[Cells] = ()  # factors, `run` and `reason` of runs that are not available
    lacking: Sequence[str] = ()  # studies of the paper that belong to it and are not selected
    # run -> folder with the records of its epochs, of measured runs always
    records: Mapping[str, str] = field(default_factory=dict)
    idle: str = ""  # table of idle powers
    predictions: str = ""  # table of predictions
    comparisons: str = ""  # results/tables/comparisons.csv; empty: nothing is judged
    notes: bool = True  # whether lines stand below the panels; print has them in its own caption
    # panel -> comparisons that its claims fail by, how many take-aways do not hold in words, and
    # what was drawn: `draw_figure` gives the first two
    failing: Mapping[str, Sequence[Failing]] = field(default_factory=dict)
    verdicts: Mapping[str, str] = field(default_factory=dict)
    drawn: dict[str, Drawn] = field(default_factory=dict)

    # -- what it draws -----------------------------------------------------------------------------

    @cached_property
    def runs(self) -> list[RunData]:
        """Its runs, read once: boards in the paper's order, then models in that of the titles."""
        order = {name: n for n, name in enumerate(dict.fromkeys([*DEVICES, *self.titles]))}
        return sorted(
            read_runs(self.epochs, self.missing),
            key=lambda run: [order.get(run.factors[k], len(order)) for k in ("device", "model")],
        )

    @cached_property
    def marks(self) -> Marks:
        """Numbers that its paper printed."""
        return paper.published_marks(self.published, self.twin, self.paper, self.backend)

    @cached_property
    def facts(self) -> Published:
        """All published numbers, of both papers."""
        return load_published(Path(self.published))

    @cached_property
    def relations(self) -> list[Relation]:
        """Ratios, changes, shares and spreads of several runs that its paper printed."""
        relations = self.facts.relations.values()
        return [r for r in relations if r.paper == self.paper and "model" in r.config_a]

    @cached_property
    def seen(self) -> frozenset[str]:
        """Ids of the published numbers that the simulated boards were fitted to."""
        return paper.seen_ids(self.twin, self.backend)

    def related(self, *metrics: str, number_of: NumberOf | None = None) -> list[Related]:
        """Pair the paper's relations of these metrics with ours; those without runs are left out.

        `number_of` gives our numbers: by default, means over the figure's runs.
        """
        number_of = number_of or paper.numbers_of(self.runs)
        return [
            self.relate(relation, here)
            for relation in self.relations
            if relation.metric in metrics and (here := paper.here_of(relation, number_of))
        ]

    def relate(self, relation: Relation, here: tuple[float, ...]) -> Related:
        """Pair a published relation with what it is here."""
        r = relation
        printed = Mark(r.value, r.value_hi, r.id, r.qualifier, r.id in self.seen)
        printed = self.judged(printed, here, is_percentage=r.unit == "pct")
        return Related(relation, here, printed, self.ink(printed))

    def plotted(
        self,
        run: RunData,
        quantity: str,
        epoch_set: str = "1+",
        number: Number | None = None,
        **more: Any,
    ) -> Plotted:
        """Pair a number of a run, by default the mean of a column, with the published one.

        Its CSV row has the columns `more`, and `lowest` and `highest` of several measured epochs.
        """
        is_column = bool(run.epochs) and quantity in run.epochs[0]
        if run.is_measured and is_column and (values := run.values(quantity, epoch_set)).size > 1:
            more |= {"lowest": float(values.min()), "highest": float(values.max())}
        number = number or run.number(quantity, epoch_set)
        row = csv_row(run, quantity, number, epoch_set, **more)
        printed = paper.mark(self.marks, run.factors, quantity, epoch_set)
        if printed:
            is_percentage = unit(quantity) == "%"
            printed = self.judged(printed, [number.value], is_percentage=is_percentage)
        return Plotted(row, printed, self.ink(printed))

    def title(self, name: str) -> str:
        """Return the name for people of a model or a device."""
        return self.titles.get(name, name)

    # -- how it looks ------------------------------------------------------------------------------

    def colours(self, *keys: str) -> dict[str, str]:
        """Return the colours of things; ConfigError lists those the palette lacks."""
        return style.colours(self.palette, keys)

    def colour(self, key: str) -> str:
        """Return the colour of a thing; ConfigError where the palette lacks it."""
        return self.colours(key)[key]

    def judged(
        self, mark: Mark, ours: Iterable[float | None], *, is_percentage: bool = False
    ) -> Mark:
        """Return what is published with whether ours is off it."""
        failing = self._failing_ids
        return mark.judged(ours, self.tolerances, failing, is_percentage=is_percentage)

    def ink(self, mark: Mark | None) -> str:
        """Return the colour of what is published: red where ours is off it."""
        return self.colour("warning" if mark and mark.is_off else "published")

    def worst(self, inks: Iterable[str]) -> str:
        """Return the colour of several published numbers as one: red where one of them is."""
        return self.colour("warning" if self.palette.get("warning", "") in inks else "published")

    @cached_property
    def tolerances(self) -> dict[str, float]:
        """The tolerances of config/claims.yaml by name."""
        return load_terms(Path(self.published).parents[1]).numbers

    @cached_property
    def _failing_ids(self) -> frozenset[str]:
        return frozenset().union(*(row.ids for rows in self.failing.values() for row in rows))

    def fails(self, panel: str, **wanted: str) -> bool:
        """Say whether a claim of a panel fails by a comparison with these fields of `Failing`."""
        return any(
            all(getattr(comparison, name) == value for name, value in wanted.items())
            for comparison in self.failing.get(panel, ())
        )

    @contextmanager
    def panel(
        self,
        name: str,
        runs: Sequence[RunData] | None = None,
        corner_note: str = "",
        addition: str = "",
    ) -> Iterator[tuple[Figure, Axes]]:
        """Open a panel of config/plotting.yaml as figure and axes, and close it at the end.

        Its note names `runs` (default: all of the figure), or is `corner_note` where no runs are
        drawn; `addition` follows the title. Registers the panel in `drawn`. Raises ConfigError: the
        configuration has no such panel.
        """
        if name not in self.panels:
            raise ConfigError(
                f"figures.{self.figure}.panels.{name} is missing",
                where="config/plotting.yaml",
                do="add it, with title, width_in and height_in",
            )
        drawn = self.runs if runs is None else runs
        words = corner_note or note(drawn, self.lacking, self.titles)
        machine = "" if corner_note else measured_on(drawn, self.records)
        settings = {**self.panels[name], "title": f"{self._title_of(name)}{addition}"}
        self.drawn[name] = Drawn((), words, machine)
        with style.panel(self.style, settings, "") as figure_and_axes:
            yield figure_and_axes

    def _title_of(self, panel: str) -> str:
        return style.titled(self.panels[panel]["title"], label(self.backend).split(",")[0])

    def remark(self, name: str, sentence: str) -> None:
        """Add a sentence to the caption of a panel; nothing where it is empty."""
        if sentence:
            self.drawn[name].remarks.append(sentence)

    def legend(
        self,
        figure: Figure,
        drawn: Sequence[Artist],
        rows: Sequence[Row] = (),
        lines: Sequence[Artist] = (),
        *,
        change: str = CHANGE,
        red: str = FAILS,
        is_red: bool = False,
    ) -> None:
        """Draw the figure's legend: `drawn`, published marks of `rows`, `lines`, the red.

        The marks share one entry where there would be more than `MOST_ENTRIES`. `change` is the
        label of published relations; empty: they get no entry. `red` is that of what is red, if
        anything is: rows, lines that are drawn, or (`is_red`) what is drawn later.
        """
        black = self.palette["published"]
        marked = [row for row in rows if isinstance(row, Plotted) and row.mark]
        changes = [row for row in rows if isinstance(row, Related)]
        inks = {row.ink for row in marked} | {row.ink for row in changes}
        inks |= {str(line.get_color()) for axes in figure.axes for line in axes.lines}
        if changes and change:
            dash: Any = "-" if any(row.seen_by_fit for row in changes) else DASHES
            line = Line2D([], [], color=black, linewidth=0.9, linestyle=dash, label=change)
            lines = [*lines, line]
        if is_red or self.palette.get("warning") in inks:
            words = red.format(**self.tolerances)
            lines = [*lines, Patch(facecolor=self.colour("warning"), label=words)]
        marks = paper.handles(marked, black)
        if len(drawn) + len(marks) + len(lines) > MOST_ENTRIES:
            marks = paper.handles(marked, black, together=True)
        style.legend(figure, [*drawn, *marks, *lines])

    def save(self, figure: Figure, name: str, rows: Sequence[Row]) -> None:
        """Write an open panel as SVG, PNG and CSV, and keep its rows in `drawn`, for the caption.

        With `notes`, two lines stand below the picture: what it shows, then the panel's verdict or
        else the machine that measured it. Without a number, one sentence in its place says why.
        """
        cells = [
            row.cells() if isinstance(row, Plotted | Related) else {**row, "deviation_pct": None}
            for row in rows
        ]
        self.drawn[name].rows = cells
        if reason := why_empty(cells):
            title = self.panels[name]["title"]
            style.notice(figure, f"{title}: not drawn. {reason[0].upper()}{reason[1:]}.")
        elif self.notes:
            drawn, verdict = self.drawn[name], self.verdicts.get(name, "")
            shown = [row for row in rows if not (drawn.is_put_in and isinstance(row, Related))]
            words = drawn.note + self._meaning_of_marks(shown)
            second_line, colour = drawn.machine, style.GREY
            if drawn.is_put_in:
                second_line = PUT_IN
            elif verdict:
                second_line, colour = verdict, self.colour("warning")
            style.set_notes(figure, words, second_line, colour)
        style.save(figure, f"{self.folder}/{name}", cells)

    def _meaning_of_marks(self, rows: Sequence[Row]) -> str:
        """Say which published numbers the fit used; nothing was fitted to what is measured."""
        seen = {r.seen_by_fit for r in rows if isinstance(r, Plotted | Related) and r.published_id}
        if not seen:
            return ""
        if self.backend != TWIN:
            return "; black: published"
        if seen == {True, False}:
            return "; fitted to the filled or solid published numbers alone"
        return f"; {'' if seen.pop() else 'not '}fitted to these published numbers"
