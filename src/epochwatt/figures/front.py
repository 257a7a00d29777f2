"""The Pareto front of a board's power modes, with the recommended one: `epochwatt recommend`.

Beside the front stand the modes that the models were fitted to, as the models see them. All drawn
numbers are expectations, not measurements; the table has beside them what was observed in the
profiled modes. The plane is that of SIGMETRICS 2023, Fig. 8.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from epochwatt.figures.common import style
from epochwatt.prediction.recommend.command import ORIGINS, Advice
from epochwatt.prediction.recommend.recommend import UNITS, Estimate
from epochwatt.study.yaml_files import read_yaml

STYLE = "config/paper.mplstyle"
PLOTTING = "config/plotting.yaml"
SIZE = {"width_in": 6.5, "height_in": 3.4}
FRONT = "clock_class_1"  # of the palette; the yellow of fronts elsewhere is hard to see on white
LIMIT, OTHER = "warning", "missing"
DASHES = {"power_w": (1, 1), "epoch_s": (2, 1), "energy_wh": (3, 1, 1, 1)}  # of a budget's line


def draw_front(advice: Advice, rows: Sequence[Mapping[str, Any]], root: Path = Path()) -> list[str]:
    """Draw the front of an advice that has one; return the files: SVG, PNG, CSV.

    Parameters
    ----------
    rows : of front.csv (`recommend.text.write_front`)
    """
    stem = root / advice.folder / "front"
    palette = style.colours(
        read_yaml(root / PLOTTING)["palette"], (FRONT, LIMIT, OTHER, "published")
    )
    request = advice.request
    title = f"{ORIGINS[request.backend]}: power modes of {advice.title} for {request.model}"
    with style.panel(str(root / STYLE), {"title": title, **SIZE}, _note(advice)) as (figure, axes):
        _draw(axes, advice, rows, palette)
        by_label = dict(zip(*axes.get_legend_handles_labels()[::-1], strict=True))
        style.legend(figure, list(by_label.values()))
        style.save(figure, str(stem), rows)
    return [f"{advice.folder}/front.{suffix}" for suffix in ("svg", "png", "csv")]


def _note(advice: Advice) -> str:
    n_modes = len(advice.profiled)
    return (
        f"{advice.aim}; expected by {advice.method.title}, of {n_modes} profiled modes; the board "
        f"has {advice.recommendation.n_modes:,}"
    )


def _draw(
    axes: Axes, advice: Advice, rows: Sequence[Mapping[str, Any]], palette: dict[str, str]
) -> None:
    def points(what: str) -> tuple[list[float], list[float]]:
        mine = [row for row in rows if row["what"] == what]
        return [row["energy_wh"] for row in mine], [row["epoch_s"] for row in mine]

    axes.plot(*points("front"), color=palette[FRONT], linewidth=2.5, label="Pareto front")
    axes.plot(*points("profiled"), "o", color=palette[OTHER], mfc="white", label="profiled modes")
    time, energy = (advice.recommendation.estimates[name] for name in ("epoch_s", "energy_wh"))
    axes.errorbar(
        [energy.value],
        [time.value],
        xerr=_bars(energy),
        yerr=_bars(time),
        fmt="D",
        color=palette["published"],
        capsize=2,
        label=f"recommended{_best_within(advice.request.budgets)}"
        + ("" if time.low is None else ", 90 % intervals"),
    )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.grid(visible=True, which="both", axis="both")
    axes.set_xlabel("energy per epoch (Wh)")
    axes.set_ylabel("E2E per epoch (s)")
    _draw_budgets(axes, advice.request.budgets, palette[LIMIT])
    for axis, limits in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
        _label_ticks(axis, *limits)


def _bars(estimate: Estimate) -> list[list[float]] | None:
    """Return the lengths of error bars; None without an interval."""
    value, low, high = estimate
    if low is None or high is None:
        return None
    return [[max(value - low, 0)], [max(high - value, 0)]]


def _best_within(budgets: Mapping[str, float]) -> str:
    """Return why the mode may lie off the front: there is none without a budget."""
    return f": best within the budget{'s' * (len(budgets) > 1)}" if budgets else ""


def _label_ticks(axis: Axis, low: float, high: float) -> None:
    """Give a logarithmic axis some round numbers, also where it spans less than a decade."""
    few = MaxNLocator(10, steps=[1, 2, 2.5, 5, 10], min_n_ticks=5)
    axis.set_major_locator(few if high < 10 * low else LogLocator(subs=(1, 2, 3, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())


def _draw_budgets(axes: Axes, budgets: Mapping[str, float], colour: str) -> None:
    """Draw the bounds of the plane that are set; one of power is a straight line in it.

    One that lies outside of what is drawn is named as such.
    """
    wh, s = axes.get_xlim(), axes.get_ylim()
    for name, most in budgets.items():
        line = {
            "power_w": (wh, [3600 * energy_wh / most for energy_wh in wh]),
            "epoch_s": (wh, (most, most)),
            "energy_wh": ((most, most), s),
        }[name]
        is_there = all(
            min(drawn) <= high and max(drawn) >= low
            for drawn, (low, high) in zip(line, (wh, s), strict=True)
        )
        label = f"budget: {most:g} {UNITS[name]}" + ("" if is_there else " (outside)")
        look: dict[str, Any] = {"color": colour, "linestyle": (0, DASHES[name]), "zorder": 1}
        axes.plot(*line, label=label, **look)
    axes.set_xlim(wh)
    axes.set_ylim(s)
