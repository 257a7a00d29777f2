"""What a figure is drawn from, and the way its panels are opened and saved."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from epochwatt.claims.number_sources import EpochTable, Source
from epochwatt.errors import ConfigError
from epochwatt.figures.common import style
from epochwatt.figures.common.captions import caption_text, why_empty
from epochwatt.figures.common.interactive import write_spec
from epochwatt.figures.common.layout import part_marks
from epochwatt.figures.common.published import (
    BOUNDS,
    NOTED_PCT,
    NOTED_POINTS,
    RANGE,
    Marks,
    deviation_pct,
    deviation_text,
    fit_note,
    inferred_note,
    is_marked,
    is_percentage,
    published_marks,
    seen_ids,
)
from epochwatt.figures.common.relations import (
    NumberOf,
    Related,
    load_relations,
    numbers_of,
    related,
)
from epochwatt.figures.common.runs import RunData, measured_note, note, read_runs
from epochwatt.figures.common.verdicts import N_SHOWN, Unmet, by_workers, not_borne_out
from epochwatt.published.numbers import Relation
from epochwatt.text import label

USER_MODULES = "src"  # folder of the user's own modules
MOST_WARNED = 2  # claims that do not hold, in a panel's corner; its text has all
DEVICES = ("agx", "nx", "nano")  # in the order of the paper's figures


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
    wrong : panel -> its claims that do not hold, as far as it is saved
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
    wrong: dict[str, list[str]] = field(default_factory=dict)

    @cached_property
    def runs(self) -> list[RunData]:
        """Its runs, read once: boards in the paper's order, then models in that of the titles."""
        order = [*DEVICES, *self.titles]

        def place(name: str) -> int:
            return order.index(name) if name in order else len(order)

        runs = read_runs(self.epochs, self.missing)
        return sorted(runs, key=lambda r: (place(r.factors["device"]), place(r.factors["model"])))

    @cached_property
    def marks(self) -> Marks:
        """What its paper printed."""
        return published_marks(self.published, self.twin, self.paper, self.backend)

    @cached_property
    def relations(self) -> list[Relation]:
        """What its paper printed of two runs or more: ratios, changes, shares, spreads."""
        return load_relations(self.published, self.paper)

    def related(self, *metrics: str, number_of: NumberOf | None = None) -> list[Related]:
        """Return the relations of these metrics whose runs are drawn, with what they are here.

        Parameters
        ----------
        number_of : finds a number that the runs' tables of epochs do not have
        """
        seen = seen_ids(self.twin, self.backend)
        return related(self.relations, number_of or numbers_of(self.runs), seen, metrics)

    def title(self, name: str) -> str:
        """Return the name for people of a model or a device."""
        return self.titles.get(name, name)

    def colours(self, *keys: str) -> dict[str, str]:
        """Return the colours of things; ConfigError lists those the palette lacks."""
        return style.colours(self.palette, keys)

    @property
    def _origin(self) -> str:
        """Return where its numbers are from, as titles begin with it."""
        return label(self.backend).split(",")[0]

    @contextmanager
    def panel(
        self, name: str, runs: Sequence[RunData] | None = None, corner_note: str = ""
    ) -> Iterator[tuple[Figure, Axes]]:
        """Open a panel with title and corner note; close it afterwards.

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
        with style.panel(self.style, shown, corner_note) as opened:
            yield opened

    def save(
        self,
        figure: Figure,
        name: str,
        rows: Sequence[Mapping[str, Any]],
        source: Source | None = None,
        cause: str = "",
    ) -> None:
        """Write a panel, the numbers in it and its caption: SVG, PNG, CSV and TXT.

        If the rows have published numbers, the note in the corner says how they are drawn. It also
        names claims of the panel that do not hold. A panel without a number is not drawn: its
        picture and its caption say why.

        Parameters
        ----------
        rows : of the CSV
        source : what its claims are judged on; None: the epochs of the figure's runs
        cause : why its first claim that does not hold fails, in words; empty: nothing is known
        """
        title = self.panels[name]["title"]
        failing: list[Unmet] = []
        corner = figure.get_supxlabel().replace("\n", " ")
        if reason := why_empty(rows):
            shown = style.titled(title, self._origin)
            style.notice(figure, f"{shown}: not drawn. {reason[0].upper()}{reason[1:]}.")
        else:
            if marked := [row for row in rows if is_marked(row)]:
                style.add_to_note(figure, self._marks_note(marked))
            failing = self._failing(name, source)
            if failing and cause:
                failing[0] = failing[0]._replace(remarks=(*failing[0].remarks, cause))
            if failing and len(self.panels[name]["claims"]) == 1:
                failing[0] = self._with_workers(failing[0], name, source)
            self.wrong[name] = [one.head for one in failing]
            corner = figure.get_supxlabel().replace("\n", " ")
            warnings = [one.text(N_SHOWN) for one in failing[:MOST_WARNED]]
            if more := "; ".join(one.claim for one in failing[MOST_WARNED:]):
                warnings.append(f"Nor do these hold in full (numbers: {name}.txt): {more}")
            style.warn(figure, warnings, self.colours("warning")["warning"] if warnings else "")
            part_marks(figure)
        noted = [{**row, "deviation_pct": deviation_pct(row)} for row in rows]
        style.save(figure, f"{self.folder}/{name}", noted)
        lines = [one.text() for one in failing]
        text = caption_text(name, title, self.captions, self.backend, rows, corner, lines)
        Path(f"{self.folder}/{name}.txt").write_text(text, encoding="utf-8")

    def _marks_note(self, marked: Sequence[Mapping[str, Any]]) -> str:
        """Return what the corner note says of marks."""
        explanation = f"; black: published{fit_note(marked)}"
        off = [row for row in marked if deviation_text(row)]
        if any(map(is_percentage, off)):
            explanation += f", points beside it: ours less it, where over {NOTED_POINTS:g}"
        if not all(map(is_percentage, off)):
            explanation += f", % beside it: ours against it, where over {NOTED_PCT:g} %"
        bounds = any(row["published_qualifier"] in (*BOUNDS, RANGE) for row in marked)
        inferred = inferred_note(self.published, marked)
        return explanation + (", arrows: bounds" if bounds else "") + inferred

    def _failing(self, name: str, source: Source | None) -> list[Unmet]:
        """Return the claims of a panel that do not hold."""
        ids = self.panels[name].get("claims", [])
        root = Path(self.published).parents[1]
        return not_borne_out(ids, source or self.epoch_table(), root, self.titles) if ids else []

    def _with_workers(self, unmet: Unmet, name: str, source: Source | None) -> Unmet:
        """Return a claim that fails, with the numbers of workers that it fails and holds with."""
        (failed,) = self.panels[name]["claims"]
        others = {run.factors["num_workers"] for run in self.runs}
        root = Path(self.published).parents[1]
        fails, holds = by_workers(failed, others, source or self.epoch_table(), root)
        if not fails:
            return unmet
        return unmet._replace(begin=f"{unmet.begin} {fails}", remarks=(*unmet.remarks, holds))

    def epoch_table(
        self, more: Mapping[tuple[str, int], Mapping[str, Any]] | None = None
    ) -> Source:
        """Return the epochs of the figure's runs, for claims to be judged on.

        Parameters
        ----------
        more : columns of single epochs that `epochs.csv` does not have, by run and epoch
        """
        added = more or {}
        rows = [
            {**row, **added.get((run.id, row["epoch"]), {})}
            for run in self.runs
            for row in run.epochs
        ]
        return EpochTable(rows)


def draw_figure(job: Job) -> None:
    """Draw all panels of a figure with the function that config/plotting.yaml names.

    Beside each panel its interactive spec is written, from the CSV that the function has written.

    A module of your own lies in src/ of the working folder.

    Raises
    ------
    ConfigError : there is no such function, or it takes other parameters
    """
    if USER_MODULES not in sys.path:
        sys.path.append(USER_MODULES)
    module, _, name = job.draw.rpartition(".")
    where = f"config/plotting.yaml: figures.{job.figure}"
    try:
        function = getattr(import_module(module), name)
        arguments = signature(function).bind(job, **job.parameters)
    except (AttributeError, TypeError) as error:
        raise ConfigError(f"{job.draw}: {error}", where=where) from error
    function(*arguments.args, **arguments.kwargs)
    for panel, settings in job.panels.items():
        stem = f"{job.folder}/{panel}"
        wrong = job.wrong.get(panel, ())
        write_spec(stem, settings["title"], job.backend, job.titles, job.palette, wrong)
