"""Build the landing page, `results/index.html`, and the pages of studies that are made by name.

The landing page is one file that opens offline. It shows cells of the tables that the workflow
wrote; each number names the cell that it is from.
"""

import hashlib
import os
import platform
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import NamedTuple, TypedDict

from epochwatt import __version__
from epochwatt.analysis.collect_study import read_epochs
from epochwatt.board.records.run_folder import RunFolder
from epochwatt.claims.claims_table import read_claims_table
from epochwatt.columns import TIME_PARTS
from epochwatt.errors import RecordError
from epochwatt.figures.entries import FigureEntry
from epochwatt.pages import studies
from epochwatt.pages.explorer import explorer
from epochwatt.pages.gallery import gallery
from epochwatt.pages.machine import Machine
from epochwatt.pages.papers import compare, statements
from epochwatt.pages.summary import missing_runs, summarise
from epochwatt.study.runs import TWIN
from epochwatt.tables import read_frame
from epochwatt.templates import Rows, index, render
from epochwatt.text import label


class Link(NamedTuple):
    """A file beside the landing page."""

    path: str
    title: str
    says: str


class FailedJob(TypedDict):
    """A job that failed, and the files that wait for it."""

    rule: str
    outputs: list[str]
    log: str
    reason: str
    waiting: list[str]


COLOURED = (*TIME_PARTS, "baseload", "above_baseload")  # parts, in the colours of the palette
LINKS = (
    Link(
        "report.html",
        "Snakemake's report",
        "every figure and table with how it was made, and the graph of the rules; make report "
        "makes it",
    ),
    Link("tables/runs.csv", "Statistics of runs", "means and medians, CSV"),
    Link("tables/epochs.csv", "All epochs", "CSV"),
    Link("tables/advice.csv", "Advice", "what holds each measured run back, CSV"),
    Link("claims.csv", "Claims", "with the runs that were used, CSV"),
)
# `make run` does not make these; those that were made are linked
MADE_BY_NAME = (
    Link(
        "powertrain/index.html",
        "PowerTrain",
        "time and power of any mode from fifty profiled ones: the paper's methods beside others, "
        "on simulated and on real boards",
    ),
    Link(
        "sweeps/sweep_scores.html",
        "Prediction on real sweeps",
        "which method predicts new modes of boards and graphics cards that others measured, and "
        "how sure that is",
    ),
    Link(
        "container-overheads/index.html",
        "What a container costs",
        "training inside and outside, in pairs: equivalent within a margin, different or undecided",
    ),
)
PACKAGES = ("snakemake", "numpy", "scipy", "pandas", "scikit-learn", "matplotlib", "pydantic")
NO_COMMIT = "not a git checkout"


@dataclass(frozen=True, kw_only=True)
class Results:
    """Files and settings that the landing page is made from."""

    # paths of `runs`, `epochs`, `advice`, `energy_parts`, `claims`, `ceilings`, `printed`,
    # `explanations`, `validation` (empty: not made), and `published`, the folder of these numbers
    tables: Mapping[str, str]
    figures: Sequence[FigureEntry]
    numbers: Iterable[str]  # tables with published numbers beside ours
    titles: Mapping[str, str]  # model or device -> name for people
    palette: Mapping[str, str]  # colours of the parts of an epoch, among others
    records: Mapping[str, str] | None = None  # run -> folder; None: the page has no explorer
    specs: Iterable[str] = ()  # interactive figures
    vega: str = ""  # script that draws them and the explorer
    config: Iterable[str] = ()  # files of config/
    excluded: Sequence[Mapping[str, str]] = ()  # `run` and `reason` of runs not available
    further: Sequence[str] = ()  # paths of those pages of `MADE_BY_NAME` that are there
    powertrain: Mapping[str, str] | None = None  # tables of that study; None: it was not made
    fulcrum: Mapping[str, str] | None = None
    federated: Mapping[str, str] | None = None
    not_made: Sequence[FailedJob] = ()


def write_index(results: Results, page: str, overview: str = "") -> None:
    """Write the landing page.

    `overview`: where to write it without figures and explorer, for Snakemake's report: a browser
    opens no page of more than 2 MB in it
    """
    tables, palette, titles = results.tables, results.palette, results.titles
    findings = read_claims_table(tables["claims"])
    says = statements(Path(tables["published"]))
    shown, images = gallery(results.figures, findings, says)
    missing = {path for job in results.not_made for path in (*job["outputs"], *job["waiting"])}
    links = [link for link in LINKS if f"results/{link.path}" not in missing]
    links += [link for link in MADE_BY_NAME if link.path in results.further]
    epochs = read_epochs([tables["epochs"]]) if tables.get("epochs") else None
    explored = None
    measured = dict[str, str]()  # run -> folder of its records
    if epochs is not None and results.records is not None:
        ids = epochs[epochs.backend.ne(TWIN)].run.unique()
        measured = {run: results.records[run] for run in ids if run in results.records}
        if tables.get("runs"):
            runs = read_frame(tables["runs"])
            explored = explorer(epochs, runs, results.records, titles, palette, results.specs)
    content = {
        "colours": {name.replace("_", "-"): palette[name] for name in COLOURED if name in palette},
        "machine": Machine(tables, titles).shown(),
        "summary": []
        if epochs is None
        else [p.shown() for p in summarise(epochs, findings, titles)],
        "excluded": missing_runs(results.excluded),
        "powertrain": studies.powertrain(results.powertrain) if results.powertrain else None,
        "fulcrum": studies.fulcrum(results.fulcrum) if results.fulcrum else None,
        "federated": studies.federated(results.federated) if results.federated else None,
        "papers": compare(results.numbers, tables, findings, titles, says),
        "configuration": configuration(results.config, measured),
        "links": links,
        "not_made": results.not_made,
    }
    library = Path(results.vega).read_text("utf-8") if explored else ""
    more = {"figures": shown, "explorer": explored, "library": library}
    Path(page).write_text(render(index.PAGE, **content, **more, data={"images": images}), "utf-8")
    if overview:
        less = {**content, "figures": None, "explorer": None, "library": "", "data": {}}
        Path(overview).write_text(render(index.PAGE, **less), "utf-8")


def write_bare(not_made: Sequence[FailedJob], page: str) -> None:
    """Write a page with nothing but what failed, where the landing page itself is among it."""
    links = [link for link in (*LINKS, *MADE_BY_NAME) if (Path(page).parent / link.path).exists()]
    text = render("index/bare.html", not_made=not_made, links=links)
    Path(page).write_text(text, "utf-8")


def write_powertrain(tables: Mapping[str, str], figures: Iterable[str], page: str) -> None:
    """Write the page of the study of PowerTrain: the landing page's section with its figures."""
    section = studies.powertrain(tables, [studies.drawing(figure, page) for figure in figures])
    Path(page).write_text(render("powertrain.html", section=section), "utf-8")


def write_pairs(
    pairs: str, verdicts: str, figure: str, claims: Sequence[str] | str, page: str
) -> None:
    """Write the page of a study in pairs; parameters as of `studies.pairs`."""
    text = render("pairs.html", **studies.pairs(pairs, verdicts, figure, claims, page))
    Path(page).write_text(text, "utf-8")


# -- versions and configuration ------------------------------------------------------------------


def configuration(files: Iterable[str], records: Mapping[str, str]) -> dict[str, object]:
    """Return the section on versions here, machines of runs, and files of config/."""
    names = sorted(files)
    return {
        "versions": versions(),
        "machines": machines(records),
        "texts": {n: Path(n).read_text("utf-8") for n in names if n.endswith(".yaml")},
        "hashes": [
            {"file": name, "SHA-256": hashlib.sha256(Path(name).read_bytes()).hexdigest()}
            for name in names
        ],
    }


def versions() -> Rows:
    """Return what runs the workflow here, name and version."""
    known = {"epochwatt": __version__, "commit": commit(), "Python": platform.python_version()}
    known |= {name: metadata.version(name) for name in PACKAGES}
    return [{"what": name, "version": version} for name, version in known.items()]


def commit(root: Path = Path()) -> str:
    """Return the commit of a checkout and whether files differ from it, or that there is none.

    A checkout around `root` is not its own. Nothing is written, not even git's index.
    """
    commands = (
        ["rev-parse", "--show-toplevel"],
        ["rev-parse", "HEAD"],
        ["status", "--porcelain"],
    )
    git = ["git", "--no-optional-locks"]
    try:
        top, head, changes = (
            subprocess.run([*git, *c], cwd=root, capture_output=True, text=True, check=True).stdout
            for c in commands
        )
    except (OSError, subprocess.CalledProcessError):
        return NO_COMMIT
    if Path(top.rstrip("\n")) != root.resolve():
        return NO_COMMIT
    return head.strip() + (" and changes to it" if changes else "")


def machines(records: Mapping[str, str]) -> Rows:
    """Return where runs were made, as the record of their last epoch tells it, and how many.

    Without serial numbers, which a page that is passed on would tell, and tables of clocks. A
    damaged record is left out: the job that reads its epochs says so.
    """
    counts: dict[tuple[tuple[str, str], ...], int] = {}
    for folder in records.values():
        run = RunFolder(*os.path.split(folder))
        try:
            epochs = run.measured()
            meta = run.read(epochs[-1]).meta if epochs else None
        except (RecordError, OSError):
            continue
        if meta is None:
            continue
        factors = meta["factors"]
        description = {
            "data": label(factors["backend"]),
            "unit": f"{factors['device']}/{factors['instance']}",
            **meta["machine"],
            **meta["software"],
        }
        key = tuple(
            (name, str(value))
            for name, value in description.items()
            if name != "serial" and not name.endswith("_steps_mhz")
        )
        counts[key] = counts.get(key, 0) + 1
    return [{"runs": n, **dict(key)} for key, n in counts.items()]
