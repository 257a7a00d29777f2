"""Learn from measured rounds what a board's next fits take: start-up, fit, waiting.

A fit of n samples takes a (f + n) times what its mode's table says of a sample: its start-up is
worth f samples. (Of energy f can be negative: a sampler that reads once a second misses the ends
of each fit.) Polls, the start of a process and transfers are around it, and until the round's end T
the board waits:

    end(n) = around_s + fit_s(n)
    E(n)   = fit_j(n) + waiting_w (T - fit_s(n))

The first round of a training takes longer (warm-up), and is not held against a board.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from epochwatt.rounds.plan import Client, Numbers

RECENT = 3  # rounds whose median is believed of a client
JUMP = 1.1  # times that the latest may differ from that median, else it is believed alone
APART = 1.5  # times by which measured n differ, to tell a fit's start-up from the rest


class Measured(NamedTuple):
    """A client's part of a round that has ended."""

    choice: int  # of the client: its mode, and how much it trained
    fit_s: float
    end_s: float  # from the round's start until its weights are back
    fit_j: float | None = None  # None: it has no sensor of power
    waiting_w: float | None = None
    is_first: bool = False  # whether it is the first round of a training: warm-up
    n_samples: float | None = None  # None: as many as the choice says


def learned_client(client: Client, rounds: Sequence[Measured]) -> Client:
    """Return a client as measured rounds, in their order, correct what was expected of it.

    All its fits take the line in n that measured ones lie on, relative to what was expected in
    their modes: time and energy each. Of how far they are from it, as of the time around a fit and
    the power of waiting, the median of the last `RECENT` counts, or the last alone where it has
    jumped: a board that throttles is believed at once. First rounds do not count.
    """
    counted = [one for one in rounds if not one.is_first]
    if not counted:
        return client
    fits_j = [(one, one.fit_j) for one in counted if one.fit_j]  # 0: too short for its sensor
    watts = [one.waiting_w for one in counted if one.waiting_w is not None]
    slower = _learned_factors(client, client.fit_s, [(one, one.fit_s) for one in counted])
    hungrier = _learned_factors(client, client.fit_j, fits_j) if fits_j else slower
    return replace(
        client,
        fit_s=client.fit_s * slower,
        fit_j=client.fit_j * hungrier,
        waiting_w=np.full_like(client.waiting_w, _believed(watts)) if watts else client.waiting_w,
        around_s=_believed([max(one.end_s - one.fit_s, 0.0) for one in counted]),
    )


def _learned_factors(
    client: Client, expected: Numbers, fits: Sequence[tuple[Measured, float]]
) -> Numbers:
    """Return how many times what is expected each choice takes, shape (n,); of each fit a total."""
    choices = [one.choice for one, _ in fits]
    n = np.array([one.n_samples or client.n_samples[one.choice] for one, _ in fits])
    # so many samples' worth of time, or energy, in the mode of each
    worth = np.array([total for _, total in fits]) * client.n_samples[choices] / expected[choices]
    line = fit_line(n, worth)
    off = _believed((worth / line.at(n)).tolist())
    return off * line.at(client.n_samples) / client.n_samples


class Line(NamedTuple):
    """Time or energy of n units of work: `fixed` + n `each`.

    Below `least_n`, the least that was measured, a line that begins below zero would end there, so
    it is taken to be proportional.
    """

    fixed: float
    each: float
    least_n: float

    def at(self, n: Numbers) -> Numbers:
        """Return the expected value of n units, of the shape of n."""
        line = self.fixed + self.each * n
        least = self.fixed + self.each * self.least_n
        is_below = (self.fixed < 0) & (n < self.least_n)
        return np.where(is_below, least * n / self.least_n, line)


def fit_line(n: Numbers, totals: Numbers) -> Line:
    """Return the line through measured fits by least squares of relative deviations.

    Where n differ by less than `APART` times, or the line does not rise, nothing tells the fixed
    part: it is zero.
    """
    least_n = float(n.min())
    if n.max() >= APART * least_n:
        columns = np.column_stack([np.ones(len(n)), n]) / totals[:, None]
        fixed, each = np.linalg.lstsq(columns, np.ones(len(n)), rcond=None)[0]
        if each > 0 and fixed + each * least_n > 0:
            return Line(float(fixed), float(each), least_n)
    return Line(0.0, float(np.median(totals / n)), least_n)


def _believed(values: Sequence[float]) -> float:
    """Return the median of the latest values, or the very latest where it has jumped."""
    median = float(np.median(values[-RECENT:]))
    return median if median / JUMP <= values[-1] <= median * JUMP else float(values[-1])
