"""Choose the modes of a round by a plan or a simpler rule, and play it on a simulated fleet."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from epochwatt.rounds.config import FederatedStudy
from epochwatt.rounds.plan import Client, Indices, Numbers, Objective, plan_round
from epochwatt.rounds.simulated import DrawnFleet, Known

LEVELS = np.arange(0.2, 1.001, 0.05)  # of one mode for all: share of each board's highest clocks
SELECTED = 0.8  # FedCS-like: the deadline that so many boards keep in their strongest mode


class Choice(NamedTuple):
    """Decision of a rule for each board, shape (n,)."""

    rows: Indices  # of the catalogue
    work: Numbers  # share of its data that it trains; 0: it takes no part
    waits_lowest: bool = False


class Played(NamedTuple):
    """A round as it went, per board: shape (n,)."""

    end_s: float
    ends_s: Numbers  # of the boards that took part
    fit_s: Numbers
    fit_j: Numbers
    waiting_w: Numbers
    trained: float  # mini-batches

    @property
    def waiting_j(self) -> Numbers:
        """Energy outside fits."""
        return self.waiting_w * (self.end_s - self.fit_s)

    @property
    def energy_j(self) -> float:
        """Energy of all boards."""
        return float((self.fit_j + self.waiting_j).sum())


def play(fleet: DrawnFleet, choice: Choice) -> Played:
    """Play a round in the modes that a rule chose."""
    fit_s = fleet.fits_s(choice.rows) * fleet.varied * choice.work
    waiting_w = fleet.waits_w(choice.rows)
    if choice.waits_lowest:
        lowest_w = fleet.catalogue.lowest_w[fleet.kind]
        waiting_w = lowest_w * fleet.hungrier * fleet.waiting_factor
    ends_s = fleet.around_s + fit_s[choice.work > 0]
    fit_j = fit_s * fleet.catalogue.power_w[choice.rows] * fleet.hungrier
    trained = float((fleet.minibatches * choice.work).sum())
    return Played(float(ends_s.max()), ends_s, fit_s, fit_j, waiting_w, trained)


class Task(NamedTuple):
    """Facts that a rule is given."""

    fleet: DrawnFleet
    study: FederatedStudy
    known: Sequence[Known]  # of each kind of board
    few: Sequence[Known]  # the same after a few profiled modes
    draw: int


Rule = Callable[[Task], Choice]


def every_board(rows: Indices, waits_lowest: bool = False) -> Choice:
    """Return the choice in which all boards train all of their data."""
    return Choice(rows, np.ones(len(rows)), waits_lowest)


def _one_level(task: Task) -> Choice:
    """Return the same share of the highest clocks for all: the one of least expected energy."""
    expected = replace(task.fleet, varied=np.ones(len(task.fleet.kind)))
    levels = [every_board(expected.catalogue.at_level(level)[expected.kind]) for level in LEVELS]
    return min(levels, key=lambda choice: play(expected, choice).energy_j)


def _selected(task: Task) -> Choice:
    """Return the strongest modes of the boards that end by a deadline; the others wait."""
    rows = task.fleet.strongest
    fits_s = task.fleet.fits_s(rows)
    return Choice(rows, (fits_s <= np.quantile(fits_s, SELECTED)).astype(float))


def _random(task: Task) -> Choice:
    """Return any of the modes in which a board ends no later than the slowest needs."""
    rng, catalogue = np.random.default_rng([task.draw, 2]), task.fleet.catalogue
    scale = task.fleet.minibatches * task.fleet.slower
    latest_s = (scale * catalogue.fastest_s[task.fleet.kind]).max()
    rows = []
    for kind, factor in zip(task.fleet.kind, scale, strict=True):
        of_kind = catalogue.rows[kind]
        rows.append(rng.choice(of_kind[factor * catalogue.time_s[of_kind] <= latest_s]))
    return every_board(np.array(rows))


def rows_of(known: Sequence[Known], modes: Sequence[int] | Indices) -> Indices:
    """Return the rows of the catalogue of a mode of each board."""
    return np.array([k.rows[mode] for k, mode in zip(known, modes, strict=True)])


def _plan(task: Task, known: Sequence[Known] | None = None) -> Choice:
    """Return the plan of least energy; `known`: of each board, else what is true."""
    known = known or task.fleet.of_kinds(task.known)
    return every_board(rows_of(known, plan_with_slack(task.fleet.clients(known), task.study)))


def plan_with_slack(
    clients: Sequence[Client],
    study: FederatedStudy,
    objective: Objective = "energy",
    whole: Sequence[Client] = (),
) -> tuple[int, ...]:
    """Plan a round that ends no later than the slowest board can; return the choices.

    All others have slack: with the probability `risk_pct` any of them ends later. A board that is
    too slow for its slack makes its surest choice: a mode that is known goes before one predicted.

    `whole`: the clients with some of their first choices, of which the slowest counts; default all
    """
    z = NormalDist().inv_cdf((1 - study.risk_pct / 100) ** (1 / len(clients)))
    surest = [int(client.end_s(z).argmin()) for client in whole or clients]
    latest_s = max(float(c.end_s()[k]) for c, k in zip(clients, surest, strict=True))
    allowed = []
    for client, k in zip(clients, surest, strict=True):
        in_time = client.end_s(z) <= latest_s
        in_time[k] = True
        allowed.append(np.flatnonzero(in_time))
    narrowed = [c.with_choices(rows) for c, rows in zip(clients, allowed, strict=True)]
    chosen = plan_round(narrowed, objective, latest_s).choices
    return tuple(int(rows[k]) for rows, k in zip(allowed, chosen, strict=True))


def _plan_from_few(task: Task) -> Choice:
    """Return the plan that knows each second board of a kind from a few profiled modes."""
    kind = task.fleet.kind
    is_few = np.arange(len(kind)) // len(task.fleet.catalogue.kinds) % 2 == 1
    sources = [task.few if few else task.known for few in is_few]
    return _plan(task, [source[k] for source, k in zip(sources, kind, strict=True)])


def _plan_work(task: Task) -> Choice:
    """Return the plan of least energy per sample where boards may train more or less."""
    most = task.study.work_pct / 100
    shares = np.array([1, 1 - most, 1 + most])
    fleet, known = task.fleet, task.fleet.of_kinds(task.known)
    varying, whole = fleet.clients(known, shares), fleet.clients(known)
    chosen = np.array(plan_with_slack(varying, task.study, "energy_per_sample", whole))
    share, mode = np.divmod(chosen, [len(k.rows) for k in known])
    return Choice(rows_of(known, mode), shares[share])


def _oracle(task: Task) -> Choice:
    """Return the plan of one who knows how each fit will vary."""
    fleet = task.fleet
    knowing = replace(fleet, slower=fleet.slower * fleet.varied, spread=0.0)
    return _plan(task._replace(fleet=knowing))


RULES: Mapping[str, Rule] = {
    "maxn": lambda task: every_board(task.fleet.strongest),
    "maxn_lowest": lambda task: every_board(task.fleet.strongest, waits_lowest=True),
    "one_level": _one_level,
    "fedcs": _selected,
    "random": _random,
    "plan": _plan,
    "plan_few": _plan_from_few,
    "plan_work": _plan_work,
    "oracle": _oracle,
}
