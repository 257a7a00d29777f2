"""Deviations from a model: alike in modes close to each other, independent far apart.

No sum of a few terms follows every bend of a board, so what it leaves over is modelled too, as a
smooth function of the mode (Kennedy and O'Hagan, 2001; kriging, in the words of geostatistics). The
logarithm of observed over expected has mean zero and, in units of its variance, the covariance

    k(x, y) = exp(-|x - y|^2 / (2 l^2)) + tilt^2 (x - c) (y - c)

of modes x and y, each the logarithms of cores and clocks; c is the mean of the profiled modes. Each
observation adds own^2, also a second one in the same mode; l is a belief, own the likeliest of
a few sizes (`intervals.likeliest`). So a prediction
meets what was observed in a profiled mode, follows it nearby, and returns to the plain model far
away, where the interval is as wide as a deviation may be.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from epochwatt.prediction.data.modes import Numbers, logs
from epochwatt.prediction.models.priors import LENGTH, OWN


class Deviations(NamedTuple):
    """Deviations of one model."""

    profiled: Numbers  # (m, 6), the distinct modes it was fitted to
    tilt: float = 0.0  # standard deviation of the exponents by which it may be off, in deviations
    nugget: float = OWN  # standard deviation of what is each mode's own, in deviations

    def whitening(self) -> Numbers:
        """Return what makes deviations in the profiled modes independent, shape (m, m)."""
        return self.whitenings([self.nugget])[0]

    def whitenings(self, nuggets: Sequence[float]) -> Numbers:
        """Return what would make them independent with each of k nuggets, shape (k, m, m)."""
        nugget = np.square(nuggets)[:, None, None] * np.eye(len(self.profiled))
        among = self._shared(self.profiled, self.profiled) + nugget
        return np.asarray(np.linalg.inv(np.linalg.cholesky(among)))

    def weights(self, modes: Numbers) -> Numbers:
        """Return the weight of each profiled mode's deviation in each mode's, shape (n, m)."""
        return np.asarray(np.linalg.solve(self._among(), self._shared(modes, self.profiled).T).T)

    def left_open(self, modes: Numbers) -> Numbers:
        """Return the variance that is left where all of the profiled are known, shape (n,)."""
        apart = self._centred(modes)
        whole = 1 + self.tilt**2 * (apart**2).sum(1)
        explained = (self.weights(modes) * self._shared(modes, self.profiled)).sum(1)
        return np.maximum(whole - explained, 0.0) + self.nugget**2

    def _among(self) -> Numbers:
        return self._shared(self.profiled, self.profiled) + self.nugget**2 * np.eye(
            len(self.profiled)
        )

    def _shared(self, some: Numbers, others: Numbers) -> Numbers:
        """Return the covariance that modes share, without each mode's own part, shape (n, m)."""
        a, b = self._centred(some), self._centred(others)
        apart = ((a[:, None] - b) ** 2).sum(-1)
        return np.asarray(np.exp(-apart / (2 * LENGTH**2)) + self.tilt**2 * a @ b.T)

    def _centred(self, modes: Numbers) -> Numbers:
        return np.asarray(logs(modes) - logs(self.profiled).mean(0))


def distances(modes: Numbers, profiled: Numbers) -> Numbers:
    """Return how far each mode is from the nearest profiled one, in natural logarithms, (n,).

    Parameters
    ----------
    modes, profiled : (n, 6) and (m, 6), m one or more
    """
    apart = logs(modes)[:, None] - logs(profiled)
    return np.asarray(np.sqrt((apart**2).sum(-1).min(1)))
