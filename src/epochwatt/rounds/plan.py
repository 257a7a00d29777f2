"""Choose each board's power mode so that a round of federated training costs least energy.

In a round every board receives the weights, fits its own samples and sends its weights back; the
round ends with the last of them, and a board that has finished draws its power of waiting. For a
given end T the boards are independent: each takes the choice that costs least until T, of those
that end by then. What a board costs rises with T as long as no further choice ends by T. So the
best T is the end of a choice, or the earliest possible end, and these are all looked at: the plan
is optimal for the choices that are given.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from epochwatt.errors import ConfigError

Numbers = NDArray[np.float64]
Indices = NDArray[np.intp]
Objective = Literal["energy", "time", "energy_per_sample"]
ROUNDING = 1e-9  # relative
MOST_RATIOS = 100  # steps of Dinkelbach's method; it needs a handful


@dataclass(frozen=True, eq=False)
class Client:
    """A board in a round, with a row for each of its choices: a power mode, and what it trains.

    Parameters
    ----------
    name : of the board, or of boards that are alike
    fit_s, fit_j : expected time and energy of its fit, shape (n,)
    waiting_w : power while it waits, in each choice, shape (n,)
    n_samples : trained in a round, shape (n,)
    around_s : before and after the fit: the engine's own time and the transfers, s
    spread : standard deviation of the logarithm of the fit's time; 0: it is known
    count : boards that are alike
    """

    name: str
    fit_s: Numbers
    fit_j: Numbers
    waiting_w: Numbers
    n_samples: Numbers
    around_s: float = 0.0
    spread: Numbers | float = 0.0
    count: int = 1

    def end_s(self, z: float = 0.0) -> Numbers:
        """Return when each choice ends, s, shape (n,); `z`: SDs by which the fit is longer."""
        return self.around_s + self.fit_s * np.exp(z * self.spread)

    def with_choices(self, rows: Indices) -> "Client":
        """Return it with these of its choices alone."""
        return replace(
            self,
            fit_s=self.fit_s[rows],
            fit_j=self.fit_j[rows],
            waiting_w=self.waiting_w[rows],
            n_samples=self.n_samples[rows],
            spread=np.broadcast_to(self.spread, self.fit_s.shape)[rows],
        )

    def energy_j(self, choice: int, end_s: float) -> float:
        """Return the energy of one board over a round that ends at `end_s`, J."""
        waiting_s = end_s - self.fit_s[choice]
        return float(self.fit_j[choice] + self.waiting_w[choice] * waiting_s)


class Round(NamedTuple):
    """A round: what every board does, and when it is planned to end."""

    end_s: float
    choices: tuple[int, ...]  # of each client


def energy_j(clients: Sequence[Client], planned: Round) -> float:
    """Return the energy of all boards until the end of a round."""
    pairs = zip(clients, planned.choices, strict=True)
    return sum(client.count * client.energy_j(k, planned.end_s) for client, k in pairs)


def n_samples(clients: Sequence[Client], planned: Round) -> float:
    """Return the samples that all boards train in a round."""
    pairs = zip(clients, planned.choices, strict=True)
    return float(sum(client.count * client.n_samples[k] for client, k in pairs))


def earliest_end_s(clients: Sequence[Client], z: float = 0.0) -> float:
    """Return the end of a round in which each board is as fast as it can, s."""
    return max(float(client.end_s(z).min()) for client in clients)


def fixed_round(clients: Sequence[Client], choices: Sequence[int]) -> Round:
    """Return the round in which each board makes the given choice; it ends with the slowest."""
    ends_s = [c.end_s()[k] for c, k in zip(clients, choices, strict=True)]
    return Round(float(max(ends_s)), tuple(choices))


def plan_round(
    clients: Sequence[Client],
    objective: Objective = "energy",
    latest_s: float = np.inf,
    budget_j: float = np.inf,
    z: float = 0.0,
) -> Round:
    """Return the round that is best by an objective within limits of time and energy.

    Parameters
    ----------
    objective : least `energy` by `latest_s`; least `time` within `budget_j`; or least
        `energy_per_sample`, where choices differ in how much they train
    latest_s : the round ends by then
    budget_j : energy of all boards until the end
    z : standard deviations by which every fit may be longer and still end in time

    Raises ConfigError: no round ends in time, or none keeps the budget.
    """
    earliest_s = earliest_end_s(clients, z)
    if earliest_s > latest_s:
        slowest = max(clients, key=lambda client: client.end_s(z).min())
        raise ConfigError(
            f"no round ends within {latest_s:g} s",
            found=f"{slowest.name} needs {earliest_s:.4g} s in its fastest mode",
            allowed=f"{earliest_s:.4g} s or more",
            do="allow more time, or give that board less to train",
        )
    last_s = min(latest_s, max(float(client.end_s(z).max()) for client in clients))
    if objective != "energy_per_sample":
        best, ends_s, costs_j = _candidate_ends(clients, earliest_s, last_s, z, 0.0)
        is_affordable = costs_j <= budget_j
        if not is_affordable.any():
            raise ConfigError(
                f"no round takes at most {budget_j:.4g} J",
                found=f"{costs_j.min():.4g} J at least, in {ends_s[costs_j.argmin()]:.4g} s",
                do="raise the budget of energy, or allow more time",
            )
        index = is_affordable.argmax() if objective == "time" else costs_j.argmin()
        return _round_ending(best, float(ends_s[index]))
    # Dinkelbach: energy / samples is least where min(energy - price * samples) = 0 at that price
    price_j = 0.0
    for _ in range(MOST_RATIOS):
        best, ends_s, costs_j = _candidate_ends(clients, earliest_s, last_s, z, price_j)
        planned = _round_ending(best, float(ends_s[costs_j.argmin()]))
        former_j = price_j
        price_j = energy_j(clients, planned) / n_samples(clients, planned)
        if np.isclose(price_j, former_j, rtol=1e-12):
            break
    return planned


def least_energy_j(clients: Sequence[Client], ends_s: Numbers) -> Numbers:
    """Return the least energy of rounds that end by each of some times, J; NaN: none does."""
    earliest_s, last_s = earliest_end_s(clients), float(np.max(ends_s))
    if last_s < earliest_s:
        return np.full(np.shape(ends_s), np.nan)
    _, candidates_s, costs_j = _candidate_ends(clients, earliest_s, last_s, 0.0, 0.0)
    last = np.searchsorted(candidates_s, np.asarray(ends_s) * (1 + ROUNDING), "right") - 1
    return np.where(last < 0, np.nan, np.minimum.accumulate(costs_j)[last])


class _Best(NamedTuple):
    """The best choice of a client as the round's end moves: from each `begin_s` on."""

    begin_s: Numbers  # ascending
    choice: Indices
    base_j: Numbers  # its cost is base_j + waiting_w * T
    waiting_w: Numbers


def _round_ending(best: Sequence[_Best], end_s: float) -> Round:
    """Return the round that ends at `end_s`, every board in its best choice."""
    choices = [int(b.choice[np.searchsorted(b.begin_s, end_s, "right") - 1]) for b in best]
    return Round(end_s, tuple(choices))


def _candidate_ends(
    clients: Sequence[Client], earliest_s: float, last_s: float, z: float, price_j: float
) -> tuple[list[_Best], Numbers, Numbers]:
    """Return each client's best choices, all ends that may be best, ascending, and their costs, J.

    Each client's cost is linear in T between its `begin_s`; their sum is made of the steps there.
    `price_j`: what a sample is worth
    """
    best = [_best_choices(client, earliest_s, last_s, z, price_j) for client in clients]
    begins_s = np.concatenate([b.begin_s for b in best])
    order = np.argsort(begins_s, kind="stable")
    pairs = [*zip(clients, best, strict=True)]
    steps_j = [client.count * np.diff(b.base_j, prepend=0.0) for client, b in pairs]
    steps_w = [client.count * np.diff(b.waiting_w, prepend=0.0) for client, b in pairs]
    bases_j = np.cumsum(np.concatenate(steps_j)[order])
    totals_w = np.cumsum(np.concatenate(steps_w)[order])
    ends_s, last = np.unique(begins_s[order][::-1], return_index=True)
    last = len(order) - 1 - last  # of equal ends the sum of all
    return best, ends_s, bases_j[last] + totals_w[last] * ends_s


def _best_choices(
    client: Client, earliest_s: float, last_s: float, z: float, price_j: float
) -> _Best:
    """Return the lower envelope of a client's choices over the end T of the round.

    The cost of a choice is a line, base_j + waiting_w * T, that begins when its fit has ended. T is
    between `earliest_s` and `last_s`.
    """
    waiting_w = client.waiting_w
    base_j = client.fit_j - waiting_w * client.fit_s - price_j * client.n_samples
    begin_s = np.maximum(client.end_s(z), earliest_s)
    for limit_s in (earliest_s, last_s):  # ends that differ by rounding are the same
        begin_s = np.where(np.isclose(begin_s, limit_s, rtol=ROUNDING, atol=0), limit_s, begin_s)
    last_cost_j = base_j + waiting_w * last_s
    lines = _useful_lines(base_j, waiting_w, begin_s, last_cost_j, last_s)
    corners: list[tuple[float, int]] = []  # T and the choice that is best from there on
    starts_s = np.unique(begin_s[lines])
    for start_s, next_s in zip(starts_s, [*starts_s[1:], np.inf], strict=True):
        present, now_s = lines[begin_s[lines] <= start_s], float(start_s)
        costs_j = base_j[present] + waiting_w[present] * now_s
        k = int(present[np.lexsort((waiting_w[present], costs_j))[0]])
        while now_s < next_s:
            if not corners or corners[-1][1] != k:
                corners.append((now_s, k))
            flatter = present[waiting_w[present] < waiting_w[k]]
            if not len(flatter):
                break
            crossings_s = (base_j[flatter] - base_j[k]) / (waiting_w[k] - waiting_w[flatter])
            nearest = np.lexsort((waiting_w[flatter], crossings_s))[0]
            now_s, k = max(now_s, float(crossings_s[nearest])), int(flatter[nearest])
    begins, choices = np.array([t for t, _ in corners]), np.array([k for _, k in corners])
    return _Best(begins, choices, base_j[choices], waiting_w[choices])


def _useful_lines(
    base_j: Numbers, waiting_w: Numbers, begin_s: Numbers, last_cost_j: Numbers, last_s: float
) -> Indices:
    """Return the choices but for those that lie above another from their begin to `last_s`."""

    def begins_below(lines: Indices, others: Indices) -> NDArray[np.bool_]:
        t_s = begin_s[lines]
        return base_j[lines] + waiting_w[lines] * t_s < base_j[others] + waiting_w[others] * t_s

    left = np.flatnonzero(begin_s <= last_s)
    left = left[np.lexsort((last_cost_j[left], begin_s[left]))]
    # a quick pass: each line against the one of those before it that ends lowest
    lowest_j = np.minimum.accumulate(last_cost_j[left])
    is_lowest = last_cost_j[left] == lowest_j
    lowest = left[np.maximum.accumulate(np.where(is_lowest, np.arange(len(left)), 0))]
    left = left[begins_below(left, lowest) | (left == lowest)]
    left = left[np.argsort(last_cost_j[left], kind="stable")]
    kept: list[int] = []
    while len(left):
        k = left[0]
        kept.append(int(k))
        is_later = begin_s[left] >= begin_s[k]
        left = left[~is_later | begins_below(left, k)]
    return np.array(kept)
