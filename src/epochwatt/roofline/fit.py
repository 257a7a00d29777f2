"""Fit ceilings and energy costs of one power mode to times and powers of micro-kernels.

A ceiling is the mean of the rates within `PLATEAU` of the highest that a kernel reached, by fastest
blocks: other programs on the machine do not lower it, and noise of 1 % lifts it by 1 or 2 %. Energy
costs are non-negative least squares of relative deviations. How far both may be off is told by a
bootstrap over the kernels.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

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


class Range(NamedTuple):
    """A constant, and the interval of its bootstrap: NaN where one kernel alone tells it."""

    value: float
    low: float
    high: float


class Work(NamedTuple):
    """Work of kernels, (n,) each: operations, bytes, s (fastest, median), W or NaN."""

    flops: Numbers
    moved: Numbers
    best_s: Numbers
    time_s: Numbers
    power_w: Numbers

    def some(self, places: NDArray[np.intp]) -> "Work":
        """Return the kernels at `places`."""
        return Work(*(column[places] for column in self))


def fit_ceilings(rows: Sequence[CeilingRow]) -> Ceilings:
    """Return what one mode reaches at best.

    `rows`: of one mode and precision; invalid ones do not count.

    Raises EpochwattError: no kernel computes or none moves data for longer than launches take.
    """
    valid = _valid(rows)
    return _ceilings(_work(valid), _launch_s(valid), _place(valid))


def _valid(rows: Sequence[CeilingRow]) -> list[CeilingRow]:
    valid = [row for row in rows if row.valid]
    if len({(row.device, row.precision, row.mode) for row in valid}) != 1:
        raise EpochwattError(
            "ceilings are those of one mode and precision",
            found=f"{len(valid)} valid rows of {len({row.mode for row in valid})} modes",
            do="fit each mode by itself",
        )
    return valid


def _place(rows: Sequence[CeilingRow]) -> str:
    return f"{rows[0].device}, {rows[0].precision}, mode {rows[0].mode}"


def _launch_s(rows: Sequence[CeilingRow]) -> float:
    """Return the time of an empty kernel, s; 0 where none was launched."""
    empty = [row.best_s for row in rows if row.kernel == "launch"]
    return float(np.median(empty)) if empty else 0.0


def _work(rows: Sequence[CeilingRow]) -> Work:
    """Return what the kernels that are not empty did."""
    columns = [
        (r.flops, r.bytes, r.best_s, r.time_s, np.nan if r.power_w is None else r.power_w)
        for r in rows
        if r.kernel != "launch"
    ]
    return Work(*np.array(columns, float).reshape(-1, len(Work._fields)).T)


def _ceilings(work: Work, launch_s: float, place: str) -> Ceilings:
    n_launches = work.best_s / launch_s if launch_s else np.full(len(work.best_s), np.inf)
    computes = _longest(work.flops > 0, n_launches)
    streams = _longest(work.moved >= LARGE * work.moved.max(initial=1.0), n_launches)
    if not (computes.any() and streams.any()):
        raise EpochwattError(
            "no ceiling can be seen",
            where=place,
            found=f"{(n_launches > SHORT).sum()} kernels of more than {SHORT:g} launches",
            allowed="one that computes, and one that moves as much data as the largest",
        )
    spent_s = np.maximum(work.best_s - launch_s, 1e-12)
    rates = work.moved / spent_s
    bytes_per_s = _plateau(rates[streams])
    from_cache = (n_launches > LONG) & (rates > (1 + PLATEAU) * bytes_per_s)
    return Ceilings(
        flops_per_s=_plateau((work.flops / spent_s)[computes]),
        bytes_per_s=bytes_per_s,
        launch_s=launch_s,
        cache_bytes=float(work.moved[from_cache].max(initial=0.0)),
        cached_bytes_per_s=float(rates[from_cache].max()) if from_cache.any() else np.inf,
    )


def _longest(kernels: NDArray[np.bool_], n_launches: Numbers) -> NDArray[np.bool_]:
    """Return which of some kernels say the most of a ceiling; where launches are long, shorter."""
    is_long = kernels & (n_launches > LONG)
    return is_long if is_long.any() else kernels & (n_launches > SHORT)


def _plateau(rates: Numbers) -> float:
    """Return the mean of the rates that are about as high as the highest."""
    return float(rates[rates >= (1 - PLATEAU) * rates.max()].mean())


def fit_energy(
    flops: ArrayLike, moved_bytes: ArrayLike, time_s: ArrayLike, energy_j: ArrayLike
) -> EnergyCosts:
    """Return the costs that explain the energies of kernels best, none of them below zero.

    Parameters
    ----------
    flops, moved_bytes, time_s, energy_j : (n,), of the kernels of one mode, energies above zero

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
    """Return non-negative coefficients (k,) with the least relative deviations.

    Parameters
    ----------
    terms : (n, k)
    values : (n,), above zero
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


def fit_mode(rows: Sequence[CeilingRow], n_draws: int = N_DRAWS) -> ModeFit:
    """Return the rooflines of one mode, with intervals.

    Raises EpochwattError: as `fit_ceilings`.
    """
    valid = _valid(rows)
    return fit_kernels(_work(valid), _launch_s(valid), _place(valid), n_draws)


def fit_kernels(work: Work, launch_s: float, place: str, n_draws: int = N_DRAWS) -> ModeFit:
    """Return the rooflines below which kernels of any kind lie.

    Parameters
    ----------
    launch_s : of a kernel that does nothing
    place : what they were measured on, for messages

    Raises EpochwattError: as `fit_ceilings`.
    """
    ceilings = _ceilings(work, launch_s, place)
    powered = work.some(np.flatnonzero(np.isfinite(work.power_w)))
    n_energies = len(powered.flops)
    has_costs = n_energies >= LEAST_ENERGIES
    random = np.random.default_rng(0)
    ranges = _ranges(work, lambda some: _ceilings(some, launch_s, place), ceilings, n_draws, random)
    costs = None
    if has_costs:
        costs = _costs(powered)
        ranges |= _ranges(powered, _costs, costs, n_draws, random)
    return ModeFit(ceilings, costs, ranges, len(work.flops), n_energies if has_costs else 0)


def _costs(work: Work) -> EnergyCosts:
    return fit_energy(work.flops, work.moved, work.time_s, work.power_w * work.time_s)


def _ranges(
    work: Work,
    fit: Callable[[Work], Ceilings | EnergyCosts],
    fitted: Ceilings | EnergyCosts,
    n_draws: int,
    random: np.random.Generator,
) -> dict[str, Range]:
    """Return each constant with the middle `LEVEL` of fits to kernels drawn anew."""
    draws = []
    for _ in range(n_draws):
        try:
            draws.append(vars(fit(work.some(random.integers(0, len(work.flops), len(work.flops))))))
        except EpochwattError:  # drawn without a kernel that computes
            continue
    ends = (1 - LEVEL) / 2, (1 + LEVEL) / 2
    ranges = {}
    for name, value in vars(fitted).items():
        some = np.array([draw[name] for draw in draws])
        some = some[np.isfinite(some)]
        low, high = np.quantile(some, ends) if len(some) > 1 else (np.nan, np.nan)
        ranges[name] = Range(value, float(low), float(high))
    return ranges
