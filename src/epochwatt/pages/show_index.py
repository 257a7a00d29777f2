"""The landing page: `results/index.html`, one file that opens offline.

It shows cells of the tables that the workflow wrote; each number names the cell that it is from.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from epochwatt.analysis.collect_study import read_epochs
from epochwatt.claims.claims_table import read_claims_table
from epochwatt.pages import fulcrum_section
from epochwatt.pages.explorer.data import explorer
from epochwatt.pages.explorer.library import library
from epochwatt.pages.gallery import gallery
from epochwatt.pages.machine import Machine, describe
from epochwatt.pages.numbers import Table
from epochwatt.pages.papers import compare, statements
from epochwatt.pages.powertrain_section import section
from epochwatt.templates import index, render
from epochwatt.text import first_of

MOST_WAITING = 8  # files that wait for a job that failed: so many are named
PARTS = ("stall", "compute", "overhead", "baseload", "above_baseload")
LINKS = (
    ("report.html", "Snakemake's report", "every figure and table with how it was made, and the "
     "graph of the rules; make report makes it"),
    ("summary.html", "Summary", "where time and energy go, and the best settings, as tables"),
    ("claims.html", "Claims", "every take-away of both papers, claim by claim"),
    ("configuration.html", "Configuration", "versions, machines and settings"),
    ("tables/runs.csv", "Statistics of runs", "means and medians, CSV"),
    ("tables/epochs.csv", "All epochs", "CSV"),
    ("tables/advice.csv", "Advice", "what holds each measured run back, CSV"),
)  # fmt: skip
MADE_BY_NAME = (  # `make run` does not make them; the page links those that were made
    ("powertrain/index.html", "PowerTrain", "time and power of any mode from fifty profiled ones: "
     "the paper's methods beside others, on simulated and on real boards"),
    ("sweeps/sweep_scores.html", "Prediction on real sweeps", "which method predicts new modes of "
     "boards and graphics cards that others measured, and how sure that is"),
    ("container-overheads/index.html", "What a container costs", "training inside and outside, in "
     "pairs: equivalent within a margin, different or undecided"),
)  # fmt: skip


def write_index(
    inputs: Mapping[str, str],
    figures: Sequence[Mapping[str, Any]],
    numbers: Iterable[str],
    titles: Mapping[str, str],
    palette: Mapping[str, str],
    page: str,
    explored: Mapping[str, Any] | None = None,
    further: Sequence[str] = (),
    powertrain: Mapping[str, str] | None = None,
    fulcrum: Mapping[str, str] | None = None,
    not_made: Sequence[Mapping[str, Any]] = (),
) -> None:
    """Write the page.

    Parameters
    ----------
    inputs : paths of `runs`, `epochs`, `advice`, `energy_parts`, `claims`, `ceilings`, `printed`,
        `explanations` and `validation` (empty: it was not made), and `published`, the folder of
        the published numbers
    figures : as `gallery` takes them
    numbers : tables with published numbers beside ours
    titles : model or device -> name for people
    palette : colours of the parts of an epoch, among others
    page : where to write
    explored : what the explorer shows besides the epochs: `records`, run -> folder; `specs`,
        paths; None: the page has no explorer
    further : paths of those pages of `MADE_BY_NAME` that are there
    powertrain : `numbers` and `claims` of that study; None: it was not made
    fulcrum : `summary` and `claims` of that study; None: it was not made
    not_made : jobs that failed: `rule`, `outputs`, `log`, `reason`, and what is `waiting` for them
    """
    findings = read_claims_table(inputs["claims"])
    runs, advice, parts = (Table(inputs[name]) for name in ("runs", "advice", "energy_parts"))
    more = [
        Table(path) if (path := inputs.get(name)) else None
        for name in ("explanations", "epochs", "ceilings")
    ]
    tables = Machine(runs, advice, parts, *more)
    says = statements(Path(inputs["published"]))
    shown, images = gallery(figures, findings, says)
    missing = {path for job in not_made for path in (*job["outputs"], *job["waiting"])}
    links = [link for link in LINKS if f"results/{link[0]}" not in missing]
    links += [link for link in MADE_BY_NAME if link[0] in further]
    explored = explored if inputs.get("epochs") else None
    text = render(
        index.PAGE,
        colours={name.replace("_", "-"): palette[name] for name in PARTS if name in palette},
        machine=describe(tables, titles),
        powertrain=section(powertrain or {}),
        fulcrum=fulcrum_section.section(fulcrum or {}),
        papers=compare(numbers, inputs, findings, titles, says),
        figures=shown,
        links=[dict(zip(("path", "title", "says"), link, strict=True)) for link in links],
        not_made=_failures(not_made),
        data={"images": images},
        explorer=explored and _explorer(inputs["epochs"], explored, titles, palette),
        library=explored and library(),
    )
    Path(page).write_text(text, "utf-8")


def write_bare(not_made: Sequence[Mapping[str, Any]], page: str) -> None:
    """Write a page with nothing but what failed, where the landing page itself is among it.

    Parameters
    ----------
    not_made, page : as `write_index` takes them
    """
    there = [
        {"path": p, "title": title, "says": says} for p, title, says in (*LINKS, *MADE_BY_NAME)
    ]
    links = [link for link in there if (Path(page).parent / link["path"]).exists()]
    text = render("index/bare.html", not_made=_failures(not_made), links=links)
    Path(page).write_text(text, "utf-8")


def _failures(not_made: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return failed jobs as the page shows them, with the first of many files."""
    return [
        {
            **job,
            "made": first_of(job["outputs"]),
            "waiting": first_of(job["waiting"], MOST_WAITING),
        }
        for job in not_made
    ]


def _explorer(
    epochs: str, explored: Mapping[str, Any], titles: Mapping[str, str], palette: Mapping[str, str]
) -> dict[str, Any]:
    rows = read_epochs([epochs])
    return explorer(rows, explored["records"], titles, palette, explored["specs"])
