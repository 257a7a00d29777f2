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
TIE = 1e-9  # relative: an exchange that gains less is none
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
        """Return the terms over the whole in each mode, shape (networks, n, k): rows of the fits.

        The networks have random shares of the terms. The whole is the time for one half of them and
        the power for the other; the shorter rows end with zeros.
        """
        rng, blocks = np.random.default_rng(0), []
        power_terms = design(POWER, modes, self.processes) / self.power_scale
        for terms in (self._terms(modes), power_terms):
            shares = rng.dirichlet(np.ones(terms.shape[1]), N_NETWORKS)
            parts = terms / (terms @ shares.T).T[:, :, None]
            n_zeros = max(len(TIME), len(POWER)) - terms.shape[1]
            blocks.append(np.pad(parts, [(0, 0), (0, 0), (0, n_zeros)]))
        return np.concatenate(blocks)

    def _terms(self, modes: Numbers) -> Numbers:
        return design(TIME, modes, self.processes) / self.scale

    def plan(self, modes: Sequence[Mode]) -> Plan:
        """Return the plan of these modes: their cost, and how sure predictions will be.

        Raises EpochwattError: a mode that the board lacks.
        """
        rows = as_rows([self.board.resolve(mode) for mode in modes])
        variances = _variances(self.rows(self.candidates), _covariance(self.rows(rows)))
        unexplored = _deviation_variance(distances(self.candidates, rows))
        variance = float(variances.mean() + unexplored.mean()) + (OWN * DEVIATION) ** 2
        sd_pct = 100 * float(np.sqrt(variance))
        return Plan(tuple(modes), float(self.times(rows).sum()), sd_pct)


def board_design(board: Board, processes: int = PROCESSES) -> Design:
    """Build the design of a board: its scales, and up to `N_STEPS` candidates of each mode part."""
    strongest = board.all_modes()[-1:]
    at_best = design(TIME, strongest, processes)[0]
    at_shortage = design(TIME, short_of_cores(strongest, processes), processes)[0]
    steps = []
    for values in board.steps():
        n_steps = min(N_STEPS, len(values))
        steps.append(values[np.linspace(0, len(values) - 1, n_steps).round().astype(int)])
    candidates = np.stack(np.meshgrid(*steps, indexing="ij"), -1).reshape(-1, N_PARTS)
    scale = np.where(at_best > 0, at_best, at_shortage)
    power_scale = design(POWER, strongest, processes)[0]
    return Design(board, processes, scale, power_scale, candidates)


def design_of_modes(kind: str, modes: Numbers, processes: int = PROCESSES) -> Design:
    """Build the design of a board whose only modes are these (n, 6); its steps are theirs."""
    in_table_units = modes[:, :4] * [1, 1e3, 1e6, 1e6]  # MHz to kHz of the CPU, Hz of the others
    cores, *clocks = (sorted({round(float(value)) for value in part}) for part in in_table_units.T)
    board = Board(kind, cores[-1], Tables(*map(tuple, clocks)))
    return replace(board_design(board, processes=processes), candidates=modes)


def choose_modes(
    design: Design,
    n_modes: int,
    max_cost: float | None = None,
    already: Sequence[Mode] = (),
) -> Plan:
    """Choose the `n_modes` modes to profile next, beside those that are profiled already.

    `max_cost` is in epochs of the strongest mode. Raises EpochwattError: fewer than one mode, a
    limit that cannot be kept, or a profiled mode that the board lacks.
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
    # variance of deviations in each candidate (columns) once a mode is profiled: each (rows), and
    # those that are already
    pairwise = np.stack([_deviation_variance(distances(candidates, c[None])) for c in candidates])
    before = np.full_like(cost, pairwise.max())
    if already:
        before = _deviation_variance(distances(candidates, profiled))
    profiled_rows, rows = design.rows(profiled), design.rows(candidates)
    second_moment = rows.transpose(0, 2, 1) @ rows
    nearer = np.empty_like(pairwise)  # made anew each time it would take most of the time

    def covariance(chosen: NDArray[np.int64]) -> Numbers:
        return _covariance(np.concatenate([profiled_rows, rows[:, chosen]], axis=1))

    def deviation_variance(chosen: NDArray[np.int64]) -> Numbers:
        """Return the variance of deviations in each candidate, by the nearest profiled mode."""
        return np.asarray(np.minimum(before, pairwise[chosen].min(0, initial=np.inf)))

    def mean_variance(chosen: NDArray[np.int64]) -> float:
        variances = _variances(rows, covariance(chosen))
        return float(variances.mean()) + float(deviation_variance(chosen).mean())

    def best_beside(others: NDArray[np.int64], current: int) -> int:
        """Return the candidate that narrows most beside others within the cost; if none, `current`.

        One row x more takes v v' / (1 + x' C x) from the covariance C, with v = C x.
        """
        c, x = covariance(others), rows / NOISE
        narrowed = _variances(x, c @ second_moment @ c) / (1 + _variances(x, c))
        np.maximum(np.subtract(deviation_variance(others), pairwise, out=nearer), 0.0, out=nearer)
        gain = narrowed.mean(0) / rows.shape[1] + nearer.mean(1)
        gain = np.where(cost <= limit - float(cost[others].sum()), gain, -np.inf)
        gain[others] = -np.inf
        best = int(gain.argmax())
        return best if gain[best] > gain[current] * (1 + TIE) else current

    def exchanged(chosen: NDArray[np.int64]) -> NDArray[np.int64]:
        """Exchange modes in place until no single one can be exchanged for a better one."""
        while True:
            last = chosen.copy()
            for position in range(n_modes):
                others = np.delete(chosen, position)
                chosen[position] = best_beside(others, int(chosen[position]))
            if (chosen == last).all():
                return chosen

    chosen = min(map(exchanged, starts), key=mean_variance)
    modes = tuple(Mode(*row) for row in candidates[chosen].tolist())
    plan = design.plan([*already, *modes])
    return Plan(modes, float(cost[chosen].sum()), plan.expected_sd_pct)


def _deviation_variance(distance: Numbers) -> Numbers:
    """Return the variance of deviations at a distance from the nearest profiled mode.

    Close to it that is what `Deviations` has; further away it goes on growing with the square of
    the distance, since there the terms themselves fail.
    """
    return np.asarray((DEVIATION / LENGTH * distance) ** 2)


def _covariance(profiled_rows: Numbers) -> Numbers:
    """Return the coefficients' covariance once these rows are known, shape (networks, k, k)."""
    rows = profiled_rows / NOISE
    information = rows.transpose(0, 2, 1) @ rows + np.eye(rows.shape[2]) / SHARE_SD**2
    return np.asarray(np.linalg.inv(information), float)


def _variances(rows: Numbers, covariance: Numbers) -> Numbers:
    """Return x' C x of each row x, shape (networks, n)."""
    return np.asarray(((rows @ covariance) * rows).sum(-1))
