"""Find choices near each other, and those at least as high in every knob.

Rows of these relations are worked out when they are first asked for, and kept: searches of many
problems ask for the same ones again and again.
"""

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from epochwatt.schedule.space import Bools, Places, Space

Bits = NDArray[np.uint8]
Side = Literal["at_least", "at_most", "same"]
COMPARE = {"at_least": np.greater_equal, "at_most": np.less_equal, "same": np.equal}
_AT_ONCE = 32  # neighbours that are looked at together


class Neighbours:
    """Relations among the n choices of a space.

    Sets of choices are packed bits, shape (p, (n + 7) // 8): one set for each of p problems.
    """

    def __init__(self, space: Space) -> None:
        self.knobs = space.knobs
        self._n_modes = space.n_mode_knobs
        self._sizes = tuple(int(n) for n in self.knobs.max(0) + 1)
        self._nearest: dict[int, NDArray[np.intp]] = {}
        self._sets: dict[tuple[Side, Side], dict[int, Bits]] = {}
        self._at = np.full(self._sizes, -1)  # steps of all knobs -> choice
        self._at[tuple(self.knobs.T)] = np.arange(len(self.knobs))

    def none(self, p: int) -> Bits:
        """Return p empty sets."""
        return np.zeros((p, (len(self.knobs) + 7) // 8), np.uint8)

    def beside(self, places: Places, modes: Side, sizes: Side) -> Bits:
        """Return the choices on one side of each place (p,): in the mode and in the sizes."""
        sets = self._sets.setdefault((modes, sizes), {})
        distinct, row = np.unique(places, return_inverse=True)
        for place in distinct.tolist():
            if place not in sets:
                sets[place] = self._ordered(place, COMPARE[modes], COMPARE[sizes])
        return np.stack([sets[place] for place in distinct.tolist()])[row]

    def _ordered(
        self, place: int, modes: Callable[..., Bools], sizes: Callable[..., Bools]
    ) -> Bits:
        here, n = self.knobs[place], self._n_modes
        ordered = modes(self.knobs[:, :n], here[:n]).all(1)
        return np.packbits(ordered & sizes(self.knobs[:, n:], here[n:]).all(1))

    def is_outside(self, steps: Places, closed: Bits) -> Bools:
        """Return whether there is a choice of steps (p, d) that is not in a set, shape (p,)."""
        place = self._at[tuple(steps.T)]
        return (place >= 0) & ~_holds(closed, np.maximum(place, 0))

    def nearest_outside(self, steps: Places, closed: Bits) -> Places:
        """Return the choice nearest to steps (p, d) that is not in a set, in steps of all knobs.

        -1 where the set holds all choices. Of equally near ones the first in the space's order.
        """
        target = self._at[tuple(steps.T)]
        places = np.where(target >= 0, target, 0)
        left = np.flatnonzero((target < 0) | _holds(closed, places))
        if left.size:
            places[left] = self._search(steps[left], closed[left])
        return places

    def _search(self, steps: Places, closed: Bits) -> Places:
        keys = np.ravel_multi_index(tuple(steps.T), self._sizes)
        distinct, row = np.unique(keys, return_inverse=True)
        order = np.stack([self._order(int(key)) for key in distinct])
        places, left = np.full(len(steps), -1), np.arange(len(steps))
        for start in range(0, order.shape[1], _AT_ONCE):
            some = order[row[left], start : start + _AT_ONCE]
            is_open = ~_holds(closed[left], some)
            has = is_open.any(1)
            places[left[has]] = some[has, is_open[has].argmax(1)]
            left = left[~has]
            if not left.size:
                break
        return places

    def _order(self, key: int) -> Places:
        """Return all choices, the nearest to the steps of a key first."""
        if key not in self._nearest:
            steps = np.array(np.unravel_index(key, self._sizes))
            far = np.abs(self.knobs - steps).sum(1)
            self._nearest[key] = np.argsort(far, kind="stable")
        return self._nearest[key]


def _holds(sets: Bits, places: Places) -> Bools:
    """Return whether sets (p, ...) hold places, shape (p,) or (p, q)."""
    rows = np.arange(len(sets)).reshape(-1, *[1] * (places.ndim - 1))
    return (sets[rows, places >> 3] >> (7 - (places & 7))) & 1 == 1


def single(places: Places, n: int) -> Bits:
    """Return sets that hold one place (p,) each."""
    sets = np.zeros((len(places), (n + 7) // 8), np.uint8)
    sets[np.arange(len(places)), places >> 3] = 1 << (7 - (places & 7))
    return sets
