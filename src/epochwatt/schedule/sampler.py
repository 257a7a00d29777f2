"""Lay out the problems that solvers are judged on: a grid of budgets and of rates.

Shares of problems that are solved hang on how problems are drawn, so here is how. Each set of jobs
has every combination of

- 39 power budgets, evenly spaced from 12 to 50 W on a simulated Orin; on other devices between
  those of config/schedule.yaml;
- loads: a stream's rate over the highest that its network serves in the strongest mode at any
  mini-batch size, evenly spaced from 2 to 95 %; of two streams each has half the load;
- latency budgets over the time of the smallest mini-batch in the strongest mode, evenly spaced in
  logarithms from 1.2 to 60; of two streams alike for both.

Problems that no choice solves are counted and left out of all shares.

Of jobs that share a board there are two kinds of problems: no job may draw more than the budget
while it runs, or the mean power may not (`Problem.power_rule`). The second kind has a coarser grid.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from epochwatt.schedule.problem import Numbers, PowerRule, Problems, Space

BUDGETS_W, N_BUDGETS = (12.0, 50.0), 39
LOADS = 0.02, 0.95
LATENCIES = 1.2, 60.0


class Size(NamedTuple):
    """Numbers of values of each kind in the grid of problems."""

    n_loads: int
    n_latencies: int


ONE_STREAM, TWO_STREAMS = Size(30, 24), Size(8, 8)
MEAN_POWER = Size(10, 8)  # of problems of mean power; of two streams as above


def problems_of(
    space: Space,
    size: Size,
    power_rule: PowerRule = "highest",
    budgets_w: Sequence[float] = BUDGETS_W,
) -> Problems:
    """Lay out the grid of problems of a set of jobs; training alone varies the power budget only.

    `budgets_w`: least and greatest power budget.
    """
    powers = np.linspace(budgets_w[0], budgets_w[1], N_BUDGETS)
    n_streams = len(space.infer)
    if not n_streams:
        no_streams = np.zeros((len(powers), 0))
        return Problems(powers, no_streams, no_streams, power_rule)
    loads = np.linspace(*LOADS, size.n_loads)
    latencies = np.geomspace(*LATENCIES, size.n_latencies)
    power, load, latency = (grid.ravel() for grid in np.meshgrid(powers, loads, latencies))
    rates, latencies_s = problem_at(space, load[:, None], latency[:, None])
    return Problems(power, rates, latencies_s, power_rule)


def problem_at(space: Space, load: ArrayLike, latency: ArrayLike) -> tuple[Numbers, Numbers]:
    """Turn relative load and latency (..., 1) into rates, requests/s, and budgets, s, (..., s)."""
    mode = space.strongest_mode
    most_per_s = [float((job.batch_sizes / job.time_s[mode]).max()) for job in space.infer]
    rates = np.array(most_per_s) / len(space.infer)
    least_s = np.array([job.time_s[mode].min() for job in space.infer])
    return np.asarray(load) * rates, np.asarray(latency) * least_s
