"""Load all of config/ at once, for the Snakefile and the command line."""

import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from epochwatt import columns
from epochwatt.board.device.locks import HolderLock
from epochwatt.board.records import files
from epochwatt.board.records.shapes import Document
from epochwatt.errors import ConfigError, LockedError
from epochwatt.study.config import Figure, Flag, Plotting, WorkloadRow
from epochwatt.study.devices import Devices, read_rows
from epochwatt.study.expand import WORKLOADS_FILE, load_table
from epochwatt.study.idle import FILE, IdleStudy
from epochwatt.study.imported import IMPORTED, OWN
from epochwatt.study.runs import TWIN, Run, RunTable
from epochwatt.study.selection import SIMULATED, STARTER, STUDIES, asked_names
from epochwatt.study.validation import validated
from epochwatt.study.yaml_files import read_yaml

CONFIG = "config/config.yaml"
FLAGS = "config/flags.yaml"
PLOTTING = "config/plotting.yaml"
PACKAGES = Path(__file__).parents[2]  # the folder that holds this package
NO_PAPER, OWN_RUNS = "none", "Own runs"  # `paper` of a figure of none; title of their section
FIGURE_NAME = re.compile("[a-z][a-z0-9_]*")  # part of the name of a rule and of files


@dataclass(frozen=True)
class Settings:
    """The validated configuration and its run table."""

    table: RunTable
    plotting: Plotting
    flag_effects: dict[str, str]  # flag -> invalidates, voids_energy or informs
    workloads: dict[str, WorkloadRow]
    devices: Devices
    idle_studies: dict[str, IdleStudy]  # all where `simulated` is selected, else none
    paper_studies: frozenset[str]  # names of the studies that follow a paper
    ceiling_studies: frozenset[str] = frozenset()  # names of those that ask for ceilings
    paired_studies: dict[str, Document] = field(default_factory=dict)  # name -> its `pairs`

    @property
    def titles(self) -> dict[str, str]:
        """Model or device -> its name for people."""
        models = {name: row.title for name, row in self.workloads.items()}
        return models | self._device_titles()

    @property
    def palette(self) -> dict[str, str]:
        """Colour by name; networks and media without one get a spare one, alike in all figures.

        A name for which no spare colour is left is missing, and its figure reports that.
        """
        palette, runs = self.plotting.palette, self.table.runs.values()
        names = [*self.workloads, *(run.factors["storage"] for run in runs)]
        missing = [name for name in dict.fromkeys(names) if name not in palette]
        return palette | dict(zip(missing, self.plotting.spare, strict=False))

    def figure_runs(self, figure: str, backend: str) -> list[Run]:
        """Return the runs that a figure draws, in order."""
        return [run for run in self.table.of_backend(backend) if self._draws(figure, run)]

    def _draws(self, figure: str, run: Run) -> bool:
        """Return whether a run is of a study of the figure and has the factors of its `where`."""
        settings = self.plotting.figures[figure]
        return bool(set(run.studies) & set(settings.studies)) and all(
            run.factors[factor] in values for factor, values in settings.where.items()
        )

    def figures(self, backend: str, idle: bool) -> list[str]:
        """Return the figures with a run of the backend; with `idle` also idle powers."""
        return [
            name
            for name, settings in self.plotting.figures.items()
            if (self.figure_runs(name, backend) if settings.studies else idle)
        ]

    def drawing(self, figure: str, backend: str) -> Document:
        """Return the fields of `epochwatt.figures.common.job.Job` for a figure, as plain values."""
        settings, runs = self.plotting.figures[figure], self.figure_runs(figure, backend)
        return {
            "figure": figure,
            "backend": backend,
            "draw": settings.draw,
            "parameters": settings.parameters,
            "paper": settings.paper,
            "panels": self.panels(figure),
            "notes": self.plotting.notes,
            "palette": self.palette,
            "titles": self.titles,
            "missing": self._rows(self.table.excluded + self.table.elsewhere, figure, backend),
            "lacking": self.lacking(figure, backend),
            "records": {
                run.id: run.records
                for run in runs
                if "records" in settings.reads or not run.is_simulated
            },
        }

    def lacking(self, figure: str, backend: str) -> list[str]:
        """Return the papers' studies of a figure without a run, where another of them has one."""
        with_runs = {study for run in self.figure_runs(figure, backend) for study in run.studies}
        wanted = [s for s in self.plotting.figures[figure].studies if s in self.paper_studies]
        return [s for s in wanted if s not in with_runs] if with_runs & set(wanted) else []

    def _device_titles(self) -> dict[str, str]:
        """Return the titles of all devices of selected runs and idle studies, without "Jetson "."""
        blocks = [block for study in self.idle_studies.values() for block in study.sweep]
        names = {run.factors["device"] for run in self.table.runs.values()}
        names = names.union(*(block.device for block in blocks)) & set(self.devices.names())
        titles = {name: self.devices.get(name, "device").title for name in sorted(names)}
        return {name: title.removeprefix("Jetson ") for name, title in titles.items()}

    def excluded(self, figure: str = "", backend: str = "") -> list[Document]:
        """Return factors, `run` and `reason` of the excluded rows (of a figure, of a backend)."""
        return self._rows(self.table.excluded, figure, backend)

    def _rows(
        self, missing: Iterable[tuple[Run, str]], figure: str, backend: str
    ) -> list[Document]:
        """Return factors, `run` and `reason` of runs; empty `figure` or `backend`: of any."""
        return [
            {**run.factors, "run": run.id, "reason": reason}
            for run, reason in missing
            if (not figure or self._draws(figure, run)) and backend in ("", run.factors["backend"])
        ]

    def panels(self, figure: str) -> dict[str, Document]:
        """Return the settings of a figure's panels."""
        panels = self.plotting.figures[figure].panels
        return {name: panel.model_dump(exclude={"caption"}) for name, panel in panels.items()}

    def gallery_entry(self, backend: str, figure: str, panel: str) -> Document:
        """Return what the landing page shows of a panel: stem of its files, texts, claims, words.

        A figure of a paper's kind whose runs are all of own studies is not called the paper's.
        """
        entry, runs = self.plotting.figures[figure], self.figure_runs(figure, backend)
        panel_settings = entry.panels[panel]
        names = {run.factors[factor] for run in runs for factor in ("model", "device")}
        simulated = entry.simulated if backend == TWIN else ""
        is_own = entry.paper != NO_PAPER and {run.factors["setup"] for run in runs} == {"own"}
        return {
            "stem": f"results/figures/{backend}/{panel}",
            "backend": backend,
            "paper": NO_PAPER if is_own else entry.paper,
            "section": OWN_RUNS if is_own else entry.section,
            "title": panel_settings.title,
            "caption": " ".join(filter(None, (panel_settings.caption, entry.caption, simulated))),
            "claims": [] if is_own else panel_settings.claims,
            "words": sorted(self.titles.get(name, name) for name in names),
        }

    def caption(self, figure: str) -> Document:
        """Return the parts of a figure's caption, for workflow/report/plot_figure.rst."""
        entry = self.plotting.figures[figure]
        return {
            "paper": entry.paper,
            "simulated": entry.simulated,
            "figure": entry.caption,
            "panels": [
                {"letter": name.removeprefix(figure), "title": panel.title, "text": panel.caption}
                for name, panel in entry.panels.items()
            ],
        }


def load_settings(config: Document | None = None, root: Path = Path()) -> Settings:
    """Read and check all of config/.

    `config`: content of config/config.yaml; None: it is read

    Raises ConfigError: a file has a wrong key or value.
    """
    if config is None:
        config = read_yaml(root / CONFIG)
    studies = read_yaml(root / STUDIES)
    settings = Settings(
        table=load_table(config, root),
        plotting=validated(Plotting, read_yaml(root / PLOTTING), PLOTTING),
        flag_effects=_flag_effects(root),
        workloads=read_rows(WorkloadRow, root / WORKLOADS_FILE),
        devices=Devices(root),
        idle_studies=read_rows(IdleStudy, root / FILE) if SIMULATED in asked_names(config) else {},
        paper_studies=frozenset(s for s in studies if studies[s].get("setup", "own") != "own"),
        ceiling_studies=frozenset(s for s in studies if studies[s].get("ceilings", False)),
        paired_studies={s: studies[s]["pairs"] for s in studies if studies[s].get("pairs")},
    )
    _check_figures(settings.plotting, studies, root)
    return settings


def _flag_effects(root: Path) -> dict[str, str]:
    """Return flag -> effect, with the changes of config/flags.yaml; ConfigError: no such flag."""
    rows = read_rows(Flag, root / FLAGS) if (root / FLAGS).exists() else {}
    for flag in rows.keys() - columns.FLAGS.keys():
        raise ConfigError(f"{flag!r} is not a flag", where=FLAGS, allowed=columns.FLAGS)
    return columns.FLAG_EFFECTS | {flag: row.effect for flag, row in rows.items()}


def _check_figures(plotting: Plotting, studies: Document, root: Path) -> None:
    """Raise ConfigError for a figure that names what is not there: module, panel, factor, study."""
    for name, figure in plotting.figures.items():
        if not FIGURE_NAME.fullmatch(name):
            raise ConfigError(
                f"figures.{name} is not a valid name of a figure",
                where=PLOTTING,
                allowed="lower-case letters, digits and underscores, a letter first",
            )
        _check_drawing(name, figure, root)
        for panel in figure.panels:
            if not re.fullmatch(f"{name}[a-z]?", panel):
                _check_key(f"figures.{name}.panels", panel, [name, f"{name}a", f"{name}b", "..."])
        for factor in figure.where:
            _check_key(f"figures.{name}.where", factor, columns.FACTOR_NAMES)
        for study in figure.studies:
            if study not in (*studies, STARTER, IMPORTED, OWN):
                raise ConfigError(
                    f"figures.{name}.studies names {study!r}", where=PLOTTING, allowed=studies
                )


def _check_drawing(name: str, figure: Figure, root: Path) -> None:
    """Raise ConfigError where `draw` names a module that neither we, src/ nor the path have."""
    package, *modules = drawing_module(figure).split(".")
    path = Path(package, *modules).with_suffix(".py")
    is_file = any((folder / path).is_file() for folder in (PACKAGES, root / "src"))
    is_own_package = package == __name__.split(".")[0]
    if not is_file and (is_own_package or find_spec(package) is None):
        raise ConfigError(
            f"figures.{name}.draw is {figure.draw!r}, and there is no such module",
            where=PLOTTING,
            allowed="a function of a module of epochwatt.figures, or of your own",
            do=f"write src/{path} (docs/how-to/add-a-figure.md)",
        )


def drawing_module(figure: Figure) -> str:
    """Return the module that draws a figure; what it imports is what the figure depends on."""
    return figure.draw.rpartition(".")[0]


def _check_key(where: str, key: str, allowed: Iterable[str]) -> None:
    """Refuse a key that is not one of those there are."""
    if key not in allowed:
        raise ConfigError(f"unknown {where}.{key}", where=PLOTTING, allowed=list(allowed))


ALLOW_ROOT = "EPOCHWATT_ALLOW_ROOT"  # environment variable; for containers and CI


def refuse_root(runs: Iterable[Run]) -> None:
    """Raise ConfigError for a user root who would measure on a board; `ALLOW_ROOT` permits it."""
    has_board_runs = any(run.here and run.factors["backend"] in ("jetson", "fake") for run in runs)
    if os.geteuid() == 0 and has_board_runs and not os.environ.get(ALLOW_ROOT):
        raise ConfigError(
            "the workflow does not run as root on a board: a job could change anything on it, and "
            "its files would be root's",
            do="run it as an ordinary user; `make setup-jetson` lets it set power modes through a "
            f"small helper. In a container or CI: {ALLOW_ROOT}=1",
        )


def refuse_braces(path: str, what: str) -> None:
    """Raise ConfigError for a path with braces; `what` is what the path is, for the message."""
    if "{" in path or "}" in path:
        raise ConfigError(
            f"{what} is {path!r}: Snakemake takes braces for wildcards", do="rename the folder"
        )


def working_folder_lock() -> HolderLock:
    """Take the lock of this working folder; LockedError names who holds it.

    The lock lies beside the measurements, where `make clean` does not reach. It is held until the
    process ends, however it ends.
    """
    with files.writing("measurements", "measured"):
        os.makedirs("measured", exist_ok=True)
    lock = HolderLock("measured/.workflow.lock")
    try:
        return lock.acquire({"workflow in": os.getcwd()})
    except LockedError as error:
        raise LockedError(
            f"another workflow runs in this folder: {error}", do="wait for it, or end it"
        ) from None


def deployed_path() -> str:
    """Return the PYTHONPATH of jobs in an environment that Snakemake deploys (--sdm).

    That environment has what this package needs. The package itself they find by a link to this
    very one, so its version is that of the rules; and modules of one's own in src/.
    """
    link = Path(".snakemake/epochwatt").resolve() / "epochwatt"
    link.parent.mkdir(parents=True, exist_ok=True)
    if link.resolve() != PACKAGES / "epochwatt":
        link.unlink(missing_ok=True)
        link.symlink_to(PACKAGES / "epochwatt")
    return os.pathsep.join([str(link.parent), str(Path("src").resolve())])


def lead_the_path() -> None:
    """Put this interpreter's folder first on the PATH, so that `python3` in a command means it.

    With --sdm conda the environment's own still comes first. Snakemake 9 does not quote the
    interpreter in a script's command: where its path needs quotes, `sys.executable` becomes its
    bare name, which is found on the PATH. Modules of one's own are found in src/ of the working
    folder, by this process and by jobs.
    """
    if Path("src").is_dir():
        own, known = str(Path("src").resolve()), os.environ.get("PYTHONPATH", "")
        if own not in known.split(os.pathsep):
            os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [known, own]))
            sys.path.append(own)
    folder = os.path.dirname(shutil.which(sys.executable) or sys.executable)
    os.environ["PATH"] = os.pathsep.join([folder, *os.get_exec_path()])
    if shlex.quote(sys.executable) != sys.executable:
        sys.executable = os.path.basename(sys.executable)
