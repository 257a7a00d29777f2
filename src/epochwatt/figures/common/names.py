"""Put names beside the marks of a plane: each clear of marks, lines and other names."""

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
TIE = {"arrowstyle": "-", "linewidth": 0.6, "shrinkA": 0.5, "shrinkB": 2.5}
AROUND = np.array([(r, 2 * math.pi * n / TURNS) for r in NEAR_PT for n in range(TURNS)])

Place = tuple[float, float]


class Names:
    """The names of one plane, whose limits no longer change, and what they keep clear of."""

    def __init__(self, axes: Axes, marks: Iterable[Place]) -> None:
        self.axes = axes
        self.marks = [on_page(axes, mark) for mark in marks]  # a name could be taken to be theirs
        self.taken = [(*place, MARK_PT, MARK_PT) for place in self.marks]  # x, y, width, height

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
        """Write a name beside a point of the plane, where it is clear of all else."""
        at, frame, per_px = on_page(self.axes, point), self.axes.bbox, 72.0 / self.axes.figure.dpi
        lines = words.split("\n")
        size = 0.6 * size_pt * max(map(len, lines)), 1.05 * size_pt * len(lines)
        room = [per_px * end for end in (frame.x0, frame.y0, frame.x1, frame.y1)]
        rivals = [mark for mark in self.marks if math.dist(mark, at) > 0.01]
        distance, offset = free_place(at, size, self.taken, room, rivals)
        end = (at[0] + offset[0], at[1] + offset[1])
        self.taken.append((*end, *size))
        is_tied = distance >= FAR_PT
        self.axes.annotate(
            words, point, offset, textcoords="offset points", ha="center", va="center",
            color=colour, fontsize=size_pt, zorder=5, **look,
            arrowprops=TIE | {"color": colour} if is_tied else None,
        )  # fmt: skip
        if is_tied:  # neither names nor their lines come near it
            self.taken += [(*place, LINE_PT, LINE_PT) for place in along([at, end])[2:]]


def on_page(plane: Axes, point: Place) -> Place:
    """Return a place of the plane in points of the page."""
    to_points = plane.transData + plane.figure.dpi_scale_trans.inverted()
    x, y = 72.0 * to_points.transform(point)
    return float(x), float(y)


def along(line: Sequence[Place]) -> list[Place]:
    """Return places on a line, `STEP_PT` apart."""
    places: list[Place] = []
    for start, end in pairwise(line):
        n = max(int(math.dist(start, end) / STEP_PT), 1)
        places += [tuple(p) for p in np.linspace(start, end, n, endpoint=False).tolist()]
    return places


def free_place(
    at: Place,
    size: tuple[float, float],
    taken: Sequence[tuple[float, float, float, float]],
    room: Sequence[float] = (-math.inf, -math.inf, math.inf, math.inf),
    rivals: Sequence[Place] = (),
) -> tuple[float, Place]:
    """Return how far from its mark a name stands, and where its middle is from there; points.

    The first of the places around that is clear of the boxes that are taken (middle, size), in the
    room (x and y from, x and y to), and not to be taken for the name of a rival; else the clearest.
    """
    distance, turn = AROUND.T
    away = np.stack([np.cos(turn), np.sin(turn)], axis=1) * (distance[:, None] + np.array(size) / 2)
    middles, half = at + away, np.array(size) / 2
    boxes = np.array([*taken, (math.inf, math.inf, 0.0, 0.0)])
    clear = _gaps(middles, half, boxes[:, :2], boxes[:, 2:] / 2).max(axis=2).min(axis=1)
    inside = np.minimum(middles - half - room[:2], np.array(room[2:]) - middles - half)
    clear = np.minimum(clear, inside.min(axis=1) - EDGE_PT)
    if rivals:
        others = np.array(rivals)
        apart = np.hypot(*np.moveaxis(_gaps(middles, half, others, 0.0).clip(0.0), -1, 0)).min(
            axis=1
        )
        untied = apart - NEARER * distance
        # a line to a far name comes near no rival
        steps = np.linspace(0.0, 1.0, 9)[None, :, None] * away[:, None, :] + at
        tied = np.hypot(*np.moveaxis(steps[:, :, None] - others, -1, 0)).min(axis=(1, 2)) - LINE_PT
        clear = np.minimum(clear, np.where(distance < FAR_PT, untied, tied))
    best = int(np.argmax(np.minimum(clear, -0.01)))
    return float(distance[best]), (float(away[best, 0]), float(away[best, 1]))


def _gaps(
    a: NDArray[np.floating], half_a: Any, b: NDArray[np.floating], half_b: Any
) -> NDArray[np.floating]:
    """Return gaps between boxes, (n, 2) and (m, 2), across and up: (n, m, 2); below 0: none."""
    return np.asarray(np.abs(a[:, None] - b) - half_a - half_b)
