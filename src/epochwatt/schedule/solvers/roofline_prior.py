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
from epochwatt.schedule.problem import Bools, Indices, Numbers, Space, Workload

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

    A run is a job in a mode at a mini-batch size; its index counts jobs, then modes, then sizes.
    """

    mean: Numbers  # (2 r,), of r runs: times, s, then powers, W
    columns: Numbers  # (2 r, q); columns @ columns.T is the covariance without own deviations
    first: tuple[int, ...]  # of each job, the index of its first run
    n_sizes: tuple[int, ...]  # of each job
    alike_modes: Numbers  # (m, m), correlation of deviations from the form
    alike_sizes: tuple[Numbers, ...]  # of each job, (k, k)

    @property
    def variance(self) -> Numbers:
        """Return the variance of each logarithm, (2 r,), without `OWN`."""
        half = len(self.mean) // 2
        off = np.repeat([OFF_TIME, OFF_POWER], half)
        return np.asarray((self.columns**2).sum(1) + off**2)

    def runs(self, job: int, modes: Indices, sizes: Indices) -> Indices:
        """Return the indices of a job's runs in modes at mini-batch sizes."""
        return np.asarray(self.first[job] + modes * self.n_sizes[job] + sizes)

    def covariance(self, runs: Sequence[Indices]) -> Numbers:
        """Return the covariance of all values with the times, then the powers, of one run per job.

        `runs`: of each job one run for each of p problems, (p,).

        Returns (p, 2 r, 2 j), of j jobs
        """
        half, n_jobs = len(self.mean) // 2, len(runs)
        rows = np.stack([*runs, *(job_runs + half for job_runs in runs)], 1)
        shared = self.columns[rows] @ self.columns.T  # (p, 2 j, 2 r)
        for job, job_runs in enumerate(runs):
            mode, size = np.divmod(job_runs - self.first[job], self.n_sizes[job])
            alike = self.alike_modes[mode][:, :, None] * self.alike_sizes[job][size][:, None]
            alike = alike.reshape(len(job_runs), -1)
            times = slice(self.first[job], self.first[job] + alike.shape[1])
            powers = slice(half + times.start, half + times.stop)
            shared[:, job, times] += OFF_TIME**2 * alike
            shared[:, n_jobs + job, powers] += OFF_POWER**2 * alike
        return shared.transpose(0, 2, 1)


class Belief:
    """Belief about all runs, for each of p problems.

    `mean`, `variance`: (p, 2 r), of logarithms of times and powers
    `columns`: (p, 2 r, i), what i seen values took from the variance
    `surprise`, `n_seen`: (p,), sum of squares of how far they were off, in deviations, and their
    number
    """

    def __init__(self, prior: Prior, p: int) -> None:
        self.prior = prior
        self.mean = np.tile(prior.mean, (p, 1))
        self.variance = np.tile(prior.variance, (p, 1))
        self.columns = np.zeros((p, len(prior.mean), 0))
        self.surprise = np.zeros(p)
        self.n_seen = np.zeros(p)

    def learn(self, runs: list[Indices], logarithms: Numbers) -> None:
        """Condition the belief on the times, then powers, (p, 2 j), of one run (p,) of each job.

        Moves the mean, lowers the variance and adds columns in place. With the Cholesky factor L of
        the covariance S of the seen values, K = cov(all, seen) L^-T and off = L^-1 (seen - mean):

            mean += K off        variance -= sum of K^2
        """
        half = len(self.prior.mean) // 2
        rows = np.stack([*runs, *(job_runs + half for job_runs in runs)], 1)[:, :, None]
        before = np.take_along_axis(self.columns, rows, 1)  # (p, 2 j, i)
        shared = self.prior.covariance(runs) - self.columns @ before.transpose(0, 2, 1)
        seen = np.take_along_axis(shared, rows, 1)
        seen = seen + OWN**2 * np.eye(seen.shape[1])
        inverse = np.linalg.inv(np.linalg.cholesky(seen))
        new = shared @ inverse.transpose(0, 2, 1)
        off = logarithms - np.take_along_axis(self.mean, rows[..., 0], 1)
        off = (inverse @ off[:, :, None])[..., 0]
        self.mean += (new @ off[:, :, None])[..., 0]
        self.variance = np.maximum(self.variance - (new**2).sum(2), 0)
        self.columns = np.concatenate([self.columns, new], 2)
        self.surprise += (off**2).sum(1)
        self.n_seen += off.shape[1]

    def deviation(self) -> Numbers:
        """Return standard deviations of what would be seen, (p, 2 r).

        They widen where what was seen was further off than believed.
        """
        widening = np.maximum((SURE + self.surprise) / (SURE + self.n_seen), 1)
        return np.asarray(np.sqrt(widening[:, None] * self.variance + OWN**2))

    def keep(self, is_kept: Bools) -> None:
        """Forget, in place, all problems (p,) that are not kept."""
        for name in ("mean", "variance", "columns", "surprise", "n_seen"):
            setattr(self, name, getattr(self, name)[is_kept])


def roofline_prior(space: Space, n_draws: int = N_DRAWS, seed: int = 0) -> Prior:
    """Return the belief about all runs of a space before any run.

    Mean and principal components of the logarithms of `n_draws` drawn rooflines.
    """
    drawn = np.log(_drawn(space, n_draws, np.random.default_rng(seed)))
    mean = drawn.mean(1)
    off = (drawn - mean[:, None]) / np.sqrt(n_draws - 1)
    values, vectors = np.linalg.eigh(off.T @ off)
    columns = off @ vectors[:, np.argsort(-values)[:MOST_COLUMNS]]
    n_sizes = tuple(len(job.batch_sizes) for job in space.workloads)
    first = np.concatenate([[0], np.cumsum(n_sizes)[:-1]]) * len(space.modes)
    sizes = (np.log(job.batch_sizes)[:, None] for job in space.workloads)
    return Prior(
        mean,
        columns,
        tuple(first.tolist()),
        n_sizes,
        _alike(logs(space.modes)),
        tuple(map(_alike, sizes)),
    )


def _alike(rows: Numbers) -> Numbers:
    """Return the squared-exponential correlation of rows (n, d), (n, n)."""
    squared_distance = ((rows[:, None] - rows) ** 2).sum(-1)
    return np.asarray(np.exp(-squared_distance / (2 * LENGTH**2)))


def _drawn(space: Space, n_draws: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Draw constants of the rooflines; return times, s, then powers, W, of all runs, (2 r, d).

    Formulas: at the top of this file. Constants have shape (d, 1, 1), parts of modes (1, m, 1),
    relative to the highest, and what depends on sizes (.., .., k).
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
    typical_weights = (1.0, 2.0, 1.0, 0.5)  # base, GPU, CPU, memory
    weights = [normal(np.log(weight), 0.6) for weight in typical_weights]
    whole = normal(np.log(typical_w), 0.5 if limits.size else 0.8) / sum(weights)
    base_w, gpu_w, cpu_w, emc_w = (whole * weight for weight in weights)
    gpu_exponent, cpu_exponent = even(1, 3), even(1, 3)
    idle_shares = [even(0.1, 0.6) for _ in range(3)]

    def draw_job(job: Workload) -> tuple[Numbers, Numbers]:
        """Return draws of time and power of a job's runs, shape (m k, d) each."""
        sizes = (job.batch_sizes / np.exp(np.log(job.batch_sizes).mean()))[None, None]
        level = normal(np.log(TYPICAL_S), LEVEL_SD)
        gpu, memory, launch, loader = (level * normal(0, 1.2) for _ in range(4))
        h, k = normal(-2, 1.2), normal(-2, 1.2)
        gpu = gpu * (sizes + h) / (1 + h)
        memory = memory * (sizes + k) / (1 + k) / emc
        stall = even(0, 0.4)
        slow = (1 - stall) / cpu + stall / emc
        host = launch * slow, loader * sizes * slow / cores ** even(0, 1)
        orders = even(1, 5), even(1, 5)
        wait = 0.1 * level * even(0, 1) ** 2
        gpu_use, cpu_use = normal(0, 0.2), even(0.2, 1)

        def run(clock: Numbers) -> tuple[Numbers, Numbers]:
            """Return time and power at a relative clock of the GPU."""
            on_gpu = _norm((gpu / clock, memory), orders[0])
            time_s = _norm((on_gpu, *host), orders[1]) + wait
            host_share = np.minimum(sum(host) / time_s, 1) * cpu_use
            time_shares = gpu_use * on_gpu / time_s, host_share, memory / time_s
            gpu_load, cpu_load, emc_load = (
                idle + (1 - idle) * time_share
                for idle, time_share in zip(idle_shares, time_shares, strict=True)
            )
            power_w = base_w + gpu_w * (gpu_clock * share) ** gpu_exponent * gpu_load
            power_w = power_w + cpu_w * cores * cpu**cpu_exponent * cpu_load
            power_w = power_w + emc_w * emc * emc_load
            return time_s, power_w

        clock = gpu_clock * share
        time_s, power_w = run(clock)
        if limits.size:
            most_w = np.where(limit_w == NO_LIMIT, np.inf, limit_w)
            floor_w = even(0, 0.9) * limit_w.min()
            within = (most_w - floor_w) / np.maximum(power_w - floor_w, 1e-9)
            throttling = np.where(power_w > most_w, within, 1) ** even(0.3, 1)
            time_s, _ = run(clock * throttling)
            power_w = 1 / _norm((1 / most_w, 1 / power_w), even(4, 20))
        return time_s.reshape(n_draws, -1).T, power_w.reshape(n_draws, -1).T

    times_s, powers_w = zip(*map(draw_job, space.workloads), strict=True)
    return np.concatenate([*times_s, *powers_w])


def _norm(parts: Sequence[Numbers], order: Numbers) -> Numbers:
    """Return the Minkowski norm of parts, of an order; scaled by the longest, against overflow."""
    longest = np.maximum.reduce(np.broadcast_arrays(*parts))
    return np.asarray(longest * sum((part / longest) ** order for part in parts) ** (1 / order))
