"""The Pareto front of a board's power modes, with the recommended one: `epochwatt recommend`.

Beside the front stand the modes that the models were fitted to, as the models see them. All drawn
numbers are expectations, not measurements; the table has beside them what was observed in the
profiled modes. The plane is that of SIGMETRICS 2023, Fig. 8.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from epochwatt.columns import unit
from epochwatt.figures.common import style
from epochwatt.prediction.recommend.command import Advice
from epochwatt.prediction.recommend.recommend import Estimate
from epochwatt.study.yaml_files import read_yaml
from epochwatt.text import ORIGINS

STYLE = "config/paper.mplstyle"
PLOTTING = "config/plotting.yaml"
SIZE = {"width_in": 6.5, "height_in": 3.4}
FRONT = "clock_class_1"  # of the palette; the yellow of fronts elsewhere is hard to see on white
LIMIT, OTHER = "warning", "missing"
DASHES = {"power_w": (1, 1), "epoch_s": (2, 1), "energy_wh": (3, 1, 1, 1)}  # of a budget's line

Rows = Sequence[Mapping[str, object]]  # of front.csv (`recommend.text.write_front`)


def draw_front(advice: Advice, rows: Rows, root: Path = Path()) -> list[str]:
    """Draw an advice's Pareto front and write it as SVG, PNG and CSV; return these paths.

    `rows` are those of its front.csv; `root` is the folder of the checkout.
    """
    palette = read_yaml(root / PLOTTING)["palette"]
    request, n_modes = advice.request, f"{advice.recommendation.n_modes:,}"
    title = f"{ORIGINS[request.backend].answer}: power modes of {advice.title} for {request.model}"
    note = f"{advice.aim}; expected by {advice.method.title}, of {len(advice.profiled)} profiled "
    note += f"modes; the board has {n_modes}"
    with style.panel(str(root / STYLE), {"title": title, **SIZE}, note) as (figure, axes):
        draw(axes, advice, rows, style.colours(palette, (FRONT, LIMIT, OTHER, "published")))
        by_label = dict(zip(*axes.get_legend_handles_labels()[::-1], strict=True))
        style.legend(figure, list(by_label.values()))
        style.save(figure, str(root / advice.folder / "front"), rows)
    return [f"{advice.folder}/front.{suffix}" for suffix in ("svg", "png", "csv")]


def draw(axes: Axes, advice: Advice, rows: Rows, palette: Mapping[str, str]) -> None:
    """Draw front, profiled modes, the recommended one and budgets: epoch time over energy, log."""
    looks: dict[str, style.Look] = {
        "front": {"color": palette[FRONT], "linewidth": 2.5, "label": "Pareto front"},
        "profiled": {"color": palette[OTHER], "linestyle": "none", "marker": "o", "mfc": "white",
                     "label": "profiled modes"},
    }  # fmt: skip
    for kind, look in looks.items():
        shown = [row for row in rows if row["what"] == kind]
        energy_wh, epoch_s = ([row[name] for row in shown] for name in ("energy_wh", "epoch_s"))
        axes.plot(energy_wh, epoch_s, **look)  # type: ignore[arg-type]
    time, energy = (advice.recommendation.estimates[name] for name in ("epoch_s", "energy_wh"))
    budgets = advice.request.budgets
    label = "recommended"
    if budgets:  # then the mode may lie off the front
        label += ": best within the budget" if len(budgets) == 1 else ": best within the budgets"
    if time.low is not None:
        label += ", 90 % intervals"
    axes.errorbar(
        energy.value, time.value, xerr=_error_bars(energy), yerr=_error_bars(time), fmt="D",
        color=palette["published"], capsize=2, label=label,
    )  # fmt: skip
    axes.set(
        xscale="log",
        yscale="log",
        xlabel=style.axis_title("energy_wh"),
        ylabel=style.axis_title("e2e_s"),
    )
    axes.grid(visible=True, which="both", axis="both")
    x_limits, y_limits = axes.get_xlim(), axes.get_ylim()
    for name, most in budgets.items():
        lines: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
            # power: time = energy / power, a straight line in logarithmic axes
            "power_w": (x_limits, tuple(3600 * energy_wh / most for energy_wh in x_limits)),
            "epoch_s": (x_limits, (most, most)),
            "energy_wh": ((most, most), y_limits),
        }
        line_wh, line_s = lines[name]
        label = f"budget: {most:g} {unit(name)}"
        if not (_overlap(line_wh, x_limits) and _overlap(line_s, y_limits)):
            label += " (outside)"
        axes.plot(
            line_wh,
            line_s,
            label=label,
            color=palette[LIMIT],
            linestyle=(0, DASHES[name]),
            zorder=1,
        )
    axes.set(xlim=x_limits, ylim=y_limits)
    few = MaxNLocator(10, steps=[1, 2, 2.5, 5, 10], min_n_ticks=5)
    for axis, (low, high) in ((axes.xaxis, x_limits), (axes.yaxis, y_limits)):
        style.label_log(axis, 1, 2, 3, 5)
        if high < 10 * low:
            axis.set_major_locator(few)


def _overlap(a: Sequence[float], b: Sequence[float]) -> bool:
    return min(a) <= max(b) and max(a) >= min(b)


def _error_bars(estimate: Estimate) -> list[list[float]] | None:
    """Return the lengths of error bars below and above an estimate; None without an interval."""
    value, low, high = estimate
    if low is None or high is None:
        return None
    return [[max(value - low, 0)], [max(high - value, 0)]]
