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
    ("external.html", "Checked against others", "what others measured beside the parsers, the laws "
     "and the simulated boards of this project"),
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
) -> None:
    """Write the page.

    Parameters
    ----------
    inputs : paths of `runs`, `advice`, `energy_parts`, `claims`, `printed`, `explanations` and
        `validation` (empty: it was not made) and `published`, the folder of the published numbers
    figures : as `gallery` takes them
    numbers : tables with published numbers beside ours
    titles : model or device -> name for people
    palette : colours of the parts of an epoch, among others
    page : where to write
    explored : what the explorer shows: `epochs`, path of the table; `records`, run -> folder;
        `specs`, paths; None: the page has no explorer
    further : paths of those pages of `MADE_BY_NAME` that are there
    powertrain : `numbers` and `claims` of that study; None: it was not made
    fulcrum : `summary` and `claims` of that study; None: it was not made
    """
    findings = read_claims_table(inputs["claims"])
    runs, advice, parts = (Table(inputs[name]) for name in ("runs", "advice", "energy_parts"))
    explained = Table(inputs["explanations"]) if inputs.get("explanations") else None
    tables = Machine(runs, advice, parts, explained)
    says = statements(Path(inputs["published"]))
    shown, images = gallery(figures, findings, says)
    made = [link for link in MADE_BY_NAME if link[0] in further]
    text = render(
        index.PAGE,
        colours={name.replace("_", "-"): palette[name] for name in PARTS if name in palette},
        machine=describe(tables, titles),
        powertrain=section(powertrain or {}),
        fulcrum=fulcrum_section.section(fulcrum or {}),
        papers=compare(numbers, inputs, findings, titles, says),
        figures=shown,
        links=[dict(zip(("path", "title", "says"), link, strict=True)) for link in (*LINKS, *made)],
        data={"images": images},
        explorer=explored and _explorer(explored, titles, palette),
        library=explored and library(),
    )
    Path(page).write_text(text, "utf-8")


def _explorer(
    explored: Mapping[str, Any], titles: Mapping[str, str], palette: Mapping[str, str]
) -> dict[str, Any]:
    rows = read_epochs([explored["epochs"]])
    return explorer(rows, explored["records"], titles, palette, explored["specs"])
