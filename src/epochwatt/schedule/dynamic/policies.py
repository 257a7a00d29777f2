"""Which mode to take in each slot: by what is known then, or by all that is to come.

All but the oracle see the rate of the slots before. A path is the mode of each slot, (k,), as its
place among the options; the first is there before anything begins, and costs no change.
"""

from dataclasses import dataclass

import numpy as np

from epochwatt.schedule.dynamic.options import Options
from epochwatt.schedule.plans import Numbers
from epochwatt.schedule.space import Places

BAND = 0.2  # relative; a rate that differs by less from that of the plan is taken for the same


@dataclass(frozen=True, eq=False)
class View:
    """What may be known as each slot begins.

    Attributes
    ----------
    rates_per_s : (k,), of each slot as it came
    slot_s : length of a slot
    switch_s : time that clocks need to settle
    """

    options: Options
    rates_per_s: Numbers
    slot_s: float
    switch_s: float

    @property
    def estimates_per_s(self) -> Numbers:
        """What the rate is taken for, (k,): that of the slot before; the first is given."""
        return np.append(self.rates_per_s[:1], self.rates_per_s[:-1])


def never(view: View) -> Places:
    """Keep to the mode that is best at the highest rate, which is known beforehand."""
    best = view.options.at(view.rates_per_s.max()[None])
    return np.full(len(view.rates_per_s), int(best.throughput_per_s[0].argmax()))


def always(view: View) -> Places:
    """Take the best mode for the rate of the slot before, whatever the change costs."""
    return _best(view.options, view.estimates_per_s)


def hysteresis(view: View) -> Places:
    """Change the mode only for a change of the rate that lasts, once it has paid for itself.

    A mode is planned for all rates that differ from the estimate by at most `BAND`, and stays while
    the estimate does not leave them. Beyond, it is changed at once where it no longer keeps the
    budgets; else when the training forgone since then reaches what the change costs: at worst twice
    as much is lost as with the change at the right moment.
    """
    estimates, options = view.estimates_per_s, view.options
    now = options.at(estimates)
    wanted = _best(options, *(estimates * factor for factor in (1 - BAND, 1, 1 + BAND)))
    path = np.empty(len(estimates), np.intp)
    mode, planned_per_s, forgone = int(wanted[0]), estimates[0], 0.0
    for slot, rate in enumerate(estimates):
        better = int(wanted[slot])
        if abs(rate / planned_per_s - 1) <= BAND:
            forgone = 0.0
        else:
            gain_per_s = now.throughput_per_s[slot, better] - now.throughput_per_s[slot, mode]
            forgone += max(gain_per_s, 0.0) * view.slot_s
            cost = view.switch_s * now.throughput_per_s[slot, better]
            if not now.holds[slot, mode] or forgone > cost:
                mode, planned_per_s, forgone = better, rate, 0.0
        path[slot] = mode
    return path


def _best(options: Options, *rates_per_s: Numbers) -> Places:
    """Return the mode that trains most on average of some rates, (k,) each, and holds at all.

    Where none holds: that of the highest rate.
    """
    best = [options.at(rates) for rates in rates_per_s]
    holds = np.logical_and.reduce([one.holds for one in best])
    throughput = np.mean([one.throughput_per_s for one in best], axis=0)
    score = np.where(holds, throughput, -1.0)
    return np.where(holds.any(1), score.argmax(1), len(options.modes) - 1)


def oracle(value: Numbers) -> Places:
    """Return the path of most value of all, by dynamic programming.

    `value`: (k, c, c), of each slot, by mode before and mode in it.
    """
    n_modes = value.shape[1]
    total = np.diagonal(value[0])
    before = np.empty((len(value), n_modes), np.intp)
    for slot in range(1, len(value)):
        sums = total[:, None] + value[slot]
        before[slot] = sums.argmax(0)
        total = sums.max(0)
    path = np.empty(len(value), np.intp)
    path[-1] = total.argmax()
    for slot in range(len(value) - 1, 0, -1):
        path[slot - 1] = before[slot, path[slot]]
    return path


def along(numbers: Numbers, path: Places) -> Numbers:
    """Return the numbers (k, c, c) of each slot on a path, (k,)."""
    return numbers[np.arange(len(path)), np.append(path[:1], path[:-1]), path]
