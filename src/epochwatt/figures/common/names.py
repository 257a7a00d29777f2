"""Label the marks of a plane: each label clear of marks, lines and other labels."""

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

NEAR_PT = (4.0, 6.5, 9.0, 13.0, 18.0, 24.0, 32.0, 42.0, 54.0, 68.0)  # from a mark to its name
TURNS = 16  # places around a mark at one distance
FAR_PT = 8.0  # a name as far as that is tied to its mark by a line
NEARER = 1.4  # a name without a line is that many times as far from other marks
MARK_PT, LINE_PT, STEP_PT = 7.0, 4.0, 3.0  # width of a mark, of a line, steps along a line
EDGE_PT = 2.0  # from the frame of the axes
LETTER_WIDTH, LINE_HEIGHT = 0.6, 1.05  # of the size of the font
SAME_PT = 0.01  # marks this near are one
CLEAR_PT = -0.01  # a gap of this is no overlap, but for rounding
TIE = {"arrowstyle": "-", "linewidth": 0.6, "shrinkA": 0.5, "shrinkB": 2.5}
AROUND = np.array([(r, 2 * math.pi * n / TURNS) for r in NEAR_PT for n in range(TURNS)])

Place = tuple[float, float]


class Names:
    """Places labels on axes whose limits no longer change, and remembers what is taken."""

    def __init__(self, axes: Axes, marks: Iterable[Place]) -> None:
        self.axes = axes
        self.marks = [on_page(axes, mark) for mark in marks]
        self.taken = [(*place, MARK_PT, MARK_PT) for place in self.marks]  # x, y, width, height; pt

    def avoid(self, points: Iterable[Place], size_pt: float = MARK_PT) -> None:
        """Keep clear of points of the plane."""
        self.taken += [(*on_page(self.axes, point), size_pt, size_pt) for point in points]

    def avoid_line(self, points: Sequence[Place]) -> None:
        """Keep clear of a line through points of the plane."""
        line = along([on_page(self.axes, point) for point in points])
        self.taken += [(*place, LINE_PT, LINE_PT) for place in line]

    def write(
        self, point: Place, words: str, colour: str, size_pt: float = 7.5, **look: Any
    ) -> None:
        """Draw a label near `point`, in the clearest place, and reserve that place.

        A label that is `FAR_PT` or more away is tied to the point by a line, reserved too.
        """
        mark_pt, frame, pt_per_px = (
            on_page(self.axes, point), self.axes.bbox, 72.0 / self.axes.figure.dpi,
        )  # fmt: skip
        lines = words.split("\n")
        size = LETTER_WIDTH * size_pt * max(map(len, lines)), LINE_HEIGHT * size_pt * len(lines)
        room = [pt_per_px * end for end in (frame.x0, frame.y0, frame.x1, frame.y1)]
        other_marks = [mark for mark in self.marks if math.dist(mark, mark_pt) > SAME_PT]
        distance, offset = free_place(mark_pt, size, self.taken, room, other_marks)
        label_pt = (mark_pt[0] + offset[0], mark_pt[1] + offset[1])
        self.taken.append((*label_pt, *size))
        is_tied = distance >= FAR_PT
        self.axes.annotate(
            words, point, offset, textcoords="offset points", ha="center", va="center",
            color=colour, fontsize=size_pt, zorder=5, **look,
            arrowprops=TIE | {"color": colour} if is_tied else None,
        )  # fmt: skip
        if is_tied:
            tie = along([mark_pt, label_pt])[2:]
            self.taken += [(*place, LINE_PT, LINE_PT) for place in tie]


def on_page(plane: Axes, point: Place) -> Place:
    """Convert data coordinates to points (1/72 in) of the page."""
    to_points = plane.transData + plane.figure.dpi_scale_trans.inverted()
    x, y = 72.0 * to_points.transform(point)
    return float(x), float(y)


def along(line: Sequence[Place]) -> list[Place]:
    """Sample a polyline every `STEP_PT`, without its last point."""
    places: list[Place] = []
    for start, end in pairwise(line):
        n = max(int(math.dist(start, end) / STEP_PT), 1)
        places += [tuple(p) for p in np.linspace(start, end, n, endpoint=False).tolist()]
    return places


def free_place(
    mark: Place,
    size: tuple[float, float],
    taken: Sequence[tuple[float, float, float, float]],
    room: Sequence[float] = (-math.inf, -math.inf, math.inf, math.inf),
    other_marks: Sequence[Place] = (),
) -> tuple[float, Place]:
    """Choose where the label of a mark stands: its distance, and the offset (x, y) of its middle.

    All in points. Of the candidates `AROUND` the mark, nearest first, it is the first that overlaps
    no `taken` box (x and y of the middle, width, height), lies in `room` (x and y from, x and y
    to), and cannot be taken for the label of another mark; where none is clear, the clearest.
    """
    distance, angle = AROUND.T
    half = np.array(size) / 2
    offset = np.stack([np.cos(angle), np.sin(angle)], axis=1) * (distance[:, None] + half)
    middles = mark + offset
    boxes = np.array([*taken, (math.inf, math.inf, 0.0, 0.0)])
    clearance = _gaps(middles, half, boxes[:, :2], boxes[:, 2:] / 2).max(axis=2).min(axis=1)
    inside = np.minimum(middles - half - room[:2], np.array(room[2:]) - middles - half)
    clearance = np.minimum(clearance, inside.min(axis=1) - EDGE_PT)
    if other_marks:
        others = np.array(other_marks)
        across, up = np.moveaxis(_gaps(middles, half, others, 0.0).clip(0.0), -1, 0)
        untied = np.hypot(across, up).min(axis=1) - NEARER * distance
        # a line to a far label comes near no other mark
        on_tie = np.linspace(0.0, 1.0, 9)[None, :, None] * offset[:, None, :] + mark
        across, up = np.moveaxis(on_tie[:, :, None] - others, -1, 0)
        tied = np.hypot(across, up).min(axis=(1, 2)) - LINE_PT
        clearance = np.minimum(clearance, np.where(distance < FAR_PT, untied, tied))
    best = int(np.argmax(np.minimum(clearance, CLEAR_PT)))  # all clear ones are equal: the nearest
    return float(distance[best]), (float(offset[best, 0]), float(offset[best, 1]))


def _gaps(
    a: NDArray[np.floating], half_a: Any, b: NDArray[np.floating], half_b: Any
) -> NDArray[np.floating]:
    """Return the gaps between boxes of middles `a` (n, 2) and `b` (m, 2), across and up: (n, m, 2).

    A negative gap is an overlap.
    """
    return np.asarray(np.abs(a[:, None] - b) - half_a - half_b)
