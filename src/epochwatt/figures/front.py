"""Draw the Pareto front of a board's power modes, with the recommended one: `epochwatt recommend`.

Beside the front stand the modes that the models were fitted to, as the models see them. All drawn
numbers are expectations, not measurements; the table has beside them what was observed in the
profiled modes. The plane is that of SIGMETRICS 2023, Fig. 8.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from epochwatt.figures.common import style
from epochwatt.figures.common.vega import Cells
from epochwatt.prediction.data.modes import Mode
from epochwatt.prediction.recommend.command import ORIGINS, Advice
from epochwatt.prediction.recommend.recommend import UNITS, Estimate
from epochwatt.prediction.recommend.verify import profiled_means
from epochwatt.study.yaml_files import read_yaml

STYLE = "config/paper.mplstyle"
PLOTTING = "config/plotting.yaml"
SIZE = {"width_in": 6.5, "height_in": 3.4}
FRONT = "clock_class_1"  # of the palette; the yellow of fronts elsewhere is hard to see on white
LIMIT, OTHER = "warning", "missing"
DASHES = {"power_w": (1, 1), "epoch_s": (2, 1), "energy_wh": (3, 1, 1, 1)}  # of a budget's line
SEEN = ("epoch_s", "power_w", "energy_wh")


def draw_front(advice: Advice, root: Path = Path()) -> list[str]:
    """Draw the front of an advice that has one; return the files: SVG, PNG, CSV."""
    stem = root / advice.folder / "front"
    palette = style.colours(
        read_yaml(root / PLOTTING)["palette"], (FRONT, LIMIT, OTHER, "published")
    )
    request = advice.request
    title = f"{ORIGINS[request.backend]}: power modes of {advice.title} for {request.model}"
    rows = front_rows(advice, root)
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


def front_rows(advice: Advice, root: Path = Path()) -> list[Cells]:
    """Return the numbers of the figure: the front, the recommended mode, the profiled ones.

    These have beside what is expected what was observed, where their runs are below `root`.
    """
    fit, chosen = advice.fitted, advice.recommendation
    place = {name: fit.workload[name] for name in ("backend", "device", "instance", "model")}
    place |= {"origin": ORIGINS[advice.request.backend], "method": advice.method.name}
    rows = [
        _row("front", plan.mode, plan.epoch_s, plan.power_w, plan.energy_wh, place)
        for plan in chosen.front
    ]
    expected = {name: estimate.value for name, estimate in chosen.estimates.items()}
    bounds = {
        f"{name}_{end}": _rounded(getattr(estimate, end))
        for name, estimate in chosen.estimates.items()
        for end in ("low", "high")
    }
    rows.append(_row("recommended", chosen.mode, **expected, place=place) | bounds)
    if fit.power is not None:
        times, powers = fit.time.mean(advice.profiled), fit.power.mean(advice.profiled)
        seen = profiled_means(advice, root)
        for mode, s, w in zip(advice.profiled, times.tolist(), powers.tolist(), strict=True):
            observed_here = {name: _rounded(value) for name, value in seen.get(mode, {}).items()}
            observed = {f"observed_{name}": observed_here.get(name, "") for name in SEEN}
            rows.append(_row("profiled", mode, s, w, s * w / 3600, place) | observed)
    return rows


def _rounded(value: float | None) -> float | str:
    """Return a number to five figures; empty: not known."""
    return "" if value is None else float(f"{value:.5g}")


def _row(
    what: str, mode: Mode, epoch_s: float, power_w: float, energy_wh: float, place: Cells
) -> Cells:
    numbers = {
        "epoch_s": _rounded(epoch_s),
        "power_w": _rounded(power_w),
        "energy_wh": _rounded(energy_wh),
    }
    clocks = mode._asdict() | {"cores": int(mode.cores)}
    return {**place, "what": what, **clocks, **numbers}


def _draw(axes: Axes, advice: Advice, rows: list[Cells], palette: dict[str, str]) -> None:
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
