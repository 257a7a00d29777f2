"""Modes to choose from while the rate of requests changes, and what each is good for.

A change of mode takes time; another mini-batch size, or another share of training, takes none. So
what is decided from slot to slot is the mode, and in each mode the mini-batch of requests is the
best one at the rate of the slot.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from epochwatt.errors import ConfigError
from epochwatt.schedule.plans import Numbers
from epochwatt.schedule.solution import NONE
from epochwatt.schedule.solvers import exhaustive
from epochwatt.schedule.space import Bools, Places, Problems, Space

N_RATES = 12  # from the lowest to the highest; the best mode of each is one to choose from


class Best(NamedTuple):
    """What each of c modes is good for at k rates, (k, c) each.

    Attributes
    ----------
    choice : place in the space's choices; where none keeps the budgets, of most requests a second
    holds : whether it keeps the budgets, with steady arrivals
    throughput_per_s : of training; 0 where it does not hold
    """

    choice: Places
    holds: Bools
    throughput_per_s: Numbers


@dataclass(frozen=True, eq=False)
class Options:
    """Modes to choose from, for one training job and one stream within budgets.

    Attributes
    ----------
    modes : (c,), places of the modes
    rates_per_s : (c,), the highest rate that each was found best for, ascending
    """

    space: Space
    max_power_w: float
    max_latency_s: float
    modes: Places
    rates_per_s: Numbers

    def at(self, rates_per_s: Numbers) -> Best:
        """Return what the modes are good for at some rates, (k,)."""
        problems = _problems(rates_per_s, self.max_power_w, self.max_latency_s)
        columns = [self._of_mode(problems, mode) for mode in self.modes]
        return Best(*(np.stack(column, 1) for column in zip(*columns, strict=True)))

    def _of_mode(self, problems: Problems, mode: int) -> tuple[Places, Bools, Numbers]:
        places = np.flatnonzero(self.space.choices[:, 0] == mode)
        judged = self.space.judge(problems, places[None])
        best = exhaustive.best_of(judged)
        (infer,) = self.space.infer
        most = np.where(judged.keeps_power[0], infer.batch_sizes / infer.time_s[mode], 0).argmax()
        column = np.where(best == NONE, most, best)
        throughput = -np.take_along_axis(judged.cost, column[:, None], 1)[:, 0]
        return places[column], best != NONE, np.where(best == NONE, 0.0, throughput)


def options_for(
    space: Space, max_power_w: float, max_latency_s: float, rates_per_s: Numbers
) -> Options:
    """Return the modes that are best for some rate between the lowest and the highest given.

    Raises ConfigError: no mode keeps the budgets at the highest rate.
    """
    ladder = np.geomspace(rates_per_s.min(), rates_per_s.max(), N_RATES)
    ladder[-1] = rates_per_s.max()
    problems = _problems(ladder, max_power_w, max_latency_s)
    choice = exhaustive.solve(space, problems).choice
    if choice[-1] == NONE:
        raise ConfigError(
            f"no mode serves {ladder[-1]:.4g} requests/s within {max_latency_s:g} s "
            f"and {max_power_w:g} W",
            do="lower the rates, or raise a budget",
        )
    modes = space.choices[choice, 0]
    highest = {
        int(mode): rate for mode, rate, c in zip(modes, ladder, choice, strict=True) if c >= 0
    }
    ascending = sorted(highest, key=lambda mode: highest[mode])
    return Options(
        space,
        max_power_w,
        max_latency_s,
        np.array(ascending),
        np.array([highest[mode] for mode in ascending]),
    )


def _problems(rates_per_s: Numbers, max_power_w: float, max_latency_s: float) -> Problems:
    return Problems(
        np.full(len(rates_per_s), max_power_w),
        rates_per_s[:, None],
        np.full((len(rates_per_s), 1), max_latency_s),
    )
