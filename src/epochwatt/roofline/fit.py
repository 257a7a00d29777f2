"""Fit ceilings and energy costs of one power mode to times and powers of micro-kernels.

A ceiling is the mean of the rates within `PLATEAU` of the highest that a kernel reached, by fastest
blocks: other programs on the machine do not lower it, and noise of 1 % lifts it by 1 or 2 %. Energy
costs are non-negative least squares of relative deviations. How far both may be off is told by a
bootstrap over the kernels.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import nnls

from epochwatt.errors import EpochwattError
from epochwatt.roofline.ceilings import CeilingRow
from epochwatt.roofline.model import Ceilings, EnergyCosts, Numbers

PLATEAU = 0.05  # rates as close as this to the highest are those of the ceiling, and noise
LONG = 5.0  # launches: what takes fewer says little about a ceiling,
SHORT = 2.0  # and counts only where nothing is longer; below that, nothing is said
LARGE = 0.25  # of the largest data: from there on no cache helps
LEAST_ENERGIES = 4  # kernels that three costs are fitted to
N_DRAWS = 100  # of the bootstrap
LEVEL = 0.95
Fitted = TypeVar("Fitted", Ceilings, EnergyCosts)


class Range(NamedTuple):
    """A constant, and the interval of its bootstrap: NaN where one kernel alone tells it."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Kernels:
    """Kernels that were run in one mode, (n,) each; the empty ones apart."""

    flops: Numbers
    moved: Numbers  # bytes
    best_s: Numbers  # fastest and median time
    time_s: Numbers
    power_w: Numbers  # NaN: not measured
    launch_s: float  # of a kernel that does nothing; 0: none was launched
    where: str  # they were measured, for messages

    @classmethod
    def of_mode(cls, rows: Sequence[CeilingRow]) -> "Kernels":
        """Return the valid kernels of one mode and precision (EpochwattError: of several)."""
        valid = [row for row in rows if row.valid]
        if len({(row.device, row.precision, row.mode) for row in valid}) != 1:
            raise EpochwattError(
                "ceilings are those of one mode and precision",
                found=f"{len(valid)} valid rows of {len({row.mode for row in valid})} modes",
                do="fit each mode by itself",
            )
        empty = [row.best_s for row in valid if row.kernel == "launch"]
        first, working = valid[0], [row for row in valid if row.kernel != "launch"]
        names = ("flops", "bytes", "best_s", "time_s", "power_w")
        flops, moved, best_s, time_s, power_w = (
            np.array([getattr(row, name) for row in working], float) for name in names
        )
        launch_s = float(np.median(empty)) if empty else 0.0
        where = f"{first.device}, {first.precision}, mode {first.mode}"
        return cls(flops, moved, best_s, time_s, power_w, launch_s, where)

    def only(self, indices: NDArray[np.intp]) -> "Kernels":
        """Return the kernels at these indices; one may be there several times."""
        names = ("flops", "moved", "best_s", "time_s", "power_w")
        return replace(self, **{name: getattr(self, name)[indices] for name in names})


def fit_ceilings(kernels: Kernels) -> Ceilings:
    """Fit the ceilings of one mode: its rates of arithmetic, memory and cache, and its launch.

    Raises EpochwattError: no kernel computes or none moves data for longer than launches take.
    """
    launch_s, n = kernels.launch_s, len(kernels.flops)
    n_launches = kernels.best_s / launch_s if launch_s else np.full(n, np.inf)
    computes = _well_timed(kernels.flops > 0, n_launches)
    streams = _well_timed(kernels.moved >= LARGE * kernels.moved.max(initial=1.0), n_launches)
    if not (computes.any() and streams.any()):
        raise EpochwattError(
            "no ceiling can be seen",
            where=kernels.where,
            found=f"{(n_launches > SHORT).sum()} kernels of more than {SHORT:g} launches",
            allowed="one that computes, and one that moves as much data as the largest",
        )
    spent_s = np.maximum(kernels.best_s - launch_s, 1e-12)
    rates = kernels.moved / spent_s
    bytes_per_s = _plateau(rates[streams])
    from_cache = (n_launches > LONG) & (rates > (1 + PLATEAU) * bytes_per_s)
    return Ceilings(
        flops_per_s=_plateau((kernels.flops / spent_s)[computes]),
        bytes_per_s=bytes_per_s,
        launch_s=launch_s,
        cache_bytes=float(kernels.moved[from_cache].max(initial=0.0)),
        cached_bytes_per_s=float(rates[from_cache].max()) if from_cache.any() else np.inf,
    )


def _well_timed(is_candidate: NDArray[np.bool_], n_launches: Numbers) -> NDArray[np.bool_]:
    """Return which candidates are `LONG` against a launch, or none being so, above `SHORT`."""
    is_long = is_candidate & (n_launches > LONG)
    return is_long if is_long.any() else is_candidate & (n_launches > SHORT)


def _plateau(rates: Numbers) -> float:
    """Return the mean of the rates that are about as high as the highest."""
    return float(rates[rates >= (1 - PLATEAU) * rates.max()].mean())


def fit_energy(
    flops: ArrayLike, moved_bytes: ArrayLike, time_s: ArrayLike, energy_j: ArrayLike
) -> EnergyCosts:
    """Fit the energy per operation and per byte and the constant power, none below zero.

    `flops`, `moved_bytes`, `time_s`, `energy_j`: (n,), of the kernels of one mode, energies above
    zero

    Raises EpochwattError: fewer than four kernels, or one without energy.
    """
    energies = np.asarray(energy_j, float)
    if len(energies) < LEAST_ENERGIES or not (energies > 0).all():
        raise EpochwattError(
            "energy costs cannot be fitted",
            found=f"{len(energies)} kernels, the least energy {energies.min(initial=np.inf):g} J",
            allowed=f"{LEAST_ENERGIES} kernels or more, each with an energy above zero",
        )
    terms = np.column_stack([np.asarray(c, float) for c in (flops, moved_bytes, time_s)])
    return EnergyCosts(*map(float, fit_relative(terms, energies)))


def fit_relative(terms: Numbers, values: Numbers) -> Numbers:
    """Fit values = terms @ c with non-negative c (k,), by least squares of relative deviations.

    `terms`: (n, k); `values`: (n,), above zero
    """
    rows = terms / values[:, None]
    scale = rows.mean(0)
    scale[scale == 0] = 1.0  # a term that no row has
    return np.asarray(nnls(rows / scale, np.ones(len(values)))[0] / scale)


class ModeFit(NamedTuple):
    """The rooflines of one mode with their bootstrap."""

    ceilings: Ceilings  # the fits; None: power was not measured
    costs: EnergyCosts | None
    ranges: dict[str, Range]  # name of a constant -> value, low, high
    n_kernels: int  # that were fitted to
    n_energies: int


def fit_kernels(kernels: Kernels, n_draws: int = N_DRAWS) -> ModeFit:
    """Fit the rooflines of one mode, of time and of energy, with bootstrap intervals.

    Raises EpochwattError: as `fit_ceilings`.
    """
    powered = kernels.only(np.flatnonzero(np.isfinite(kernels.power_w)))
    n_energies = len(powered.flops)
    random = np.random.default_rng(0)
    ceilings, ranges = _fit_with_ranges(kernels, fit_ceilings, n_draws, random)
    if n_energies < LEAST_ENERGIES:
        return ModeFit(ceilings, None, ranges, len(kernels.flops), 0)
    costs, cost_ranges = _fit_with_ranges(powered, _fit_costs, n_draws, random)
    return ModeFit(ceilings, costs, ranges | cost_ranges, len(kernels.flops), n_energies)


def _fit_costs(kernels: Kernels) -> EnergyCosts:
    energies_j = kernels.power_w * kernels.time_s
    return fit_energy(kernels.flops, kernels.moved, kernels.time_s, energies_j)


def _fit_with_ranges(
    kernels: Kernels, fit: Callable[[Kernels], Fitted], n_draws: int, random: np.random.Generator
) -> tuple[Fitted, dict[str, Range]]:
    """Return a fit, and each constant's bootstrap range: the middle `LEVEL` of fits to draws."""
    fitted, draws, n = fit(kernels), [], len(kernels.flops)
    for _ in range(n_draws):
        try:
            draws.append(vars(fit(kernels.only(random.integers(0, n, n)))))
        except EpochwattError:  # drawn without a kernel that computes
            continue
    ends = (1 - LEVEL) / 2, (1 + LEVEL) / 2
    ranges = {}
    for name, value in vars(fitted).items():
        drawn = np.array([draw[name] for draw in draws])
        drawn = drawn[np.isfinite(drawn)]
        low, high = np.quantile(drawn, ends) if len(drawn) > 1 else (np.nan, np.nan)
        ranges[name] = Range(value, float(low), float(high))
    return fitted, ranges
