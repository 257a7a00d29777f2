"""Three methods as one, each weighed by how far it is off in modes that were left out.

Expected logarithms are averaged, with the weights under which what was observed in left-out modes
is likeliest: by a Laplace distribution, in which one odd mode does not decide (stacking: Breiman,
1996), and by a belief about the weights, which counts after few modes. A process leaves a mode out
in closed form; the physical terms are fitted anew.

The scale of an observation about that is what `utilisation` leaves open, wider where the three
disagree, times a factor, and the noise of a repeat, which it does not scale. The factor is how far
left-out modes are off in these units, of this workload and of the tables that `SCALE` is from. The
tails are those of Student's t, the fatter the fewer modes are known.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from itertools import product

import numpy as np
from numpy.typing import ArrayLike

from epochwatt.prediction.data.modes import N_PARTS, Mode, Numbers, as_rows
from epochwatt.prediction.data.observations import Observations
from epochwatt.prediction.models import gaussian_process, utilisation
from epochwatt.prediction.models.gaussian_process import GaussianProcess
from epochwatt.prediction.models.linear_model import LEAST, LinearModel
from epochwatt.prediction.models.physical import PHYSICAL
from epochwatt.prediction.models.utilisation import Utilisation
from epochwatt.prediction.names import ALL, POWER, TIME
from epochwatt.prediction.predictor import LEVEL, Context, Json, Method, Predictor

STEPS = 10  # of each weight, from 0 to 1
BELIEVED, BELIEF = (0.6, 0.1, 0.3), 6.0  # weights before any mode is left out, and how surely
N_FOLDS = 8  # that the physical terms are fitted to all others of
LEAST_PHYSICAL = 4  # modes that they are fitted to; so many say nothing of the weights
LEAST_OFF = 1e-3  # mean distance of logarithms: averages that are nearer are equally good
FREE = 4.0  # degrees of freedom of Student's t, of values whose scale is sought
# Belief about the factor after m modes, and how many modes that belief is worth. Shapes are fitted
# to left-out modes, too, so those are off by too little: by m / (m + `SEEN`). `FREE_EACH`: degrees
# of freedom by mode. All were set, with `predictor.HOPEFUL`, on TX1 and TX2 (20,000 images), other
# workloads of A100, V100 and TX2 kernels than those that judge, and synthetic boards of seeds 501
# to 503; `benchmarks.promises` judges.
SCALE, SCALE_POWER, SCALE_WEIGHT = 1.13, 1.3, 24.0
SEEN = 7.0
FREE_AT_LEAST, FREE_EACH = 1.5, 0.22
SCALES = np.geomspace(0.1, 4.0, 60)
LEAST_OPEN = 0.1  # of a variance, that is not noise
NOISE = 1.15  # few modes show so much too little of the noise of a repeat
# Scale of a power over the logarithm of a CPU or GPU clock above all profiled ones: where voltage
# rises with the clock, profiled modes may all lie below. Both were set on the same boards as
# `SCALE`, and on other workloads of Zeus' cards.
RISE = 0.3
RISING = [Mode._fields.index(part) for part in ("cpu_mhz", "gpu_mhz")]


@dataclass(frozen=True, eq=False)
class Stacked(Predictor):
    """Time or power as an average of two or three predictors of it."""

    target: str
    trained_on: Numbers  # (m, 6)
    utilisation: Utilisation
    process: GaussianProcess
    physical: LinearModel | None  # None: few modes, or a part varies that it does not know
    weights: Numbers  # (k,), of these in this order
    scale: float  # factor on what is left open
    # (m,), how far each mode is from what the others expect, of logarithms; empty: no interval
    off: Numbers
    off_scale: Numbers  # (m,), the scale of that

    @property
    def free(self) -> float:  # type: ignore[override]
        """Degrees of freedom."""
        return FREE_AT_LEAST + FREE_EACH * len(self.off)

    def predict(self, modes: ArrayLike) -> Numbers:
        """Return the expected value in each mode, shape (n,)."""
        return np.exp(self.weights @ self.expected(as_rows(modes)))

    def fits(self, modes: ArrayLike) -> Numbers:
        """Return the average, off it as each process of `utilisation` is off theirs, (n, s)."""
        rows = as_rows(modes)
        logs = self.expected(rows)
        return self.utilisation.fits(rows) * np.exp(self.weights @ logs - logs[0])[:, None]

    def log_t(self, modes: ArrayLike) -> tuple[Numbers, Numbers]:
        """Return centre and scale of the logarithm of an observation, (n,) each."""
        rows = as_rows(modes)
        logs, sd = self.expected(rows), self.utilisation.mixture(rows)[1]
        noise = self.utilisation.noise
        is_open = left_open(sd, noise, logs, self.weights)
        above = np.maximum(rows[:, RISING] / self.trained_on[:, RISING].max(0), 1.0)
        rise = RISE * np.log(above).sum(1) if self.target == POWER else 0.0
        variance = (self.scale * is_open) ** 2 + (NOISE * noise) ** 2 + rise**2
        return self.weights @ logs, np.sqrt(variance)

    def interval(self, modes: ArrayLike, level: float = LEVEL) -> tuple[Numbers, Numbers] | None:
        """Return bounds that hold an observation with probability `level`, (n,) each, or None."""
        from scipy.special import stdtrit  # slow to import

        if not len(self.off):
            return None
        centre, scale = self.log_t(modes)
        half_width = float(stdtrit(self.free, (1 + level) / 2)) * scale
        return np.exp(centre - half_width), np.exp(centre + half_width)

    def left_out(self) -> tuple[Numbers, Numbers]:
        """Return how far each profiled mode is from what the others expect, and the scale."""
        return self.off, self.off_scale

    def residuals(self) -> Numbers:
        """Return how far each profiled mode is from what the others expect, in scales, (m,)."""
        return self.off / self.off_scale

    @cached_property
    def expected(self) -> Callable[[Numbers], Numbers]:
        """Function that gives the logarithm of what each predictor expects, shape (k, n)."""
        predictors = (self.utilisation, self.process, self.physical)[: len(self.weights)]

        @lru_cache(maxsize=2)  # value, fits and scale are asked of the same modes
        def logs(rows: bytes) -> Numbers:
            modes = np.frombuffer(rows).reshape(-1, N_PARTS)
            return np.log([each.predict(modes) for each in predictors if each is not None])

        return lambda rows: logs(np.ascontiguousarray(rows).tobytes())

    @classmethod
    def from_json(cls, data: Json) -> "Stacked":
        """Return a predictor from `to_json`."""
        parts: dict[str, Predictor] = {
            "utilisation": Utilisation.from_json(data["utilisation"]),
            "process": GaussianProcess.from_json(data["process"]),
        }
        if "physical" in data:
            parts["physical"] = LinearModel.from_json(data["physical"])
        arrays = {name: np.array(data[name]) for name in data if isinstance(data[name], list)}
        return cls(**{"physical": None, **data, **arrays, **parts})


def left_open(sd: Numbers, noise: float, logs: Numbers, weights: Numbers) -> Numbers:
    """Return deviations (n,) without noise, and wider where expectations (k, n) disagree."""
    without_noise = np.maximum(sd**2 - noise**2, LEAST_OPEN * sd**2)
    return np.sqrt(without_noise + weights @ (logs - weights @ logs) ** 2)


@cache
def _averages(k: int) -> Numbers:
    """Return all weights of k predictors in steps, shape (n, k)."""
    steps = np.array(list(product(range(STEPS + 1), repeat=k)), float)
    return np.asarray(steps[steps.sum(1) == STEPS] / STEPS)


def stack(off: Numbers) -> Numbers:
    """Return the likeliest weights (k,), from how far left-out modes are off, (k, m)."""
    k, m = off.shape
    averages = _averages(k)
    believed = np.array(BELIEVED[:k]) / sum(BELIEVED[:k])
    distance = np.abs(averages @ off).mean(1) + LEAST_OFF
    likelihood = -max(m - LEAST_PHYSICAL, 0) * np.log(distance)
    belief = -BELIEF * ((averages - believed) ** 2).sum(1)
    return np.asarray(averages[(likelihood + belief).argmax()])


def _fit(observations: Observations, context: Context) -> Stacked:
    """Return the average. Raises PredictionError: fewer than two modes, or no power."""
    means = observations.means_of(context.target)
    plain = Context(context.target, intervals=False)
    mixture = utilisation.METHOD.fit(observations, plain)
    process = gaussian_process.METHOD.fit(observations, plain)
    assert isinstance(mixture, Utilisation)
    assert isinstance(process, GaussianProcess)
    physical: LinearModel | None = None
    spreads = dict(zip(Mode._fields, np.ptp(means.modes, axis=0), strict=True))
    if len(means.modes) >= LEAST_PHYSICAL and not any(
        spread for part, spread in spreads.items() if part not in PHYSICAL.parts
    ):
        fitted = PHYSICAL.fit(observations, plain)
        assert isinstance(fitted, LinearModel)
        physical = fitted
    parts = context.target, means.modes, mixture, process, physical
    if not context.intervals and len(means.modes) <= LEAST_PHYSICAL:
        believed = stack(np.zeros((2 if physical is None else 3, 1)))
        return Stacked(*parts, believed, scale=np.nan, off=np.empty(0), off_scale=np.empty(0))
    of_mixture, sd = mixture.left_out()
    off = [of_mixture, process.left_out()[0]]
    if physical is not None:
        off.append(off_when_left_out(means, plain))
    weights = stack(np.array(off))
    total, known = weights @ np.array(off), len(sd) / (len(sd) + SEEN)
    is_open = left_open(sd, mixture.noise, np.array(off), weights)
    believed_scale = SCALE * known**SCALE_POWER
    scale, off_scale = likeliest_scale(total / known, is_open, mixture.noise, believed_scale)
    return Stacked(*parts, weights, scale, total, off_scale)


def likeliest_scale(
    off: Numbers, is_open: Numbers, noise: float, believed: float
) -> tuple[float, Numbers]:
    """Return the likeliest factor on what is open, and the scales (m,) of values (m,) by it.

    What is believed of its logarithm counts as much as `SCALE_WEIGHT` values.
    """
    scales = np.hypot(SCALES[:, None] * is_open, noise)
    fat = (FREE + 1) / 2 * np.log1p((off / scales) ** 2 / FREE)
    far = SCALE_WEIGHT / 4 * np.log(SCALES / believed) ** 2
    best = int(((fat + np.log(scales)).sum(1) + far).argmin())
    return float(SCALES[best]), scales[best]


def off_when_left_out(means: Observations, context: Context) -> Numbers:
    """Return how far each mode is from the physical terms fitted to others, of logarithms, (m,)."""
    folds = np.random.default_rng(0).permutation(len(means.modes)) % N_FOLDS
    off, values = np.empty(len(folds)), means.values(context.target)
    for fold in np.unique(folds):
        is_out = folds == fold
        fitted = PHYSICAL.fit(means.rows(~is_out), context)
        expected = fitted.predict(means.modes[is_out])
        off[is_out] = np.log(values[is_out] / np.maximum(expected, LEAST * values[is_out]))
    return off


METHOD = Method(
    "utilisation, a Gaussian process and physical terms, weighed by left-out errors",
    (TIME, POWER),
    _fit,
    Stacked.from_json,
    learns_from=(ALL,),
    parts=Mode._fields,
)
