"""Deviations from a model: alike in modes close to each other, independent far apart.

No sum of a few terms follows every bend of a board, so what it leaves over is modelled too, as a
smooth function of the mode (Kennedy and O'Hagan, 2001; kriging, in the words of geostatistics). The
logarithm of observed over expected has mean zero and, in units of its variance, the covariance

    k(x, y) = exp(-|x - y|^2 / (2 l^2)) + tilt^2 (x - c) (y - c)

of modes x and y, each the logarithms of cores and clocks; c is the mean of the profiled modes. Each
observation adds own^2, also a second one in the same mode; l is a belief, own the likeliest of
a few sizes (`linear_model.likeliest`). So a prediction meets what was observed in a profiled mode,
follows it nearby, and returns to the plain model far away, where the interval is as wide as a
deviation may be.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from epochwatt.prediction.data.modes import Numbers, logs
from epochwatt.prediction.models.priors import LENGTH, OWN


def covariance(
    a: Numbers, b: Numbers, length: ArrayLike, slope: float, size: ArrayLike = 1.0
) -> Numbers:
    """Return the covariance of a smooth function plus a power law, at centred rows a and b.

    They are (n, k) and (m, k); the result is (..., n, m), where the length and the size of the
    smooth part have shape (..., 1, 1).
    """
    squared_distance = ((a[:, None] - b) ** 2).sum(-1)
    smooth = np.square(size) * np.exp(-squared_distance / (2 * np.square(length)))
    return np.asarray(slope**2 * a @ b.T + smooth)


def log_evidence(among: Numbers, off: Numbers) -> Numbers:
    """Return the log probability of values (m,) or (s, m) about zero, up to a constant, (s,).

    `among` is their covariance by each of s processes, (s, m, m).
    """
    lower = np.linalg.cholesky(among)
    white = np.linalg.solve(lower, np.broadcast_to(off[..., None], (*lower.shape[:2], 1)))
    log_volume = np.log(np.diagonal(lower, axis1=1, axis2=2)).sum(-1)
    return np.asarray(-0.5 * (white**2).sum((1, 2)) - log_volume)


@dataclass(frozen=True, eq=False)
class Deviations:
    """Deviations of one model."""

    profiled: Numbers  # (m, 6), the distinct modes it was fitted to
    tilt: float = 0.0  # standard deviation of the exponents by which it may be off, in deviations
    nugget: float = OWN  # standard deviation of what is each mode's own, in deviations

    def whitening(self) -> Numbers:
        """Return what makes deviations in the profiled modes independent, shape (m, m)."""
        return self.whitenings([self.nugget])[0]

    def whitenings(self, nuggets: Sequence[float]) -> Numbers:
        """Return what would make them independent with each of k nuggets, shape (k, m, m)."""
        return np.asarray(np.linalg.inv(np.linalg.cholesky(self._among(nuggets))))

    def weights(self, modes: Numbers) -> Numbers:
        """Return the weight of each profiled mode's deviation in each mode's, shape (n, m)."""
        among = self._among([self.nugget])[0]
        return np.asarray(np.linalg.solve(among, self._shared(modes).T).T)

    def left_open(self, modes: Numbers) -> Numbers:
        """Return the variance that is left where all of the profiled are known, shape (n,)."""
        whole = 1 + self.tilt**2 * (self._centred(modes) ** 2).sum(1)
        explained = (self.weights(modes) * self._shared(modes)).sum(1)
        return np.maximum(whole - explained, 0.0) + self.nugget**2

    def _among(self, nuggets: Sequence[float]) -> Numbers:
        own = np.square(nuggets)[:, None, None] * np.eye(len(self.profiled))
        among = covariance(self._centred_profiled, self._centred_profiled, LENGTH, self.tilt)
        return np.asarray(among + own)

    def _shared(self, modes: Numbers) -> Numbers:
        """Return the covariance with the profiled modes, without each mode's own part, (n, m)."""
        return covariance(self._centred(modes), self._centred_profiled, LENGTH, self.tilt)

    def _centred(self, modes: Numbers) -> Numbers:
        """Return the logarithms of modes, less the mean of those that were profiled."""
        return np.asarray(logs(modes) - self._centre)

    @cached_property
    def _centre(self) -> Numbers:
        return np.asarray(logs(self.profiled).mean(0))

    @cached_property
    def _centred_profiled(self) -> Numbers:
        return self._centred(self.profiled)


def distances(modes: Numbers, profiled: Numbers) -> Numbers:
    """Return how far modes (n, 6) are from the nearest of (m, 6), in natural logarithms, (n,)."""
    differences = logs(modes)[:, None] - logs(profiled)
    return np.asarray(np.sqrt((differences**2).sum(-1).min(1)))
