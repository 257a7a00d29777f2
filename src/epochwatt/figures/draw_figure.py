"""Draw a figure with the function that config/plotting.yaml names, and write its captions.

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

from epochwatt.claims.claims_table import PAPER, ComparisonRow, read_comparisons
from epochwatt.columns import TWIN
from epochwatt.errors import ConfigError
from epochwatt.figures.common import style
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
    """Draw all panels of a figure; write caption, failing claims and interactive spec of each.

    Raises ConfigError: the configured function does not exist, or takes other parameters.
    """
    rows = [
        row for row in read_comparisons(job.comparisons)
        if row.backend == job.backend and row.form == PAPER
    ]  # fmt: skip
    failing: dict[str, list[ComparisonRow]] = {}  # by panel
    failures: dict[str, list[Failing]] = {}
    verdicts: dict[str, str] = {}
    for name, settings in job.panels.items():
        failing[name] = [
            row for row in rows if row.fails and row.claim in settings.get("claims", [])
        ]
        # the panel marks printed numbers that fail in red: only other failures need words on it
        told = [row for row in failing[name] if not row.published_id]
        verdicts[name] = verdict_words(told, style.note_letters(settings["width_in"]))
        failures[name] = [
            Failing(
                r.claim, frozenset(r.published_id.split()), r.device, r.model, r.metric, r.printed
            )
            for r in failing[name]
        ]
    job = replace(job, failing=failures, verdicts=verdicts)
    _call_configured(job)  # the figure's function fills job.drawn, by `draw_panel`
    for name, drawn in job.drawn.items():
        stem, title = f"{job.folder}/{name}", job.panels[name]["title"]
        lines = []
        for row in failing[name]:
            claim = (row.claim, row.takeaway, row.claim_text, row.subject)
            published = row.published.removeprefix("published ")  # as the column is called
            lines.append((*claim, published, row.here, row.tolerance, row.published_id))
        write_table(f"{stem}.claims.csv", "what does not hold", CLAIM_COLUMNS, lines)
        text = caption_text(name, job, drawn, failing[name])
        Path(f"{stem}.txt").write_text(text, encoding="utf-8")
        verdict = verdict_words(failing[name])  # a page has room for all
        write_spec(stem, title, job.backend, job.titles, job.palette, verdict)


def _call_configured(job: Job) -> None:
    """Import and call the function `job.draw` with the job and the configured parameters.

    Adds src/ of the working folder, where users' own modules lie, to sys.path. Raises ConfigError:
    there is no such function, or it does not take these parameters.
    """
    if USER_MODULES not in sys.path:
        sys.path.append(USER_MODULES)
    where, parameters = f"config/plotting.yaml: figures.{job.figure}", job.parameters
    for name in REMOVED.keys() & parameters.keys():
        problem = f"{job.draw} no longer takes {name}"
        raise ConfigError(problem, where=f"{where}.parameters", do=REMOVED[name])
    if isinstance(change := parameters.get("change"), str) and " " in change:
        do = f"write change: [{', '.join(change.split())}]"
        raise ConfigError("change is a list of two", where=f"{where}.parameters", do=do)
    module, _, name = job.draw.rpartition(".")
    try:
        function = getattr(import_module(module), name)
        arguments = signature(function).bind(job, **parameters)
    except (AttributeError, TypeError) as error:
        raise ConfigError(f"{job.draw}: {error}", where=where) from error
    function(*arguments.args, **arguments.kwargs)


def verdict_words(failing: Sequence[ComparisonRow], most: int = 1000) -> str:
    """Say in at most `most` letters what the paper says and these comparisons contradict.

    All claims are named where they fit, else the first, a core one if there is one. What is here
    follows where one comparison alone fails.
    """
    ordered = sorted(failing, key=lambda row: row.role != "core")
    texts = list(dict.fromkeys(row.claim_text for row in ordered))
    if not texts:
        return ""
    named = f"Published, fails here in part: {texts[0]}"
    further = [f"; {'; '.join(texts[1:])}", f" (and {len(texts) - 1} more)"] if texts[1:] else []
    if len(failing) == 1:
        further = [f": {failing[0].in_words}", f": {failing[0].here}"]
    fitting = (named + words for words in (*further, "") if len(named + words) <= most)
    return next(fitting, f"{counted(len(texts), 'claims')} of the paper fail here in part")


def caption_text(name: str, job: Job, drawn: Drawn, failing: Sequence[ComparisonRow]) -> str:
    """Compose a panel's caption: title, configured texts, marks, failing claims, origin, note."""
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
            is_tested = job.backend == TWIN and not drawn.is_put_in
            paragraphs += [f"{MARKS} {FITTED}" if is_tested else MARKS]
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
    """Say which settings of these published numbers were inferred; empty where none was.

    `ids` are of config/published/measurements.csv.
    """
    numbers_by_settings: dict[str, list[str]] = {}
    for published_id in ids:
        fact = job.facts.measurements.get(published_id)
        if fact and fact.note.startswith(INFERRED):
            settings = fact.note.removeprefix(INFERRED).strip()
            numbers_by_settings.setdefault(settings, []).append(f"{fact.value:g} {fact.unit}")
    sentences = []
    for settings, numbers in numbers_by_settings.items():
        whose = " and ".join(dict.fromkeys(numbers))
        sentences.append(f"Inferred, as the paper does not say it: {settings} of {whose}.")
    return " ".join(sentences)
