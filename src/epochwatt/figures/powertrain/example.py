"""Draw one power limit: all modes, the fronts that methods predict, their choices."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

from epochwatt.figures.common import style
from epochwatt.figures.common.vega import Cells
from epochwatt.figures.powertrain import looks
from epochwatt.figures.powertrain.learning import legend_entries
from epochwatt.figures.powertrain.looks import Look
from epochwatt.published.paper_numbers import PaperNumber

Row = Mapping[str, str]
WIDTH_IN, HEIGHT_IN = 7.2, 4.6
LIMIT = "#B2182B"
AROUND_W, AROUND = 8.0, 1.4  # what is shown: watts, and a factor in time, around the optimum
JUDGED = ("provenance", "workload", "method", "draw", "limit_w", "penalty_pct", "over_w")
DRAW = ("workload", "method", "n_profiled", "draw")
MATRIX = "transfer-matrix"  # its rows have other references
COLUMNS = ("predicted_epoch_s", "predicted_power_w", "epoch_s", "power_w")
CAPTION = """Grey: every mode of the board. Lines: what a method expects of the modes of its front,
from fifty profiled modes (the draw that is the paper's sixth of ten by error). For the limit each
method takes the fastest mode that it expects to keep it: the small mark is what it expects, the
arrow leads to what this mode takes and draws (large mark). A large mark right of the limit breaks
it. Only the neighbourhood of the limit is drawn; what lies outside is named at the edge."""
BESIDE = "Simulated. The paper's numbers for the same limit, on a real board, stand in the table."


def caption() -> str:
    """Return the caption of the figure."""
    return " ".join(f"{CAPTION} {BESIDE}".split())


def draw_example(
    stem: str,
    modes: Sequence[Row],
    fronts: Sequence[Row],
    example: Sequence[Row],
    numbers: Sequence[PaperNumber],
    style_file: str,
) -> str:
    """Draw the example; return the caption.

    Parameters
    ----------
    modes : the table of the example's modes
    fronts, example : rows of fronts.csv and example.csv; of a method the first counts
    numbers : the paper's; they are in the CSV and a table below, since another board's seconds
        are no place on these axes
    """
    example = list({row["method"]: row for row in reversed(example)}.values())[::-1]
    title = "The fastest mode under one power limit"
    best = next((row for row in example if row["method"] == "observed" and row["epoch_s"]), None)
    provenance = best["provenance"] if best else "simulated"
    settings = {"title": title + looks.suffix(provenance), "width_in": WIDTH_IN}
    note = looks.note(provenance, looks.workload(best["workload"]) if best else "")
    with style.panel(style_file, {**settings, "height_in": HEIGHT_IN}, note) as (figure, axes):
        if best is None:
            style.notice(figure, f"{title}: no mode keeps the limit, or none was asked for.")
            style.save(figure, stem, [])
            return caption()
        rows = example_rows(fronts, example, float(best["minibatches"]))
        names = looks.looks(row["method"] for row in rows)
        _draw_modes(axes, modes, float(best["minibatches"]))
        _zoom(axes, rows)
        for method, look in names.items():
            _draw_method(axes, [row for row in rows if row["method"] == method], look)
        limit_w = float(best["limit_w"])
        axes.axvline(limit_w, color=LIMIT, ls=(0, (3, 2)), lw=1.1, zorder=1)
        axes.annotate(
            f"limit {limit_w:g} W", (limit_w, 0.99), xycoords=("data", "axes fraction"),
            xytext=(-3, 0), textcoords="offset points", ha="right", va="top", color=LIMIT,
            fontsize="small", rotation=90,
        )  # fmt: skip
        axes.set_xlabel("mean power (W)")
        axes.set_ylabel("time of an epoch (s)")
        style.legend(figure, legend_entries(list(names.values())))
        style.save(figure, stem, [*rows, *_paper_rows(numbers)])
    return caption()


def example_rows(fronts: Sequence[Row], example: Sequence[Row], minibatches: float) -> list[Cells]:
    """Return what is drawn: points of fronts, and choices with what is expected and observed.

    Parameters
    ----------
    minibatches : of an epoch; fronts are in seconds of one
    """
    chosen = {tuple(row[name] for name in DRAW) for row in example}
    observed_ones = {(row["workload"], "observed") for row in example}
    rows = [
        {
            **{"what": "front", "provenance": row["provenance"], "workload": row["workload"]},
            **{"method": row["method"], "draw": row["draw"]},
            "predicted_epoch_s": _times(row["predicted_time_s"], minibatches),
            "predicted_power_w": row["predicted_power_w"],
            "epoch_s": _times(row["time_s"], minibatches),
            "power_w": row["power_w"],
        }
        for row in fronts
        if (tuple(row[name] for name in DRAW) in chosen and row["group"] != MATRIX)
        or (row["workload"], row["method"]) in observed_ones
    ]
    return rows + [
        {"what": "choice", **{name: row[name] for name in (*COLUMNS, *JUDGED)}} for row in example
    ]


def _times(cell: str, minibatches: float) -> str:
    return f"{float(cell) * minibatches:.5g}" if cell else ""


def _paper_rows(numbers: Sequence[PaperNumber]) -> list[Cells]:
    """Return what the paper's methods chose, a row each."""
    rows: dict[str, Cells] = {}
    for number in numbers:
        if number.group == "example":
            row = {"what": "paper", "provenance": "paper", "method": number.method}
            rows.setdefault(number.method, row)[number.statistic] = number.value
    return list(rows.values())


def _draw_modes(axes: Axes, modes: Sequence[Row], minibatches: float) -> None:
    """Draw all modes, whatever anybody predicts of them."""
    points = [
        (float(row["power_w"]), float(row["time_s"]) * minibatches)
        for row in modes
        if row["power_w"] and row["time_s"]
    ]
    axes.plot(*zip(*points, strict=True) if points else ((), ()), ".", color=looks.CONTEXT, ms=2)


def _zoom(axes: Axes, rows: Sequence[Cells]) -> None:
    """Show the neighbourhood of the optimum and of all choices that are not far off."""
    best = next(row for row in rows if row["method"] == "observed" and row["what"] == "choice")
    watts, seconds = float(best["power_w"]), float(best["epoch_s"])
    style.set_log(axes, "y")
    axes.set_xlim(watts - AROUND_W, watts + AROUND_W)
    if seconds > 0.0:
        axes.set_ylim(seconds / AROUND, seconds * AROUND)
    axes.yaxis.set_major_locator(MaxNLocator(8, steps=[1, 2, 2.5, 5, 10]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.grid(visible=True, axis="both")


def _point(row: Cells, prefix: str) -> tuple[float, float] | None:
    watts, seconds = row[f"{prefix}power_w"], row[f"{prefix}epoch_s"]
    return (float(watts), float(seconds)) if watts and seconds else None


def _draw_method(axes: Axes, rows: Sequence[Cells], look: Look) -> None:
    """Draw a method's front, and where its choice was expected and is."""
    prefix = "" if look is looks.METHODS["observed"] else "predicted_"
    front = sorted(filter(None, (_point(r, prefix) for r in rows if r["what"] == "front")))
    if front:
        axes.plot(*zip(*front, strict=True), color=look.colour, ls=look.line, lw=1.1, zorder=2)
    for row in (row for row in rows if row["what"] == "choice"):
        expected, is_there = _point(row, "predicted_"), _point(row, "")
        if is_there is None:
            continue
        if not _is_inside(axes, is_there):
            _name_outside(axes, is_there, look)
            continue
        if expected is not None:
            axes.plot(*expected, look.mark, color=look.colour, ms=4, mfc="white", zorder=4)
            arrow = {"arrowstyle": "->", "color": look.colour, "lw": 1.1}
            axes.annotate("", is_there, expected, arrowprops=arrow, zorder=4)
        size = 11 if look is looks.METHODS["observed"] else 8
        axes.plot(*is_there, look.mark, color=look.colour, ms=size, mec="white", zorder=5)


def _is_inside(axes: Axes, point: tuple[float, float]) -> bool:
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    return left <= point[0] <= right and low <= point[1] <= high


def _name_outside(axes: Axes, point: tuple[float, float], look: Look) -> None:
    """Say at the edge where a choice lies that the axes do not reach."""
    is_right = point[0] > axes.get_xlim()[1]
    axes.annotate(
        f"{look.title}: {point[0]:.3g} W, {point[1]:.3g} s" + (" \u2192" if is_right else ""),
        (0.99, 0.03), xycoords="axes fraction", ha="right", fontsize="x-small", color=look.colour,
    )  # fmt: skip
