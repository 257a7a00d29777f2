"""Predict a client's part of a round from measured rounds: poll, start, fit, transfer, evaluation.

A client asks for messages each `poll_s`, starts a process for its fit in whatever mode it is found,
fits n mini-batches (or local epochs), sends the weights back, and waits for the round's end T:

    end(n) = poll_s / 2 + start_s + fit_s(n) + transfer_s
    E(n)   = fit_j(n) + waiting_w (T - fit_s(n))

Times and energies of fits are lines in n. The first round of a training takes longer (warm-up):
this is a term of its own, and is not held against a client.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from epochwatt.errors import ConfigError
from epochwatt.rounds.plan import Client, Numbers

RECENT = 3  # rounds whose median is believed of a client
JUMP = 1.1  # times that the latest may differ from that median, else it is believed alone


class Line(NamedTuple):
    """Time or energy of n units of work: `fixed` + n `each`, in a first round `warm_up` more.

    Below `least_n`, the least that was measured, a line that begins below zero would end there, so
    it is taken to be proportional.
    """

    fixed: float = 0.0
    each: float = 0.0
    warm_up: float = 0.0
    spread: float = 0.0  # standard deviation of the logarithm of what is measured
    least_n: float = 0.0

    def at(self, n: ArrayLike, is_first: bool = False) -> Numbers:
        """Return the expected value of n units, of the shape of n."""
        units = np.asarray(n, float)
        values = self.fixed + self.each * units
        if self.fixed < 0 < self.least_n:
            least = self.fixed + self.each * self.least_n
            values = np.where(units < self.least_n, least * units / self.least_n, values)
        return np.asarray(values + self.warm_up * is_first)


def fit_line(
    n: ArrayLike,
    totals: ArrayLike,
    rounds: ArrayLike = 1,
    has_first: ArrayLike = False,
    warm_up: float | None = None,
) -> Line:
    """Return the line through measured rounds, or trainings of several rounds, by least squares.

    Relative deviations count. Rounds of one n alone cannot tell a fixed part from the rest: their
    line goes through zero.

    Parameters
    ----------
    n : units of work of each round; all arrays have shape (m,), or are one number for all
    totals : time or energy of all rounds of a row
    rounds : of a row
    has_first : whether the first round of a training is among them
    warm_up : of a first round, where it is known; None: it is fitted, if there are first rounds

    Raises ConfigError: nothing is measured, a total is not above 0, or rows do not tell the warm-up
    from the rest.
    """
    values = np.atleast_1d(np.asarray(totals, float))
    units, repeats, first = (
        np.broadcast_to(np.asarray(a, float), values.shape) for a in (n, rounds, has_first)
    )
    if not values.size or not (values > 0).all():
        raise ConfigError(
            "no line through these rounds",
            found=f"{values.size} totals, the least {values.min(initial=math.inf):g}",
            allowed="one or more totals, each above 0",
        )
    has_fixed, has_warm_up = len(np.unique(units)) > 1, warm_up is None and first.any()
    known = (warm_up or 0.0) * first
    columns = np.column_stack([repeats * units, repeats, first])
    columns = columns[:, np.array([True, has_fixed, has_warm_up], bool)] / values[:, None]
    solution, _, rank, _ = np.linalg.lstsq(columns, (values - known) / values, rcond=None)
    if rank < columns.shape[1]:
        raise ConfigError(
            "these rounds do not tell the warm-up of a first round from the rest",
            do="measure rounds after the first, or give the warm-up",
        )
    deviations = np.log((columns @ solution + known / values).clip(1e-12))
    n_free = len(values) - rank
    return Line(
        fixed=float(solution[1]) if has_fixed else 0.0,
        each=float(solution[0]),
        warm_up=float(solution[-1]) if has_warm_up else warm_up or 0.0,
        spread=float(np.sqrt((deviations**2).sum() / n_free)) if n_free else 0.0,
        least_n=float(units.min()),
    )


@dataclass(frozen=True)
class RoundLaw:
    """Time and energy of one client's part of a round, in one power mode."""

    fit_s: Line
    fit_j: Line = field(default_factory=Line)
    waiting_w: float = 0.0
    poll_s: float = 0.0  # the client asks for messages so often; it waits half of that on average
    start_s: float = 0.0  # from a message to its fit: a process, imports, weights
    transfer_s: float = 0.0  # of the weights, there and back
    evaluation_s: float = 0.0  # after the last fit of a round

    @property
    def around_s(self) -> float:
        """Time before and after the fit, s."""
        return self.poll_s / 2 + self.start_s + self.transfer_s

    def end_s(self, n: ArrayLike, is_first: bool = False) -> Numbers:
        """Return when the weights of a fit of n units are back, s after the round's start."""
        return self.around_s + self.fit_s.at(n, is_first)

    def energy_j(self, n: ArrayLike, round_s: float, is_first: bool = False) -> Numbers:
        """Return the energy over a round of `round_s`: of the fit, and while waiting, J."""
        waiting_s = round_s - self.fit_s.at(n, is_first)
        return self.fit_j.at(n, is_first) + self.waiting_w * waiting_s


def round_s(
    laws: Sequence[RoundLaw], n: Sequence[float], server_poll_s: float = 0.0, is_first: bool = False
) -> float:
    """Return the time of a round of clients that fit n[i] units each, s.

    The server asks for replies each `server_poll_s` from the start of the round: it notices the
    last one at the next of these times. Evaluation follows.
    """
    ends_s = [float(law.end_s(k, is_first)) for law, k in zip(laws, n, strict=True)]
    end_s = max(ends_s)
    if server_poll_s:
        end_s = server_poll_s * math.ceil(end_s / server_poll_s)
    return end_s + max(law.evaluation_s for law in laws)


class Measured(NamedTuple):
    """A client's part of a round that has ended."""

    choice: int  # of the client: its mode, and how much it trained
    fit_s: float
    end_s: float  # from the round's start until its weights are back
    fit_j: float | None = None  # None: it has no sensor of power
    waiting_w: float | None = None
    is_first: bool = False  # whether it is the first round of a training: warm-up


def learned_client(client: Client, rounds: Sequence[Measured]) -> Client:
    """Return a client as measured rounds, in their order, correct what was expected of it.

    All its fits take the factor by which measured ones differ from what was expected in their
    modes: time and energy each. So do the time around a fit and the power of waiting. Of each the
    median of the last `RECENT` counts, or the last alone where it has jumped: a board that
    throttles is believed at once. First rounds do not count.
    """
    counted = [one for one in rounds if not one.is_first]
    if not counted:
        return client
    slower = _believed([one.fit_s / client.fit_s[one.choice] for one in counted])
    joules = [one.fit_j / client.fit_j[one.choice] for one in counted if one.fit_j is not None]
    watts = [one.waiting_w for one in counted if one.waiting_w is not None]
    return replace(
        client,
        fit_s=client.fit_s * slower,
        fit_j=client.fit_j * (_believed(joules) if joules else slower),
        waiting_w=np.full_like(client.waiting_w, _believed(watts)) if watts else client.waiting_w,
        around_s=_believed([max(one.end_s - one.fit_s, 0.0) for one in counted]),
    )


def _believed(values: Sequence[float]) -> float:
    """Return the median of the latest values, or the very latest where it has jumped."""
    median = float(np.median(values[-RECENT:]))
    return median if median / JUMP <= values[-1] <= median * JUMP else float(values[-1])
