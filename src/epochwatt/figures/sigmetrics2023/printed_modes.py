"""What the paper prints of power modes: numbers of one, changes of two, spreads of several."""

from collections.abc import Container, Iterable, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke

from epochwatt.claims.tolerances import load_terms
from epochwatt.figures.common.brackets import DASHES
from epochwatt.figures.common.failing import failing, is_side, red_of
from epochwatt.figures.common.job import Job
from epochwatt.figures.common.published import METRICS, deviation_text, is_marked, mark
from epochwatt.figures.common.relations import SIGNS, Related
from epochwatt.figures.sigmetrics2023.clouds import Cloud
from epochwatt.published.numbers import Relation

SPREAD = "100*(max-min)/max"  # formula of relations
WORDS = {
    **{"energy_paper_wh": "energy", "power_mean_w": "power"},
    **{"e2e_s": "E2E", "compute_s": "compute"},
}
BELOW = 0.26  # of a field's height, kept free below the points for the spread
BRACKET, BRACKET_TEXT = 0.155, 0.02  # height of the spread's bracket and of its text in a field
CONTRADICTED = "its sections "  # begins the note on a relation that others contradict
MARK = "*"  # of such a number, and of what the corner says of it
UNJUDGED = "†"  # of a change that is off, though no claim judges its size
CROSS: dict[str, Any] = {"marker": "P", "markersize": 4.4, "markeredgewidth": 0.6}


def wrong_spreads(job: Job, x: str) -> list[Related]:
    """Return the published spreads of a quantity by which a claim fails."""
    spreads = [one for one in job.related(METRICS.get(x, x)) if one.relation.formula == SPREAD]
    return failing(job, job.figure, spreads, job.epoch_table())


def draw_published(pair: Sequence[dict[str, Any]], field: Axes, colour: str) -> None:
    """Draw what is published of a run; filled and solid: used in the fit.

    Of both numbers a cross, tied to our point; of one alone a line across the field, which nobody
    can take for a point.
    """
    is_seen = all(row["seen_by_fit"] for row in pair if is_marked(row))
    x, y = (row["published"] for row in pair)
    ours = [row["value"] for row in pair]
    if x is None:
        field.axhline(y, zorder=1.5, **_line(is_seen, colour))
    elif y is None:
        field.axvline(x, zorder=1.5, **_line(is_seen, colour))
    else:
        field.plot([x], [y], zorder=2.1, **_cross(is_seen, colour))
        if None not in ours:
            field.plot([ours[0], x], [ours[1], y], color=colour, linewidth=0.7, zorder=1.9)


def _line(is_seen: bool, colour: str) -> dict[str, Any]:
    return {"color": colour, "linewidth": 1.0, "linestyle": "-" if is_seen else DASHES}


def _cross(is_seen: bool, colour: str) -> dict[str, Any]:
    face = colour if is_seen else "white"
    look = {"linestyle": "none", "markeredgecolor": colour, "markerfacecolor": face}
    return {**look, **CROSS}


def deviation(pair: Sequence[dict[str, Any]]) -> str:
    """Return in words by how much a run is beside what is published of it; nothing where little."""
    off = [f"{WORDS[row['quantity']]} {text}" for row in pair if (text := deviation_text(row))]
    return f"{pair[0]['power_mode']} against published:\n{', '.join(off)}" if off else ""


def change_text(
    cloud: Cloud, modes: Sequence[str], metric: str, job: Job, *, is_wrong: bool
) -> str:
    """Return what changes from one power mode to another: first what is printed, then ours.

    Parameters
    ----------
    metric : of which the paper prints a change, or both times
    is_wrong : whether a claim fails by it; if none does and ours is off, it is marked
    """
    ends = [cloud.point(mode) for mode in modes]
    if len(ends) != 2 or ends[0] is None or ends[1] is None:
        return ""
    x_pct, y_pct = (100.0 * (b / a - 1.0) for a, b in zip(*ends, strict=True))
    which, words = f"{modes[0]} to {modes[1]}", WORDS[metric]
    ours = {"E2E": _signed(y_pct), WORDS[cloud.x]: _signed(x_pct)}
    printed = _printed_change(cloud, modes, metric, job)
    if printed is None:
        return f"{which} here: {', '.join(f'{name} {change}' for name, change in ours.items())}"
    ours.pop(words, "")
    rest = ", ".join(f"{name} {change}" for name, change in ours.items())
    (printed_pct, text), here_pct = printed, _change_here(cloud, modes, metric)
    is_unjudged = not is_wrong and abs(here_pct - printed_pct) > near_points(job)
    here = f"{_signed(here_pct)}{UNJUDGED * is_unjudged}"
    return f"{which}: {words} {text}, here {here}\nhere also: {rest}"


def near_points(job: Job) -> float:
    """Return by how many points a printed change may be off."""
    return load_terms(Path(job.published).parents[1]).numbers["NEAR_PP"]


def unjudged_note(job: Job) -> str:
    """Return for the corner what the mark of changes that are off, and not red, means."""
    return f"; {UNJUDGED} off by more than {near_points(job):g} points: no claim judges its size"


def _printed_change(
    cloud: Cloud, modes: Sequence[str], metric: str, job: Job
) -> tuple[float, str] | None:
    """Return a printed change in per cent and in words, or that between two printed times."""
    for fact in printed_changes(cloud, modes, metric, job.relations):
        return fact.value, f"{fact.value:+g} %{MARK * is_contradicted(fact)}"
    of_mode = {run.factors["power_mode"]: run for run in cloud.runs}
    marks = [mark(job.marks, of_mode[mode].factors, metric) for mode in modes]
    values = [one.value for one in marks if one is not None]
    if len(values) != 2:
        return None
    change_pct = 100.0 * (values[1] / values[0] - 1.0)
    return change_pct, f"{change_pct:+.1f} %"


def _change_here(cloud: Cloud, modes: Sequence[str], metric: str) -> float:
    of_mode = {run.factors["power_mode"]: run for run in cloud.runs}
    values = [of_mode[mode].number(metric).value for mode in modes]
    start, end = (value for value in values if value is not None)
    return 100.0 * (end / start - 1.0)


def printed_changes(
    cloud: Cloud, modes: Sequence[str], metric: str, relations: Sequence[Relation]
) -> list[Relation]:
    """Return the published changes of a metric from one power mode to another."""
    return [
        fact
        for fact in _of_network(relations, cloud, "100*(B-A)/A", metric)
        if [fact.config_a["power_mode"], fact.config_b["power_mode"]] == list(modes)
    ]


def is_change_wrong(cloud: Cloud, modes: Sequence[str], wrong: Sequence[tuple[Any, Any]]) -> bool:
    """Say whether a claim fails by what changes from one power mode to another.

    Parameters
    ----------
    wrong : sides of the comparisons that fail
    """
    ends = [point for mode in modes if (point := cloud.point(mode))]
    if len(ends) != 2:
        return False
    changes = [100.0 * (b / a - 1.0) for a, b in zip(*ends, strict=True)]
    both = list(zip(*ends, strict=True))
    return any(
        any(is_side(change, sides) for change in changes)
        or any(all(is_side(value, sides) for value in pair) for pair in both)
        for sides in wrong
    )


def contradictions(job: Job, facts: Iterable[Relation]) -> str:
    """Return for the corner which of some printed changes others of the paper contradict."""
    return "".join(
        f"; {MARK} the paper prints {fact.value:+g} % for {job.title(fact.config_a['model'])}, "
        f"{fact.config_a['power_mode']} to {fact.config_b['power_mode']}, but {fact.note}"
        for fact in facts
        if is_contradicted(fact)
    )


def is_contradicted(fact: Relation) -> bool:
    """Say whether other printed numbers contradict a printed one, by our note on it."""
    return fact.note.startswith(CONTRADICTED)


def _signed(change_pct: float) -> str:
    """Return a change in whole per cent; none has no sign."""
    whole = round(change_pct)
    return f"{whole:+d} %" if whole else "0 %"


def _of_network(
    relations: Sequence[Relation], cloud: Cloud, formula: str, metric: str
) -> list[Relation]:
    """Return the published relations of this board and network that have a formula."""
    factors = cloud.runs[0].factors
    return [
        fact
        for fact in relations
        if (fact.formula, fact.metric) == (formula, metric)
        and (fact.paper, fact.config_a.get("device"), fact.config_a.get("model"))
        == (factors["setup"], factors["device"], cloud.model)
    ]


def draw_spread(cloud: Cloud, field: Axes, wrong: Container[str], job: Job) -> None:
    """Draw a bracket below the points where a spread over some modes is published.

    Parameters
    ----------
    wrong : ids of the spreads by which a claim fails, which are red
    """
    metric = METRICS.get(cloud.x, cloud.x)
    for fact in _of_network(job.relations, cloud, SPREAD, metric)[:1]:
        there = [
            point[0]
            for run, point in zip(cloud.runs, cloud.points, strict=True)
            if point and run.factors["power_mode"] in fact.config_a["power_mode"]
        ]
        if len(there) < 2:
            continue
        low, high = min(there), max(there)
        bottom, top = field.get_ylim()
        field.set_ylim(bottom - BELOW * (top - bottom), top)
        across = field.get_xaxis_transform()
        colour = red_of(job) if fact.id in wrong else job.palette["published"]
        field.plot([low, low, high, high], [BRACKET + d for d in (0.025, 0.0, 0.0, 0.025)],
                   color=colour, linewidth=0.9, transform=across)  # fmt: skip
        field.text(
            0.5, BRACKET_TEXT, _spread_text(cloud, fact),
            transform=field.transAxes, ha="center", va="bottom", fontsize="x-small",
            color=colour, path_effects=[withStroke(linewidth=2.0, foreground="white")],
        )  # fmt: skip


def _spread_text(cloud: Cloud, fact: Relation) -> str:
    """Return a published spread and ours, and what ours would be with modes that are left out."""
    modes = set(fact.config_a["power_mode"])
    modes &= {run.factors["power_mode"] for run in cloud.runs}
    here = f"here {_spread_pct(cloud, modes):.0f} %"
    if cloud.outside:
        with_all = _spread_pct(cloud, modes | cloud.outside)
        here += f" (with {ranges(cloud.outside)} {with_all:.0f} %)"
    sign = SIGNS.get(fact.qualifier, "")
    return f"energy spread, {ranges(modes)}: {sign}{fact.value:g} %,\n{here}"


def _spread_pct(cloud: Cloud, modes: Iterable[str]) -> float:
    x = [point[0] for mode in modes if (point := cloud.point(mode))]
    return 100.0 * (max(x) - min(x)) / max(x)


def ranges(modes: Iterable[str]) -> str:
    """Return letters in words, as `a to f, k`."""
    spans: list[list[str]] = []
    for mode in sorted(modes):
        follows = spans and len(mode) == 1 and ord(mode) == ord(spans[-1][-1][-1]) + 1
        spans[-1].append(mode) if follows else spans.append([mode])
    return ", ".join(
        f"{span[0]} to {span[-1]}" if len(span) > 2 else ", ".join(span) for span in spans
    )


def published_handles(rows: Sequence[dict[str, Any]], colour: str) -> list[Line2D]:
    """Return a legend's entry for crosses and one for lines."""
    rings: list[dict[str, Any]] = []
    lines: list[dict[str, Any]] = []
    for pair in zip(rows[::2], rows[1::2], strict=True):
        marked = [row for row in pair if is_marked(row)]
        (rings if len(marked) == 2 else lines).extend(marked)
    modes = ", ".join(sorted({row["power_mode"] for row in lines}))
    alone = f"published {WORDS['e2e_s']} alone, mode {modes}"
    return [
        Line2D([], [], label=label, **look(all(row["seen_by_fit"] for row in marked), colour))
        for marked, label, look in ((rings, "published", _cross), (lines, alone, _line))
        if marked
    ]
