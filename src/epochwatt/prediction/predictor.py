"""Protocol of prediction methods: a `Method` learns from a few power modes and gives a `Predictor`.

To add a method, write a module with a `Method` and give it a row in `registry.METHODS` or in
config/predictors.yaml. Jobs, scores, figures and `epochwatt recommend --method` iterate the
registry; none of them names a method.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from epochwatt.prediction.data.modes import Mode, Numbers, PredictionError
from epochwatt.prediction.data.observations import Observations
from epochwatt.prediction.names import ALL, DESIGNED, ENERGY, POWER, SEARCHED, TARGETS, TIME

Json = dict[str, Any]  # data of a predictor or of a file of models, as JSON has it
Prior = Callable[[Numbers], Numbers]  # modes (n, 6) -> what is expected of them before any run (n,)

CLOCKS = Mode._fields[:5]  # cores and clocks, and how much of the GPU is on
LEVEL = 0.9  # of all intervals that are reported
N_SAMPLES, SAMPLE_SEED = 400, 2
HOPEFUL, HOPEFUL_POWER = 0.46, 0.25  # of `Predictor.hopeful`; set with `models.stacked.SCALE`


def bounds(sample: Numbers, level: float) -> tuple[Numbers, Numbers]:
    """Return low and high (n,) of the central part `level` of each column of a sample (d, n)."""
    low, high = np.quantile(sample, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return low, high


class Predictor(ABC):
    """One workload as a method has learned it; subclasses are frozen dataclasses."""

    target: str  # what it predicts, one of `TARGETS`
    trained_on: Numbers  # (m, 6), the distinct modes it learned from
    # degrees of freedom of Student's t, as which an observation's logarithm lies about its mean
    free: float = math.inf

    @abstractmethod
    def predict(self, modes: ArrayLike) -> Numbers:
        """Return the expected value in each mode (n, 6), shape (n,)."""

    def to_json(self) -> Json:
        """Return the fields as JSON data, arrays as lists, from which `from_json` restores them."""
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}  # type: ignore[attr-defined]
        return {name: _as_json(value) for name, value in values.items() if value is not None}

    @classmethod
    def from_json(cls, data: Json) -> Self:
        """Return a predictor from `to_json`; lists of words become tuples, other lists arrays."""
        return cls(**{name: _from_json(value) for name, value in data.items()})

    def interval(self, modes: ArrayLike, level: float = LEVEL) -> tuple[Numbers, Numbers] | None:
        """Return bounds that hold an observation with probability `level`; None: not known."""
        return None

    def sample(self, modes: ArrayLike) -> Numbers | None:
        """Return what observations in each mode may be, shape (d, n), the same at each call.

        As of `log_t`; None where there is no interval.
        """
        if self.interval(modes, LEVEL) is None:
            return None
        mean, scale = self.log_t(modes)
        rng, shape = np.random.default_rng(SAMPLE_SEED), (N_SAMPLES, len(mean))
        is_normal = math.isinf(self.free)
        noise = rng.standard_normal(shape) if is_normal else rng.standard_t(self.free, shape)
        return np.asarray(np.exp(mean + scale * noise))

    def log_normal(self, modes: ArrayLike) -> tuple[Numbers, Numbers]:
        """Return mean and standard deviation of the normal distribution that is nearest to `log_t`.

        It has the same interval of `LEVEL`.
        """
        from scipy.special import ndtri, stdtrit  # slow to import

        share = (1 + LEVEL) / 2
        mean, scale = self.log_t(modes)
        return mean, scale * float(stdtrit(self.free, share) / ndtri(share))

    def log_t(self, modes: ArrayLike) -> tuple[Numbers, Numbers]:
        """Return centre and scale of the logarithm of an observation, (n,) each.

        Those of Student's t with `free` degrees of freedom through the bounds of the interval.
        Raises PredictionError: it states no interval.
        """
        from scipy.special import stdtrit  # slow to import

        interval = self.interval(modes, LEVEL)
        if interval is None:
            raise PredictionError(
                f"the predictor of {self.target} does not know how sure it is",
                do="take a method that states intervals: stacked or physical",
            )
        low, high = np.log(interval[0]), np.log(interval[1])
        return (low + high) / 2, (high - low) / (2 * float(stdtrit(self.free, (1 + LEVEL) / 2)))

    @property
    def hopeful(self) -> float:
        """Mean number of scales by which modes that were chosen of many are above what is expected.

        The best of many that are expected to keep a limit is one about which the predictor is too
        hopeful (the winner's curse), the less so the more modes it knows. Where one part varies,
        few modes lie at the limit, and none is chosen of many.
        """
        n_parts = int((np.ptp(self.trained_on, axis=0) > 0).sum())
        n_modes = len(self.trained_on)
        return HOPEFUL * math.sqrt(max(n_parts - 1, 0)) * n_modes**-HOPEFUL_POWER

    def risk(self, modes: ArrayLike, most: float, least_sd: float = 0.0) -> Numbers:
        """Return the probability that an observation in each mode is above `most`, (n,).

        Of modes that are chosen of many. `least_sd`: the least scale, of logarithms
        """
        from scipy.special import stdtr  # slow to import

        mean, scale = self.log_t(modes)
        z = (mean - math.log(most)) / np.maximum(scale, least_sd)
        return np.asarray(stdtr(self.free, z + self.hopeful))

    def fits(self, modes: ArrayLike) -> Numbers:
        """Return what d fits that agree about equally well with the data expect, shape (n, d)."""
        return self.predict(modes)[:, None]

    def mean(self, modes: ArrayLike) -> Numbers:
        """Return the mean of `fits` in each mode, shape (n,).

        A term that the best fit does without is present in other fits that agree about as well. So
        the best of many modes is less often one that the model merely knows nothing of.
        """
        return np.asarray(self.fits(modes).mean(1))

    def left_out(self) -> tuple[Numbers, Numbers] | None:
        """Return how far each profiled mode is from what the others expect, and the scale of that.

        Of logarithms, (m,) each; None: not known.
        """
        return None

    def residuals(self) -> Numbers:
        """Return decorrelated relative deviations in the m profiled modes; (0,): not known."""
        return np.empty(0)


def _as_json(value: Any) -> Any:
    if isinstance(value, Predictor):
        return value.to_json()
    return value.tolist() if isinstance(value, np.ndarray) else value


def _from_json(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    return tuple(value) if value and isinstance(value[0], str) else np.array(value)


@dataclass(frozen=True, eq=False)
class Reference:
    """All modes of another workload, which a method may transfer from."""

    rows: Observations  # one row per mode
    is_other_board: bool = False  # whether another board ran it


@dataclass(frozen=True)
class Context:
    """Context of a fit: all a method may use besides the observations of the workload."""

    target: str  # what to predict, one of the method's `targets`
    # training epochs of all networks on the same board. This workload is among them, with all modes
    # of the search: models are stored that have seen the modes they are judged in, as the paper's
    # energy model. To learn from other networks, take `others`
    networks: Sequence[Observations] = ()
    # what the simulation expects of the target, while scoring; None: not known
    prior: Prior | None = None
    intervals: bool = True  # whether intervals will be needed
    reference: Reference | None = None  # another workload in all its modes; None: there is none
    # folder to keep in what is learned of a reference; None: keep nothing
    cache: Path | None = None

    def others(self, observations: Observations) -> list[Observations]:
        """Return the training epochs of the other networks on the board."""
        return [rows for rows in self.networks if rows.workload != observations.workload]

    def need_reference(self, observations: Observations) -> Reference:
        """Return the reference workload. Raises PredictionError: the fit was given none."""
        if self.reference is None:
            raise PredictionError(
                "it transfers from another workload that was run in all modes, and none was given",
                where=observations.workload,
                do="name its sweep: --reference SWEEP",
            )
        return self.reference


@dataclass(frozen=True)
class Method:
    """One way to predict; a row of the registry."""

    title: str  # for people
    # what it predicts; where time and power but not energy, energy is their product
    targets: tuple[str, ...]
    # observations of one workload, without its first epoch -> predictor; raises PredictionError
    fit: Callable[[Observations, Context], Predictor]
    load: Callable[[Json], Predictor]  # JSON data of a predictor -> predictor
    # training sets that it is stored for, `ALL` among them if `recommend` may use it
    learns_from: tuple[str, ...] = (SEARCHED, DESIGNED, ALL)
    needs_prior: bool = False  # whether it works only where the workload can be simulated
    # whether it transfers from another workload that was run in all modes
    needs_reference: bool = False
    # whether it has rows in scores.csv, where all methods learn from the same modes
    is_scored: bool = True
    # whether it is a reading of the paper's method, judged by the paper's criteria
    is_paper: bool = False
    # of a `Mode` that it understands; it is not asked where another one varies
    parts: tuple[str, ...] = CLOCKS
    name: str = ""  # as the registry has it

    @property
    def predicts(self) -> tuple[str, ...]:
        """All targets, in the order of `TARGETS`: energy too where time and power are."""
        targets = {*self.targets}
        if {TIME, POWER} <= targets:
            targets.add(ENERGY)
        return tuple(target for target in TARGETS if target in targets)
