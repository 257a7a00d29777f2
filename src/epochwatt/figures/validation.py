"""Draw published numbers and what the simulated boards, fitted without them, predict.

Four fields have what is judged as a ratio, the fifth the median error by what was left out. An
error is 100 |ln(simulated / published)|, so that half as much is as far off as twice as much.
"""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator

from epochwatt import columns
from epochwatt.figures.common import style, vega
from epochwatt.figures.frames import Words, numbers, read_texts, records, study_figure
from epochwatt.published.numbers import PAPERS, TITLES, Published, load_published
from epochwatt.text import counted


class Field(NamedTuple):
    """A field of points."""

    title: str
    axis: str
    unit: str
    colour: str  # of the palette


FIELDS = {
    "time": Field("times", "s", "s", "compute"),
    "change": Field("changes", "ratio of two sides", "x", "stall"),
    "power": Field("powers", "W", "W", "epoch_0"),
    "energy": Field("energies", "Wh", "Wh", "epoch_0"),
}
OF_UNIT = {"W": "power", "Wh": "energy"}  # field of what its class does not tell
LOOKS = {"sigmetrics2023": ("--", True), "hipcw2021": (":", False)}  # dash, and whether filled
OF_MINIBATCH = "v"  # marker of times in ms, which are of a mini-batch
MEDIANS = {  # class of the last field -> words, colour, marker, how far from the row
    "time": ("times", "compute", "o", -0.15),
    "energy_power": ("energies and powers", "epoch_0", "s", 0.15),
}
GOAL_PCT = 10.0
SIZE_IN = (7.2, 8.4)
WIDE = 100.0  # from the lowest to the highest value of an axis
RATIOS = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0)  # labelled where they go beyond `FAR`
NEAR_RATIOS, FAR = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.4, 1.7, 2.0), 2.2
ROOM, LEAST_SHOWN = 1.2, 1.3  # of the axes beyond the worst ratio, which is at least taken as this
FITTED, NOT_FITTED = "fitted, priors", "not fitted, priors"  # begin rows that are no grouping
CHOSEN = "as chosen"  # priors of the fits: all other fields have what these give
HEADINGS = ("fitted without the same ...", "from other priors (what is expected before a fit)")
ROWS = {  # names of rows there -> words; others are words
    "take-away": "take-away of the paper",
    "take-away, and what asks nearly the same": "take-away and those that ask nearly the same",
    "board with network": "board with one network",
    "HiPCW: main paper, one parameter": "paper (HiPCW 2021; one parameter fitted to it)",
    f"{NOT_FITTED} {CHOSEN}": "priors as chosen, nothing fitted",
    f"{FITTED} widths doubled": "priors twice as wide, fitted",
    **{
        f"{kind} shifted {n}": f"priors shifted at random ({n}), {words}"
        for n in (1, 2)
        for kind, words in ((NOT_FITTED, "nothing fitted"), (FITTED, "fitted"))
    },
}
MEDIA = {"ssd": "SSD", "sd": "SD card", "hdd": "hard disk"}
NAMED = {  # settings that name a number -> words
    **{"device": "{}", "model": "{}", "storage": "{}", "num_workers": "{} workers"},
    **{"batch_size": "batch {}", "power_mode": "mode {}", "dvfs": "DVFS {}", "epoch": "epochs {}"},
}
USUAL = (16, "g", "15W", "MAXN", "off", "1+", "all")  # settings that are not named
TITLE = "Simulated boards against published numbers"
NOTE = (
    "simulated, not measured; {n} numbers, each predicted by a fit without its take-away (a "
    "numbered finding); grey: goal of {goal:g} %; dashed, dotted: median error"
)
CAPTION = """Published numbers, and what the simulated boards, fitted without them, predict of them.
A point is a published number that is judged as a ratio, simulated / published. Its error is
100 |ln(simulated / published)|: 10 % is a factor of 1.11, 100 % one of 2.7. Take-aways are the
findings that a paper counts by number or section, such as 5.1.3: each is left out of the fit in
turn, with all that gives it away, and its numbers are then predicted. It is stricter to leave out
the whole section, whose median error stands second. HiPCW 2021 contradicts the main paper: one
parameter is fitted to it, again without each of its take-aways; all others come from the main
paper. Lines are the median error of a paper, dashed of SIGMETRICS 2023, dotted of HiPCW 2021; the
grey band is the goal of 10 %. Of times, triangles are of a mini-batch. results/twin/validation.txt
names the farthest numbers. The last field has the median error by what was left out of the fit;
bars are 90 % of a bootstrap over what was left out, none where that is too few. Priors are what
each parameter is expected to be, with a width, before any published number is used; the lower rows
say what comes of others. """


def plot(
    table: str,
    groupings: str,
    priors: str,
    published: str,
    style_file: str,
    palette: Mapping[str, str],
    titles: Mapping[str, str],
    stem: str,
) -> None:
    """Draw the validation of the simulated boards: SVG, PNG, CSV, caption and spec at `stem`.

    `table`, `groupings` and `priors` are paths of CSV tables of results/twin/, `published` is the
    folder of the published numbers.
    """
    points, medians = read_points(table), read_medians(groupings, priors)
    style.colours(palette, [*(field.colour for field in FIELDS.values()), "missing"])
    names = read_names(load_published(Path(published)), titles)
    note = NOTE.format(goal=GOAL_PCT, n=len(points))
    caption = f"{CAPTION}{not_drawn(table)}."
    words = Words(TITLE, "", note, caption, "simulated, not measured")
    rows = records(points.drop(columns=["paper", "field", "marker", "ratio"])) + records(medians)

    def spec() -> vega.Spec:
        both = point_fields(points, palette, names), median_rows(medians, palette)
        return {"vconcat": list(both)}

    with study_figure(stem, style_file, words, SIZE_IN, rows, spec) as (figure, axes):
        axes.remove()
        grid = figure.add_gridspec(3, 2, height_ratios=(2.0, 2.0, 3.2))
        for n, name in enumerate(FIELDS):
            of_field = points[points["field"].eq(name)]
            if len(of_field):
                draw(of_field, FIELDS[name], figure.add_subplot(grid[n // 2, n % 2]), palette)
        below = grid[2, :].subgridspec(1, 1)  # its long labels leave the fields above as they are
        draw_medians(medians, figure.add_subplot(below[0]), palette)


def read_points(path: str) -> pd.DataFrame:
    """Read the numbers of `validation.csv` that are judged as a ratio, each in its field's unit.

    ms become s; a change in per cent becomes the ratio of its two sides, 1 + change / 100.
    """
    table = read_texts(path)
    table = table[table["judged_as"].eq("ratio")]
    is_hipcw = table["class"].str.startswith("hipcw_")
    field = table["unit"].map(OF_UNIT).fillna(table["class"].str.removeprefix("hipcw_"))

    def in_unit(column: str) -> "pd.Series[float]":
        values, unit = numbers(table[column]), table["unit"]
        values = values.where(unit.ne("pct"), 1.0 + values / 100.0)
        return values.where(unit.ne("ms"), values * 1e-3)

    points = table[["published_id", "class", "device"]].assign(
        published=in_unit("published_value"),
        held_out=in_unit("held_out_prediction"),
        error_pct=numbers(table["held_out_error_pct"]),
        section_error_pct=numbers(table["section_error_pct"]),
        unit=field.map({name: of.unit for name, of in FIELDS.items()}),
        paper=is_hipcw.map(dict(zip((False, True), PAPERS, strict=True))),
        field=field,
        marker=table["unit"].map({"ms": OF_MINIBATCH}).fillna("o"),
    )
    return points.assign(ratio=points["held_out"] / points["published"])


def not_drawn(path: str) -> str:
    """Say how many numbers of `validation.csv` are no ratios, and how far off these are."""
    table = read_texts(path)
    bounds = table[table["judged_as"].eq("bound")]["met"].eq("yes")
    points_pct = numbers(table[table["judged_as"].eq("points")]["held_out_error_pct"])
    words = []
    if len(bounds):
        words.append(f"{len(bounds)} bounds and ranges, {bounds.sum()} of them met")
    if len(points_pct):
        off = f"off by {points_pct.median():.1f} points in the median"
        words.append(f"{len(points_pct)} shares and changes below 20 %, {off}")
    return f"Not drawn: {'; '.join(words)} ({path})" if words else "All are drawn"


def read_medians(groupings: str, priors: str) -> pd.DataFrame:
    """Read the median errors by what was left out (`groupings.csv`), then by priors (`priors.csv`).

    Columns `left_out`, `class_`, `n`, and `median_error_pct`, `low_pct`, `high_pct` as numbers. Of
    priors those of all other fields, as chosen and fitted, are left out.
    """
    grouped, by_priors = read_texts(groupings), read_texts(priors)
    grouped = grouped[grouped["class"].isin(list(MEDIANS))]
    by_priors = by_priors[by_priors["priors"].ne(CHOSEN) | by_priors["fitted"].ne("yes")]
    kind = by_priors["fitted"].map({"no": NOT_FITTED, "yes": FITTED})
    left_out = kind + " " + by_priors["priors"]
    by_priors = by_priors.assign(left_out=left_out, low_pct="", high_pct="")
    numeric = ["median_error_pct", "low_pct", "high_pct"]
    shown = ["left_out", "class", "n", *numeric]
    both = pd.concat([grouped[shown], by_priors[shown]], ignore_index=True)
    for name in numeric:
        both[name] = numbers(both[name])
    return both.rename(columns={"class": "class_"})


def read_names(facts: Published, titles: Mapping[str, str]) -> dict[str, str]:
    """Describe each published number in words, by id: its settings, sides of a change, metric."""
    shown = {**MEDIA, **titles}

    def words(config: Mapping[str, Any], unnamed: tuple[Any, ...]) -> str:
        named = {n: config.get(n) for n in NAMED if config.get(n) not in (None, *unnamed)}
        return ", ".join(NAMED[name].format(shown.get(str(v), v)) for name, v in named.items())

    names = {}
    for fact in facts.facts().values():
        a, *other_sides = fact.sides
        same = {
            key: a[key] for key in NAMED
            if key in a and all(a[key] == side.get(key) for side in other_sides)
        }  # fmt: skip
        description = words(same, USUAL)
        if other_sides:
            own = [{k: v for k, v in side.items() if k not in same} for side in fact.sides]
            ordered = own if fact.formula == "A/B" else own[::-1]
            change = " against ".join(words(side, ()) for side in ordered)
            description = ", ".join(filter(None, (description, change)))
        names[fact.id] = f"{description}: {columns.label(fact.metric)}"
    return names


def draw(points: pd.DataFrame, field: Field, axes: Axes, palette: Mapping[str, str]) -> None:
    """Draw simulated / published over the published value, the goal's band and median errors.

    Both axes are logarithmic. The factor of an error is exp(error_pct / 100).
    """
    colour, ratio = palette[field.colour], points["ratio"]
    low, high = 0.6 * points["published"].min(), 1.9 * points["published"].max()
    band = math.exp(GOAL_PCT / 100.0)
    top = ROOM * max(float(np.maximum(ratio, 1.0 / ratio).max()), LEAST_SHOWN)
    axes.axhspan(1.0 / band, band, color=palette["missing"], alpha=0.25, lw=0)
    axes.axhline(1.0, color=palette["missing"], lw=0.8)
    handles: list[Artist] = []
    for paper, of_paper in points.groupby("paper", sort=False):
        dash, is_filled = LOOKS[str(paper)]
        fill = colour if is_filled else "none"
        for marker, alike in of_paper.groupby("marker", sort=False):
            axes.scatter(
                alike["published"], alike["ratio"], s=16, marker=str(marker), facecolors=fill,
                edgecolors=colour, linewidths=0.8, zorder=3,
            )  # fmt: skip
        median_pct, stricter_pct = of_paper[["error_pct", "section_error_pct"]].median()
        factor = math.exp(median_pct / 100.0)
        for line in (factor, 1.0 / factor):
            axes.plot([low, high], [line, line], dash, color=colour, lw=0.8)
        label = f"{TITLES[str(paper)]}, {counted(len(of_paper), 'numbers')}: median error"
        label += f" {median_pct:.1f} %"
        if not np.isnan(stricter_pct):
            label += f",\n{stricter_pct:.1f} % by fits without the whole section of the take-away"
        look: style.Look = {"marker": "o", "markersize": 4, "linewidth": 0.8}
        look |= {"linestyle": dash, "color": colour, "markerfacecolor": fill}
        handles.append(Line2D([], [], label=label, **look))
    axes.set(xscale="log", yscale="log", xlim=(low, high), ylim=(1.0 / top, top))
    axes.set_ylabel("simulated / published", fontsize="small")
    axes.set_xlabel(f"published ({field.axis})", fontsize="small")
    style.label_log(axes.xaxis, *((1.0,) if high / low > WIDE else ()))
    style.label_log(axes.yaxis)
    axes.yaxis.set_major_locator(FixedLocator(RATIOS if top > FAR else NEAR_RATIOS))
    axes.tick_params(labelsize="x-small")
    is_mixed = points["marker"].eq(OF_MINIBATCH).any()
    title = f"{field.title} (triangles: of a mini-batch)" if is_mixed else field.title
    style.legend_above(axes, title, handles)


def draw_medians(medians: pd.DataFrame, axes: Axes, palette: Mapping[str, str]) -> None:
    """Draw the median errors by what was left out, one row each, with their intervals."""
    names = list(dict.fromkeys(medians["left_out"]))
    priors = [name for name in names if name.startswith((FITTED, NOT_FITTED))]
    rows = [HEADINGS[0], *(name for name in names if name not in priors)]
    rows += [HEADINGS[1], *priors] if priors else []
    handles: list[Artist] = []
    for class_, (words, key, marker, shift) in MEDIANS.items():
        of_class = medians[medians["class_"].eq(class_)]
        y = np.array([rows.index(name) + shift for name in of_class["left_out"]])
        axes.hlines(y, of_class["low_pct"], of_class["high_pct"], color=palette[key], lw=1.0)
        errors_pct = of_class["median_error_pct"]
        dots = axes.scatter(errors_pct, y, s=14, color=palette[key], marker=marker, zorder=3)
        grouped_pct = errors_pct[~of_class["left_out"].isin(priors)]
        ends = f"{grouped_pct.min():.0f} to {grouped_pct.max():.0f} %"
        n = numbers(of_class["n"]).max()
        dots.set_label(f"{words} ({counted(n, 'numbers')}): {ends} by what is left out")
        handles.append(dots)
    axes.axvline(GOAL_PCT, color=palette["missing"], lw=0.8)
    axes.set(xscale="log", ylim=(len(rows) - 0.5, -0.7))
    axes.set_yticks(range(len(rows)), [ROWS.get(row, row) for row in rows])
    axes.set_xlabel("median error (%); vertical line: the goal", fontsize="small")
    axes.tick_params(labelsize="x-small")
    axes.tick_params("y", length=0)
    for row, tick, line in zip(rows, axes.get_yticklabels(), axes.get_ygridlines(), strict=True):
        if row in HEADINGS:
            tick.set_fontweight("bold")
            line.set_visible(False)
    style.label_log(axes.xaxis)
    interval = "line: 90 % of a bootstrap, where it has enough to draw from"
    handles.append(Line2D([], [], color=palette["missing"], lw=1.0, label=interval))
    style.legend_above(axes, "median error by what the fit was without, or started from", handles)


# -- the interactive form ------------------------------------------------------------------------


def point_fields(
    points: pd.DataFrame, palette: Mapping[str, str], names: Mapping[str, str]
) -> vega.Spec:
    """Return the fields of points, with the goal as a band."""
    grey, factor = palette["missing"], math.exp(GOAL_PCT / 100.0)
    shown = points.assign(
        field=points["field"].map({n: f"{f.title} ({f.axis})" for n, f in FIELDS.items()}),
        paper=points["paper"].map(TITLES),
        of=points["published_id"].map(lambda name: names.get(name, name)),
    ).drop(columns="marker")
    band = {"type": "rect", "color": grey, "opacity": 0.25}
    goal = vega.layer(band, y={"datum": 1.0 / factor}, y2={"datum": factor})
    unity = vega.layer({"type": "rule", "color": grey}, y={"datum": 1.0})
    for drawn_once in (goal, unity):  # not for each point
        drawn_once["transform"] = [{"aggregate": [], "groupby": ["field"]}]
    scale = {"type": "log", "zero": False}
    x = vega.number("published", "published", scale=scale)
    y = vega.number("ratio", "simulated / published", scale=scale)
    return vega.plane(records(shown), x, y, vega.name("paper"), field="field", behind=[goal, unity])


def median_rows(medians: pd.DataFrame, palette: Mapping[str, str]) -> vega.Spec:
    """Return the median errors by what was left out, with their intervals."""
    shown = medians.assign(
        row=medians["left_out"].map(lambda name: ROWS.get(name, name)),
        of=medians["class_"].map({name: words for name, (words, *_) in MEDIANS.items()}),
    )
    colours = {words: palette[key] for words, key, *_ in MEDIANS.values()}
    scale = {"domain": list(colours), "range": list(colours.values())}
    title = "median error (%) by what was left out of the fit, or by other priors"
    x = vega.number("median_error_pct", title, scale={"type": "log"})
    y = vega.name("row", sort=list(dict.fromkeys(shown["row"])), axis={"labelLimit": 320})
    colour, rod = vega.name("of", scale=scale), ("low_pct", "high_pct")
    goal = vega.layer({"type": "rule", "color": palette["missing"]}, x={"datum": GOAL_PCT})
    return {**vega.plane(records(shown), x, y, colour, rod=rod, behind=[goal]), "width": 460}
