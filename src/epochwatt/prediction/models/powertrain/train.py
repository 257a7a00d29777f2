"""Train the layers: Adam on mini-batches of rows, dropout, the best epoch kept.

Written out in numpy: a step of these small layers takes a third of a millisecond, torch's a whole
one, scoring takes a million steps, and the workflow's environment has no torch. A test compares
gradients and Adam with torch's. Starting values and the constants of Adam are those of Keras, whose
names the authors use for the layers.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from epochwatt.prediction.models.powertrain.network import (
    N_FEATURES,
    Layer,
    Reals,
    activations,
)
from epochwatt.prediction.models.powertrain.recipe import (
    BATCH,
    DROPOUT,
    EPOCHS,
    HIDDEN,
    LEARNING_RATE,
    MAPE,
)

Places = NDArray[np.int64]

BETAS, EPSILON = (0.9, 0.999), 1e-7


class Rows(NamedTuple):
    """Inputs of a network (n, 4), and the outputs it should give (n,)."""

    inputs: Reals
    outputs: Reals


def new_layers(rng: np.random.Generator) -> tuple[Layer, ...]:
    """Return layers as a training starts: uniform weights (Glorot and Bengio, 2010), no biases."""
    sizes = (N_FEATURES, *HIDDEN, 1)
    return tuple(_new_layer(rng, *pair) for pair in pairwise(sizes))


def new_last_layer(layers: tuple[Layer, ...], rng: np.random.Generator) -> tuple[Layer, ...]:
    """Return the layers with a last one as a training starts."""
    return (*layers[:-1], _new_layer(rng, *layers[-1].weights.shape))


def _new_layer(rng: np.random.Generator, n_in: int, n_out: int) -> Layer:
    far = np.sqrt(6 / (n_in + n_out))
    return Layer(rng.uniform(-far, far, (n_in, n_out)), np.zeros(n_out))


def train(
    layers: tuple[Layer, ...],
    learned: Rows,
    validation: Rows,
    rng: np.random.Generator,
    loss: str,
    keeps_best: bool = True,
) -> tuple[Layer, ...]:
    """Return the layers after `EPOCHS` epochs, or after the best of them."""
    with threadpool_limits(1, "blas"):  # several threads would wait for each other at such sizes
        return _train(layers, learned, validation, rng, loss, keeps_best)


def _train(
    layers: tuple[Layer, ...],
    learned: Rows,
    validation: Rows,
    rng: np.random.Generator,
    loss: str,
    keeps_best: bool,
) -> tuple[Layer, ...]:
    parameters, slope = Parameters.copy_of(layers), Parameters.copy_of(layers)
    adam = Adam(len(parameters.flat))
    best, lowest = parameters.flat, np.inf
    for _ in range(EPOCHS):
        order = rng.permutation(len(learned.outputs))
        for start in range(0, len(order), BATCH):
            some = order[start : start + BATCH]
            batch = Rows(learned.inputs[some], learned.outputs[some])
            gradient(parameters, batch, dropout(len(some), rng), loss, slope)
            adam.step(parameters.flat, slope.flat)
        reached = _loss(activations(parameters.layers, validation.inputs), validation, loss)
        if keeps_best and reached < lowest:
            best, lowest = parameters.flat.copy(), reached
    return _as_layers((best if keeps_best else parameters.flat).astype(float), parameters.layers)


@dataclass(frozen=True, eq=False)
class Parameters:
    """All numbers of the layers in one array, and the layers as views of it."""

    flat: Reals
    layers: tuple[Layer, ...]

    @classmethod
    def copy_of(cls, layers: tuple[Layer, ...]) -> "Parameters":
        """Return a copy of the layers, in single precision."""
        flat = np.concatenate([part.ravel() for layer in layers for part in layer])
        flat = flat.astype(np.float32)
        return cls(flat, _as_layers(flat, layers))


def _as_layers(flat: Reals, shapes: tuple[Layer, ...]) -> tuple[Layer, ...]:
    """Return views of an array, shaped as other layers are."""
    layers, start = [], 0
    for layer in shapes:
        parts = []
        for part in layer:
            parts.append(flat[start : start + part.size].reshape(part.shape))
            start += part.size
        layers.append(Layer(*parts))
    return tuple(layers)


def dropout(n_rows: int, rng: np.random.Generator) -> list[Reals | None]:
    """Return for each hidden layer what its outputs are multiplied by; None: by one."""
    masks: list[Reals | None] = []
    for n_units, share in zip(HIDDEN, DROPOUT, strict=True):
        if not share:
            masks.append(None)
            continue
        is_kept = rng.random((n_rows, n_units), np.float32) >= share
        masks.append(is_kept * np.float32(1 / (1 - share)))
    return masks


def gradient(
    parameters: Parameters, batch: Rows, masks: list[Reals | None], loss: str, slope: Parameters
) -> None:
    """Write the slope of the loss in each parameter, for a mini-batch and its dropout."""
    *hidden, last = parameters.layers
    inputs = [batch.inputs]
    for layer, mask in zip(hidden, masks, strict=True):
        outputs = inputs[-1] @ layer.weights
        outputs += layer.biases
        np.maximum(outputs, 0, out=outputs)
        if mask is not None:
            outputs *= mask
        inputs.append(outputs)
    back = _slope((inputs[-1] @ last.weights + last.biases)[:, 0], batch, loss)[:, None]
    for place in reversed(range(len(parameters.layers))):
        np.matmul(inputs[place].T, back, out=slope.layers[place].weights)
        np.add.reduce(back, axis=0, out=slope.layers[place].biases)
        if place:
            back = back @ parameters.layers[place].weights.T
            back *= inputs[place] > 0
            if (mask := masks[place - 1]) is not None:
                back *= mask


def _loss(answers: Reals, rows: Rows, loss: str) -> float:
    off = answers - rows.outputs
    return float(np.mean(np.abs(off / rows.outputs) if loss == MAPE else off**2))


def _slope(answers: Reals, rows: Rows, loss: str) -> Reals:
    off = answers - rows.outputs
    whole = np.sign(off) / np.abs(rows.outputs) if loss == MAPE else 2 * off
    return np.asarray(whole / len(off), np.float32)


class Adam:
    """Adam (Kingma and Ba, 2015)."""

    def __init__(self, n: int) -> None:
        self.mean, self.square, self.some = np.zeros((3, n), np.float32)
        self.n_steps = 0

    def step(self, parameters: Reals, slope: Reals) -> None:
        """Change the parameters in place."""
        self.n_steps += 1
        first, second = BETAS
        some = self.some  # one array for all that is in between: this is most of a step
        self.mean += _scaled(np.subtract(slope, self.mean, out=some), 1 - first)
        np.multiply(slope, slope, out=some)
        some -= self.square
        self.square += _scaled(some, 1 - second)
        np.sqrt(self.square, out=some)
        some += np.float32(EPSILON)
        rate = LEARNING_RATE * np.sqrt(1 - second**self.n_steps) / (1 - first**self.n_steps)
        parameters -= _scaled(np.divide(self.mean, some, out=some), rate)


def _scaled(values: Reals, factor: float) -> Reals:
    """Multiply in place, and return it."""
    values *= np.float32(factor)
    return values
