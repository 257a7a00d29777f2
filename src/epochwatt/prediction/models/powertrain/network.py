"""A trained network: layers and scales as plain arrays, stored as JSON data or an .npz file."""

import io
from collections.abc import Mapping
from dataclasses import dataclass, fields
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, Self
from zipfile import BadZipFile

import numpy as np
from numpy.typing import ArrayLike, NDArray

from epochwatt.board.records import files
from epochwatt.prediction.data.modes import Numbers, PredictionError, as_rows

Reals = NDArray[np.floating[Any]]  # in training of single precision

N_FEATURES = 4  # cores, CPU, GPU and memory clock: the first parts of a `Mode`


class Layer(NamedTuple):
    """Weights (inputs, outputs) and biases (outputs,)."""

    weights: Reals
    biases: Reals


def activations(layers: tuple[Layer, ...], rows: Reals) -> Reals:
    """Return the output of the last layer, which is linear, for scaled rows (n, 4), shape (n,)."""
    *hidden, last = layers
    for layer in hidden:
        rows = np.maximum(rows @ layer.weights + layer.biases, 0)
    return np.asarray((rows @ last.weights + last.biases)[:, 0])


@dataclass(frozen=True, eq=False)
class Scale:
    """Scales modes on their way into a network, and its output on the way out."""

    is_log: bool  # whether features and target are logarithms
    # mean, sd: (4,), of the features
    mean: Numbers
    sd: Numbers
    # level, unit: the target, or its logarithm, is level + unit x output
    level: float
    unit: float

    def rows(self, modes: ArrayLike) -> Numbers:
        """Return what a network sees of modes (n, 6), shape (n, 4)."""
        return np.asarray((features(modes, self.is_log) - self.mean) / self.sd)

    def outputs(self, values: Numbers) -> Numbers:
        """Return what a network has to answer for values of the target (n,)."""
        plain = np.log(values) if self.is_log else values
        return np.asarray((plain - self.level) / self.unit)

    def values(self, outputs: Numbers) -> Numbers:
        """Return the values of the target that outputs (n,) stand for."""
        plain = self.level + self.unit * outputs
        return np.exp(plain) if self.is_log else plain


def features(modes: ArrayLike, is_log: bool) -> Numbers:
    """Return cores, CPU, GPU and memory clock of modes (n, 6), or their logarithms, (n, 4)."""
    rows = as_rows(modes)[:, :N_FEATURES]
    return np.log(rows) if is_log else rows


@dataclass(frozen=True, eq=False)
class Network:
    """Layers, and the scale of what goes in and comes out."""

    layers: tuple[Layer, ...]
    scale: Scale

    def predict(self, modes: ArrayLike) -> Numbers:
        """Return the target in each mode (n, 6), shape (n,), s or W."""
        return self.scale.values(
            np.asarray(activations(self.layers, self.scale.rows(modes)), float)
        )

    def arrays(self) -> dict[str, Any]:
        """Return name -> array or number, from which `of_arrays` restores it."""
        scale = {field.name: getattr(self.scale, field.name) for field in fields(Scale)}
        layers = {
            f"{part}_{number}": getattr(layer, part)
            for number, layer in enumerate(self.layers)
            for part in Layer._fields
        }
        return scale | layers

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, Any]) -> Self:
        """Return the network of `arrays`; lists count as arrays.

        Raises PredictionError: an array is missing, or layers do not fit each other.
        """
        n_layers = sum(name.startswith("weights_") for name in arrays)
        try:
            layers = tuple(
                Layer(*(np.asarray(arrays[f"{part}_{n}"], float) for part in Layer._fields))
                for n in range(n_layers)
            )
            scale = Scale(
                is_log=bool(arrays["is_log"]),
                mean=np.asarray(arrays["mean"], float),
                sd=np.asarray(arrays["sd"], float),
                level=float(arrays["level"]),
                unit=float(arrays["unit"]),
            )
        except KeyError as error:
            raise PredictionError(f"a stored network without {error}") from error
        sizes = [N_FEATURES, *(len(layer.biases) for layer in layers)]
        shapes = [layer.weights.shape for layer in layers]
        if not layers or shapes != list(pairwise(sizes)) or sizes[-1] != 1:
            raise PredictionError(f"a stored network of layers {shapes}")
        return cls(layers, scale)

    def save(self, path: Path) -> None:
        """Write the arrays to an .npz file, whole or not at all."""
        path.parent.mkdir(parents=True, exist_ok=True)
        content = io.BytesIO()
        np.savez(content, **self.arrays())
        files.write_bytes(str(path), content.getvalue(), durable=False)

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read an .npz file; nothing in it is executed.

        Raises PredictionError: it is damaged, or no network.
        """
        try:
            with open(path, "rb") as handle, np.load(handle, allow_pickle=False) as stored:
                arrays = dict(stored)
        except (OSError, ValueError, EOFError, BadZipFile) as error:
            raise PredictionError("this is no stored network", where=str(path)) from error
        return cls.of_arrays(arrays)
