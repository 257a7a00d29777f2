"""Letters beside the points of a plane: each clear of points, lines and other letters."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from epochwatt.figures.common.style import Look

NEAR_PT = (8.0, 11.0, 15.0, 20.0, 26.0, 33.0, 41.0, 50.0, 60.0, 72.0)  # how far from its point
TURNS = 16  # places around a point at one distance
POINT_PT, LETTER_PT, LINE_PT = 8.0, 9.5, 5.5  # how far from others' points, letters, lines
EDGE_PT = 5.0  # how far from the frame of the axes
FAR_PT = 12.0  # a letter as far as that is tied to its point by a line
NEARER = 1.4  # a letter without a line is that many times as far from points of others
UPRIGHT = 0.35  # across over length of a letter's line that could be taken for an l
CROSSED_PT = 4.0  # a line of a letter keeps that far from points of others
SAME_PT = 0.01  # points as near as that are one
STEP_PT = 3.0  # between the places on a line that letters keep away from
TIE: Look = {"arrowstyle": "-", "linewidth": 0.6, "shrinkA": 0.5, "shrinkB": 2.5}
AWAY_PT = np.array([  # of the places around a point, (n, 2): near ones first
    (r * math.cos(2 * math.pi * n / TURNS), r * math.sin(2 * math.pi * n / TURNS))
    for r in NEAR_PT
    for n in range(TURNS)
])  # fmt: skip

Place = tuple[float, float]


@dataclass
class Taken:
    """Obstacles that letters of one plane keep away from.

    Attributes
    ----------
    plane : its limits no longer change
    places : x, y, and how far a letter has to keep away; points of the page
    rivals : points that have letters of their own, and lines of letters, on the page
    """

    plane: Axes
    places: list[tuple[float, float, float]] = field(default_factory=list)
    rivals: list[Place] = field(default_factory=list)

    def add_points(
        self, points: Iterable[Place], room_pt: float = POINT_PT, *, are_rivals: bool = False
    ) -> None:
        """Keep letters away from points of the plane.

        Parameters
        ----------
        are_rivals : a letter without a line could be taken to name them
        """
        shown = [on_page(self.plane, point) for point in points]
        self.places += [(*place, room_pt) for place in shown]
        self.rivals += shown if are_rivals else []

    def add_line(self, points: Sequence[Place]) -> None:
        """Keep letters away from a line through points of the plane."""
        line = along([on_page(self.plane, point) for point in points])
        self.places += [(*place, LINE_PT) for place in line]

    def write(self, point: Place, letter: str, colour: str) -> None:
        """Write a letter beside a point of the plane, where it is clear of all else."""
        at = on_page(self.plane, point)
        box, per_px = self.plane.get_window_extent(), 72.0 / self.plane.figure.dpi
        low = (per_px * box.x0 + EDGE_PT, per_px * box.y0 + EDGE_PT)
        high = (per_px * box.x1 - EDGE_PT, per_px * box.y1 - EDGE_PT)
        rivals = [place for place in self.rivals if math.dist(place, at) > SAME_PT]
        offset = free_place(at, self.places, (*low, *high), rivals)
        end = (at[0] + offset[0], at[1] + offset[1])
        self.places.append((*end, LETTER_PT))
        is_tied = math.hypot(*offset) > FAR_PT
        self.plane.annotate(
            letter, point, offset, textcoords="offset points", ha="center", va="center",
            color=colour, fontsize="small", arrowprops=TIE | {"color": colour} if is_tied else None,
        )  # fmt: skip
        if is_tied:  # neither letters nor their lines come near it
            line = along([at, end])[1:]
            self.places += [(*place, LINE_PT) for place in line]
            self.rivals += line


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
    point: Place,
    taken: Sequence[tuple[float, float, float]],
    room: tuple[float, float, float, float] = (-math.inf, -math.inf, math.inf, math.inf),
    rivals: Sequence[Place] = (),
) -> Place:
    """Return where a letter stands, from its point, so that it is clear of all else; points.

    The first of the places around that is clear, else the clearest.

    Parameters
    ----------
    taken : x, y, and how far a letter has to keep away
    room : x and y from, x and y to, that it should not leave
    rivals : points that it must not seem to name: without a line it is clearly nearer to its own,
        and its line does not come near them
    """
    at, others = point + AWAY_PT, np.array([*taken, (math.inf, math.inf, 0.0)])
    clear = (_apart(at, others[:, :2]) - others[:, 2]).min(axis=1)
    clear = np.minimum(clear, np.minimum(at - room[:2], np.array(room[2:]) - at).min(axis=1))
    if rivals:
        others, length = np.subtract(rivals, point), np.hypot(*AWAY_PT.T)
        untied = _apart(AWAY_PT, others).min(axis=1) - NEARER * length
        share = np.clip(AWAY_PT @ others.T / length[:, None] ** 2, 0.0, 1.0)
        crossed = np.hypot(*np.moveaxis(share[:, :, None] * AWAY_PT[:, None] - others, -1, 0))
        tied = np.where(
            np.abs(AWAY_PT[:, 0]) < UPRIGHT * length, -FAR_PT, crossed.min(axis=1) - CROSSED_PT
        )
        clear = np.minimum(clear, np.where(length > FAR_PT, tied, untied))
    x, y = AWAY_PT[int(np.argmax(np.minimum(clear, -0.01)))].tolist()
    return x, y


def _apart(a: NDArray[np.floating], b: NDArray[np.floating]) -> NDArray[np.floating]:
    """Return the distances between places, (n, 2) and (m, 2): (n, m)."""
    return np.asarray(np.hypot(*np.moveaxis(a[:, None, :] - b, -1, 0)))
