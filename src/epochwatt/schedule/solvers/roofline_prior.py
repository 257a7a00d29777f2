"""Draw what jobs may take and draw before any run: rooflines over clocks, constants open.

A mini-batch of b samples in a mode with clocks of GPU, memory and CPU, all relative to the highest:

    gpu    = G (b + h) / f_gpu          launch = C x             x = (1 - s) / f_cpu + s / f_emc
    memory = M (b + k) / f_emc          loader = L b x / cores^n
    time   = norm_q(norm_p(gpu, memory), launch, loader) + W
    power  = base + memory's (f_emc, bytes) + cores's f_cpu^u (idle, busy) + GPU's f_gpu^v (same)

norm_1 adds up, a high norm is the longest: how far parts overlap is open, too. A mode with a power
limit has the GPU's clock that keeps it: power is the lesser of limit and demand, and the clock
falls as a power of what is missing.

`roofline_prior` draws all constants, those of the board once for all jobs, and keeps mean and
covariance of the logarithms: a Gaussian belief in which what one run of one job shows counts for
every other mode and mini-batch size, and for the other job. It knows the steps of modes and sizes,
and nothing else: no time or power of any job, no parameter of a simulated board, no data sheet, no
counts of a network. All constants are beliefs of ours, so wide that the first few runs settle most.

Simulated boards have clocks, launches and loaders of much the same form (`twin/`), which helps
it there; public sweeps of real devices judge it without that help.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from epochwatt.prediction.data.modes import NO_LIMIT, logs
from epochwatt.schedule.problem import Bools, Numbers, Places, Space, Workload

N_DRAWS = 512
MOST_COLUMNS = 60  # of the covariance: principal components of the draws
LENGTH = 0.7  # logarithms of cores and clocks, or of sizes, over which deviations are alike
OFF_TIME, OFF_POWER = 0.08, 0.05  # relative deviation from the form, smooth over modes and sizes
OWN = 0.01  # of each run's own
TYPICAL_S, TYPICAL_W = 0.1, 25.0  # a mini-batch of middle size; a board without power limits
LEVEL_SD = 2.5  # of its logarithm: LeNet to BERT
SURE = 4  # values, seen to be as far off as believed, that the widths of beliefs are worth


@dataclass(frozen=True, eq=False)
class Prior:
    """A Gaussian belief about logarithms of times, then powers, of all runs of a space.

    A run is a job in a mode at a mini-batch size; its place: jobs in order, modes, then sizes.
    """

    mean: Numbers  # (2 r,), of r runs: times, s, then powers, W
    columns: Numbers  # (2 r, q), whose products are what deviations share
    first: tuple[int, ...]  # of each job, the place of its first run
    n_sizes: tuple[int, ...]  # of each job
    alike_modes: Numbers  # (m, m), correlation of deviations from the form
    alike_sizes: tuple[Numbers, ...]  # of each job, (k, k)

    @property
    def variance(self) -> Numbers:
        """Return the variance of each logarithm, (2 r,), without `OWN`."""
        half = len(self.mean) // 2
        off = np.repeat([OFF_TIME, OFF_POWER], half)
        return np.asarray((self.columns**2).sum(1) + off**2)

    def runs(self, job: int, modes: Places, sizes: Places) -> Places:
        """Return the places of a job's runs."""
        return np.asarray(self.first[job] + modes * self.n_sizes[job] + sizes)

    def covariance(self, runs: Sequence[Places]) -> Numbers:
        """Return the covariance of everything with the times, then the powers, of some runs.

        `runs`: of each job one run for each of p problems, (p,).

        Returns
        -------
        (p, 2 r, 2 j), of j jobs
        """
        half, n_jobs = len(self.mean) // 2, len(runs)
        rows = np.stack([*runs, *(one + half for one in runs)], 1)
        shared = self.columns[rows] @ self.columns.T  # (p, 2 j, 2 r)
        for job, places in enumerate(runs):
            mode, size = np.divmod(places - self.first[job], self.n_sizes[job])
            alike = self.alike_modes[mode][:, :, None] * self.alike_sizes[job][size][:, None]
            alike = alike.reshape(len(places), -1)
            here = slice(self.first[job], self.first[job] + alike.shape[1])
            shared[:, job, here] += OFF_TIME**2 * alike
            there = slice(half + here.start, half + here.stop)
            shared[:, n_jobs + job, there] += OFF_POWER**2 * alike
        return shared.transpose(0, 2, 1)


class Belief:
    """Belief about all runs, for each of p problems.

    Attributes
    ----------
    mean, variance : (p, 2 r), of logarithms of times and powers
    columns : (p, 2 r, i), what i seen values took from the variance
    surprise, n_seen : (p,), sum of squares of how far they were off, in deviations, and their
        number
    """

    def __init__(self, prior: Prior, p: int) -> None:
        self.prior = prior
        self.mean = np.tile(prior.mean, (p, 1))
        self.variance = np.tile(prior.variance, (p, 1))
        self.columns = np.zeros((p, len(prior.mean), 0))
        self.surprise = np.zeros(p)
        self.n_seen = np.zeros(p)

    def learn(self, runs: list[Places], logarithms: Numbers) -> None:
        """Learn times, then powers, (p, 2 j), of one run (p,) of each job."""
        half = len(self.prior.mean) // 2
        rows = np.stack([*runs, *(one + half for one in runs)], 1)[:, :, None]
        before = np.take_along_axis(self.columns, rows, 1)  # (p, 2 j, i)
        shared = self.prior.covariance(runs) - self.columns @ before.transpose(0, 2, 1)
        among = np.take_along_axis(shared, rows, 1)
        among = among + OWN**2 * np.eye(among.shape[1])
        root = np.linalg.inv(np.linalg.cholesky(among))
        new = shared @ root.transpose(0, 2, 1)
        off = logarithms - np.take_along_axis(self.mean, rows[..., 0], 1)
        off = (root @ off[:, :, None])[..., 0]
        self.mean += (new @ off[:, :, None])[..., 0]
        self.variance = np.maximum(self.variance - (new**2).sum(2), 0)
        self.columns = np.concatenate([self.columns, new], 2)
        self.surprise += (off**2).sum(1)
        self.n_seen += off.shape[1]

    def deviation(self) -> Numbers:
        """Return standard deviations of what would be seen, (p, 2 r)."""
        wider = np.maximum((SURE + self.surprise) / (SURE + self.n_seen), 1)
        return np.asarray(np.sqrt(wider[:, None] * self.variance + OWN**2))

    def only(self, which: Bools) -> None:
        """Forget all problems but some."""
        for name in ("mean", "variance", "columns", "surprise", "n_seen"):
            setattr(self, name, getattr(self, name)[which])


def roofline_prior(space: Space, n_draws: int = N_DRAWS, seed: int = 0) -> Prior:
    """Return the belief about all runs of a space before any of them."""
    drawn = np.log(_drawn(space, n_draws, np.random.default_rng(seed)))
    mean = drawn.mean(1)
    off = (drawn - mean[:, None]) / np.sqrt(n_draws - 1)
    values, vectors = np.linalg.eigh(off.T @ off)
    columns = off @ vectors[:, np.argsort(-values)[:MOST_COLUMNS]]
    n_sizes = tuple(len(one.batch_sizes) for one in space.workloads)
    first = np.concatenate([[0], np.cumsum(n_sizes)[:-1]]) * len(space.modes)
    sizes = (np.log(one.batch_sizes)[:, None] for one in space.workloads)
    return Prior(
        mean,
        columns,
        tuple(first.tolist()),
        n_sizes,
        _alike(logs(space.modes)),
        tuple(map(_alike, sizes)),
    )


def _alike(rows: Numbers) -> Numbers:
    apart = ((rows[:, None] - rows) ** 2).sum(-1)
    return np.asarray(np.exp(-apart / (2 * LENGTH**2)))


def _drawn(space: Space, n_draws: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Return draws of the times, then the powers, of all runs, shape (2 r, d).

    Constants are of shape (d, 1, 1), parts of modes of (1, m, 1), the highest being 1, and what
    depends on sizes of (.., .., k).
    """
    highest = space.modes.max(0)
    parts = [part[None, :, None] for part in (space.modes / np.where(highest, highest, 1)).T]
    cores, cpu, gpu_clock, emc, share = parts[:5]
    limit_w = space.modes[:, 5][None, :, None]
    limits = limit_w[limit_w != NO_LIMIT]

    def normal(mean: float, sd: float) -> Numbers:
        """Return logarithmic normal draws about exp(mean)."""
        return np.exp(mean + sd * rng.standard_normal((n_draws, 1, 1)))

    def even(low: float, high: float) -> Numbers:
        """Return draws between two numbers."""
        return rng.uniform(low, high, (n_draws, 1, 1))

    # what the parts of the board draw, relative to each other, and the whole
    typical_w = float(np.exp(np.log(limits).mean())) if limits.size else TYPICAL_W
    weights = [normal(np.log(one), 0.6) for one in (1.0, 2.0, 1.0, 0.5)]
    whole = normal(np.log(typical_w), 0.5 if limits.size else 0.8) / sum(weights)
    base_w, gpu_w, cpu_w, emc_w = (whole * one for one in weights)
    of_gpu, of_cpu = even(1, 3), even(1, 3)
    idle = [even(0.1, 0.6) for _ in range(3)]

    def job(one: Workload) -> tuple[Numbers, Numbers]:
        """Return draws of time and power of a job's runs, shape (m k, d) each."""
        sizes = (one.batch_sizes / np.exp(np.log(one.batch_sizes).mean()))[None, None]
        level = normal(np.log(TYPICAL_S), LEVEL_SD)
        gpu, memory, launch, loader = (level * normal(0, 1.2) for _ in range(4))
        few, constants = normal(-2, 1.2), normal(-2, 1.2)
        gpu = gpu * (sizes + few) / (1 + few)
        memory = memory * (sizes + constants) / (1 + constants) / emc
        stall = even(0, 0.4)
        slow = (1 - stall) / cpu + stall / emc
        host = launch * slow, loader * sizes * slow / cores ** even(0, 1)
        orders = even(1, 5), even(1, 5)
        wait = 0.1 * level * even(0, 1) ** 2
        uses = normal(0, 0.2), even(0.2, 1)

        def run(clock: Numbers) -> tuple[Numbers, Numbers]:
            on_gpu = _norm((gpu / clock, memory), orders[0])
            time_s = _norm((on_gpu, *host), orders[1]) + wait
            works = np.minimum(sum(host) / time_s, 1) * uses[1]
            shares = uses[0] * on_gpu / time_s, works, memory / time_s  # of the time, of each part
            busy = [rest + (1 - rest) * some for rest, some in zip(idle, shares, strict=True)]
            power_w = base_w + gpu_w * (gpu_clock * share) ** of_gpu * busy[0]
            power_w = power_w + cpu_w * cores * cpu**of_cpu * busy[1] + emc_w * emc * busy[2]
            return time_s, power_w

        clock = gpu_clock * share
        time_s, power_w = run(clock)
        if limits.size:
            most_w = np.where(limit_w == NO_LIMIT, np.inf, limit_w)
            floor_w = even(0, 0.9) * limit_w.min()
            short = (most_w - floor_w) / np.maximum(power_w - floor_w, 1e-9)
            time_s = run(clock * np.where(power_w > most_w, short, 1) ** even(0.3, 1))[0]
            power_w = 1 / _norm((1 / most_w, 1 / power_w), even(4, 20))
        return time_s.reshape(n_draws, -1).T, power_w.reshape(n_draws, -1).T

    drawn = [job(one) for one in space.workloads]
    return np.concatenate([one[target] for target in (0, 1) for one in drawn])


def _norm(parts: Sequence[Numbers], order: Numbers) -> Numbers:
    """Return the root of the sum of powers, after Minkowski."""
    most = np.maximum.reduce(np.broadcast_arrays(*parts))
    return np.asarray(most * sum((one / most) ** order for one in parts) ** (1 / order))
