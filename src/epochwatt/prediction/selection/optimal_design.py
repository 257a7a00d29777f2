"""Choose modes to profile: design of experiments on the terms of the models of time and power.

A set of modes is as good as the predictions that it leads to. How unsure a fit will be (apart from
its bound at zero) depends on modes, on the belief it starts from, and on which term dominates, not
on the values it will see. So it can be worked out for any board's tables before the first run, as
the mean over networks of many kinds: shares of the terms drawn at random, of time and of power
alike. The criterion is what a user meets (I-optimality): the mean variance of predictions over the
board's modes, with what they may deviate far from all that was profiled. The search exchanges
one mode for another while that helps (Fedorov), from several starts; it may keep to a limit of
board time.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from epochwatt.board.device.board_files import Tables
from epochwatt.prediction.data.modes import N_PARTS, Board, Mode, Numbers, PredictionError, as_rows
from epochwatt.prediction.data.observations import PROCESSES
from epochwatt.prediction.models.features import POWER, TIME, design, short_of_cores
from epochwatt.prediction.models.priors import DEVIATION, LENGTH, OWN, SHARE_SD, TIME_SHARES
from epochwatt.prediction.models.residual_gp import distances

N_STEPS = 6  # of each part of a mode that are candidates: the ends, and evenly between
N_NETWORKS = 8  # for time, and as many for power
N_STARTS = 8
# Relative, of one profiled mode about the terms: less than `DEVIATION`, which is meant far away.
# Set by hand, as those of `beliefs` are.
NOISE = 0.05


@dataclass(frozen=True, eq=False)
class Plan:
    """Modes to profile, what they cost and what they lead to."""

    modes: tuple[Mode, ...]
    epoch_cost: float  # sum of the expected epoch times, in epochs of the strongest mode
    expected_sd_pct: float  # what is minimised, as a root mean square, %: no error to be expected


@dataclass(frozen=True, eq=False)
class Design:
    """A board as the physical models see it."""

    board: Board  # its tables
    processes: int  # that want a CPU core
    # scale, power_scale: (k,), what each term of time and of power is in the strongest mode
    scale: Numbers
    power_scale: Numbers
    candidates: Numbers  # (n, 6), modes that may be chosen, and that the mean is over

    def times(self, modes: Numbers) -> Numbers:
        """Return the expected time of an epoch in epochs of the strongest mode, shape (n,)."""
        return self._terms(modes) @ TIME_SHARES

    def rows(self, modes: Numbers) -> Numbers:
        """Return each term's part of the whole in each mode, per share, shape (networks, n, k).

        The whole is the time for one half of the networks and the power for the other; the shorter
        rows end with zeros.
        """
        rng, blocks = np.random.default_rng(0), []
        watts = design(POWER, modes, self.processes) / self.power_scale
        for terms in (self._terms(modes), watts):
            shares = rng.dirichlet(np.ones(terms.shape[1]), N_NETWORKS)
            parts = terms / (terms @ shares.T).T[:, :, None]
            short = max(len(TIME), len(POWER)) - terms.shape[1]
            blocks.append(np.pad(parts, [(0, 0), (0, 0), (0, short)]))
        return np.concatenate(blocks)

    def _terms(self, modes: Numbers) -> Numbers:
        return design(TIME, modes, self.processes) / self.scale

    def plan(self, modes: Sequence[Mode]) -> Plan:
        """Return what runs of these modes cost and lead to. Raises EpochwattError: not there."""
        rows = as_rows([self.board.resolve(mode) for mode in modes])
        variances = _variances(self.rows(self.candidates), _covariance(self.rows(rows)))
        left = float(variances.mean() + _open(distances(self.candidates, rows)).mean())
        sd_pct = 100 * float(np.sqrt(left + (OWN * DEVIATION) ** 2))
        return Plan(tuple(modes), float(self.times(rows).sum()), sd_pct)


def board_design(board: Board, processes: int = PROCESSES) -> Design:
    """Return the design of a board."""
    strongest = board.all_modes()[-1:]
    short = short_of_cores(strongest, processes)
    at_best, at_shortage = (design(TIME, modes, processes)[0] for modes in (strongest, short))
    steps = []
    for values in board.steps():
        n_steps = min(N_STEPS, len(values))
        steps.append(values[np.linspace(0, len(values) - 1, n_steps).round().astype(int)])
    candidates = np.stack(np.meshgrid(*steps, indexing="ij"), -1).reshape(-1, N_PARTS)
    scale = np.where(at_best > 0, at_best, at_shortage)
    power_scale = design(POWER, strongest, processes)[0]
    return Design(board, processes, scale, power_scale, candidates)


def design_of_modes(kind: str, modes: Numbers, processes: int = PROCESSES) -> Design:
    """Return the design of a board that has the steps of some modes (n, 6), and no other modes."""
    in_hertz = modes[:, :4] * [1, 1e3, 1e6, 1e6]
    cores, *clocks = (sorted({round(float(value)) for value in part}) for part in in_hertz.T)
    board = Board(kind, cores[-1], Tables(*map(tuple, clocks)))
    return replace(board_design(board, processes=processes), candidates=modes)


def choose_modes(
    design: Design,
    n_modes: int,
    max_cost: float | None = None,
    already: Sequence[Mode] = (),
) -> Plan:
    """Return the modes to profile next, beside those that are profiled already.

    Raises EpochwattError: fewer than one mode, a limit that cannot be kept, or a profiled mode that
    the board lacks.
    """
    if n_modes < 1:
        raise PredictionError(f"{n_modes} modes to choose", allowed="one or more")
    profiled = as_rows([design.board.resolve(mode) for mode in already])
    is_profiled = (design.candidates[:, None] == profiled).all(-1).any(-1)
    candidates = design.candidates[~is_profiled]
    cost, limit = design.times(candidates), np.inf if max_cost is None else max_cost
    order = np.argsort(cost, kind="stable")
    least = float(cost[order[:n_modes]].sum())
    if least > limit or len(order) < n_modes:
        raise PredictionError(
            f"{n_modes} of {len(order)} candidates within {limit:g}",
            found=f"their shortest epochs alone are expected to take {least:g}",
            do="raise the limit or take fewer modes",
        )
    n_short = max(n_modes, int((cost <= limit / n_modes).sum()))
    rng = np.random.default_rng(0)
    starts = [rng.choice(order[:n_short], n_modes, replace=False) for _ in range(N_STARTS)]
    # what each candidate, and what is profiled, leaves open of deviations in each
    apart = np.stack([_open(distances(candidates, row[None])) for row in candidates])
    before = _open(distances(candidates, profiled)) if already else np.full_like(cost, apart.max())
    fixed, rows = design.rows(profiled), design.rows(candidates)
    interest = rows.transpose(0, 2, 1) @ rows

    def covariance(chosen: NDArray[np.int64]) -> Numbers:
        return _covariance(np.concatenate([fixed, rows[:, chosen]], axis=1))

    def nearest(chosen: NDArray[np.int64]) -> Numbers:
        """Return what the nearest of these leaves open of deviations in each candidate."""
        return np.asarray(np.minimum(before, apart[chosen].min(0, initial=np.inf)))

    def left_open(chosen: NDArray[np.int64]) -> float:
        variances = _variances(rows, covariance(chosen))
        return float(variances.mean()) + float(nearest(chosen).mean())

    def best(others: NDArray[np.int64], now: int) -> int:
        """Return what does most beside others within the limit; `now` where none does more.

        One row x more takes v v' / (1 + x' C x) from the covariance C, with v = C x.
        """
        c, x = covariance(others), rows / NOISE
        narrowed = _variances(x, c @ interest @ c) / (1 + _variances(x, c))
        nearer = np.maximum(nearest(others) - apart, 0.0).mean(1)
        gain = narrowed.mean(0) / rows.shape[1] + nearer
        gain = np.where(cost <= limit - float(cost[others].sum()), gain, -np.inf)
        gain[others] = -np.inf
        most = int(gain.argmax())
        return most if gain[most] > gain[now] * (1 + 1e-9) else now

    def exchanged(chosen: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return modes of which no single one can be exchanged for a better one."""
        while True:
            last = chosen.copy()
            for turn in range(n_modes):
                chosen[turn] = best(np.delete(chosen, turn), int(chosen[turn]))
            if (chosen == last).all():
                return chosen

    chosen = min(map(exchanged, starts), key=left_open)
    modes = tuple(Mode(*row) for row in candidates[chosen].tolist())
    plan = design.plan([*already, *modes])
    return Plan(modes, float(cost[chosen].sum()), plan.expected_sd_pct)


def _open(apart: Numbers) -> Numbers:
    """Return the variance of deviations that a mode at these distances leaves open.

    Close to it that is what `deviations` has; further away it goes on growing with the square of
    the distance, since there the terms themselves fail.
    """
    return np.asarray((DEVIATION / LENGTH * apart) ** 2)


def _covariance(taken: Numbers) -> Numbers:
    """Return that of the coefficients after runs of these rows, shape (networks, k, k)."""
    rows = taken / NOISE
    information = rows.transpose(0, 2, 1) @ rows + np.eye(rows.shape[2]) / SHARE_SD**2
    return np.asarray(np.linalg.inv(information), float)


def _variances(rows: Numbers, covariance: Numbers) -> Numbers:
    """Return x' C x of each row x, shape (networks, n)."""
    return np.asarray(((rows @ covariance) * rows).sum(-1))
