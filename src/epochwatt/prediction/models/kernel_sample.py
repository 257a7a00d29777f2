"""A sample of Gaussian processes that the observations leave about equally likely.

Few modes do not say over which distance deviations are alike, how large they are, nor which shape
(`mean_shapes`) they deviate from. Taking the likeliest answer and forgetting the others is what
makes intervals too narrow. So this takes a sample of answers from their posterior: parallel chains
whose steps are differences of other chains (differential evolution: ter Braak, 2006), all of them
evaluated in one call. Predictions are the mixture. Leaving one mode out needs no new fit: each
process has it in closed form (Sundararajan and Keerthi, 2001), and the mixture is weighed anew
(Gelfand, 1996).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from epochwatt.prediction.data.modes import Numbers
from epochwatt.prediction.models.mean_shapes import Expected
from epochwatt.prediction.models.residual_gp import log_evidence

N_START, N_CHAINS, N_STEPS = 128, 16, 10
# Belief about the logarithms of kernel parameters: mean, standard deviation, least and most
LENGTH = (np.log(1.5), 0.8, np.log(0.1), np.log(30.0))  # of each part of a mode, natural logarithms
SIZE = (np.log(0.1), 1.0, np.log(1e-3), np.log(2.0))  # of smooth deviations, relative
NOISE = (np.log(0.02), 1.0, np.log(1e-3), np.log(0.5))  # of what is each mode's own, relative
JUMP, JITTER = 2.38, 0.15  # of a chain: over sqrt(2 d) for the best mixing; in belief's deviations
CHANGES_SHAPE = 0.2  # share of the steps


class Kernels(NamedTuple):
    """Parameters of s processes."""

    logs: Numbers  # (s, d + 2), logarithms of lengths, size and noise
    shape: NDArray[np.intp]  # (s,), number of the shape that each deviates from

    @property
    def lengths(self) -> Numbers:
        """Distances over which deviations are alike, by part of the mode, shape (s, d)."""
        return np.asarray(np.exp(self.logs[:, :-2]))

    @property
    def sizes(self) -> Numbers:
        """Standard deviations of smooth deviations, shape (s,)."""
        return np.asarray(np.exp(self.logs[:, -2]))

    @property
    def noises(self) -> Numbers:
        """Standard deviations of what is each mode's own, shape (s,)."""
        return np.asarray(np.exp(self.logs[:, -1]))

    def covariance(self, rows: Numbers, others: Numbers) -> Numbers:
        """Return the Matern 5/2 covariance of rows (n, d) with others (m, d), shape (s, n, m).

        size^2 (1 + r + r^2 / 3) exp(-r), with r = sqrt(5) |(x - y) / lengths|.
        """
        a, b = rows / self.lengths[:, None], others / self.lengths[:, None]
        squared = (a**2).sum(2)[:, :, None] + (b**2).sum(2)[:, None] - 2 * a @ b.transpose(0, 2, 1)
        r = np.sqrt(5 * np.maximum(squared, 0.0))
        return np.asarray(self.sizes[:, None, None] ** 2 * (1 + r + r**2 / 3) * np.exp(-r))


class Observed(NamedTuple):
    """Observations that processes are conditioned on."""

    rows: Numbers  # (m, d), what tells the modes apart
    linear: Numbers  # (k, m, m), covariance of what each of k shapes leaves open
    off: Numbers  # (k, m), logarithm of observed over expected, by shape


def observed_about(rows: Numbers, values: Numbers, expected: Sequence[Expected]) -> Observed:
    """Relate observed values (m,) at rows (m, d) to what each of k shapes expects there."""
    linear = np.array([open_by @ open_by.T for _, open_by in expected])
    return Observed(rows, linear, np.log(values) - np.array([logs for logs, _ in expected]))


def sample_kernels(observed: Observed) -> Kernels:
    """Draw `N_CHAINS` kernels from their posterior, the same at each call.

    Chains start at draws from the belief, taken by their likelihood. Each step goes along the
    difference of two chains, and is accepted as Metropolis says.
    """
    rng, n_shapes = np.random.default_rng(0), len(observed.off)
    mean, sd, least, most = np.array([LENGTH] * observed.rows.shape[1] + [SIZE, NOISE]).T

    def log_likelihood(kernels: Kernels) -> Numbers:
        return log_evidence(among(kernels, observed), observed.off[kernels.shape])

    def log_belief(kernels: Kernels) -> Numbers:
        return np.asarray(-0.5 * (((kernels.logs - mean) / sd) ** 2).sum(1))

    draws = mean + sd * rng.standard_normal((N_START, len(mean)))
    start = Kernels(np.clip(draws, least, most), np.arange(N_START) % n_shapes)
    likelihood = log_likelihood(start)
    weights = np.exp(likelihood - likelihood.max())
    chosen = rng.choice(N_START, N_CHAINS, p=weights / weights.sum())
    chains = Kernels(start.logs[chosen], start.shape[chosen])
    posterior = likelihood[chosen] + log_belief(chains)  # logarithm, up to a constant
    for _ in range(N_STEPS):
        one, other = rng.integers(0, N_CHAINS, (2, N_CHAINS))
        step = JUMP / np.sqrt(2 * len(mean)) * (chains.logs[one] - chains.logs[other])
        logs = chains.logs + step + JITTER * sd * rng.standard_normal(chains.logs.shape)
        changes = rng.random(N_CHAINS) < CHANGES_SHAPE
        shape = np.where(changes, rng.integers(0, n_shapes, N_CHAINS), chains.shape)
        is_inside = ((logs >= least) & (logs <= most)).all(1)
        proposal = Kernels(np.clip(logs, least, most), shape)
        proposed = log_likelihood(proposal) + log_belief(proposal)
        accepted = is_inside & (np.log(rng.random(N_CHAINS)) < proposed - posterior)
        chains.logs[accepted], chains.shape[accepted] = proposal.logs[accepted], shape[accepted]
        posterior[accepted] = proposed[accepted]
    return chains


def among(kernels: Kernels, observed: Observed) -> Numbers:
    """Return the covariance among the m observations by each kernel, shape (s, m, m)."""
    noise = kernels.noises[:, None, None] ** 2 * np.eye(len(observed.rows))
    smooth = kernels.covariance(observed.rows, observed.rows)
    return np.asarray(smooth + observed.linear[kernels.shape] + noise)


def left_out(inverse: Numbers, off: Numbers) -> tuple[Numbers, Numbers]:
    """Return how far each mode is from what all others expect of it, and the deviation, (m,) each.

    `inverse`, (s, m, m), is that of the covariance of the observations (`among`), `off` the
    logarithm of observed over expected, (s, m). By each process, miss = (K^-1 off)_i / (K^-1)_ii
    with the variance 1 / (K^-1)_ii; a process counts by how unlikely the mode made it.
    """
    variance = 1 / np.diagonal(inverse, axis1=1, axis2=2)
    miss = (inverse @ off[:, :, None])[..., 0] * variance
    surprise = 0.5 * miss**2 / variance + 0.5 * np.log(variance)
    weights = np.exp(surprise - surprise.max(0))
    weights /= weights.sum(0)
    mean = (weights * miss).sum(0)
    mixture_variance = (weights * (variance + (miss - mean) ** 2)).sum(0)
    return mean, np.sqrt(mixture_variance)
