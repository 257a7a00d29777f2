"""Truths to try the models on where no board is at hand: what they gain here is by construction.

They share no equation with the simulated boards nor with the models. Clocks x are relative to the
strongest mode; each part of the work is bound by one of them, and its speed saturates:

    s(x) = x (1 + k) / (x + k)                        a clock that helps less the higher it is
    r(c) = (1 + (5 / c)^h)^(1/h)                      how long 5 processes queue for c cores
    part = share of GPU / s_gpu, memory / s_memory, CPU r(c) / (r(all) s_cpu)
    time = T ((sum of part^q)^(1/q) + fixed)          the parts overlap: q = 1 not, large q wholly
    power = B + D (1 + leak D / D_strongest)          warm chips leak
    D     = sum of watts part / time x^a              busy for its part of the time, watts at x = 1

with k, h, q, shares, fixed, B, watts and the exponents a drawn. The shares lie about those that
each network may have (ASSUME, from SIGMETRICS 2023, sections 5.6.4 to 5.6.7: LeNet follows the
CPU's clock, ResNet the GPU's; VGG-11 like ResNet).
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from epochwatt.prediction.data.modes import Mode, Numbers, as_rows
from epochwatt.prediction.data.observations import PROCESSES
from epochwatt.prediction.predictor import Prior

SHARES = {  # of GPU, memory and CPU in an epoch of the strongest mode
    "lenet": (0.15, 0.25, 0.60),
    "mobilenet": (0.45, 0.25, 0.30),
    "resnet": (0.75, 0.20, 0.05),
    "vgg11": (0.70, 0.20, 0.10),
}
SHARES_CONCENTRATION = 20.0  # of the Dirichlet distribution about them
EPOCH_SD = 0.01  # of time and of power between epochs (SIGMETRICS 2023, section 5.4)


class World(NamedTuple):
    """The truth of one workload on one board, without any spread between epochs."""

    workload: str
    time: Prior  # modes (n, 5) -> s (n,)
    power: Prior  # modes (n, 5) -> W (n,)


def of_another_kind(
    workloads: Iterable[str], strongest: Mode, n_draws: int, seed: int
) -> list[list[World]]:
    """Return worlds whose parts overlap and whose clocks saturate, n_draws times one per network.

    `strongest`: the mode of the board's highest clocks, with all its cores
    """
    rng, names = np.random.default_rng(seed), list(workloads)
    return [[_world(name, strongest, rng) for name in names] for _ in range(n_draws)]


def _world(workload: str, strongest: Mode, rng: np.random.Generator) -> World:
    """Draw a world; the names are those of the equations above, by GPU, memory and CPU."""
    shares = rng.dirichlet(SHARES_CONCENTRATION * np.array(SHARES[workload]))
    k = np.exp(rng.uniform(np.log(1), np.log(30), 3))
    h, q, fixed = float(rng.uniform(1, 3)), float(rng.uniform(1.2, 6)), float(rng.uniform(0, 0.1))
    whole_s = float(np.exp(rng.uniform(np.log(60), np.log(600))))
    watts = np.array([rng.uniform(8, 25), rng.uniform(2, 5), rng.uniform(2, 8)])
    a = np.array([rng.uniform(1.5, 2.8), rng.uniform(0.8, 1.5), rng.uniform(1.5, 2.8)])
    base_w, leak = float(rng.uniform(3, 8)), float(rng.uniform(0, 0.2))
    _, cpu_mhz, gpu_mhz, emc_mhz = strongest[:4]

    def clocks(modes: Numbers) -> Numbers:
        """Return clocks relative to the strongest mode's, shape (n, 3)."""
        return as_rows(modes)[:, [2, 3, 1]] / [gpu_mhz, emc_mhz, cpu_mhz]

    def queueing(cores: Numbers | float) -> Numbers:
        return np.asarray((1 + (PROCESSES / np.asarray(cores)) ** h) ** (1 / h))

    def relative_time(modes: Numbers) -> tuple[Numbers, Numbers]:
        """Return the time in units of T, shape (n,), and the parts of it, shape (n, 3)."""
        x = clocks(modes)
        parts = shares / (x * (1 + k) / (x + k))
        parts[:, 2] *= queueing(as_rows(modes)[:, 0]) / queueing(strongest.cores)
        return (parts**q).sum(1) ** (1 / q) + fixed, parts

    def dynamic_w(modes: Numbers) -> Numbers:
        time, parts = relative_time(modes)
        return np.asarray((watts * parts / time[:, None] * clocks(modes) ** a).sum(1))

    def power_w(modes: Numbers) -> Numbers:
        dynamic = dynamic_w(as_rows(modes))
        at_best = dynamic_w(as_rows([strongest]))
        return np.asarray(base_w + dynamic * (1 + leak * dynamic / at_best))

    return World(workload, lambda modes: whole_s * relative_time(modes)[0], power_w)
