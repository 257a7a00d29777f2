"""Which problems solvers are judged on: a grid of budgets of power and latency, and of rates.

Shares of problems that are solved hang on how problems are drawn, so here is how. Each set of jobs
has every combination of

- power budgets from 12 to 50 W, 1 W apart;
- loads: a stream's rate over the highest that its network serves in the strongest mode at any
  mini-batch size, evenly spaced from 2 to 95 %; of two streams each has half the load;
- latency budgets over the time of the smallest mini-batch in the strongest mode, evenly spaced in
  logarithms from 1.2 to 60; of two streams alike for both.

Problems that no choice solves are counted and left out of all shares.
"""

from typing import NamedTuple

import numpy as np

from epochwatt.schedule.plans import Numbers
from epochwatt.schedule.problem import PowerRule
from epochwatt.schedule.profiles import Workload
from epochwatt.schedule.solvers.profiled import strongest_mode
from epochwatt.schedule.space import Problems, Space

LEAST_W, MOST_W = 12, 50
LOADS = 0.02, 0.95
LATENCIES = 1.2, 60.0


class Size(NamedTuple):
    """How many values the grid of problems has of each kind."""

    n_loads: int
    n_latencies: int


ONE_STREAM, TWO_STREAMS = Size(30, 24), Size(8, 8)


def problems_of(space: Space, size: Size, power_rule: PowerRule = "highest") -> Problems:
    """Return the problems of a set of jobs; training alone has those of power only."""
    powers = np.arange(LEAST_W, MOST_W + 1, dtype=float)
    n_streams = len(space.infer)
    if not n_streams:
        none = np.zeros((len(powers), 0))
        return Problems(powers, none, none, power_rule)
    loads = np.linspace(*LOADS, size.n_loads)
    latencies = np.geomspace(*LATENCIES, size.n_latencies)
    power, load, latency = (grid.ravel() for grid in np.meshgrid(powers, loads, latencies))
    mode = int(strongest_mode(space)[0])
    rates = np.array([_most_per_s(one, mode) for one in space.infer]) / n_streams
    least_s = np.array([one.time_s[mode].min() for one in space.infer])
    return Problems(power, load[:, None] * rates, latency[:, None] * least_s, power_rule)


def _most_per_s(workload: Workload, mode: int) -> float:
    served: Numbers = workload.batch_sizes / workload.time_s[mode]
    return float(served.max())
