"""Judge plans over trainings of several rounds in which boards slow down and leave; simulated."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from epochwatt.rounds.config import FederatedStudy, Training
from epochwatt.rounds.law import Measured, learned_client
from epochwatt.rounds.plan import Indices, Numbers
from epochwatt.rounds.rules import plan_with_slack, rows_of
from epochwatt.rounds.simulated import Catalogue, DrawnFleet, Known, draw_fleet

NOTICED_S = 65.0  # until Flower takes a node that has vanished for dead
TRAINED_BY = ("maxn", "plan_once", "plan_again", "oracle")
Bools = NDArray[np.bool_]


def judge_trainings(
    catalogue: Catalogue, study: FederatedStudy, known: Sequence[Known]
) -> Iterator[dict[str, Any]]:
    """Yield a row of trainings.csv for each training: undisturbed, or boards slow down and leave.

    `maxn` waits for all boards, and for one that has left until that is noticed. The plans give up
    at `patience` times the end that they expect. `plan_once` keeps its first plan; `plan_again`
    plans each round anew from what was measured; the oracle knows each round before it begins.
    """
    for data, is_disturbed, draw in product(study.judged_data, (False, True), range(study.draws)):
        fleet = draw_fleet(catalogue, study, study.judged_fleet, data, draw)
        happens = disturb(fleet, study.training, is_disturbed, draw)
        totals = {rule: train(Planner(fleet, study, known, rule), happens) for rule in TRAINED_BY}
        base = totals["maxn"]
        for rule, of_rule in totals.items():
            per_sample = (of_rule.energy_j / of_rule.trained) / (base.energy_j / base.trained)
            yield {
                "provenance": "simulated",
                "boards": study.judged_fleet,
                "data": data,
                "waiting": catalogue.waiting,
                "disturbed": is_disturbed,
                "draw": draw,
                "rule": rule,
                "end_s": of_rule.end_s,
                "energy_j": of_rule.energy_j,
                "lost_pct": 100 * of_rule.lost / (of_rule.lost + of_rule.trained),
                "longer_pct": 100 * (of_rule.end_s / base.end_s - 1),
                "saved_pct": 100 * (1 - per_sample),
            }


class Happens(NamedTuple):
    """Events of each board in each round of a training, shape (rounds, n)."""

    slower: Numbers  # times what a fit is expected to take
    begins: Bools  # it takes part
    stays: Bools  # until the end; else it leaves in the middle of its fit


def disturb(fleet: DrawnFleet, asked: Training, is_disturbed: bool, draw: int) -> Happens:
    """Draw what happens in a training, by its seed; from the third round on boards are slower."""
    n_boards, rng = len(fleet.kind), np.random.default_rng([draw, 3])
    slows, leaves, when = rng.random((3, n_boards))
    vary = rng.standard_normal((asked.rounds, n_boards))
    number = np.arange(1, asked.rounds + 1)[:, None]
    is_slow = is_disturbed & (slows < asked.throttled_pct / 100) & (number >= 3)
    leaving = is_disturbed & (leaves < asked.leaving_pct / 100)
    last = np.where(leaving, 2 + (when * (asked.rounds - 1)).astype(int), asked.rounds + 1)
    slower = np.exp(fleet.spread * vary) * np.where(is_slow, asked.slower, 1.0)
    return Happens(slower, number <= last, number < last)


class Planner:
    """Who decides in a training, by one of `TRAINED_BY`."""

    def __init__(
        self, fleet: DrawnFleet, study: FederatedStudy, known: Sequence[Known], rule: str
    ) -> None:
        self.fleet, self.study, self.rule = fleet, study, rule
        self._known = fleet.of_kinds(known)
        self._clients = fleet.clients(self._known)
        self._believed = [*self._clients]
        self._measured: list[list[Measured]] = [[] for _ in self._clients]
        self._modes = np.zeros(len(self._clients), int)  # of each client
        self.rows = fleet.strongest  # of the catalogue

    def plan(self, number: int, boards: Indices, slower: Numbers) -> None:
        """Choose the modes of a round of these boards; only the oracle looks at `slower`."""
        if self.rule == "maxn" or (self.rule == "plan_once" and number > 1):
            return
        clients = [self._believed[i] for i in boards]
        if self.rule == "oracle":
            clients = [
                replace(c, fit_s=c.fit_s * k, fit_j=c.fit_j * k, spread=0.0)
                for c, k in zip(clients, slower[boards], strict=True)
            ]
        self._modes[boards] = plan_with_slack(clients, self.study)
        self.rows = rows_of(self._known, self._modes)

    def gives_up_s(self, number: int, ends_s: Numbers, begins: Bools, stays: Bools) -> float:
        """Return how long a round is waited for."""
        leave = begins & ~stays
        if self.rule == "maxn" and leave.any():
            left_s = (self.fleet.around_s + ends_s[leave]) / 2  # in the middle of its fit
            return max(float(left_s.max()) + NOTICED_S, float(ends_s[stays].max()))
        if self.rule in ("maxn", "oracle") or number == 1:
            return np.inf
        planned = zip(self._believed, self._modes, begins, strict=True)
        expected_s = [client.end_s()[mode] for client, mode, is_in in planned if is_in]
        return self.study.training.patience * max(expected_s)

    def learn(self, number: int, fit_s: Numbers, stays: Bools) -> None:
        """Correct what is believed of the boards that have ended their fit."""
        if self.rule != "plan_again":
            return
        for i in map(int, np.flatnonzero(stays)):
            end_s = fit_s[i] + self.fleet.around_s
            ended = Measured(int(self._modes[i]), fit_s[i], end_s, is_first=number == 1)
            self._measured[i].append(ended)
            self._believed[i] = learned_client(self._clients[i], self._measured[i])


@dataclass
class Totals:
    """Sums over the rounds of a training."""

    end_s: float = 0.0
    energy_j: float = 0.0
    trained: float = 0.0  # mini-batches whose weights came in time
    lost: float = 0.0  # of boards that were late or had left


def train(planner: Planner, happens: Happens) -> Totals:
    """Play a training."""
    fleet, totals = planner.fleet, Totals()
    warm_up_s = planner.study.training.warm_up_s
    for number, (slower, begins, stays) in enumerate(zip(*happens, strict=True), 1):
        planner.plan(number, np.flatnonzero(stays if planner.rule == "oracle" else begins), slower)
        fit_s = fleet.fits_s(planner.rows) * slower + warm_up_s * (number == 1)
        ends_s = fleet.around_s + fit_s
        gives_up_s = planner.gives_up_s(number, ends_s, begins, stays)
        in_time = stays & (ends_s <= gives_up_s)
        waits_for_all = (in_time | ~begins).all() or planner.rule == "oracle"
        end_s = float(ends_s[in_time].max()) if waits_for_all else gives_up_s
        # a board that is late is told to stop; one that leaves does so in the middle of its fit
        runs_s = np.where(stays, np.minimum(fit_s, end_s - fleet.around_s), fit_s / 2) * begins
        waits_s = np.where(stays, end_s - runs_s, fleet.around_s) * begins
        power_w = fleet.catalogue.power_w[planner.rows] * fleet.hungrier
        totals.energy_j += float((runs_s * power_w + waits_s * fleet.waits_w(planner.rows)).sum())
        totals.end_s += end_s
        totals.trained += float(fleet.minibatches[in_time].sum())
        totals.lost += float(fleet.minibatches[begins & ~in_time].sum())
        planner.learn(number, fit_s, stays)
    return totals
