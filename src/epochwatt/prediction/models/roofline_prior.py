"""Time as a roofline over clocks: the longer of arithmetic and memory, and what the CPU adds.

    time = max(a / f_gpu, b / f_emc) + c / f_cpu + d shortage of cores + e

`physical` adds the first two instead. Bandwidth that waits for the GPU's clock is in `a`: the least
of two bandwidths is the longest of two times. Which part is the longer one depends on f_gpu / f_emc
alone, so the fit tries every place for the ratio at which they change over, each a non-negative
least squares; between profiled modes it follows what was observed, as `physical` does.

It does not beat `physical` on real sweeps (docs/explanation/rooflines.md): a workload has kernels
of both kinds, which one after the other add up. It is kept to show that, and gives no intervals.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from epochwatt.prediction.data.modes import Numbers, as_rows
from epochwatt.prediction.data.observations import Observations
from epochwatt.prediction.models.features import TIME, design, relative, short_of_cores
from epochwatt.prediction.models.linear_model import fit_nonnegative, likeliest
from epochwatt.prediction.models.priors import DEVIATION, OWN, SHARE_SD
from epochwatt.prediction.models.residual_gp import Deviations
from epochwatt.prediction.names import TIME as TIME_S
from epochwatt.prediction.predictor import Context, Method, Predictor

GPU, MEMORY = TIME.index("per_gpu_clock"), TIME.index("per_emc_clock")
SHARES = (1 / 2, 1 / 2, 1 / 3, 0.0, 0.0)  # of the whole, believed: one of the first two counts


@dataclass(frozen=True, eq=False)
class Roofline(Predictor):
    """A roofline with the deviations that the profiled modes show."""

    target: str
    trained_on: Numbers
    coefficients: Numbers  # (5,), of `features.TIME`, not negative
    processes: int  # that want a CPU core
    observed: Numbers  # (m,), in the modes it learned from
    nugget: float = OWN  # standard deviation of what is each mode's own, in deviations

    def predict(self, modes: ArrayLike) -> Numbers:
        """Return the expected time in each mode, s, shape (n,)."""
        rows = as_rows(modes)
        expected = roof(self.coefficients, self.trained_on, self.processes)
        weights = Deviations(self.trained_on, nugget=self.nugget).weights(rows)
        deviations = weights @ np.log(self.observed / expected)
        return roof(self.coefficients, rows, self.processes) * np.exp(deviations)


def roof(coefficients: Numbers, modes: Numbers, processes: int) -> Numbers:
    """Return the roofline's time in each mode (m, 6), s, shape (m,): the module's formula."""
    parts = design(TIME, modes, processes) * coefficients
    longer = np.maximum(parts[:, GPU], parts[:, MEMORY])
    return np.asarray(longer + parts.sum(1) - parts[:, GPU] - parts[:, MEMORY])


def fit_roofline_time(observations: Observations, context: Context | None = None) -> Roofline:
    """Fit the roofline to the observed times, by relative error.

    Raises PredictionError: fewer than two distinct modes.
    """
    means = observations.means_of(TIME_S)
    modes, processes = means.modes, means.processes
    short = design(TIME, short_of_cores(modes, processes), processes)
    rows, scale = relative(design(TIME, modes, processes), short, means.time_s)
    order = np.argsort(rows[:, GPU] / rows[:, MEMORY])  # from memory to arithmetic as the longer
    mean, sd, ones = np.array(SHARES), np.full(len(TIME), SHARE_SD), np.ones(len(rows))
    least_loss, coefficients, active_rows = np.inf, np.zeros(len(TIME)), rows
    for n_memory_bound in range(len(order) + 1):
        active = rows / scale  # without the shorter part of each mode
        active[order[:n_memory_bound], GPU] = 0.0
        active[order[n_memory_bound:], MEMORY] = 0.0
        shares = fit_nonnegative(active, ones, mean, sd, DEVIATION)
        expected = roof(shares / scale, modes, processes)
        if not (expected > 0).all():
            continue
        residuals = np.log(means.time_s / expected) / DEVIATION
        loss = float(residuals @ residuals + (((shares - mean) / sd) ** 2).sum())
        if loss < least_loss:
            least_loss, coefficients, active_rows = loss, shares / scale, active
    nugget, *_ = likeliest(fit_nonnegative, active_rows, ones, mean, sd, modes)
    return Roofline(TIME_S, modes, coefficients, processes, means.time_s, nugget)


METHOD = Method("roofline over clocks", (TIME_S,), fit_roofline_time, Roofline.from_json)
