"""Draw sampling instants: one random instant in each period (board side: Python 3.6 grammar).

Training is periodic, and sampling it at an exact period is biased however long it goes on: with
mini-batches of 350 ms and an exact 100 ms by about 5 % rms, after 10 s as after 600 s. With one
random instant per period the error falls with time, and no two instants can drift apart.
"""

import random
from typing import List, Sequence


class Schedule:
    """The instants `start + (k + u) period`, u uniform in [0, 1) and drawn anew for each k.

    Parameters
    ----------
    period_s : length of a stratum; each holds one instant
    seed : of the draws
    start_s : where stratum 0 begins, on the monotonic clock

    Attributes
    ----------
    instant_s : the next instant
    n_late : instants that were skipped because they had passed
    """

    def __init__(self, period_s: float, seed: object, start_s: float) -> None:
        self.period_s = period_s
        self.n_late = 0
        self._random = random.Random(str(seed)).random
        self._start_s = start_s
        self._k = 0
        self.instant_s = self._draw()

    def _draw(self) -> float:
        # from the start each time: a sum of periods would drift
        return self._start_s + (self._k + self._random()) * self.period_s

    def take(self, now_s: float) -> float:
        """Return the instant that a sample at `now_s` (not before it) stands for; move on.

        When several have passed it stands for the latest: the others are skipped and counted, as
        samples in a bunch would be worth no more than one.
        """
        planned_s = self.instant_s
        self._advance()
        while self.instant_s <= now_s:
            planned_s = self.instant_s
            self.n_late += 1
            self._advance()
        return planned_s

    def _advance(self) -> None:
        self._k += 1
        self.instant_s = self._draw()

    def slow_down(self, factor: int) -> None:
        """Make the strata longer, from the beginning of the next instant's on."""
        self._start_s += self._k * self.period_s
        self.period_s *= factor
        self._k = 0
        self.instant_s = self._draw()


def together(
    instants: Sequence[float], others: Sequence[float], start_s: float, period_s: float
) -> List[float]:
    """Move each of the instants to the one of the others that lies in its stratum.

    It is as random as before. Where there is none, or an instant before has taken it, it stays.

    Parameters
    ----------
    instants, others : ascending, s
    """
    free = {int((t_s - start_s) / period_s): t_s for t_s in others}
    return [free.pop(int((t_s - start_s) / period_s), t_s) for t_s in instants]
