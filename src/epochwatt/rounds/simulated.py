"""Draw simulated fleets; nothing here is measured.

A fleet has equal numbers of each kind of simulated board. Boards of a kind differ by a factor of
time and one of power, which plans know, as each board has its own table. A fit's time varies around
what is expected; rules do not know how, and each fleet's is the same for all rules.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from epochwatt.prediction.data.observations import Observations
from epochwatt.rounds.answer import strongest_choice
from epochwatt.rounds.config import FederatedStudy
from epochwatt.rounds.fleet import Fleet, members_of, predict_modes
from epochwatt.rounds.plan import Client, Indices, Numbers

WHOLE = np.ones(1)  # share of its data that a board trains


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
        """Return the row of each kind's mode nearest to: all cores, all clocks at a share `level`.

        Shares are of the strongest mode's values; of a mode the part that is farthest off counts.
        """
        nearest = []
        for rows, top in zip(self.rows, self.strongest, strict=True):
            # of `columns.MODE_PARTS` the cores and three clocks: CPU, GPU, memory
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

        Of the others there is a mode that ends no later, as surely, has cost no more by then, and
        waits with no more power.
        """
        kept: list[int] = []
        for k in np.lexsort((self.power_w, self.time_s)):
            time_s, waiting_w = self.time_s[kept], self.waiting_w[kept]
            by_then_j = self.power_w[kept] * time_s + waiting_w * (self.time_s[k] - time_s)
            is_better = by_then_j <= self.power_w[k] * self.time_s[k]
            is_as_sure = self.spread[kept] <= self.spread[k]
            if not (is_better & is_as_sure & (waiting_w <= self.waiting_w[k])).any():
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

    def clients(self, known: Sequence[Known], shares: Numbers = WHOLE) -> list[Client]:
        """Return the boards as plans see them, each mode with each share of the board's data.

        `known`: of each board
        """
        n = len(shares)
        return [
            Client(
                name=f"{self.catalogue.kinds[self.kind[i]]}-{i}",
                fit_s=(
                    fit_s := np.outer(shares * self.minibatches[i] * self.slower[i], k.time_s)
                ).ravel(),
                fit_j=(fit_s * k.power_w * self.hungrier[i]).ravel(),
                waiting_w=np.tile(k.waiting_w * self.hungrier[i] * self.waiting_factor, n),
                n_samples=np.repeat(shares * self.minibatches[i], len(k.rows)),
                around_s=self.around_s,
                spread=np.tile(np.hypot(k.spread, self.spread), n),
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
