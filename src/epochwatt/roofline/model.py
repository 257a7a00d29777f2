"""Compute least times and energies by the rooflines of one power mode.

A kernel of W floating-point operations that moves Q bytes takes at least the longer of W / F and
Q / B (Williams, Waterman, Patterson, CACM 52(4) 2009), and needs

    energy = W e_flop + Q e_byte + P0 time

(Choi et al., IPDPS 2013; the form of Pagoda, arXiv 2509.20189). Launches take the CPU a while, too.
What fits into a cache need not come from memory, so up to `cache_bytes` of it go at the cache's
rate.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Ceilings:
    """Rates that one mode reaches at best."""

    flops_per_s: float  # floating-point operations, a multiply-add being two
    bytes_per_s: float  # to and from memory
    launch_s: float = 0.0  # of one kernel that does nothing
    cache_bytes: float = 0.0  # of one kernel's data, which may lie in a cache
    cached_bytes_per_s: float = float("inf")  # of these, at most

    @property
    def ridge_flop_per_byte(self) -> float:
        """Intensity from which arithmetic is the limit and no longer memory."""
        return self.flops_per_s / self.bytes_per_s

    def roof_s(self, flops: ArrayLike, moved_bytes: ArrayLike) -> Numbers:
        """Return the least time of kernels, s, in the shape of both; launches apart."""
        flops, moved = np.asarray(flops, float), np.asarray(moved_bytes, float)
        cached = np.minimum(moved, self.cache_bytes)
        traffic_s = cached / self.cached_bytes_per_s + (moved - cached) / self.bytes_per_s
        return np.maximum(flops / self.flops_per_s, traffic_s)

    def attainable_flops_per_s(self, intensity: ArrayLike) -> Numbers:
        """Return the roof over an intensity, FLOP per byte, of data that fit into no cache."""
        return np.minimum(self.flops_per_s, np.asarray(intensity, float) * self.bytes_per_s)


@dataclass(frozen=True)
class EnergyCosts:
    """Energy that one mode's work costs."""

    j_per_flop: float  # of the work itself
    j_per_byte: float
    constant_w: float  # drawn whatever is done

    def energy_j(self, flops: ArrayLike, moved_bytes: ArrayLike, time_s: ArrayLike) -> Numbers:
        """Return the energy of work that took `time_s`, J, in the shape of all three."""
        work = self.j_per_flop * np.asarray(flops, float)
        traffic = self.j_per_byte * np.asarray(moved_bytes, float)
        return work + traffic + self.constant_w * np.asarray(time_s, float)


@dataclass(frozen=True)
class EnergyRoofline:
    """Energy per operation over intensity, at the least time (Choi et al., IPDPS 2013).

    With e = e_flop + P0 / F, what an operation costs where arithmetic is the limit, and
    eta = e_flop / e, an operation of intensity I costs e (1 + B(I) / I), where

        B(I) = e_byte / e + (1 - eta) max(0, ridge - I)

    is the *effective energy balance*. Where I = B(I), memory costs as much as arithmetic.

    Raises ValueError: an operation costs nothing: neither e_flop nor P0 is above zero.
    """

    ceilings: Ceilings
    costs: EnergyCosts

    def __post_init__(self) -> None:
        if not self.busy_j_per_flop > 0:
            raise ValueError("neither j_per_flop nor constant_w is above zero")

    @property
    def busy_j_per_flop(self) -> float:
        """Cost of an operation where arithmetic is the limit, J: e in the equations."""
        return self.costs.j_per_flop + self.costs.constant_w / self.ceilings.flops_per_s

    @property
    def _active_share(self) -> float:
        return self.costs.j_per_flop / self.busy_j_per_flop

    def effective_balance(self, intensity: ArrayLike) -> Numbers:
        """Return B(I), FLOP per byte, in the shape of `intensity`."""
        ridge = self.ceilings.ridge_flop_per_byte
        waits = np.maximum(0.0, ridge - np.asarray(intensity, float))
        return self.costs.j_per_byte / self.busy_j_per_flop + (1 - self._active_share) * waits

    @property
    def balance_flop_per_byte(self) -> float:
        """Intensity from which arithmetic costs more than memory: I = B(I), which is linear."""
        at_ridge = self.costs.j_per_byte / self.busy_j_per_flop
        if at_ridge >= (ridge := self.ceilings.ridge_flop_per_byte):
            return at_ridge
        constant = 1 - self._active_share
        return (at_ridge + constant * ridge) / (1 + constant)

    def j_per_flop(self, intensity: ArrayLike) -> Numbers:
        """Return the least energy of an operation, J, in the shape of `intensity`."""
        intensity = np.asarray(intensity, float)
        return self.busy_j_per_flop * (1 + self.effective_balance(intensity) / intensity)
