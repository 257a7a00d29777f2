"""Draw a figure with the function that config/plotting.yaml names, and tell what it shows.

Beside each panel's picture and CSV lie its interactive spec, its caption, and a table of what of
the paper does not hold here (`{panel}.claims.csv`), taken from results/tables/comparisons.csv.
"""

import sys
import textwrap
from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from inspect import signature
from pathlib import Path

from epochwatt.claims.claims_table import FAILS, HOLDS, PAPER, ComparisonRow, read_comparisons
from epochwatt.columns import TWIN
from epochwatt.errors import ConfigError
from epochwatt.figures.common.interactive import write_spec
from epochwatt.figures.common.job import Drawn, Failing, Job
from epochwatt.figures.common.published import INFERRED
from epochwatt.figures.common.runs import why_empty
from epochwatt.tables import write_table
from epochwatt.text import NOT_DRAWN, ORIGINS, counted

USER_MODULES = "src"  # folder of the user's own modules
COLUMNS = 88  # of a line of a caption
OWN = "none"  # paper of a user's own figure
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
CLAIM_COLUMNS = (
    *("claim", "takeaway", "sentence", "subject", "published", "here", "tolerance"),
    "published_id",
)


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
    wrong = {
        name: [
            Failing(r.claim, frozenset(r.published_id.split()), r.device, r.model, r.metric)
            for r in of_panel
        ]
        for name, of_panel in failing.items()
    }
    job = replace(job, failing=wrong, verdicts=verdicts)
    _call(job)
    for name, drawn in job.drawn.items():
        stem, title = f"{job.folder}/{name}", job.panels[name]["title"]
        table = []
        for row in failing[name]:
            about = (row.claim, row.takeaway, row.claim_text, row.subject)
            published = row.published.removeprefix("published ")  # as the column is called
            table.append((*about, published, row.here, row.tolerance, row.published_id))
        write_table(f"{stem}.claims.csv", "what does not hold", CLAIM_COLUMNS, table)
        text = caption_text(name, job, drawn, failing[name])
        Path(f"{stem}.txt").write_text(text, encoding="utf-8")
        write_spec(stem, title, job.backend, job.titles, job.palette, verdicts[name])


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


def verdict_words(rows: Sequence[ComparisonRow]) -> str:
    """Return how many of a panel's take-aways do not hold, of those judged; empty: all hold.

    A take-away is judged by its core claims, where the panel has any.
    """
    by_takeaway: dict[str, list[ComparisonRow]] = {}
    for row in rows:
        if row.status in (HOLDS, FAILS) or row.fails:
            by_takeaway.setdefault(row.takeaway, []).append(row)
    deciding = [[r for r in rows if r.role == "core"] or rows for rows in by_takeaway.values()]
    n_wrong = sum(any(row.fails for row in rows) for rows in deciding)
    if n_wrong:
        which = f"{n_wrong} of {counted(len(deciding), 'take-aways')}"
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
        relations = [row for row in drawn.rows if row.get("is_relation")]
        marked = [
            row for row in drawn.rows
            if row.get("published") is not None and not row.get("is_relation")
        ]  # fmt: skip
        if marked:
            ids = [name for row in marked for name in row["published_id"].split()]
            paragraphs += [f"{MARKS} {FITTED}" if job.backend == TWIN else MARKS]
            paragraphs += [inferred_words(job, ids)]
        paragraphs += [RELATIONS if relations else "", " ".join(drawn.remarks)]
        by_claim: dict[str, list[ComparisonRow]] = {}
        for row in failing:
            by_claim.setdefault(row.claim, []).append(row)
        paragraphs += ["What does not hold here:"] if failing else []
        for claim, rows in by_claim.items():
            numbers = [f"{r.subject}: {r.in_words}" if r.subject else r.in_words for r in rows]
            paragraphs.append(f"* {rows[0].claim_text} ({claim}): {'; '.join(numbers)}.")
    remark = job.captions.get("simulated", "") if job.backend == TWIN else ""
    is_own = is_host and job.captions.get("paper") == OWN
    origin = "Measured on this machine." if is_own else ORIGINS[job.backend].caption
    paragraphs += [
        f"{origin} {remark}".strip(),
        f"{'; '.join(filter(None, (drawn.note, drawn.machine)))}.",
    ]
    filled = [textwrap.fill(p, COLUMNS, break_on_hyphens=False) for p in paragraphs if p]
    return "\n\n".join(filled) + "\n"


def inferred_words(job: Job, ids: Sequence[str]) -> str:
    """Return which settings of marked numbers the paper does not say; else nothing."""
    by_settings: dict[str, list[str]] = {}
    for name in ids:
        fact = job.facts.measurements.get(name)
        if fact and fact.note.startswith(INFERRED):
            settings = fact.note.removeprefix(INFERRED).strip()
            by_settings.setdefault(settings, []).append(f"{fact.value:g} {fact.unit}")
    return " ".join(
        f"Inferred, as the paper does not say it: {settings} of {' and '.join(dict.fromkeys(v))}."
        for settings, v in by_settings.items()
    )
