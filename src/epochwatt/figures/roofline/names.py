"""Put names of workloads beside their marks: none on another name or near another mark."""

from collections.abc import Iterator, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.text import Text
from matplotlib.ticker import EngFormatter
from matplotlib.transforms import Bbox

from epochwatt.figures.common.style import lay_out
from epochwatt.figures.frames import Strokes
from epochwatt.roofline.model import Ceilings

PEAK = "#777777"  # of what a data sheet promises, and of lines to names
ALIKE = 1.5  # times: intensities of one workload that share its name
BESIDE_PT = 7.0  # from the lowest mark to its name at the right or left
BELOW_PT, STEP_PT = -5.0, 2.0  # the same downwards; by how much a name is moved
MOVES, ASIDE_PT = 60, 4.0  # steps at most; what a name at the left or right is below its marks
MARK_PT, RIVAL_PT = 4.0, 12.0  # a mark is as wide and high; what other marks' names keep clear of
SIZE_PT = 7
CEILING, ABOVE = "ceiling", 1.4  # gid of the texts at a roof; times: the room above it
JOIN: Strokes = {"color": PEAK, "linewidth": 0.7, "zorder": 2.8}
format_rate = EngFormatter(places=0)


def add_name(
    axes: Axes, name: str, marks: Sequence[tuple[float, float]], *, are_runs: bool
) -> None:
    """Write the name of a workload beside its marks, once for those of about one intensity.

    Runs of the same are joined by a line.

    Parameters
    ----------
    marks : intensity and rate of each
    are_runs : whether each mark is a run of the same, so that their number is said
    """
    groups: list[list[tuple[float, float]]] = []
    for mark in sorted(marks):
        if groups and mark[0] < ALIKE * groups[-1][-1][0]:
            groups[-1].append(mark)
        else:
            groups.append([mark])
    for group in groups:
        words = f"{name} ({len(group)} runs)" if are_runs and len(group) > 1 else name
        if are_runs and len(group) > 1:
            axes.plot(*zip(*sorted(group, key=lambda mark: mark[1]), strict=True), **JOIN)
        text = axes.annotate(
            words, min(group, key=lambda mark: mark[1]), xytext=(0.0, BELOW_PT),
            textcoords="offset points", ha="center", va="top", fontsize=SIZE_PT, zorder=5,
            path_effects=[withStroke(linewidth=2.0, foreground="white")],
            arrowprops={"arrowstyle": "-", "color": PEAK, "linewidth": 0.5, "shrinkB": 2.5},
        )  # fmt: skip
        text.set_in_layout(False)


def name_ceilings(axes: Axes, ceilings: Ceilings, ends: tuple[float, float]) -> None:
    """Write the numbers of a lone roof at its slope, its flat part and its corner."""
    low, high = ends
    ridge, flops_per_s = ceilings.ridge_flop_per_byte, ceilings.flops_per_s
    rising, flat = np.sqrt(low * ridge), np.sqrt(ridge * high)
    for text, x, y, xytext, ha, va in (
        (f"{format_rate(ceilings.bytes_per_s)}B/s", rising, rising * ceilings.bytes_per_s,
         (-4, 3), "right", "bottom"),
        (f"{format_rate(flops_per_s)}FLOP/s", flat, flops_per_s, (0, 4), "center", "bottom"),
        (f"ridge {ridge:.1f} FLOP/B", ridge, flops_per_s, (4, -5), "left", "top"),
    ):  # fmt: skip
        axes.annotate(
            text, (x, y), xytext=xytext, textcoords="offset points", ha=ha, va=va,
            fontsize=SIZE_PT, gid=CEILING,
        )  # fmt: skip
    bottom, top = axes.get_ylim()
    axes.set_ylim(bottom, top * ABOVE)


def part_names(figure: Figure) -> None:
    """Move each name clear of marks and other names; a line leads to its mark."""
    named = [axes for axes in figure.axes if axes.texts]
    if named:
        lay_out(figure)
    for axes in named:
        fixed = [text for text in axes.texts if text.get_gid() == CEILING]
        taken = [*_marks(axes, MARK_PT), *map(_box, fixed)]
        names = [text for text in axes.texts if text not in fixed]
        for text in sorted(names, key=lambda text: -_box(text).y0):
            mark = axes.transData.transform(text.xy)  # type: ignore[attr-defined]
            rivals = [box for box in _marks(axes, RIVAL_PT) if not box.contains(*mark)]
            for position in _positions():
                text.set(**position)
                box = _box(text)
                is_inside = axes.bbox.x0 <= box.x0 and box.x1 <= axes.bbox.x1
                if is_inside and not any(box.overlaps(other) for other in (*taken, *rivals)):
                    break
            taken.append(_box(text))


def _positions() -> Iterator[Strokes]:
    """Yield where a name may be: right or left of its mark, below it, then lower."""
    yield {"position": (BESIDE_PT, 0.0), "ha": "left", "va": "center"}
    yield {"position": (-BESIDE_PT, 0.0), "ha": "right", "va": "center"}
    for move in range(MOVES):
        y_pt = BELOW_PT - move * STEP_PT
        yield {"position": (0.0, y_pt), "ha": "center", "va": "top"}
        for aside_pt in (ASIDE_PT, -ASIDE_PT):
            yield {"position": (aside_pt, y_pt), "ha": "right", "va": "top"}
            yield {"position": (-aside_pt, y_pt), "ha": "left", "va": "top"}


def _box(text: Text) -> Bbox:
    """Return the box of a name without the line that leads to it."""
    text.get_window_extent()  # puts it where it is now
    return Text.get_window_extent(text)


def _marks(axes: Axes, size_pt: float) -> list[Bbox]:
    """Return boxes of a size at the marks of a field, which are lines of one point."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    half = size_pt / 2 * figure.dpi / 72
    points = [np.asarray(line.get_xydata()) for line in axes.lines]
    at = [axes.transData.transform(some[0]) for some in points if len(some) == 1]
    return [Bbox([[x - half, y - half], [x + half, y + half]]) for x, y in at]
