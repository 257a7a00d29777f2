"""What each mode gives in each slot, after each mode before it: requests played one by one.

A slot is played on its own: it begins with nothing waiting, and its last requests are served beyond
its end. So what a way of planning gives is the sum over its slots, and the best way of all can be
found. As at most `QUEUE` mini-batches wait, little is lost by that.

While clocks settle nothing is trained, requests are served at the pace of the slower of both modes,
and the power is that of the hungrier one.
"""

from typing import NamedTuple

import numpy as np

from epochwatt.schedule.dynamic.options import Options
from epochwatt.schedule.dynamic.rates import Arrivals
from epochwatt.schedule.plans import SLACK, Numbers
from epochwatt.schedule.simulation import Interleaved, Slot, play
from epochwatt.schedule.space import Bools, Places
from epochwatt.training.interleave.plan import QUEUE

# ASSUME: a late request undoes ten mini-batches of training. With one it can be worth it to leave a
# whole slot late; the budget of latency is to be kept first
LATE_COST = 10.0


class Slots(NamedTuple):
    """What came of k slots, by mode before (c) and mode in it (c): (k, c, c).

    Attributes
    ----------
    n_trained : mini-batches of training
    n_late : requests that were refused or answered after the budget
    worst_s : longest latency of an answered request; 0: none was
    over_s : time in which the budget of power is exceeded
    """

    n_trained: Numbers
    n_late: Numbers
    worst_s: Numbers
    over_s: Numbers

    @property
    def value(self) -> Numbers:
        """What it is worth, in mini-batches of training."""
        return self.n_trained - LATE_COST * self.n_late


def play_slots(options: Options, arrivals: Arrivals, switch_s: float) -> Slots:
    """Play all slots in all modes after all modes; clocks take `switch_s` to settle."""
    best = options.at(arrivals.rates_per_s)
    shape = arrivals.n_slots, len(options.modes), len(options.modes)
    slots = Slots(*(np.zeros(shape) for _ in Slots._fields))
    sizes = options.space.choices[best.choice, 1]
    for mode in range(len(options.modes)):
        for size in np.unique(sizes[:, mode]):
            which = np.flatnonzero(sizes[:, mode] == size)
            _play(options, arrivals, (mode, int(size)), switch_s, which, slots)
    return slots


def _play(
    options: Options,
    arrivals: Arrivals,
    choice: tuple[int, int],
    switch_s: float,
    which: Places,
    slots: Slots,
) -> None:
    """Play some slots in a mode at a mini-batch size, after all modes; write it into `slots`."""
    mode, size = choice
    train, (infer,) = options.space.train, options.space.infer
    assert train is not None
    batch_size, place = int(infer.batch_sizes[size]), options.modes[mode]
    infer_s, train_s = infer.time_s[place, size], train.time_s[place, 0]
    period_s = batch_size / arrivals.rates_per_s[which]
    n_train = np.floor(np.maximum(period_s - infer_s, 0) / train_s * (1 + SLACK))
    times_s, is_own = _requests(arrivals, which, batch_size)
    n_modes = len(options.modes)
    settled_s = np.where(np.arange(n_modes) == mode, 0.0, switch_s)
    slower_s = np.maximum(infer.time_s[options.modes, size], infer_s)
    with np.errstate(invalid="ignore"):  # what never comes is never answered
        played = play(
            np.repeat(times_s, n_modes, 0),
            Interleaved(batch_size, infer_s, np.repeat(n_train, n_modes), train_s),
            Slot(
                arrivals.slot_s,
                np.tile(settled_s, len(which)),
                np.tile(slower_s, len(which)),
                QUEUE,
            ),
        )
    shape = len(which), n_modes, -1
    latency_s = np.where(np.repeat(is_own, n_modes, 0), played.latency_s, 0.0).reshape(shape)
    slots.n_trained[which, :, mode] = played.n_trained.reshape(shape[:2])
    slots.n_late[which, :, mode] = (latency_s > options.max_latency_s * (1 + SLACK)).sum(-1)
    slots.worst_s[which, :, mode] = np.where(np.isfinite(latency_s), latency_s, 0.0).max(-1)
    infer_w = infer.power_w[options.modes, size]
    own_w = np.where(n_train > 0, max(train.power_w[place, 0], infer_w[mode]), infer_w[mode])
    most_w = options.max_power_w * (1 + SLACK)
    rest_s = arrivals.slot_s - settled_s
    slots.over_s[which, :, mode] = rest_s * (own_w > most_w)[:, None] + settled_s * (
        np.maximum(infer_w, infer_w[mode]) > most_w
    )


def _requests(arrivals: Arrivals, which: Places, batch_size: int) -> tuple[Numbers, Bools]:
    """Return the requests of some slots, s after their beginning, and which are their own.

    The last mini-batch of a slot is completed by requests of the next one; one that never is
    belongs to none. Behind all others a mini-batch stands that never comes.
    """
    first, behind = arrivals.bounds[which], arrivals.bounds[which + 1]
    n_batches = int(np.ceil((behind - first) / batch_size).max()) + 1
    places = first[:, None] + np.arange(n_batches * batch_size)
    n_wanted = -(-(behind - first) // batch_size) * batch_size
    comes = (places < (first + n_wanted)[:, None]) & (places < len(arrivals.times_s))
    begins_s = arrivals.slot_s * which
    padded = np.append(arrivals.times_s, np.inf)
    times_s = np.where(comes, padded[np.where(comes, places, -1)] - begins_s[:, None], np.inf)
    whole = comes.reshape(len(which), n_batches, batch_size).all(-1)
    return times_s, (places < behind[:, None]) & np.repeat(whole, batch_size, 1)
