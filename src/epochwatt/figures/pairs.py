"""Draw differences of pairs of runs: each pair, mean, interval, and the margin."""

import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from epochwatt import columns
from epochwatt.analysis.pairs import METRICS
from epochwatt.figures.common import style, vega
from epochwatt.figures.frames import Words, numbers, read_texts, records, study_figure

VERDICTS = {  # colour and marker: told apart in grey, too
    "equivalent": ("#009E73", "o"),
    "different": ("#D55E00", "D"),
    "undecided": ("#555555", "s"),
}
DOTS_BELOW = 0.22  # the mean, in rows: a bar would hide them
MARGIN = "#DDDDDD"
WIDTH_IN, ROW_IN, HEAD_IN = 7.0, 0.45, 1.6
SETTING = ["device", "model", "power_mode", "num_workers", "batch_size"]
CAPTION = """Each dot is a pair of runs that follow each other and differ in {factor} alone; which
side was measured first alternates. Across: by how much {b} takes more than {a}, in % of the mean of
{a}; the wait in % of its E2E time. The bar is the mean with its interval of 90 %, the grey band the
margin of {margin:g} % that was stated beforehand. Inside the band: equivalent; outside: different;
across its edge, or with fewer than five pairs: undecided. Pairs with other software on their two
sides are left out."""
NOTE = "{provenance}: {device}; dots: pairs, bars: mean with its interval of 90 %"
NOTHING = Words("No pair counts", "", "nothing is drawn", "No pair counts", "nothing is drawn")


def draw_pairs(pairs: str, verdicts: str, style_file: str, stem: str) -> None:
    """Draw pairs.csv and verdicts.csv: SVG, PNG, CSV, caption and interactive spec at `stem`."""
    dots, rows = read_texts(pairs), read_texts(verdicts)
    rows = rows[rows["difference_pct"].ne("")].reset_index(drop=True)
    words, margin, axis = NOTHING, 0.0, "difference (%)"
    if len(rows):
        study = {str(name): cell for name, cell in rows.iloc[0].items()}  # alike in all rows
        margin = float(study["margin_pct"])
        axis = "how much more {b} takes than {a} (%)".format(**study)
        words = Words(
            title="{factor}: {b} against {a}".format(**study),
            origin=str(study["provenance"]),
            note=NOTE.format(**study),
            caption=CAPTION.format(**study, margin=margin),
            ending="{provenance}: {device}".format(**study),
        )
    dots = dots[dots["differs"].eq("")] if len(dots) else dots
    named = rows.assign(name=_names(rows)) if len(rows) else rows
    size_in = WIDTH_IN, HEAD_IN + ROW_IN * max(1, len(rows))

    def spec() -> vega.Spec:
        return _spec(named, margin, axis)

    cells = records(rows)
    with study_figure(stem, style_file, words, size_in, cells, spec) as (figure, axes):
        handles: list[Artist] = []
        if len(rows):
            axes.axvspan(-margin, margin, color=MARGIN, zorder=0)
            _draw_differences(axes, named, dots)
            for verdict in rows["verdict"].unique():
                colour, marker = VERDICTS[verdict]
                line: style.Look = {"color": colour, "marker": marker, "linewidth": 2.5}
                handles.append(Line2D([], [], label=verdict, **line))
        label = f"margin, {margin:g} %" if len(rows) else "margin"
        style.legend(figure, [*handles, Patch(color=MARGIN, label=label)])
        axes.set_xlabel(axis)
        axes.axvline(0, color="black", linewidth=0.6)
        axes.set_ylim(max(1, len(rows)) - 0.5, -0.5)


def _names(rows: pd.DataFrame) -> list[str]:
    """Return the label of each row: its metric, and the settings that differ between rows."""
    differing = [key for key in SETTING if rows[key].nunique() > 1]
    names = []
    for row in records(rows):
        name = METRICS[row["metric"]].title
        if row["relative_to"] != row["quantity"]:
            name += f", % of {columns.label('e2e_s')}"
        names.append(", ".join([name, *(f"{key} {row[key]}" for key in differing)]))
    return names


def _draw_differences(axes: Axes, rows: pd.DataFrame, dots: pd.DataFrame) -> None:
    """Draw each verdict's mean and interval in a row of its own, above the dots of its pairs."""
    key = ["metric", "storage", *SETTING]
    for y, (_, row) in enumerate(rows.iterrows()):
        colour, marker = VERDICTS[row["verdict"]]
        pairs = dots[dots[key].eq(row[key]).all(axis=1)] if len(dots) else dots
        if len(pairs):
            dots_y = [y + DOTS_BELOW] * len(pairs)
            axes.plot(numbers(pairs["difference_pct"]), dots_y, ".", color=style.pale(colour))
        if row["low_pct"]:
            ends = [float(row["low_pct"]), float(row["high_pct"])]
            axes.plot(ends, [y, y], color=colour, linewidth=2.5)
        axes.plot(float(row["difference_pct"]), y, marker, color=colour)
    axes.set_yticks(range(len(rows)), list(rows["name"]))


def _spec(rows: pd.DataFrame, margin: float, axis: str) -> vega.Spec:
    """Return the interactive form: mean and interval of each metric in the margin's band."""
    scale = {"domain": list(VERDICTS), "range": [colour for colour, _ in VERDICTS.values()]}
    ends = {"x": vega.number("from"), "x2": {"field": "to"}}
    band = vega.layer({"type": "rect", "color": MARGIN}, **ends)
    band["data"] = {"values": [{"from": -margin, "to": margin}]}
    x, y = vega.number("difference_pct", axis), vega.name("name", sort=None)
    colour, rod = vega.name("verdict", scale=scale), ("low_pct", "high_pct")
    return vega.plane(records(rows), x, y, colour, rod=rod, behind=[band])
