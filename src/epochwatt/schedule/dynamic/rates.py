"""Requests that arrive at a rate that changes, cut into slots of equal length.

Random arrivals are a Poisson process: at the times where the sum of the rates so far passes sums of
exponential numbers. Where it passes whole numbers arrivals are steady.
"""

import math
from pathlib import Path
from typing import NamedTuple

import numpy as np

from epochwatt.errors import ConfigError
from epochwatt.schedule.dynamic.config import Rates
from epochwatt.schedule.plans import Numbers
from epochwatt.schedule.space import Places
from epochwatt.training.interleave.arrivals import read_times

SHARE = 1e-9  # of a request: one that is due at the very end comes


class Arrivals(NamedTuple):
    """Requests of a stream.

    Attributes
    ----------
    times_s : (n,), ascending, from 0
    slot_s : length of a slot
    n_slots : how many
    """

    times_s: Numbers
    slot_s: float
    n_slots: int

    @property
    def bounds(self) -> Places:
        """Place of the first request of each slot, and behind the last one, (n_slots + 1,)."""
        return np.searchsorted(self.times_s, self.slot_s * np.arange(self.n_slots + 1))

    @property
    def rates_per_s(self) -> Numbers:
        """Requests a second of each slot, (n_slots,); a slot without any counts as one with one."""
        return np.maximum(np.diff(self.bounds), 1) / self.slot_s


def arrivals_of(
    rates: Rates, peak_per_s: float, slot_s: float, seed: int | None, root: Path = Path()
) -> Arrivals:
    """Return the arrivals of configured rates.

    Parameters
    ----------
    peak_per_s : highest rate; not used with a file
    seed : of random arrivals; None: steady ones. Not used with a file
    root : folder that a file's path starts from

    Raises ConfigError: a file that cannot be read or is no list of times; less than two slots.
    """
    if rates.file is not None:
        times_s = np.array(read_times(str(root / rates.file)))
        n_slots = math.ceil(times_s[-1] / slot_s) if len(times_s) else 0
        arrivals = Arrivals(times_s[times_s < n_slots * slot_s], slot_s, n_slots)
    else:
        arrivals = at_rates(peak_per_s * _shares(rates, slot_s), slot_s, seed)
    if arrivals.n_slots < 2:
        raise ConfigError(
            "rates that change need two slots at least", found=f"{arrivals.n_slots} of {slot_s:g} s"
        )
    return arrivals


def _shares(rates: Rates, slot_s: float) -> Numbers:
    """Return the share of the highest rate in the middle of each slot, (n_slots,)."""
    if rates.day:
        low, day_s = rates.day
        middle_s = slot_s * (np.arange(int(day_s / slot_s)) + 0.5)
        return low + (1 - low) * (1 - np.cos(2 * np.pi * middle_s / day_s)) / 2
    lasts_s, shares = np.array(rates.steps).T
    ends_s = np.cumsum(lasts_s)
    middle_s = slot_s * (np.arange(int(ends_s[-1] / slot_s)) + 0.5)
    return np.asarray(shares[np.searchsorted(ends_s, middle_s)])


def at_rates(rates_per_s: Numbers, slot_s: float, seed: int | None) -> Arrivals:
    """Return arrivals at a rate for each slot, (n_slots,): random, or steady without a seed."""
    expected = np.concatenate([[0.0], np.cumsum(rates_per_s * slot_s)])
    if seed is None:
        passed = np.arange(1.0, expected[-1] + SHARE)
    else:
        n = int(expected[-1] + 10 * math.sqrt(expected[-1]) + 10)
        passed = np.random.default_rng(seed).exponential(size=n).cumsum()
    ends_s = slot_s * np.arange(len(expected))
    times_s = np.interp(passed[passed < expected[-1] + SHARE], expected, ends_s)
    return Arrivals(times_s, slot_s, len(rates_per_s))
