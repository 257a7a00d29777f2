"""The Pareto front of a board's power modes, with the recommended one: `epochwatt recommend`.

Beside the front stand the modes that the models were fitted to, as the models see them. All
numbers are expectations, not measurements. The plane is that of SIGMETRICS 2023, Fig. 8.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from epochwatt.figures import style
from epochwatt.prediction.advice import ORIGINS, Advice
from epochwatt.prediction.modes import Mode
from epochwatt.study.config import read_yaml

STYLE = "workflow/styles/paper.mplstyle"
PLOTTING = "config/plotting.yaml"
SIZE = {"width_in": 6.5, "height_in": 3.2}


def draw_front(advice: Advice, root: Path = Path()) -> list[str]:
    """Draw the front of an advice that has one; return the files: SVG, PNG, CSV."""
    stem = root / advice.folder / "front"
    palette = style.colours(
        read_yaml(root / PLOTTING)["palette"], ("pareto", "missing", "published")
    )
    title = f"Power modes of {advice.title} for {advice.asked.model}"
    rows = front_rows(advice)
    with style.panel(str(root / STYLE), {"title": title, **SIZE}, _note(advice)) as (figure, axes):
        _draw(axes, advice, rows, palette)
        by_label = dict(zip(*axes.get_legend_handles_labels()[::-1], strict=True))
        style.legend(figure, list(by_label.values()))
        style.save(figure, str(stem), rows)
    return [f"{advice.folder}/front.{suffix}" for suffix in ("svg", "png", "csv")]


def _note(advice: Advice) -> str:
    n_modes = len(advice.profiled)
    return (
        f"{ORIGINS[advice.asked.backend]}; {advice.aim}; expected by models of {n_modes} profiled "
        f"modes, of {advice.told.n_modes:,} that the board has"
    )


def front_rows(advice: Advice) -> list[dict[str, Any]]:
    """Return the numbers of the figure: the front, the recommended mode, the profiled ones."""
    fit, told = advice.fit, advice.told
    about = {name: fit.workload[name] for name in ("backend", "device", "instance", "model")}
    about |= {"origin": ORIGINS[advice.asked.backend]}
    rows = [
        _row("front", of.mode, of.epoch_s, of.power_w, of.energy_wh, about) for of in told.front
    ]
    expected = {name: of.value for name, of in told.estimates.items()}
    bounds = {
        f"{name}_{end}": getattr(of, end)
        for name, of in told.estimates.items()
        for end in ("low", "high")
    }
    rows.append(_row("recommended", told.mode, **expected, about=about) | bounds)
    if fit.power is not None:
        times, powers = fit.time.predict(advice.profiled), fit.power.predict(advice.profiled)
        for mode, s, w in zip(advice.profiled, times.tolist(), powers.tolist(), strict=True):
            rows.append(_row("profiled", mode, s, w, s * w / 3600, about))
    return rows


def _row(
    what: str, mode: Mode, epoch_s: float, power_w: float, energy_wh: float, about: dict[str, Any]
) -> dict[str, Any]:
    numbers = {"epoch_s": epoch_s, "power_w": power_w, "energy_wh": energy_wh}
    return {**about, "what": what, **mode._asdict(), **numbers}


def _draw(axes: Axes, advice: Advice, rows: list[dict[str, Any]], palette: dict[str, str]) -> None:
    def points(what: str) -> tuple[list[float], list[float]]:
        mine = [row for row in rows if row["what"] == what]
        return [row["energy_wh"] for row in mine], [row["epoch_s"] for row in mine]

    axes.plot(*points("front"), color=palette["pareto"], linewidth=2.5, label="Pareto front")
    axes.plot(
        *points("profiled"), "o", color=palette["missing"], mfc="white", label="profiled modes"
    )
    time, energy = (advice.told.estimates[name] for name in ("epoch_s", "energy_wh"))
    axes.errorbar(
        [energy.value],
        [time.value],
        xerr=[[max(energy.value - energy.low, 0)], [max(energy.high - energy.value, 0)]],
        yerr=[[max(time.value - time.low, 0)], [max(time.high - time.value, 0)]],
        fmt="D",
        color=palette["published"],
        capsize=2,
        label="recommended, 90 % intervals",
    )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.grid(visible=True, which="both", axis="both")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_xlabel("energy per epoch (Wh)")
    axes.set_ylabel("E2E per epoch (s)")
    _draw_budgets(axes, advice.asked.budgets, palette["missing"])


def _draw_budgets(axes: Axes, budgets: Mapping[str, float], colour: str) -> None:
    """Draw the bounds of the plane that are set; one of power is a straight line in it."""
    look: dict[str, Any] = {"color": colour, "linestyle": ":", "zorder": 1}
    limits = axes.get_xlim(), axes.get_ylim()
    if "power_w" in budgets:
        times = [3600 * wh / budgets["power_w"] for wh in limits[0]]
        axes.plot(limits[0], times, label="budget", **look)
    if "epoch_s" in budgets:
        axes.axhline(budgets["epoch_s"], label="budget", **look)
    if "energy_wh" in budgets:
        axes.axvline(budgets["energy_wh"], label="budget", **look)
    axes.set_xlim(limits[0])
    axes.set_ylim(limits[1])
