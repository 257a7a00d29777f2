"""Judge plans of rounds on simulated fleets beside simpler rules; nothing here is measured.

A fleet has equal numbers of each kind of simulated board. Boards of a kind differ by a factor of
time and one of power, which plans know, as each board has its own table. A fit's time varies around
what is expected; rules do not know how, and each fleet's is the same for all rules.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from epochwatt.columns import MODE_PARTS
from epochwatt.errors import ConfigError
from epochwatt.prediction.data.modes import Mode
from epochwatt.prediction.data.observations import Observations
from epochwatt.rounds.answer import strongest_choice
from epochwatt.rounds.config import FederatedStudy, load_federated
from epochwatt.rounds.fleet import Fleet, members_of, predict_modes
from epochwatt.rounds.law import Measured, learned_client
from epochwatt.rounds.plan import Client, Indices, Numbers, least_energy_j, plan_round
from epochwatt.tables import write_frame

SIMULATED = "simulated"
LEVELS = np.arange(0.2, 1.001, 0.05)  # of one mode for all: share of each board's highest clocks
SELECTED = 0.8  # FedCS-like: the deadline that so many boards keep in their strongest mode
DEADLINES = np.round(np.arange(0.4, 2.01, 0.05), 2)  # times the end in the strongest modes
DRAWN_BOARDS = 12  # of the round that a figure shows
NOTICED_S = 65.0  # until Flower takes a node that has vanished for dead
SPREAD = {"": 0.5, "_p10": 0.1, "_p90": 0.9}  # of a summary


@dataclass(frozen=True, eq=False)
class Catalogue:
    """Modes of all kinds of boards, one after the other, and a mini-batch in each, shape (n,)."""

    waiting: str  # what a board draws while it waits: `pinned` or `governed`
    kinds: tuple[str, ...]
    rows: tuple[Indices, ...]  # of each kind
    strongest: Indices  # row of each kind
    modes: Numbers  # shape (n, 6)
    time_s: Numbers
    power_w: Numbers
    waiting_w: Numbers

    @property
    def fastest_s(self) -> Numbers:
        """Least time of a mini-batch of each kind."""
        return np.array([self.time_s[rows].min() for rows in self.rows])

    @property
    def lowest_w(self) -> Numbers:
        """Least power of waiting of each kind."""
        return np.array([self.waiting_w[rows].min() for rows in self.rows])

    def at_level(self, level: float) -> Indices:
        """Return each kind's mode of all cores with clocks nearest a share of the highest."""
        nearest = []
        for rows, top in zip(self.rows, self.strongest, strict=True):
            relative = self.modes[rows, :4] / self.modes[top, :4]
            far = np.abs(relative - [1.0, level, level, level]).max(1)
            nearest.append(rows[far.argmin()])
        return np.array(nearest)


def simulate_catalogue(study: FederatedStudy, waiting: str, root: Path = Path()) -> Catalogue:
    """Simulate all modes of each kind, and draw those to choose from.

    Raises EpochwattError: a board, network or mode that cannot be simulated.
    """
    entry = {"workload": study.workload, "batch_size": study.batch_size, "grid": "all"}
    entry |= {"samples": study.batch_size, "waiting_w": waiting}
    boards = [{**entry, "name": device, "device": device} for device in study.devices]
    fleet = Fleet.model_validate({"boards": boards})
    rows, strongest, parts, begin = [], [], [], 0
    for member in members_of(fleet, root):
        client, top = member.client, strongest_choice(member)
        drawn = np.random.default_rng(0).permutation(len(client.fit_s))[: study.modes]
        kept = np.union1d(drawn, top)
        rows.append(np.arange(begin, begin + len(kept)))
        strongest.append(begin + int(np.searchsorted(kept, top)))
        modes = np.array(member.modes, float)
        parts.append([v[kept] for v in (modes, client.fit_s, member.power_w, client.waiting_w)])
        begin += len(kept)
    values = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Catalogue(waiting, tuple(study.devices), tuple(rows), np.array(strongest), *values)


class Known(NamedTuple):
    """Modes of a kind of board, and what is believed of a mini-batch in each."""

    rows: Indices  # of the catalogue
    time_s: Numbers
    power_w: Numbers
    waiting_w: Numbers
    spread: Numbers  # standard deviation of the logarithm of the time, but for that of a fit

    def useful(self) -> "Known":
        """Return the modes that can be part of a best plan, whatever there is to train.

        Of the others there is a mode that ends no later, has cost no more by then, and waits with
        no more power.
        """
        kept: list[int] = []
        for k in np.lexsort((self.power_w, self.time_s)):
            time_s, waiting_w = self.time_s[kept], self.waiting_w[kept]
            by_then_j = self.power_w[kept] * time_s + waiting_w * (self.time_s[k] - time_s)
            is_better = by_then_j <= self.power_w[k] * self.time_s[k]
            if not (is_better & (waiting_w <= self.waiting_w[k])).any():
                kept.append(int(k))
        rows, *values = self
        return Known(rows[kept], *(numbers[kept] for numbers in values))


def known_modes(catalogue: Catalogue) -> list[Known]:
    """Return what is true of each kind."""
    return [
        Known(
            rows,
            catalogue.time_s[rows],
            catalogue.power_w[rows],
            catalogue.waiting_w[rows],
            np.zeros(len(rows)),
        ).useful()
        for rows in catalogue.rows
    ]


def predicted_modes(catalogue: Catalogue, study: FederatedStudy, draw: int) -> list[Known]:
    """Return what the recommended method believes of each kind after a few profiled modes.

    The strongest mode is among those that are profiled; the others are drawn.
    """
    rng, believed = np.random.default_rng([draw, 1]), []
    for rows, top in zip(catalogue.rows, catalogue.strongest, strict=True):
        others = rng.permutation(rows[rows != top])[: study.profiled - 1]
        profiled = np.sort(np.append(others, top))
        observed_s = catalogue.time_s[profiled] * np.exp(
            np.log1p(study.spread_pct / 100) * rng.standard_normal(len(profiled))
        )
        observed = Observations(
            study.workload,
            catalogue.modes[profiled],
            observed_s,
            catalogue.power_w[profiled],
            np.ones(len(profiled), np.int64),
        )
        time_s, power_w, spread = predict_modes(observed, catalogue.modes[rows])
        places = np.searchsorted(rows, profiled)
        time_s[places], power_w[places], spread[places] = observed_s, observed.power_w, 0.0
        known = Known(rows, time_s, power_w, catalogue.waiting_w[rows], spread)
        believed.append(known.useful())
    return believed


# -- fleets ----------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class DrawnFleet:
    """Boards of a fleet, shape (n,) each."""

    catalogue: Catalogue
    kind: Indices  # of the catalogue's kinds
    minibatches: Numbers  # of a round
    slower: Numbers  # times what its kind takes
    hungrier: Numbers  # times the power of its kind
    varied: Numbers  # times what a fit is expected to take; no rule knows it
    around_s: float  # before and after a fit
    spread: float  # standard deviation of the logarithm of `varied`
    waiting_factor: float = 1.0

    @property
    def strongest(self) -> Indices:
        """Row of the strongest mode of each board."""
        return self.catalogue.strongest[self.kind]

    def fits_s(self, rows: Indices) -> Numbers:
        """Return the expected times of fits in the catalogue's modes `rows`, s."""
        return self.minibatches * self.slower * self.catalogue.time_s[rows]

    def waits_w(self, rows: Indices) -> Numbers:
        """Return the power while waiting in modes, W."""
        return self.catalogue.waiting_w[rows] * self.hungrier * self.waiting_factor

    def clients(self, known: Sequence[Known]) -> list[Client]:
        """Return the boards as plans see them; `known`: of each board."""
        return [
            Client(
                name=f"{self.catalogue.kinds[self.kind[i]]}-{i}",
                fit_s=(fit_s := k.time_s * self.minibatches[i] * self.slower[i]),
                fit_j=fit_s * k.power_w * self.hungrier[i],
                waiting_w=k.waiting_w * self.hungrier[i] * self.waiting_factor,
                n_samples=np.full(len(fit_s), self.minibatches[i]),
                around_s=self.around_s,
                spread=np.hypot(k.spread, self.spread),
            )
            for i, k in enumerate(known)
        ]

    def of_kinds(self, known: Sequence[Known]) -> list[Known]:
        """Return what is known of each board's kind."""
        return [known[kind] for kind in self.kind]


def draw_fleet(
    catalogue: Catalogue, study: FederatedStudy, n_boards: int, data: str, draw: int
) -> DrawnFleet:
    """Draw a fleet by its seed: the boards, their data, and how their fits vary."""
    rng = np.random.default_rng([draw, n_boards])
    kind = np.arange(n_boards) % len(catalogue.kinds)
    sd, spread = np.log1p(study.board_pct / 100), np.log1p(study.spread_pct / 100)
    slower, hungrier = np.exp(sd * rng.standard_normal((2, n_boards)))
    varied = np.exp(spread * rng.standard_normal(n_boards))
    name, _, parameter = data.partition("_")
    if name == "lognormal":
        shares = rng.lognormal(0.0, float(parameter), n_boards)
    elif name == "dirichlet":
        shares = rng.dirichlet(np.full(n_boards, float(parameter)))
    else:
        speeds = 1 / (catalogue.fastest_s[kind] * slower)
        shares = np.ones(n_boards) if name == "equal" else speeds
    mean = study.samples / study.batch_size
    minibatches = np.maximum(np.round(shares / shares.mean() * mean), 1.0)
    around_s = study.engine_s + 2 * 8 * study.model_mb / study.bandwidth_mbit_s
    return DrawnFleet(
        catalogue, kind, minibatches, slower, hungrier, varied, around_s, float(spread)
    )


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


def play(fleet: DrawnFleet, choice: "Choice") -> Played:
    """Play a round in the modes that a rule chose."""
    fit_s = fleet.fits_s(choice.rows) * fleet.varied * choice.is_selected
    waiting_w = fleet.waits_w(choice.rows)
    if choice.waits_lowest:
        lowest_w = fleet.catalogue.lowest_w[fleet.kind]
        waiting_w = lowest_w * fleet.hungrier * fleet.waiting_factor
    ends_s = fleet.around_s + fit_s[choice.is_selected]
    fit_j = fit_s * fleet.catalogue.power_w[choice.rows] * fleet.hungrier
    trained = float(fleet.minibatches[choice.is_selected].sum())
    return Played(float(ends_s.max()), ends_s, fit_s, fit_j, waiting_w, trained)


# -- rules -----------------------------------------------------------------------------------------


class Choice(NamedTuple):
    """What a rule decides: for each board a row of the catalogue, and whether it trains."""

    rows: Indices
    is_selected: NDArray[np.bool_]
    waits_lowest: bool = False


Rule = Callable[[DrawnFleet, FederatedStudy, Sequence[Known], Sequence[Known], int], Choice]


def _all(rows: Indices, waits_lowest: bool = False) -> Choice:
    return Choice(rows, np.ones(len(rows), bool), waits_lowest)


def _one_level(fleet: DrawnFleet, *_: Any) -> Choice:
    """Return the same share of the highest clocks for all: the one of least expected energy."""
    expected = replace(fleet, varied=np.ones(len(fleet.kind)))
    levels = [_all(fleet.catalogue.at_level(level)[fleet.kind]) for level in LEVELS]
    return min(levels, key=lambda choice: play(expected, choice).energy_j)


def _selected(fleet: DrawnFleet, *_: Any) -> Choice:
    """Return the strongest modes of the boards that end by a deadline; the others wait."""
    fits_s = fleet.fits_s(fleet.strongest)
    return Choice(fleet.strongest, fits_s <= np.quantile(fits_s, SELECTED))


def _random(
    fleet: DrawnFleet, study: FederatedStudy, known: Sequence[Known], _: Any, draw: int
) -> Choice:
    """Return any of the modes in which a board ends no later than the slowest needs."""
    rng, catalogue = np.random.default_rng([draw, 2]), fleet.catalogue
    scale = fleet.minibatches * fleet.slower
    latest_s = (scale * catalogue.fastest_s[fleet.kind]).max()
    rows = []
    for kind, factor in zip(fleet.kind, scale, strict=True):
        of_kind = catalogue.rows[kind]
        rows.append(rng.choice(of_kind[factor * catalogue.time_s[of_kind] <= latest_s]))
    return _all(np.array(rows))


def _planned(fleet: DrawnFleet, study: FederatedStudy, known: Sequence[Known]) -> Choice:
    """Return the plan of least energy that ends no later than the slowest board can."""
    clients = fleet.clients(known)
    chosen = plan_with_slack(clients, study.risk_pct / 100)
    return _all(np.array([k.rows[c] for k, c in zip(known, chosen, strict=True)]))


def plan_with_slack(clients: Sequence[Client], risk: float) -> tuple[int, ...]:
    """Plan for least energy by the end that the slowest board needs; return the choices.

    All others have slack: with the probability `risk` any of them ends later. A board that is too
    slow for its slack makes its surest choice: a mode that is known goes before one predicted.
    """
    z = NormalDist().inv_cdf((1 - risk) ** (1 / len(clients)))
    surest = [int(client.end_s(z).argmin()) for client in clients]
    latest_s = max(float(c.end_s()[k]) for c, k in zip(clients, surest, strict=True))
    allowed = []
    for client, k in zip(clients, surest, strict=True):
        in_time = np.flatnonzero(client.end_s(z) <= latest_s)
        allowed.append(in_time if len(in_time) else np.array([k]))
    narrowed = [
        replace(
            client,
            fit_s=client.fit_s[rows],
            fit_j=client.fit_j[rows],
            waiting_w=client.waiting_w[rows],
            n_samples=client.n_samples[rows],
            spread=0.0,
        )
        for client, rows in zip(clients, allowed, strict=True)
    ]
    chosen = plan_round(narrowed, "energy", latest_s).choices
    return tuple(int(rows[k]) for rows, k in zip(allowed, chosen, strict=True))


def _plan(fleet: DrawnFleet, study: FederatedStudy, known: Sequence[Known], *_: Any) -> Choice:
    return _planned(fleet, study, fleet.of_kinds(known))


def _plan_from_few(
    fleet: DrawnFleet, study: FederatedStudy, known: Sequence[Known], few: Sequence[Known], _: int
) -> Choice:
    """Return the plan that knows each second board of a kind from a few profiled modes."""
    is_few = np.arange(len(fleet.kind)) // len(fleet.catalogue.kinds) % 2 == 1
    pairs = zip(fleet.kind, is_few, strict=True)
    return _planned(fleet, study, [few[k] if f else known[k] for k, f in pairs])


def _oracle(fleet: DrawnFleet, study: FederatedStudy, known: Sequence[Known], *_: Any) -> Choice:
    """Return the plan of one who knows how each fit will vary."""
    knowing = replace(fleet, slower=fleet.slower * fleet.varied, spread=0.0)
    of_boards = fleet.of_kinds(known)
    clients = knowing.clients(of_boards)
    latest_s = max(float(client.end_s().min()) for client in clients)
    chosen = plan_round(clients, "energy", latest_s).choices
    return _all(np.array([k.rows[c] for k, c in zip(of_boards, chosen, strict=True)]))


RULES: Mapping[str, Rule] = {
    "maxn": lambda fleet, *_: _all(fleet.strongest),
    "maxn_lowest": lambda fleet, *_: _all(fleet.strongest, waits_lowest=True),
    "one_level": _one_level,
    "fedcs": _selected,
    "random": _random,
    "plan": _plan,
    "plan_few": _plan_from_few,
    "oracle": _oracle,
}
AT_OTHER_WATTS = ("maxn", "maxn_lowest", "plan")  # rules that are judged at other powers of waiting


# -- tables ----------------------------------------------------------------------------------------


def judge_rounds(
    catalogue: Catalogue, study: FederatedStudy, known: Sequence[Known]
) -> Iterator[dict[str, Any]]:
    """Yield a row of rounds.csv for each fleet, power of waiting and rule."""
    for draw in range(study.draws):
        few = predicted_modes(catalogue, study, draw)
        is_first = catalogue.waiting == study.waiting[0]
        for n_boards in study.fleets if is_first else [study.judged_fleet]:
            factors = study.waiting_factors if n_boards == study.judged_fleet else [1.0]
            for data in study.data:
                drawn = draw_fleet(catalogue, study, n_boards, data, draw)
                for factor in factors:
                    fleet = replace(drawn, waiting_factor=factor)
                    names = [*RULES] if factor == 1 else AT_OTHER_WATTS
                    base = play(fleet, RULES["maxn"](fleet, study, known, few, draw))
                    for name in names:
                        played = play(fleet, RULES[name](fleet, study, known, few, draw))
                        yield {
                            "provenance": SIMULATED,
                            "boards": n_boards,
                            "data": data,
                            "waiting": catalogue.waiting,
                            "waiting_factor": factor,
                            "draw": draw,
                            "rule": name,
                            **compare(played, base),
                        }


def compare(played: Played, base: Played) -> dict[str, float]:
    """Return what a round is, and how it differs from another of the same fleet."""
    energy_j, base_j = played.energy_j, base.energy_j
    saved_j = base_j - energy_j
    waiting_saved_j = float((base.waiting_j - played.waiting_j).sum())
    per_sample = (energy_j / played.trained) / (base_j / base.trained)
    early = 1 - played.ends_s / played.end_s
    return {
        "end_s": played.end_s,
        "energy_j": energy_j,
        "trained_pct": 100 * played.trained / base.trained,
        "longer_pct": 100 * (played.end_s / base.end_s - 1),
        "saved_pct": 100 * (1 - per_sample),
        # of what is saved; more than all: the fits themselves cost more
        "rests_on_waiting_pct": 100 * waiting_saved_j / saved_j if saved_j > 0 else np.nan,
        "waiting_time_pct": 100 * float(early.mean()),
        "waiting_energy_pct": 100 * float(played.waiting_j.sum()) / energy_j,
        "early_pct": 100 * float(np.median(early)),
        "apart_pct": 100 * float(early.max()),
    }


def summarise(rows: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """Return median, 10th and 90th percentile over draws of each percentage."""
    groups = rows.groupby([*keys], sort=False)
    parts: dict[str, Any] = {"draws": groups.size()}
    for name in (name for name in rows.columns if name.endswith("_pct")):
        for ending, share in SPREAD.items():
            parts[f"{name.removesuffix('_pct')}{ending}_pct"] = groups[name].quantile(share)
    return pd.DataFrame(parts).reset_index()


def judge_deadlines(
    catalogue: Catalogue, study: FederatedStudy, known: Sequence[Known]
) -> Iterator[dict[str, Any]]:
    """Yield a row of deadlines.csv: expected energy of a sample by a deadline, relative to MAXN."""
    for data in study.judged_data:
        for draw in range(study.draws):
            drawn = draw_fleet(catalogue, study, study.judged_fleet, data, draw)
            fleet = replace(drawn, varied=np.ones(study.judged_fleet))
            base = play(fleet, _all(fleet.strongest))
            latest_s = DEADLINES * base.end_s
            levels = [play(fleet, _all(catalogue.at_level(f)[fleet.kind])) for f in LEVELS]
            level_ends_s = np.array([level.end_s for level in levels])
            level_j = np.array([level.energy_j for level in levels])
            planned_j = least_energy_j(fleet.clients(fleet.of_kinds(known)), latest_s)
            lowest_j = play(fleet, _all(fleet.strongest, waits_lowest=True)).energy_j
            ends_s = fleet.around_s + fleet.fits_s(fleet.strongest)
            for deadline, by_s, plan_j in zip(DEADLINES, latest_s, planned_j, strict=True):
                in_time = level_ends_s <= by_s
                per_sample = {
                    "plan": plan_j,
                    "one_level": level_j[in_time].min() if in_time.any() else np.nan,
                    "maxn_lowest": lowest_j if deadline >= 1 else np.nan,
                }
                if deadline <= 1 and (is_selected := ends_s <= by_s * (1 + 1e-9)).any():
                    part = play(fleet, Choice(fleet.strongest, is_selected))
                    per_sample["fedcs"] = part.energy_j * base.trained / part.trained
                for name, energy_j in per_sample.items():
                    if not np.isnan(energy_j):
                        yield {
                            "provenance": SIMULATED,
                            "boards": study.judged_fleet,
                            "data": data,
                            "waiting": catalogue.waiting,
                            "draw": draw,
                            "rule": name,
                            "deadline": deadline,
                            "energy_pct": 100 * energy_j / base.energy_j,
                        }


def timeline(
    catalogue: Catalogue, study: FederatedStudy, known: Sequence[Known]
) -> Iterator[dict[str, Any]]:
    """Yield a row of timeline.csv for each board of one small fleet: a round before and after."""
    fleet = draw_fleet(catalogue, study, DRAWN_BOARDS, study.judged_data[0], 0)
    for name in ("maxn", "plan"):
        choice = RULES[name](fleet, study, known, known, 0)
        played = play(fleet, choice)
        for i in np.argsort(fleet.kind, kind="stable"):
            mode = Mode(*catalogue.modes[choice.rows[i]].tolist())
            yield {
                "provenance": SIMULATED,
                "rule": name,
                "board": f"{catalogue.kinds[fleet.kind[i]]} {i // len(catalogue.kinds) + 1}",
                "device": catalogue.kinds[fleet.kind[i]],
                "mode": mode.of_parts(MODE_PARTS[:4]),
                "samples": fleet.minibatches[i] * study.batch_size,
                "around_s": fleet.around_s,
                "fit_s": played.fit_s[i],
                "end_s": played.end_s,
                "power_w": played.fit_j[i] / played.fit_s[i],
                "waiting_w": played.waiting_w[i],
            }


# -- trainings of several rounds -------------------------------------------------------------------


def judge_trainings(
    catalogue: Catalogue, study: FederatedStudy, known: Sequence[Known]
) -> Iterator[dict[str, Any]]:
    """Yield a row of trainings.csv for each training: undisturbed, or boards slow down and leave.

    `maxn` waits for all boards, and for one that has left until that is noticed. The plans give up
    at `patience` times the end that they expect. `plan_once` keeps its first plan; `plan_again`
    plans each round anew from what was measured; the oracle knows each round before it begins.
    """
    for data in study.judged_data:
        for is_disturbed in (False, True):
            for draw in range(study.draws):
                fleet = draw_fleet(catalogue, study, study.judged_fleet, data, draw)
                clients = fleet.clients(fleet.of_kinds(known))
                base: Totals | None = None
                for rule in ("maxn", "plan_once", "plan_again", "oracle"):
                    totals = train(fleet, study, known, clients, rule, is_disturbed, draw)
                    base = base or totals
                    per_sample = (totals.energy_j / totals.trained) / (base.energy_j / base.trained)
                    yield {
                        "provenance": SIMULATED,
                        "boards": study.judged_fleet,
                        "data": data,
                        "waiting": catalogue.waiting,
                        "disturbed": is_disturbed,
                        "draw": draw,
                        "rule": rule,
                        "end_s": totals.end_s,
                        "energy_j": totals.energy_j,
                        "lost_pct": 100 * totals.lost / (totals.lost + totals.trained),
                        "longer_pct": 100 * (totals.end_s / base.end_s - 1),
                        "saved_pct": 100 * (1 - per_sample),
                    }


@dataclass
class Totals:
    """Sums over the rounds of a training."""

    end_s: float = 0.0
    energy_j: float = 0.0
    trained: float = 0.0  # mini-batches whose weights came in time
    lost: float = 0.0  # of boards that were late or had left


def train(
    fleet: DrawnFleet,
    study: FederatedStudy,
    known: Sequence[Known],
    clients: Sequence[Client],
    rule: str,
    is_disturbed: bool,
    draw: int,
) -> Totals:
    """Play a training by one rule; the same draw has the same disturbances for all rules."""
    asked, n_boards, totals = study.training, len(fleet.kind), Totals()
    rng = np.random.default_rng([draw, 3])
    slows, leaves, when = rng.random((3, n_boards))
    never = asked.rounds + 1
    slows_in = np.where(is_disturbed & (slows < asked.throttled_pct / 100), 3, never)
    leaves_in = np.where(
        is_disturbed & (leaves < asked.leaving_pct / 100),
        2 + (when * (never - 2)).astype(int),
        never,
    )
    believed = [*clients]
    measured: list[list[Measured]] = [[] for _ in clients]
    choices, rows = np.zeros(n_boards, int), fleet.strongest
    for number in range(1, never):
        slower = np.exp(fleet.spread * rng.standard_normal(n_boards))
        slower = slower * np.where(number >= slows_in, asked.slower, 1.0)
        here, stays = leaves_in >= number, leaves_in > number
        if rule in ("plan_again", "oracle") or (rule == "plan_once" and number == 1):
            boards = np.flatnonzero(stays if rule == "oracle" else here)
            seen = [believed[i] for i in boards]
            if rule == "oracle":
                seen = [
                    replace(c, fit_s=c.fit_s * slower[i], fit_j=c.fit_j * slower[i], spread=0.0)
                    for i, c in zip(boards, seen, strict=True)
                ]
            choices[boards] = plan_with_slack(seen, study.risk_pct / 100)
            rows = np.array([known[k].rows[c] for k, c in zip(fleet.kind, choices, strict=True)])
        fit_s = fleet.fits_s(rows) * slower + asked.warm_up_s * (number == 1)
        ends_s = fleet.around_s + fit_s
        gives_up_s = np.inf
        if rule == "maxn" and not stays[here].all():
            left_s = fleet.around_s + fit_s[here & ~stays] / 2
            gives_up_s = max(float(left_s.max()) + NOTICED_S, float(ends_s[stays].max()))
        elif rule != "maxn" and number > 1:
            expected_s = [believed[i].end_s()[choices[i]] for i in np.flatnonzero(here)]
            gives_up_s = np.inf if rule == "oracle" else asked.patience * max(expected_s)
        in_time = stays & (ends_s <= gives_up_s)
        waits_for_all = (in_time | ~here).all() or rule == "oracle"
        end_s = float(ends_s[in_time].max()) if waits_for_all else float(gives_up_s)
        # a board that is late is told to stop; one that leaves does so in the middle of its fit
        runs_s = np.where(stays, np.minimum(fit_s, end_s - fleet.around_s), fit_s / 2) * here
        waits_s = np.where(stays, end_s - runs_s, fleet.around_s) * here
        power_w = fleet.catalogue.power_w[rows] * fleet.hungrier
        totals.energy_j += float((runs_s * power_w + waits_s * fleet.waits_w(rows)).sum())
        totals.end_s += end_s
        totals.trained += float(fleet.minibatches[in_time].sum())
        totals.lost += float(fleet.minibatches[here & ~in_time].sum())
        if rule == "plan_again":
            for i in map(int, np.flatnonzero(stays)):
                ended = Measured(int(choices[i]), fit_s[i], ends_s[i], is_first=number == 1)
                measured[i].append(ended)
                believed[i] = learned_client(clients[i], measured[i])
    return totals


JUDGES = {  # table -> what yields its rows
    "rounds": judge_rounds,
    "deadlines": judge_deadlines,
    "timeline": timeline,
    "trainings": judge_trainings,
}


def write_study(
    paths: Mapping[str, str], root: Path = Path(), say: Callable[[str], None] = print
) -> None:
    """Judge all that config/federated.yaml asks for, and write its tables, by name to `paths`.

    Raises ConfigError: there is no study, or a fleet that cannot be simulated.
    """
    study = load_federated(root)
    if study is None:
        raise ConfigError("there is no config/federated.yaml", where=str(root))
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in JUDGES}
    for waiting in study.waiting:
        catalogue = simulate_catalogue(study, waiting, root)
        known = known_modes(catalogue)
        numbers = ", ".join(
            f"{len(k.rows)} of {n}" for k, n in zip(known, catalogue.kinds, strict=True)
        )
        say(f"waiting {waiting}: modes that can be part of a best plan: {numbers}")
        for name, judge in JUDGES.items():
            if name in ("rounds", "deadlines") or waiting == study.waiting[0]:
                rows[name] += judge(catalogue, study, known)
                say(f"{name}: {len(rows[name]):,} rows")
    tables = {name: pd.DataFrame(of_table) for name, of_table in rows.items()}
    keys = ["provenance", "boards", "data", "waiting"]
    tables["summary"] = summarise(tables["rounds"], [*keys, "waiting_factor", "rule"])
    tables["trainings_summary"] = summarise(tables["trainings"], [*keys, "disturbed", "rule"])
    for name, table in tables.items():
        write_frame(paths[name], "rounds of simulated fleets", table, "%.6g")
