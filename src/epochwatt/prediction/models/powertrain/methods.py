"""PowerTrain: any mode's time or power from a few, by networks that a reference workload taught.

"PowerTrain: Fast, generalizable time and power prediction models to optimize DNN training on
accelerated edges" (FGCS 2024). A network for time and one for power learn all modes of a reference.
For a new workload the last layer is made anew, and all layers learn from a few of its modes, 50 by
default. They state no interval. `recipe` has the numbers; each method below is one reading.

Other work than a mini-batch is taken as a table has it: its time, in ms, is what a network answers.
"""

import hashlib
from dataclasses import astuple, dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from epochwatt.prediction.data.modes import Mode, Numbers, PredictionError
from epochwatt.prediction.data.observations import Observations
from epochwatt.prediction.models.powertrain import recipe as settings
from epochwatt.prediction.models.powertrain.network import N_FEATURES, Network, Scale, features
from epochwatt.prediction.models.powertrain.recipe import Recipe, Shares
from epochwatt.prediction.models.powertrain.train import (
    Places,
    Rows,
    new_last_layer,
    new_layers,
    train,
)
from epochwatt.prediction.names import POWER, TIME
from epochwatt.prediction.predictor import Context, Json, Method, Predictor

PARTS = Mode._fields[:N_FEATURES]
LEAST_MODES = 4  # three to learn from and one to choose the best epoch by; the paper has ten
LEAST_REFERENCE = 10
ROUNDING = 1e-12  # relative, of a mean over equal values
PER_UNIT = 1e3  # ms in a second, mW in a watt
VERSION = 1  # of all that decides what a reference's network becomes


@dataclass(frozen=True, eq=False)
class PowerTrain(Predictor):
    """One network, of time or of power."""

    target: str
    trained_on: Numbers
    network: Network

    def predict(self, modes: ArrayLike) -> Numbers:
        """Return the expected value in each mode, shape (n,).

        Nothing keeps a network that answers in milliseconds or milliwatts above zero.
        """
        return self.network.predict(modes)

    def to_json(self) -> Json:
        """Return the network's arrays as lists."""
        arrays = {name: np.asarray(a).tolist() for name, a in self.network.arrays().items()}
        return {"target": self.target, "trained_on": self.trained_on.tolist(), "network": arrays}

    @classmethod
    def from_json(cls, data: Json) -> Self:
        """Return a predictor from `to_json`."""
        network = Network.of_arrays(data["network"])
        return cls(str(data["target"]), np.array(data["trained_on"], float), network)


def fit_from_reference(observations: Observations, context: Context, recipe: Recipe) -> PowerTrain:
    """Return a network that was taught by a reference and learned the workload's modes.

    Raises PredictionError: fewer than `LEAST_MODES` modes, or than `LEAST_REFERENCE` of the
    reference; no reference, or one that does not vary what varies here, or of another board where
    the method keeps to one; power that was not measured, or is the same in all modes.
    """
    rows = _usable(observations, context.target, LEAST_MODES)
    reference = _reference(rows, context, recipe)
    taught = reference_network(reference, context.target, recipe, context.cache)
    rng = np.random.default_rng(settings.SEED)
    start = replace(taught, layers=new_last_layer(taught.layers, rng))
    return _fitted(rows, context.target, recipe, rng, start)


def fit_from_scratch(observations: Observations, context: Context, recipe: Recipe) -> PowerTrain:
    """Return the same network as it learns the workload's modes alone. Raises as above."""
    rows = _usable(observations, context.target, LEAST_MODES)
    return _fitted(rows, context.target, recipe, np.random.default_rng(settings.SEED), None)


def reference_network(
    reference: Observations, target: str, recipe: Recipe, cache: Path | None = None
) -> Network:
    """Return the network of a reference workload, trained on all its modes.

    Trained once in each process, and read from `cache` where it lies there. Raises as
    `fit_from_reference`.
    """
    rows = _usable(reference, target, LEAST_REFERENCE)
    # the loss of a transfer, its scaler and its split change nothing here
    of_reference = Recipe(
        is_log=recipe.is_log, reference=recipe.reference, by_row=recipe.by_row, keeps_best=True
    )
    numbers = rows.modes[:, :N_FEATURES].tobytes() + getattr(rows, target).tobytes()
    words = repr((VERSION, target, astuple(of_reference)))
    key = hashlib.sha256(numbers + words.encode()).hexdigest()
    return _trained_once(_Job(key, rows, target, of_reference, cache))


@dataclass(frozen=True)
class _Job:
    """A training of a reference; equal to another of the same key."""

    key: str
    rows: Observations
    target: str
    recipe: Recipe
    cache: Path | None

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Job) and self.key == other.key


@lru_cache(maxsize=32)
def _trained_once(job: _Job) -> Network:
    path = job.cache / f"powertrain-{job.key[:24]}.npz" if job.cache else None
    if path is not None and path.is_file():
        try:
            return Network.load(path)
        except PredictionError:  # damaged: train it again
            pass
    rng = np.random.default_rng(settings.SEED)
    network = _network(job.rows, job.target, job.recipe, job.recipe.reference, rng, None)
    if path is not None:
        network.save(path)
    return network


def _reference(rows: Observations, context: Context, recipe: Recipe) -> Observations:
    if context.reference is None:
        raise PredictionError(
            "it transfers from another workload that was run in all modes, and none was given",
            where=rows.workload,
            do="name its sweep: --reference SWEEP",
        )
    reference = context.reference
    if reference.is_other_board and not recipe.crosses_boards:
        raise PredictionError(
            f"{reference.rows.workload} ran on another board, and this method keeps to one",
            where=rows.workload,
            do="take a method that crosses boards: powertrain_cross_board",
        )
    varied, taught = (np.ptp(some.modes, axis=0) > 0 for some in (rows, reference.rows))
    parts = zip(PARTS, varied, taught, strict=False)
    if missing := [name for name, varies, teaches in parts if varies and not teaches]:
        raise PredictionError(
            f"the reference, {reference.rows.workload}, says nothing of {', '.join(missing)}",
            where=rows.workload,
            allowed="a reference of the same kind of board, run in modes that differ in it",
        )
    return reference.rows


def _usable(observations: Observations, target: str, least: int) -> Observations:
    """Return one row per mode. Raises PredictionError."""
    observations.need_modes(least)
    if target != TIME:
        observations.need_energy()
    is_single = len(observations.distinct()) == len(observations.modes)
    rows = observations if is_single else observations.per_mode()
    values = getattr(rows, target)
    if is_constant(values):
        raise PredictionError(
            f"{target} of {values[0]:g} in all {len(values)} modes",
            where=rows.workload,
            allowed="values that differ: a constant says nothing of modes",
        )
    return rows


def is_constant(values: Numbers) -> bool:
    """Return whether values (n,), above zero, differ by rounding at most."""
    return bool(np.ptp(values) <= ROUNDING * values.max())


def _fitted(
    rows: Observations, target: str, recipe: Recipe, rng: np.random.Generator, start: Network | None
) -> PowerTrain:
    network = _network(rows, target, recipe, recipe.few, rng, start)
    return PowerTrain(target, rows.modes, network)


def _network(
    rows: Observations,
    target: str,
    recipe: Recipe,
    shares: Shares,
    rng: np.random.Generator,
    start: Network | None,
) -> Network:
    values, n_modes = getattr(rows, target), len(rows.modes)
    n_rows = min(settings.ROWS_PER_MODE, max(settings.MOST_ROWS // n_modes, 1))
    learned, validation = _split(n_modes, n_rows, shares, recipe.by_row, rng)
    modes = np.unique(learned)
    kept = start.scale if start is not None and recipe.keeps_scaler else None
    scale = _scale(rows.modes[modes], values[modes], recipe.is_log, kept)
    inputs = scale.rows(rows.modes).astype(np.float32)
    outputs = scale.outputs(values).astype(np.float32)
    layers = train(
        new_layers(rng) if start is None else start.layers,
        Rows(inputs[learned], outputs[learned]),
        Rows(inputs[validation], outputs[validation]),
        rng,
        recipe.loss,
        recipe.keeps_best,
    )
    return Network(layers, scale)


def _split(
    n_modes: int, n_rows: int, shares: Shares, by_row: bool, rng: np.random.Generator
) -> tuple[Places, Places]:
    """Return the place of the mode of each row to learn from, and of each to validate on."""
    rows = np.repeat(np.arange(n_modes), n_rows)
    n = len(rows) if by_row else n_modes
    order = rng.permutation(n)
    n_validation = max(round(shares.validation * n), 1)
    n_learned = min(max(round(shares.train * n), 1), n - n_validation)
    learned, validation = np.split(order, [n_learned, n_learned + n_validation])[:2]
    return (rows[learned], rows[validation]) if by_row else (np.repeat(learned, n_rows), validation)


def _scale(modes: Numbers, values: Numbers, is_log: bool, kept: Scale | None) -> Scale:
    columns = features(modes, is_log)
    if kept is None:
        mean, sd = columns.mean(0), np.where(np.ptp(columns, axis=0) > 0, columns.std(0), 1.0)
    else:
        mean, sd = kept.mean, kept.sd
    if not is_log:
        return Scale(False, mean, sd, level=0.0, unit=1 / PER_UNIT)
    logs = np.log(values)
    return Scale(True, mean, sd, level=float(logs.mean()), unit=float(logs.std()) or 1.0)


def _method(title: str, recipe: Recipe, from_scratch: bool = False) -> Method:
    fit = fit_from_scratch if from_scratch else fit_from_reference
    return Method(
        title,
        (TIME, POWER),
        partial(fit, recipe=recipe),
        PowerTrain.from_json,
        learns_from=(),
        needs_reference=not from_scratch,
        is_scored=False,  # of studies: ten modes are few for it
        parts=PARTS,
    )


METHOD = _method("PowerTrain: networks transferred", Recipe())
PAPER_SPLIT = _method(
    "PowerTrain, modes split 90:10 as the paper says",
    Recipe(reference=settings.PAPER, few=settings.PAPER),
)
BY_ROW = _method("PowerTrain, rows split as in the code: an optimistic epoch", Recipe(by_row=True))
KEPT_SCALER = _method("PowerTrain, the reference's scaler kept", Recipe(keeps_scaler=True))
CROSS_BOARD = _method(
    "PowerTrain across boards: relative loss", Recipe(loss=settings.MAPE, crosses_boards=True)
)
LOG = _method("PowerTrain, logarithms of clocks and target", Recipe(is_log=True))
SCRATCH = _method(
    "PowerTrain's network from scratch, its last epoch as in the code",
    Recipe(keeps_best=False),
    from_scratch=True,
)
SCRATCH_BEST = _method(
    "PowerTrain's network from scratch, its best epoch as in the paper", Recipe(), from_scratch=True
)
