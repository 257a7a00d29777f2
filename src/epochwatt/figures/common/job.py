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
from epochwatt.figures.common.interactive import write_spec
from epochwatt.figures.common.published import BOUNDS, RANGE, Marks, is_marked, published_marks
from epochwatt.figures.common.runs import RunData, note, read_runs
from epochwatt.figures.common.verdicts import not_borne_out
from epochwatt.study.runs import TWIN

USER_MODULES = "src"  # folder of the user's own modules
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
    missing : factors, `run` and `reason` of runs that are not available
    lacking : studies of the paper that would belong to it and are not selected
    records : run -> folder with the records of its epochs
    idle : table of idle powers
    predictions : table of predictions
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
    missing: Sequence[Mapping[str, Any]] = ()
    lacking: Sequence[str] = ()
    records: Mapping[str, str] = field(default_factory=dict)
    idle: str = ""
    predictions: str = ""

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

    def title(self, name: str) -> str:
        """Return the name for people of a model or a device."""
        return self.titles.get(name, name)

    def colours(self, *keys: str) -> dict[str, str]:
        """Return the colours of things; ConfigError lists those the palette lacks."""
        return style.colours(self.palette, keys)

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
        corner_note = corner_note or note(self.runs if runs is None else runs, self.lacking)
        with style.panel(self.style, self.panels[name], corner_note) as opened:
            yield opened

    def save(
        self,
        figure: Figure,
        name: str,
        rows: Sequence[Mapping[str, Any]],
        source: Source | None = None,
    ) -> None:
        """Write a panel and the numbers in it: SVG, PNG and CSV.

        If the rows have published numbers, the note in the corner says how they are drawn. It also
        names claims of the panel that do not hold.

        Parameters
        ----------
        rows : of the CSV
        source : what its claims are judged on; None: the epochs of the figure's runs
        """
        if marked := [row for row in rows if is_marked(row)]:
            explanation = "; marks: published"
            explanation += ", filled where the fit has seen them" if self.backend == TWIN else ""
            bounds = any(row["published_qualifier"] in (*BOUNDS, RANGE) for row in marked)
            style.add_to_note(figure, explanation + (", arrows: bounds" if bounds else ""))
        if ids := self.panels[name].get("claims", []):
            failing = not_borne_out(
                ids, source or self.epoch_table(), Path(self.published).parents[1]
            )
            style.warn(figure, failing, self.colours("warning")["warning"])
        style.save(figure, f"{self.folder}/{name}", rows)

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
        write_spec(stem, settings["title"], job.backend, job.titles, job.palette)
