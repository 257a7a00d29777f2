"""Draw a figure with the function that config/plotting.yaml names, and tell what it shows.

Beside each panel's picture and CSV lie its interactive spec, its caption, and a table of what of
the paper does not hold here (`{panel}.claims.csv`), taken from results/tables/comparisons.csv.
"""

import sys
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any, NamedTuple

from epochwatt.claims.claims_table import FAILS, HOLDS, PAPER, ComparisonRow, read_comparisons
from epochwatt.columns import TWIN
from epochwatt.errors import ConfigError
from epochwatt.figures.common.interactive import write_spec
from epochwatt.figures.common.job import Drawn, Failing, Job
from epochwatt.figures.common.published import INFERRED, inferred, is_marked
from epochwatt.figures.common.runs import why_empty
from epochwatt.tables import write_table
from epochwatt.text import NOT_DRAWN, counted

USER_MODULES = "src"  # folder of the user's own modules
COLUMNS = 88  # of a line of a caption
OWN = "none"  # paper of a user's own figure
ORIGINS = {
    TWIN: "Simulated, not measured.",
    "fake": "From a fake board, not measured.",
    "host": "Measured on this machine, which is none of the paper's boards.",
    "jetson": "Measured on a board.",
}
MARKS = (
    'Black marks are the paper\'s printed numbers, each at its value; those printed with "about" '
    "have approx in the CSV, which also has how far ours is from each (deviation_pct)."
)
RELATIONS = (
    'Of changes and shares the paper\'s number stands first, ours after "here"; ÷ and × are what '
    "leads from the left bar to the right one."
)
FITTED = (
    "Filled marks and solid lines: the simulation was fitted to the number. Open marks and dashed "
    "lines: it was not, so that they test it."
)
REMOVED = dict.fromkeys(  # parameter of a former version -> what to do
    ("printed_fronts", "printed_trend", "printed_apart", "much_less", "change_of"),
    "remove it: the panel's table of claims has what the paper says",
)


class FailingRow(NamedTuple):
    """One row of `{panel}.claims.csv`: a comparison that a claim of the panel fails by."""

    claim: str
    takeaway: str
    sentence: str
    subject: str
    published: str
    here: str
    tolerance: str
    published_id: str


def draw_figure(job: Job) -> None:
    """Draw all panels of a figure.

    Raises ConfigError: there is no such function, or it takes other parameters.
    """
    rows = [row for row in read_comparisons(job.comparisons) if row.backend == job.backend]
    judged = {
        name: [r for r in rows if r.form == PAPER and r.claim in settings.get("claims", [])]
        for name, settings in job.panels.items()
    }
    failing = {name: [row for row in of_panel if row.fails] for name, of_panel in judged.items()}
    verdicts = {name: verdict_words(of_panel) for name, of_panel in judged.items()}
    wrong = {name: list(map(_failing, of_panel)) for name, of_panel in failing.items()}
    job = replace(job, failing=wrong, verdicts=verdicts)
    _call(job)
    for name, drawn in job.drawn.items():
        stem, title = f"{job.folder}/{name}", job.panels[name]["title"]
        table = map(failing_row, failing[name])
        path = Path(f"{stem}.claims.csv")
        write_table(path, "what does not hold", FailingRow._fields, table)
        text = caption_text(name, job, drawn, failing[name])
        Path(f"{stem}.txt").write_text(text, encoding="utf-8")
        words = [verdicts[name]] if verdicts[name] else []
        write_spec(stem, title, job.backend, job.titles, job.palette, words)


def _call(job: Job) -> None:
    """Call the function that draws; a module of your own lies in src/ of the working folder."""
    if USER_MODULES not in sys.path:
        sys.path.append(USER_MODULES)
    where, given = f"config/plotting.yaml: figures.{job.figure}", job.parameters
    for name in REMOVED.keys() & given.keys():
        problem = f"{job.draw} no longer takes {name}"
        raise ConfigError(problem, where=f"{where}.parameters", do=REMOVED[name])
    if isinstance(change := given.get("change"), str) and " " in change:
        do = f"write change: [{', '.join(change.split())}]"
        raise ConfigError("change is a list of two", where=f"{where}.parameters", do=do)
    module, _, name = job.draw.rpartition(".")
    try:
        function = getattr(import_module(module), name)
        arguments = signature(function).bind(job, **given)
    except (AttributeError, TypeError) as error:
        raise ConfigError(f"{job.draw}: {error}", where=where) from error
    function(*arguments.args, **arguments.kwargs)


def _failing(row: ComparisonRow) -> Failing:
    ids = frozenset(row.published_id.split())
    return Failing(row.claim, ids, row.device, row.model, row.metric)


def failing_row(row: ComparisonRow) -> FailingRow:
    """Return the row of a panel's table for a comparison that fails."""
    published, _, here = row.in_words.rpartition("here ")
    published = published.rstrip(", ").removeprefix("published ")
    return FailingRow(
        row.claim,
        row.takeaway,
        row.claim_text,
        row.subject,
        published,
        here,
        row.tolerance,
        row.published_id,
    )


def verdict_words(rows: Sequence[ComparisonRow]) -> str:
    """Return how many of a panel's take-aways do not hold, of those judged; empty: all hold.

    A take-away is judged by its core claims, where the panel has any.
    """
    of_takeaways: dict[str, list[ComparisonRow]] = {}
    for row in rows:
        if row.status in (HOLDS, FAILS) or row.fails:
            of_takeaways.setdefault(row.takeaway, []).append(row)
    core = [[r for r in of if r.role == "core"] or of for of in of_takeaways.values()]
    n_wrong = sum(any(row.fails for row in of) for of in core)
    if n_wrong:
        which = f"{n_wrong} of {counted(len(core), 'take-aways')}"
        return f"{which} {'does' if n_wrong == 1 else 'do'} not hold here: see the table beside it"
    if any(row.fails for row in rows):
        return "Some printed numbers do not hold here: see the table beside it"
    return ""


def caption_text(name: str, job: Job, drawn: Drawn, failing: Sequence[ComparisonRow]) -> str:
    """Return a panel's caption: what a reader of the picture alone has to know."""
    title = job.panels[name]["title"]
    is_host = job.backend == "host"
    paragraphs = [f"{title}." if is_host else f"{name}: {title}."]
    if reason := why_empty(drawn.rows):
        paragraphs.append(f"{NOT_DRAWN}: {reason}.")
    else:
        of_panel = [p["text"] for p in job.captions.get("panels", []) if p["title"] == title]
        paragraphs += [*of_panel, job.captions.get("figure", "")]
        is_related = any(row.get("is_relation") for row in drawn.rows)
        fitted = FITTED if job.backend == TWIN else ""
        if any(map(is_marked, drawn.rows)):
            paragraphs += [f"{MARKS} {fitted}".strip(), inferred_words(job, drawn.rows)]
        paragraphs += [RELATIONS if is_related else "", " ".join(drawn.remarks)]
        paragraphs += _failures(failing)
    remark = job.captions.get("simulated", "") if job.backend == TWIN else ""
    is_own = is_host and job.captions.get("paper") == OWN
    origin = "Measured on this machine." if is_own else ORIGINS.get(job.backend, "")
    paragraphs += [f"{origin} {remark}".strip(), f"{drawn.note}."]
    filled = [textwrap.fill(p, COLUMNS, break_on_hyphens=False) for p in paragraphs if p]
    return "\n\n".join(filled) + "\n"


def _failures(failing: Sequence[ComparisonRow]) -> list[str]:
    """Return a line for each claim that does not hold, with what it fails by."""
    of_claims: dict[str, list[ComparisonRow]] = {}
    for row in failing:
        of_claims.setdefault(row.claim, []).append(row)
    lines = ["What does not hold here:"] if failing else []
    for claim, rows in of_claims.items():
        numbers = [f"{r.subject}: {r.in_words}" if r.subject else r.in_words for r in rows]
        lines.append(f"* {rows[0].claim_text} ({claim}): {'; '.join(numbers)}.")
    return lines


def inferred_words(job: Job, rows: Sequence[Mapping[str, Any]]) -> str:
    """Return which settings of marked numbers the paper does not say; else nothing."""
    facts = inferred(job.published)
    of_settings: dict[str, list[str]] = {}
    for row in filter(is_marked, rows):
        for name in str(row["published_id"]).split():
            if fact := facts.get(name):
                settings = fact.note.removeprefix(INFERRED).strip()
                of_settings.setdefault(settings, []).append(f"{fact.value:g} {fact.unit}")
    return " ".join(
        f"Inferred, as the paper does not say it: {settings} of {' and '.join(dict.fromkeys(v))}."
        for settings, v in of_settings.items()
    )
