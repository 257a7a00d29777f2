"""Physical shapes and a Gaussian process on what they leave over, with intervals that hold.

Time is a sum of the terms of GPU, memory and CPU, or a norm of them where they overlap. Its shares
say how busy each part is, and power is what busy and idle parts draw at their clocks, or a power
law: the observations weigh both (`mean_shapes`). What they leave over is a Gaussian process on the
logarithms of cores, clocks and the power limit; kernels are a sample, not the likeliest
(`kernel_sample`). A power limit leaves the GPU less than its clock below a knee that is sampled,
too.

Intervals are those of the mixture with Student's quantile, and wider where modes that were left
out show that they should be: by the share of conformal prediction (the `ceil(0.9 (m + 1))`-th
largest miss of m), shrunk towards none for few modes.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from epochwatt.prediction.data.modes import N_PARTS, NO_LIMIT, Mode, Numbers, as_rows
from epochwatt.prediction.data.observations import Observations
from epochwatt.prediction.models.features import log_rows, log_terms
from epochwatt.prediction.models.kernel_sample import (
    Kernels,
    Observed,
    among,
    left_out,
    observed_about,
    sample_kernels,
)
from epochwatt.prediction.models.mean_shapes import (
    Expected,
    Shape,
    Shares,
    SumOfTerms,
    fit_sum,
    on_reference,
    power_law,
    with_residual,
)
from epochwatt.prediction.names import POWER, TIME
from epochwatt.prediction.predictor import LEVEL, Context, Json, Method, Predictor

NORMS = (1.0, 2.0)
N_KNEES = 3  # that a power limit may have, evenly between the least and the largest, in logarithms
SHRUNK = 5  # as many modes as the belief that intervals are right is worth
MOST_OF_REFERENCE = 100  # modes of it that its own process learns from
BLOCK = 512  # modes that are predicted at once


@dataclass(frozen=True, eq=False)
class Utilisation(Predictor):
    """Time or power as a mixture of Gaussian processes about physical shapes."""

    target: str  # `time_s` or `power_w`
    trained_on: Numbers  # (m, 6), the distinct modes it was fitted to
    observed: Numbers  # (m,), of each of these modes
    processes: int  # that want a CPU core
    kernels: Numbers  # (s, d + 2), as of `Kernels`
    picked: NDArray[np.intp]  # (s,), the shape of each
    # (m,), of power: the time of each mode
    times: Numbers = field(default_factory=lambda: np.empty(0))
    # (k,), of power: how far each shape of time is believed
    shares: Numbers = field(default_factory=lambda: np.empty(0))
    # predictor of the same target of the workload that it transfers from; None: of none
    reference: "Utilisation | None" = None

    def predict(self, modes: ArrayLike) -> Numbers:
        """Return the expected value in each mode, shape (n,)."""
        return np.exp(self.mixture(modes)[0])

    def mixture(self, modes: ArrayLike) -> tuple[Numbers, Numbers]:
        """Return mean and standard deviation of the logarithm by all processes, (n,) each."""
        means, variances = self._moments(as_rows(modes))
        mean = means.mean(0)
        return mean, np.sqrt((variances + (means - mean) ** 2).mean(0))

    def interval(self, modes: ArrayLike, level: float = LEVEL) -> tuple[Numbers, Numbers]:
        """Return bounds that hold an observation with probability `level`, shape (n,) each."""
        mean, sd = self.mixture(modes)
        half_width = self.widening * self._quantile(level) * sd
        return np.exp(mean - half_width), np.exp(mean + half_width)

    def fits(self, modes: ArrayLike) -> Numbers:
        """Return what each process expects in each mode, shape (n, s)."""
        return np.asarray(np.exp(self._moments(as_rows(modes))[0]).T)

    def residuals(self) -> Numbers:
        """Return how far each profiled mode is from what the others expect, in deviations, (m,)."""
        off, sd = self.left_out()
        return off / sd

    def left_out(self) -> tuple[Numbers, Numbers]:
        """Return how far each profiled mode is from what the others expect, and the deviation."""
        return left_out(self._inverse, self._observations.off[self.picked])

    @property
    def noise(self) -> float:
        """Standard deviation of what is each mode's own, of logarithms, by all processes."""
        return float(np.sqrt((Kernels(self.kernels, self.picked).noises ** 2).mean()))

    @cached_property
    def widening(self) -> float:
        """Factor, one or more, by which left-out modes show that intervals should be wider."""
        misses = np.sort(np.abs(self.residuals()))
        rank = int(np.ceil(LEVEL * (len(misses) + 1)))  # of conformal prediction
        if rank > len(misses):  # too few for a quantile of their own
            return 1.0
        ratio = misses[rank - 1] / self._quantile(LEVEL)
        return float(max(ratio, 1.0) ** (len(misses) / (len(misses) + SHRUNK)))

    def _quantile(self, level: float) -> float:
        """Return Student's two-sided quantile for as many modes as were observed."""
        from scipy.special import stdtrit  # slow to import

        return float(stdtrit(len(self.observed) - 1, (1 + level) / 2))

    @cached_property
    def _moments(self) -> Callable[[Numbers], tuple[Numbers, Numbers]]:
        """Function that gives mean and variance of the logarithm by each process, (s, n) each."""

        @lru_cache(maxsize=2)  # value, interval and sample are asked of the same modes
        def moments(rows: bytes) -> tuple[Numbers, Numbers]:
            modes = np.frombuffer(rows).reshape(-1, N_PARTS)
            blocks = [self._block(modes[n : n + BLOCK]) for n in range(0, len(modes), BLOCK)]
            means, variances = zip(*blocks, strict=True)
            return np.concatenate(means, axis=1), np.concatenate(variances, axis=1)

        return lambda rows: moments(np.ascontiguousarray(rows).tobytes())

    def _block(self, modes: Numbers) -> tuple[Numbers, Numbers]:
        """Return what `_moments` does, for modes that fit into memory at once."""
        kernels = Kernels(self.kernels, self.picked)
        expected, open_by = zip(*(shape(modes) for shape in self.shapes), strict=True)
        linear = [new @ old.T for new, (_, old) in zip(open_by, self._expected, strict=True)]
        shape_variance = np.array([(columns**2).sum(1) for columns in open_by])[self.picked]
        shared = kernels.covariance(self._rows(modes), self._observations.rows)
        shared += np.array(linear)[self.picked]  # (s, n, m), covariance with the profiled modes
        weights = self._inverse @ self._observations.off[self.picked][:, :, None]
        means = np.array(expected)[self.picked] + (shared @ weights)[..., 0]
        explained = ((shared @ self._inverse) * shared).sum(2)
        prior_variance = shape_variance + kernels.sizes[:, None] ** 2
        return means, np.maximum(prior_variance - explained, 0.0) + kernels.noises[:, None] ** 2

    @cached_property
    def shapes(self) -> tuple[Shape, ...]:
        """Shapes that the processes deviate from, as fitted to the observations; sums are first."""
        modes, values, terms = self.trained_on, self.observed, log_terms(self.trained_on)
        sums, laws = self._sums_of_time, []
        if self.target == POWER:
            times = Shares(sums, self.shares)
            sums = tuple(
                fit_sum(modes, values, self.processes, 1.0, knee, times) for knee in _knees(modes)
            )
            laws = [power_law(modes, values, terms)]
        if self.reference is None:
            return (*sums, *laws)
        theirs = {(s.norm, s.knee_w): s for s in self.reference.shapes if isinstance(s, SumOfTerms)}
        with_residuals = [
            with_residual(ours, theirs[ours.norm, ours.knee_w], self.reference)
            for ours in sums
            if (ours.norm, ours.knee_w) in theirs
        ]
        return (*sums, *laws, on_reference(modes, values, terms, self.reference), *with_residuals)

    @cached_property
    def _sums_of_time(self) -> tuple[SumOfTerms, ...]:
        """Sums fitted to the time of each profiled mode, for each knee and norm."""
        modes, seconds = self.trained_on, self.observed if self.target == TIME else self.times
        return tuple(
            fit_sum(modes, seconds, self.processes, norm, knee)
            for knee in _knees(modes)
            for norm in NORMS
        )

    @cached_property
    def _expected(self) -> list[Expected]:
        return [shape(self.trained_on) for shape in self.shapes]

    @cached_property
    def _observations(self) -> Observed:
        return observed_about(self._rows(self.trained_on), self.observed, self._expected)

    @cached_property
    def _inverse(self) -> Numbers:
        kernels = Kernels(self.kernels, self.picked)
        return np.asarray(np.linalg.inv(among(kernels, self._observations)))

    def _rows(self, modes: Numbers) -> Numbers:
        """Return what tells the training modes apart, shape (n, d)."""
        varies = np.ptp(log_rows(self.trained_on, self.trained_on), axis=0) > 0
        return log_rows(modes, self.trained_on)[:, varies]

    @classmethod
    def from_json(cls, data: Json) -> Self:
        """Return a predictor from `to_json`."""
        reference = data.get("reference")
        stored = super().from_json({name: data[name] for name in data if name != "reference"})
        return replace(stored, reference=cls.from_json(reference)) if reference else stored


def _knees(modes: Numbers) -> list[float]:
    """Return the power limits from which on a workload may run at its full clock, W."""
    limits = modes[modes[:, 5] != NO_LIMIT, 5]
    if not len(limits) or not np.ptp(modes[:, 5]):
        return [NO_LIMIT]
    return np.geomspace(limits.min(), limits.max(), N_KNEES + 1)[1:].tolist()


_UNKNOWN = np.empty((0, 2)), np.empty(0, np.intp)  # kernels, before they are sampled


@lru_cache(maxsize=8)  # power asks for the time of the same observations
def _fitted(
    observations: Observations, target: str, reference: Utilisation | None = None
) -> Utilisation:
    """Fit the mixture to observations; power builds on a fit of the same times.

    Each shape of time is believed as often as a kernel of that fit picked it. What was worked out
    already is put into the cached properties, so that it is not worked out twice.
    """
    means, fields = observations.means_of(target), dict[str, Any](reference=reference)
    if target == POWER:
        time = _fitted(observations, TIME)
        sums = tuple(shape for shape in time.shapes if isinstance(shape, SumOfTerms))
        picked = time.picked[time.picked < len(sums)]
        counts = np.bincount(picked, minlength=len(sums)) + 1 / len(time.picked)
        fields |= {"times": means.time_s, "shares": counts / counts.sum()}
    observed = means.values(target)
    unsampled = Utilisation(target, means.modes, observed, means.processes, *_UNKNOWN, **fields)
    if target == POWER:
        vars(unsampled)["_sums_of_time"] = sums
    kernels = sample_kernels(unsampled._observations)
    fit = replace(unsampled, kernels=kernels.logs, picked=kernels.shape)
    for name in ("shapes", "_expected", "_observations"):
        vars(fit)[name] = vars(unsampled)[name]
    return fit


def _fit(observations: Observations, context: Context) -> Utilisation:
    """Return the mixture. Raises PredictionError: fewer than two modes, or no power."""
    return _fitted(observations, context.target)


def _fit_transferred(observations: Observations, context: Context) -> Utilisation:
    """Return the mixture with shapes of a reference. Raises PredictionError: there is none."""
    reference = context.need_reference(observations)
    observations.need_modes(2)  # before the reference is fitted, which takes long
    return _fitted(observations, context.target, _fit_reference(reference.rows, context.target))


@lru_cache(maxsize=8)
def _fit_reference(rows: Observations, target: str) -> Utilisation:
    """Fit the mixture to at most `MOST_OF_REFERENCE` random modes of a reference."""
    modes = rows.distinct()
    drawn = np.random.default_rng(0).permutation(len(modes))[:MOST_OF_REFERENCE]
    return _fitted(rows.only([modes[number] for number in sorted(drawn)]), target)


METHOD = Method(
    "physical shapes, power by utilisation, and a Gaussian process",
    (TIME, POWER),
    _fit,
    Utilisation.from_json,
    parts=Mode._fields,
)
TRANSFERRED = replace(
    METHOD,
    title="the same, from a reference workload",
    fit=_fit_transferred,
    learns_from=(),
    needs_reference=True,
    is_scored=False,
)
