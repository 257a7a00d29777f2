"""PowerTrain: any mode's time or power from a few, by networks that a reference workload taught.

"PowerTrain: Fast, generalizable time and power prediction models to optimize DNN training on
accelerated edges" (FGCS 2024). A network for time and one for power learn all modes of a reference.
For a new workload the last layer is made anew, and all layers learn from a few of its modes, 50 by
default. They state no interval. Numbers below are as its authors print them and as their code has
them. Both are the same but for two things, and each reading is a method of its own: how many modes
are kept to choose the best epoch by, and whether a network that starts from scratch keeps its best
epoch or its last.

Training is written out in numpy: a step of these small layers takes a third of a millisecond,
torch's a whole one, scoring takes a million steps, and the workflow's environment has no torch. A
test compares gradients and Adam with torch's. Starting values and the constants of Adam are those
of Keras, whose names the authors use for the layers.

Other work than a mini-batch is taken as a table has it: its time, in ms, is what a network answers.
"""

import hashlib
import io
from contextlib import suppress
from dataclasses import astuple, dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, Self
from zipfile import BadZipFile

import numpy as np
from numpy.typing import ArrayLike, NDArray
from threadpoolctl import threadpool_limits

from epochwatt.board.records import files
from epochwatt.columns import CLOCKS
from epochwatt.prediction.data.modes import Numbers, PredictionError, as_rows
from epochwatt.prediction.data.observations import Observations
from epochwatt.prediction.names import POWER, TIME
from epochwatt.prediction.predictor import Context, Method, Predictor

Reals = NDArray[np.floating[Any]]  # in training of single precision
Places = NDArray[np.int64]

HIDDEN = (256, 128, 64)  # units of the layers before the last, which has one
DROPOUT = (0.4, 0.3, 0.0)  # share of each hidden layer's outputs that a step leaves out
LEARNING_RATE, EPOCHS, BATCH = 1e-3, 100, 32
BETAS, EPSILON = (0.9, 0.999), 1e-7  # of Adam
ROWS_PER_MODE = 40  # mini-batches that are measured in each mode
# Of a reference. A mode table has one value per mode, so that the rows of a mode are copies: more
# of them are further steps of the same, and 4,368 modes of 40 rows would take half an hour.
MOST_ROWS = 30_000
SEED = 31  # of the authors' splits; here of all that is drawn
MSE, MAPE = "mse", "mape"  # losses: squared error, relative error
LEAST_MODES = 4  # three to learn from and one to choose the best epoch by; the paper has ten
LEAST_REFERENCE = 10
ROUNDING = 1e-12  # relative, of a mean over equal values
PER_UNIT = 1e3  # ms in a second, mW in a watt
VERSION = 1  # of all that decides what a reference's network becomes


class Shares(NamedTuple):
    """Shares of the modes to learn from, and to choose the best epoch by. The rest is unused."""

    train: float
    validation: float


CODE_REFERENCE, CODE_FEW = Shares(0.8, 0.1), Shares(0.8, 0.2)  # of the authors' code
PAPER_SHARES = Shares(0.9, 0.1)  # of the paper, for all networks


@dataclass(frozen=True)
class Recipe:
    """One way to train the networks."""

    loss: str = MSE  # `MSE` or `MAPE`, of a few modes; a reference is trained by `MSE`
    # whether networks see logarithms of cores and clocks and learn the target's, both standardised;
    # else cores and clocks standardised, and milliseconds or milliwatts as they are
    is_log: bool = False
    # whether a transfer standardises as its reference did; else by its own few modes
    keeps_scaler: bool = False
    keeps_best: bool = True  # whether the epoch of the lowest validation loss counts; else the last
    # reference, few: how the modes of a reference, and a few modes, are split
    reference: Shares = CODE_REFERENCE
    few: Shares = CODE_FEW
    crosses_boards: bool = False  # whether the reference may be of another board
    # whether rows are split and not modes, as in the authors' code. Rows of a mode are then on both
    # sides, and the epoch is chosen by what was learned: optimistic
    by_row: bool = False


# -- training: Adam on mini-batches of rows, dropout, the best epoch kept -------------------------


class Layer(NamedTuple):
    """Weights (inputs, outputs) and biases (outputs,)."""

    weights: Reals
    biases: Reals


Layers = tuple[Layer, ...]
SIZES = list(pairwise((len(CLOCKS), *HIDDEN, 1)))  # inputs and outputs of each layer
N_NUMBERS = sum((n_in + 1) * n_out for n_in, n_out in SIZES)


def layers_of(numbers: Reals) -> Layers:
    """Split a flat array (`N_NUMBERS`,) into layers, weights row by row, then biases, as views."""
    layers, start = [], 0
    for n_in, n_out in SIZES:
        middle, end = start + n_in * n_out, start + (n_in + 1) * n_out
        layers.append(Layer(numbers[start:middle].reshape(n_in, n_out), numbers[middle:end]))
        start = end
    return tuple(layers)


def new_numbers(rng: np.random.Generator) -> Numbers:
    """Draw the starting weights and biases of all layers, in one array."""
    return np.concatenate([_new_layer(rng, *size) for size in SIZES])


def with_new_last_layer(numbers: Numbers, rng: np.random.Generator) -> Numbers:
    """Return a copy of the numbers in which the last layer is drawn anew."""
    last = _new_layer(rng, *SIZES[-1])
    return np.concatenate([numbers[: -len(last)], last])


def _new_layer(rng: np.random.Generator, n_in: int, n_out: int) -> Numbers:
    """Draw uniform weights (Glorot and Bengio, 2010); biases are zero. All in one array."""
    limit = np.sqrt(6 / (n_in + n_out))
    return np.concatenate([rng.uniform(-limit, limit, n_in * n_out), np.zeros(n_out)])


def activations(layers: Layers, rows: Reals) -> Reals:
    """Return the output of the last layer, which is linear, for scaled rows (n, 4), shape (n,)."""
    *hidden, last = layers
    for layer in hidden:
        rows = np.maximum(rows @ layer.weights + layer.biases, 0)
    return np.asarray((rows @ last.weights + last.biases)[:, 0])


class Rows(NamedTuple):
    """Inputs of a network (n, 4), and the outputs it should give (n,)."""

    inputs: Reals
    outputs: Reals


@threadpool_limits.wrap(limits=1, user_api="blas")  # several threads would wait for each other
def train(
    start: Numbers,
    learned: Rows,
    validation: Rows,
    rng: np.random.Generator,
    loss: str,
    keeps_best: bool = True,
) -> Numbers:
    """Train from the numbers `start` on `learned`; return those after `EPOCHS` epochs.

    `keeps_best`: those after the epoch of the lowest validation loss. `start` stays as it is.
    """
    numbers: Reals = start.astype(np.float32)
    gradients, adam, layers = np.empty_like(numbers), Adam(len(numbers)), layers_of(numbers)
    best, lowest_loss = numbers, np.inf
    for _ in range(EPOCHS):
        order = rng.permutation(len(learned.outputs))
        for begin in range(0, len(order), BATCH):
            rows = order[begin : begin + BATCH]
            batch = Rows(learned.inputs[rows], learned.outputs[rows])
            gradient(layers, batch, dropout(len(rows), rng), loss, layers_of(gradients))
            adam.step(numbers, gradients)
        validation_loss = _loss(activations(layers, validation.inputs), validation, loss)
        if keeps_best and validation_loss < lowest_loss:
            best, lowest_loss = numbers.copy(), validation_loss
    return (best if keeps_best else numbers).astype(float)


def dropout(n_rows: int, rng: np.random.Generator) -> list[Reals | None]:
    """Draw for each hidden layer the factors of its outputs, (rows, units); None: no dropout.

    Outputs that are left out have zero, the others 1 / (1 - share).
    """
    masks: list[Reals | None] = [None] * len(HIDDEN)
    for layer, share in enumerate(DROPOUT):
        if share:
            is_kept = rng.random((n_rows, HIDDEN[layer]), np.float32) >= share
            masks[layer] = is_kept * np.float32(1 / (1 - share))
    return masks


def gradient(
    layers: Layers, batch: Rows, masks: list[Reals | None], loss: str, out: Layers
) -> None:
    """Backpropagate a mini-batch with the factors of `dropout`; write the gradient to `out`."""
    *hidden, last = layers
    inputs = [batch.inputs]
    for layer, mask in zip(hidden, masks, strict=True):
        outputs = inputs[-1] @ layer.weights
        outputs += layer.biases
        np.maximum(outputs, 0, out=outputs)
        if mask is not None:
            outputs *= mask
        inputs.append(outputs)
    errors = (inputs[-1] @ last.weights + last.biases)[:, 0] - batch.outputs
    by_output = np.sign(errors) / np.abs(batch.outputs) if loss == MAPE else 2 * errors
    delta: Reals = np.asarray(by_output / len(errors), np.float32)[:, None]  # of a layer's outputs
    for number in reversed(range(len(layers))):
        np.matmul(inputs[number].T, delta, out=out[number].weights)
        np.add.reduce(delta, axis=0, out=out[number].biases)
        if number > 0:
            delta = delta @ layers[number].weights.T
            delta *= inputs[number] > 0
            if (mask := masks[number - 1]) is not None:
                delta *= mask


def _loss(answers: Reals, rows: Rows, loss: str) -> float:
    errors = answers - rows.outputs
    return float(np.mean(np.abs(errors / rows.outputs) if loss == MAPE else errors**2))


class Adam:
    """State of Adam (Kingma and Ba, 2015) for n parameters p with gradient g, after t steps.

    m += (1 - b1) (g - m),  v += (1 - b2) (g^2 - v),
    p -= rate sqrt(1 - b2^t) / (1 - b1^t) m / (sqrt(v) + epsilon)
    """

    def __init__(self, n: int) -> None:
        # m, v, and an array for intermediate results: new ones would take most of a step
        self.mean, self.square, self.buffer = np.zeros((3, n), np.float32)
        self.n_steps = 0

    def step(self, parameters: Reals, gradients: Reals) -> None:
        """Move the parameters in place along their gradients (n,)."""
        self.n_steps += 1
        (beta_1, beta_2), buffer = BETAS, self.buffer
        np.subtract(gradients, self.mean, out=buffer)
        buffer *= np.float32(1 - beta_1)
        self.mean += buffer
        np.multiply(gradients, gradients, out=buffer)
        buffer -= self.square
        buffer *= np.float32(1 - beta_2)
        self.square += buffer
        np.sqrt(self.square, out=buffer)
        buffer += np.float32(EPSILON)
        np.divide(self.mean, buffer, out=buffer)
        rate = LEARNING_RATE * np.sqrt(1 - beta_2**self.n_steps) / (1 - beta_1**self.n_steps)
        buffer *= np.float32(rate)
        parameters -= buffer


# -- methods -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class PowerTrain(Predictor):
    """One network, of time or of power.

    It sees (features - centre) / spread, and the target is level + unit x what it answers.
    Nothing keeps a network that answers in milliseconds or milliwatts above zero.
    """

    target: str
    trained_on: Numbers
    numbers: Numbers  # of its layers, in one array
    is_log: bool  # whether features and target are logarithms
    # centre, spread: (4,), of the features
    centre: Numbers
    spread: Numbers
    # level, unit: of the target, or of its logarithm
    level: float
    unit: float

    def predict(self, modes: ArrayLike) -> Numbers:
        """Return the expected value in each mode, shape (n,)."""
        rows = (features(modes, self.is_log) - self.centre) / self.spread
        plain = self.level + self.unit * activations(layers_of(self.numbers), rows)
        return np.asarray(np.exp(plain) if self.is_log else plain, float)

    def save(self, path: Path) -> None:
        """Write it to an .npz file, whole or not at all."""
        path.parent.mkdir(parents=True, exist_ok=True)
        content = io.BytesIO()
        np.savez(content, **vars(self))
        files.write_bytes(str(path), content.getvalue(), durable=False)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read an .npz file; nothing in it is executed.

        Raises PredictionError: it is damaged, or no such network.
        """
        try:
            with open(path, "rb") as handle, np.load(handle, allow_pickle=False) as stored:
                data = {name: array.tolist() for name, array in stored.items()}
            network = cls.from_json(data)
        except (OSError, ValueError, EOFError, TypeError, BadZipFile) as error:
            raise PredictionError("this is no stored network", where=str(path)) from error
        if len(network.numbers) != N_NUMBERS:
            raise PredictionError("a stored network of other layers", where=str(path))
        return network


def features(modes: ArrayLike, is_log: bool) -> Numbers:
    """Return cores, CPU, GPU and memory clock of modes (n, 6), or their logarithms, (n, 4)."""
    rows = as_rows(modes)[:, : len(CLOCKS)]
    return np.log(rows) if is_log else rows


def fit_powertrain(
    observations: Observations, context: Context, recipe: Recipe, from_scratch: bool = False
) -> PowerTrain:
    """Train a network on a workload, starting from that of a reference unless from scratch.

    Raises PredictionError: fewer than `LEAST_MODES` modes, or than `LEAST_REFERENCE` of the
    reference; no reference, or one that does not vary what varies here, or of another board where
    the method keeps to one; power that was not measured, or is the same in all modes.
    """
    rows = _usable(observations, context.target, LEAST_MODES)
    if from_scratch:
        rng, start = np.random.default_rng(SEED), None
    else:
        reference = _reference(rows, context, recipe)
        taught = reference_network(reference, context.target, recipe, context.cache)
        rng = np.random.default_rng(SEED)
        start = replace(taught, numbers=with_new_last_layer(taught.numbers, rng))
    return _trained(rows, context.target, recipe, recipe.few, rng, start)


_NETWORKS: dict[str, PowerTrain] = {}  # of references, by their key: trained once in each process


def reference_network(
    reference: Observations, target: str, recipe: Recipe, cache: Path | None = None
) -> PowerTrain:
    """Train the network of a reference workload on all its modes.

    That is done once in each process; the folder `cache` is read first, and written. Raises as
    `fit_powertrain`.
    """
    rows = _usable(reference, target, LEAST_REFERENCE)
    # the loss of a transfer, its scaler and its split change nothing here
    own = Recipe(is_log=recipe.is_log, reference=recipe.reference, by_row=recipe.by_row)
    numbers = rows.modes[:, : len(CLOCKS)].tobytes() + rows.values(target).tobytes()
    key = hashlib.sha256(numbers + repr((VERSION, target, astuple(own))).encode()).hexdigest()
    if key in _NETWORKS:
        return _NETWORKS[key]
    path = cache / f"powertrain-{key[:24]}.npz" if cache else None
    network = None
    if path is not None and path.is_file():
        with suppress(PredictionError):  # damaged: train it again
            network = PowerTrain.load(path)
    if network is None:
        rng = np.random.default_rng(SEED)
        network = _trained(rows, target, own, own.reference, rng, None)
        if path is not None:
            network.save(path)
    return _NETWORKS.setdefault(key, network)


def _reference(rows: Observations, context: Context, recipe: Recipe) -> Observations:
    """Return the rows of a fit's reference. Raises PredictionError: it cannot teach this board."""
    reference = context.need_reference(rows)
    if reference.is_other_board and not recipe.crosses_boards:
        raise PredictionError(
            f"{reference.rows.workload} ran on another board, and this method keeps to one",
            where=rows.workload,
            do="take a method that crosses boards: powertrain_cross_board",
        )
    is_untaught = (np.ptp(rows.modes, axis=0) > 0) & (np.ptp(reference.rows.modes, axis=0) == 0)
    if missing := [CLOCKS[part] for part in np.flatnonzero(is_untaught[: len(CLOCKS)])]:
        raise PredictionError(
            f"the reference, {reference.rows.workload}, says nothing of {', '.join(missing)}",
            where=rows.workload,
            allowed="a reference of the same kind of board, run in modes that differ in it",
        )
    return reference.rows


def _usable(observations: Observations, target: str, least: int) -> Observations:
    """Return one row per mode.

    Raises PredictionError: fewer than `least` modes, no power, or a target that is constant.
    """
    means = observations.means_of(target, least)
    # where each mode has one row already, its mean would differ by rounding
    rows = observations if len(means.modes) == len(observations.modes) else means
    values = rows.values(target)
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


def _trained(
    rows: Observations,
    target: str,
    recipe: Recipe,
    shares: Shares,
    rng: np.random.Generator,
    start: PowerTrain | None,
) -> PowerTrain:
    """Train a network on rows, one per mode: from the network `start`, or from scratch.

    Features, and logarithms of the target, are standardised by the modes that it learns from.
    """
    values, n_modes = rows.values(target), len(rows.modes)
    n_rows = min(ROWS_PER_MODE, max(MOST_ROWS // n_modes, 1))
    learned, validation = _split(n_modes, n_rows, shares, recipe.by_row, rng)
    columns, modes = features(rows.modes, recipe.is_log), np.unique(learned)
    if start is not None and recipe.keeps_scaler:
        centre, spread = start.centre, start.spread
    else:
        own = columns[modes]
        centre, spread = own.mean(0), np.where(np.ptp(own, axis=0) > 0, own.std(0), 1.0)
    level, unit = 0.0, 1 / PER_UNIT
    if recipe.is_log:
        values = np.log(values)
        level, unit = float(values[modes].mean()), float(values[modes].std()) or 1.0
    inputs = ((columns - centre) / spread).astype(np.float32)
    outputs = ((values - level) / unit).astype(np.float32)
    numbers = train(
        new_numbers(rng) if start is None else start.numbers,
        Rows(inputs[learned], outputs[learned]),
        Rows(inputs[validation], outputs[validation]),
        rng,
        recipe.loss,
        recipe.keeps_best,
    )
    return PowerTrain(target, rows.modes, numbers, recipe.is_log, centre, spread, level, unit)


def _split(
    n_modes: int, n_rows: int, shares: Shares, by_row: bool, rng: np.random.Generator
) -> tuple[Places, Places]:
    """Draw rows to learn from and to validate on: arrays with the number of each row's mode.

    Each mode has `n_rows` equal rows. By row they are drawn one by one; else whole modes are, of
    which one row validates.
    """
    n = n_modes * n_rows if by_row else n_modes
    order = rng.permutation(n)
    n_validation = max(round(shares.validation * n), 1)
    n_learned = min(max(round(shares.train * n), 1), n - n_validation)
    learned, validation = order[:n_learned], order[n_learned : n_learned + n_validation]
    if by_row:
        return learned // n_rows, validation // n_rows
    return np.repeat(learned, n_rows), validation


def _method(title: str, recipe: Recipe, from_scratch: bool = False) -> Method:
    return Method(
        title,
        (TIME, POWER),
        partial(fit_powertrain, recipe=recipe, from_scratch=from_scratch),
        PowerTrain.from_json,
        learns_from=(),
        needs_reference=not from_scratch,
        is_scored=False,  # of studies: ten modes are few for it
        parts=CLOCKS,
    )


METHOD = _method("PowerTrain: networks transferred", Recipe())
PAPER_SPLIT = _method(
    "PowerTrain, modes split 90:10 as the paper says",
    Recipe(reference=PAPER_SHARES, few=PAPER_SHARES),
)
BY_ROW = _method("PowerTrain, rows split as in the code: an optimistic epoch", Recipe(by_row=True))
KEPT_SCALER = _method("PowerTrain, the reference's scaler kept", Recipe(keeps_scaler=True))
CROSS_BOARD = _method(
    "PowerTrain across boards: relative loss", Recipe(loss=MAPE, crosses_boards=True)
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
