"""Letters beside the points of a plane: each clear of points, lines and other letters."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

NEAR_PT = (8.0, 11.0, 15.0, 20.0, 26.0, 33.0, 41.0, 50.0, 60.0, 72.0)  # how far from its point
TURNS = 16  # places around a point at one distance
POINT_PT, LETTER_PT, LINE_PT = 8.0, 9.5, 5.5  # how far from others' points, letters, lines
EDGE_PT = 5.0  # how far from the frame of the axes
FAR_PT = 12.0  # a letter as far as that is tied to its point by a line
NEARER = 1.4  # a letter without a line is that many times as far from points of others
UPRIGHT = 0.35  # across over length of a letter's line that could be taken for an l
CROSSED_PT = 4.0  # a line of a letter keeps that far from points of others
SAME_PT = 0.01  # points as near as that are one
MARKER_PT = 2.5  # half of a marker
STEP_PT = 3.0  # between the places on a line that letters keep away from

Place = tuple[float, float]


@dataclass
class Taken:
    """Obstacles that letters of one plane keep away from."""

    plane: Axes  # its limits no longer change
    # x, y, and how far a letter has to keep away; points of the page
    places: list[tuple[float, float, float]] = field(default_factory=list)
    # points that have letters of their own, and lines of letters, on the page
    rivals: list[Place] = field(default_factory=list)

    def add_points(self, points: Iterable[Place], room_pt: float = POINT_PT) -> None:
        """Keep letters away from points of the plane."""
        self.places += [(*on_page(self.plane, point), room_pt) for point in points]

    def add_rivals(self, points: Iterable[Place]) -> None:
        """Keep letters away from points that a letter without a line could be taken to name."""
        shown = list(points)
        self.add_points(shown)
        self.rivals += [on_page(self.plane, point) for point in shown]

    def add_line(self, points: Sequence[Place]) -> None:
        """Keep letters away from a line through points of the plane."""
        line = [on_page(self.plane, point) for point in points]
        self.places += [(*place, LINE_PT) for place in along(line)]

    def write(self, point: Place, letter: str, colour: str) -> None:
        """Write a letter beside a point of the plane, where it is clear of all else."""
        at = on_page(self.plane, point)
        rivals = [place for place in self.rivals if math.dist(place, at) > SAME_PT]
        offset = free_place(at, self.places, self._room(), rivals)
        self.places.append((at[0] + offset[0], at[1] + offset[1], LETTER_PT))
        tie: dict[str, Any] = {
            "arrowstyle": "-",
            "color": colour,
            "linewidth": 0.6,
            "shrinkA": 0.5,
            "shrinkB": MARKER_PT,  # a line that does not touch its point is a stub
        }
        is_tied = math.hypot(*offset) > FAR_PT
        self.plane.annotate(
            letter, point, offset, textcoords="offset points", ha="center", va="center",
            color=colour, fontsize="small", arrowprops=tie if is_tied else None,
        )  # fmt: skip
        if is_tied:  # neither letters nor their lines come near it
            line = along([at, (at[0] + offset[0], at[1] + offset[1])])[1:]
            self.places += [(*place, LINE_PT) for place in line]
            self.rivals += line

    def _room(self) -> tuple[float, float, float, float]:
        """Return where letters may stand on the page: x and y from, x and y to."""
        box = self.plane.get_window_extent()
        per_px = 72.0 / self.plane.figure.dpi
        x0, y0, x1, y1 = (per_px * edge for edge in (box.x0, box.y0, box.x1, box.y1))
        return x0 + EDGE_PT, y0 + EDGE_PT, x1 - EDGE_PT, y1 - EDGE_PT


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
    rivals : points that it must not seem to name: without a line it is clearly nearer to its own
    """
    turns = [2 * math.pi * n / TURNS for n in range(TURNS)]
    places = [(r * math.cos(turn), r * math.sin(turn)) for r in NEAR_PT for turn in turns]
    at = np.add(point, places)
    others = np.array([*taken, (math.inf, math.inf, 0.0)])
    clear = np.hypot(*np.moveaxis(at[:, None, :] - others[:, :2], -1, 0)) - others[:, 2]
    inside = np.minimum(at - room[:2], np.array(room[2:]) - at).min(axis=1)
    clearest = np.minimum(np.minimum(clear.min(axis=1), inside), _certain(point, places, rivals))
    return places[int(np.argmax(np.minimum(clearest, -0.01)))]


def _certain(
    point: Place, places: Sequence[Place], rivals: Sequence[Place]
) -> NDArray[np.floating]:
    """Return how far each place is from seeming to name a rival, in points; below 0: it does."""
    away = np.array(places)
    if not rivals:
        return np.full(len(away), math.inf)
    others = np.subtract(rivals, point)
    length = np.hypot(*away.T)
    nearest = np.hypot(*np.moveaxis(away[:, None, :] - others, -1, 0)).min(axis=1)
    along_line = np.clip(away @ others.T / length[:, None] ** 2, 0.0, 1.0)
    feet = along_line[:, :, None] * away[:, None, :]
    crossed = np.hypot(*np.moveaxis(feet - others, -1, 0)).min(axis=1)
    tied = np.where(np.abs(away[:, 0]) < UPRIGHT * length, -FAR_PT, crossed - CROSSED_PT)
    return np.where(length > FAR_PT, tied, nearest - NEARER * length)
