"""The arrow from one power mode to another, where it is long enough and clear of all else."""

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from epochwatt.figures.sigmetrics2023.clouds import Cloud
from epochwatt.figures.sigmetrics2023.letters import Place, along, on_page

SHORTEST_PT = 13.0  # three markers: a shorter arrow is a stub
CLEAR_PT, OFF_FRONT_PT = 4.0, 1.5  # of the arrow from points and from the front
AT_ENDS = 0.4  # of its length, where it may be near its own points and a front through them


def draw_arrow(cloud: Cloud, field: Axes, modes: Sequence[str]) -> list[Place]:
    """Draw an arrow between two power modes; return its ends, nothing where there is none.

    There is none where it would be a stub, or lie on points or the front. Call it when the figure
    is laid out.
    """
    ends = [point for mode in modes if (point := cloud.point(mode))]
    if len(ends) != 2:
        return []
    start, end = (on_page(field, point) for point in ends)
    if math.dist(start, end) < SHORTEST_PT:
        return []
    points = [on_page(field, point) for point in cloud.points if point and point not in ends]
    on_front = [point for n in cloud.front if (point := cloud.points[n])]
    front = along([on_page(field, point) for point in on_front])
    if _clear(start, end, points) < CLEAR_PT or _clear(start, end, front) < OFF_FRONT_PT:
        return []
    arrow = {"arrowstyle": "->", "color": "black", "linewidth": 0.8, "shrinkA": 4, "shrinkB": 4}
    field.annotate("", ends[1], ends[0], arrowprops=arrow, zorder=1.6)
    return ends


def _clear(start: Place, end: Place, others: Sequence[Place]) -> float:
    """Return how far the middle part of an arrow is from the nearest of other places."""
    tail, head = np.array(start), np.array(end)
    middle = np.linspace(tail + AT_ENDS * (head - tail), head - AT_ENDS * (head - tail), 20)
    away = np.hypot(*np.moveaxis(middle[:, None, :] - np.reshape(others, (-1, 2)), -1, 0))
    return float(away.min(initial=math.inf))
