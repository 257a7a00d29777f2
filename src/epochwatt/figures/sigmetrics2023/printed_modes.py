"""What the paper prints of power modes: numbers of one, changes of two, spreads of several."""

from collections.abc import Container, Iterable, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke

from epochwatt.figures.common.failing import failing, red_of
from epochwatt.figures.common.job import Job
from epochwatt.figures.common.published import METRICS, deviation_text, is_marked
from epochwatt.figures.common.relations import Related
from epochwatt.figures.sigmetrics2023.clouds import Cloud
from epochwatt.published.numbers import Relation
from epochwatt.study.runs import TWIN

SPREAD = "100*(max-min)/max"  # formula of relations
WORDS = {"energy_paper_wh": "energy", "power_mean_w": "power", "e2e_s": "E2E"}
BELOW = 0.26  # of a field's height, kept free below the points for the spread
BRACKET, BRACKET_TEXT = 0.155, 0.02  # height of the spread's bracket and of its text in a field
CONTRADICTED = "its sections "  # begins the note on a relation that others contradict
MARK = "*"  # of such a number, and of what the corner says of it
CROSS: dict[str, Any] = {"marker": "+", "markersize": 6.0, "markeredgewidth": 1.2}
PUBLISHED_LINE: dict[str, Any] = {"linestyle": (0, (4, 2)), "linewidth": 1.0}


def wrong_spreads(job: Job, x: str) -> list[Related]:
    """Return the published spreads of a quantity by which a claim fails."""
    spreads = [one for one in job.related(METRICS.get(x, x)) if one.relation.formula == SPREAD]
    return failing(job, job.figure, spreads, job.epoch_table())


def draw_published(pair: Sequence[dict[str, Any]], field: Axes, colour: str) -> None:
    """Draw what is published of a run.

    Of both numbers a cross, tied to our point; of one alone a line across the field, which nobody
    can take for a point.
    """
    x, y = (row["published"] for row in pair)
    ours = [row["value"] for row in pair]
    if x is None:
        field.axhline(y, color=colour, zorder=1.5, **PUBLISHED_LINE)
    elif y is None:
        field.axvline(x, color=colour, zorder=1.5, **PUBLISHED_LINE)
    else:
        field.plot([x], [y], linestyle="none", markeredgecolor=colour, zorder=4, **CROSS)
        if None not in ours:
            field.plot([ours[0], x], [ours[1], y], color=colour, linewidth=0.7, zorder=3)


def deviation(pair: Sequence[dict[str, Any]]) -> str:
    """Return in words by how much a run is beside what is published of it; nothing where little."""
    off = [f"{WORDS[row['quantity']]} {text}" for row in pair if (text := deviation_text(row))]
    return f"{pair[0]['power_mode']} against published:\n{', '.join(off)}" if off else ""


def draw_change(
    cloud: Cloud, field: Axes, modes: Sequence[str], relations: Sequence[Relation]
) -> str:
    """Draw an arrow from one power mode to another; return what changes, and what is printed."""
    ends = [cloud.point(mode) for mode in modes]
    if len(ends) != 2 or ends[0] is None or ends[1] is None:
        return ""
    arrow = {"arrowstyle": "->", "color": "black", "linewidth": 0.8, "shrinkA": 4, "shrinkB": 4}
    field.annotate("", ends[1], ends[0], arrowprops=arrow, zorder=1.6)
    x_pct, y_pct = (100.0 * (b / a - 1.0) for a, b in zip(*ends, strict=True))
    text = f"{modes[0]} to {modes[1]}: E2E {_signed(y_pct)}, {WORDS[cloud.x]} {_signed(x_pct)}"
    printed = printed_changes(cloud, modes, relations)
    return text + "".join(f"\npublished: E2E {fact.value:+g} %" for fact in printed)


def printed_changes(
    cloud: Cloud, modes: Sequence[str], relations: Sequence[Relation]
) -> list[Relation]:
    """Return the published changes of E2E from one power mode to another."""
    return [
        fact
        for fact in _of_network(relations, cloud, "100*(B-A)/A", "e2e_s")
        if [fact.config_a["power_mode"], fact.config_b["power_mode"]] == list(modes)
    ]


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


def draw_spread(
    cloud: Cloud, field: Axes, relations: Sequence[Relation], wrong: Container[str], job: Job
) -> None:
    """Draw a bracket below the points where a spread over some modes is published.

    Parameters
    ----------
    wrong : ids of the spreads by which a claim fails, which are red
    """
    metric = METRICS.get(cloud.x, cloud.x)
    for fact in _of_network(relations, cloud, SPREAD, metric)[:1]:
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
        spread_pct = 100.0 * (high - low) / high
        field.text(
            0.5, BRACKET_TEXT,
            f"energy of all but {_left_out(cloud, fact)}: spread\n"
            f"{spread_pct:.0f} % here, {fact.value:g} % published",
            transform=field.transAxes, ha="center", va="bottom", fontsize="x-small",
            color=colour, path_effects=[withStroke(linewidth=2.0, foreground="white")],
        )  # fmt: skip


def _left_out(cloud: Cloud, fact: Relation) -> str:
    """Return the compared modes that a spread is not over, as `g to j`."""
    modes = sorted(
        run.factors["power_mode"]
        for n, run in enumerate(cloud.runs)
        if cloud.is_compared(n) and run.factors["power_mode"] not in fact.config_a["power_mode"]
    )
    return f"{modes[0]} to {modes[-1]}" if len(modes) > 2 else " and ".join(modes) or "none"


def published_handles(rows: Sequence[dict[str, Any]], colour: str) -> list[Line2D]:
    """Return a legend's entry for crosses and one for lines, with whether the fit has seen them."""
    rings: list[dict[str, Any]] = []
    lines: list[dict[str, Any]] = []
    for pair in zip(rows[::2], rows[1::2], strict=True):
        marked = [row for row in pair if is_marked(row)]
        (rings if len(marked) == 2 else lines).extend(marked)
    ring = {"linestyle": "none", "markeredgecolor": colour, **CROSS}
    modes = ", ".join(sorted({row["power_mode"] for row in lines}))
    handles = []
    for marked, label, look in (
        (rings, "published", ring),
        (
            lines,
            f"published {WORDS['e2e_s']} alone, mode {modes}",
            {"color": colour, **PUBLISHED_LINE},
        ),
    ):
        if marked:
            seen = sum(bool(row["seen_by_fit"]) for row in marked)
            how = "seen" if seen == len(marked) else "not seen" if not seen else "partly seen"
            is_simulated = marked[0]["backend"] == TWIN
            text = f"{label} ({how} by the fit)" if is_simulated else label
            handles.append(Line2D([], [], label=text, **look))
    return handles
