"""Read and write the kernels of one mini-batch, as rule count_workload counted them.

Each count is linear in the mini-batch size b: fixed + b * per_sample.
"""

import gzip
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from epochwatt.board.records import files
from epochwatt.board.records.shapes import Document
from epochwatt.columns import Factors
from epochwatt.errors import ConfigError, RecordError

SCHEMA_VERSION = 1
KINDS = (
    "convolution",
    "depthwise",
    "gemm",
    "gemm16",  # of 16 bits, for which GPUs have units of their own
    "elementwise",
    "normalise",
    "pool",
    "reduce",
    "optimiser",
)
PHASES = ("zero_grad", "forward", "loss", "backward", "optimiser")
COUNTS = ("flops", "bytes", "elements")
FLOAT_BYTES = 4
KEPT = Path(__file__).with_name("kept_counts.json.gz")  # of the papers' networks, in training


@dataclass(frozen=True)
class KernelCounts:
    """The kernels of one mini-batch of a network, in launch order."""

    model: str  # its name
    parameters: int  # number of trained weights
    input: tuple[int, ...]  # shape of one sample, float32
    name: np.ndarray  # (n_kernels,) str
    kind: np.ndarray
    phase: np.ndarray
    flops_fixed: np.ndarray  # (n_kernels,) floating-point operations, a multiply-add is two
    flops_per_sample: np.ndarray
    bytes_fixed: np.ndarray  # (n_kernels,) read and written once
    bytes_per_sample: np.ndarray
    elements_fixed: np.ndarray  # (n_kernels,) what the threads are spread over
    elements_per_sample: np.ndarray
    task: str = "train"  # train or infer

    @property
    def sample_bytes(self) -> int:
        """Bytes of one sample as it is copied to the GPU."""
        return FLOAT_BYTES * math.prod(self.input)

    def flops(self, b: float) -> np.ndarray:
        """Return the floating-point operations (n_kernels,) of a mini-batch of `b` samples."""
        return self.flops_fixed + b * self.flops_per_sample

    def bytes(self, b: float) -> np.ndarray:
        """Return the bytes (n_kernels,) that a mini-batch of `b` samples moves."""
        return self.bytes_fixed + b * self.bytes_per_sample

    def elements(self, b: float) -> np.ndarray:
        """Return the elements (n_kernels,) that the threads of each kernel are spread over."""
        return self.elements_fixed + b * self.elements_per_sample


def load_kernel_counts(path: str) -> KernelCounts:
    """Read the counts of one network.

    Raises RecordError: missing, damaged, of another version or not what `count-workload` writes.
    """
    return kernel_counts_of(files.read_json(path), path)


def kernel_counts_of(content: dict[str, Any], where: str) -> KernelCounts:
    """Return the counts that a document holds, as `count_workload` makes it; errors as above."""
    try:
        if content["schema_version"] != SCHEMA_VERSION:
            raise ValueError(f"schema_version is {content['schema_version']}, not {SCHEMA_VERSION}")
        return KernelCounts(
            model=str(content["model"]),
            parameters=int(content["parameters"]),
            input=tuple(int(n) for n in content["input"]),
            task=str(content.get("task", "train")),
            **_columns(content["kernels"]),
        )
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        problem = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise RecordError(
            problem, where=where, do="delete it, then make it again: rule count_workload"
        ) from error


def write_kept_counts(factors: Factors, path: str, task: str, precision: str) -> None:
    """Write the counts that come with the package, as `write_workload` counts them with torch.

    Raises ConfigError: it has none of this network, task and precision.
    """
    kept: Document = json.loads(gzip.decompress(KEPT.read_bytes()))
    model = factors["model"]
    if model not in kept or "network" in factors or (task, precision) != ("train", "fp32"):
        raise ConfigError(
            f"counting {model} ({task}, {precision}) needs torch, which this Python has not",
            allowed=f"training in fp32 of {', '.join(kept)}: their counts come with epochwatt",
            do='pip install "epochwatt[host]"',
        )
    with files.writing("the counts", path):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        files.write_json(path, kept[model])


def _columns(kernels: dict[str, list[Any]]) -> dict[str, np.ndarray]:
    """Return the columns of a file of counts as arrays (n_kernels,); ValueError: one is damaged."""
    columns = {
        "name": np.array(kernels["name"], dtype=str),
        "kind": np.array(kernels["kind"], dtype=str),
        "phase": np.array(kernels["phase"], dtype=str),
    }
    for key in (f"{count}_{part}" for count in COUNTS for part in ("fixed", "per_sample")):
        columns[key] = np.array(kernels[key], dtype=float)
        if not np.all(np.isfinite(columns[key])):
            raise ValueError(f"kernels.{key} holds a value that is not finite")
    sizes = {key: column.shape for key, column in columns.items()}
    if len(set(sizes.values())) != 1 or not columns["kind"].size:
        raise ValueError(f"the columns of kernels are not equally long lists: {sizes}")
    for key, allowed in (("kind", KINDS), ("phase", PHASES)):
        if unknown := sorted(set(columns[key].tolist()) - set(allowed)):
            raise ValueError(f"kernels.{key} is {unknown[0]!r}; allowed: {', '.join(allowed)}")
    return columns


def generic_kernel_counts(
    flops: float, moved_bytes: float, launches: int, parameters: int, sample_bytes: int
) -> KernelCounts:
    """Return kernel counts made from the totals of a network, split evenly over its launches.

    Every kernel counts as a convolution whose elements are read once and written once.

    `flops`: floating-point operations of training on one sample, a multiply-add is two
    `moved_bytes`: read and written in training on one sample
    `launches`: kernels of one mini-batch, optimiser included
    `parameters`: trained weights
    `sample_bytes`: one sample as it is copied to the GPU

    Raises ConfigError: a number that cannot be.
    """
    totals = {
        "flops": flops,
        "moved_bytes": moved_bytes,
        "parameters": parameters,
        "sample_bytes": sample_bytes,
    }
    for name, value in {**totals, "launches": launches}.items():
        if not (math.isfinite(value) and value > 0):
            raise ConfigError(f"{name} of a network is {value!r}", allowed="a number above 0")
    zeros = np.zeros(launches)
    return KernelCounts(
        model="generic",
        parameters=parameters,
        input=(max(1, sample_bytes // FLOAT_BYTES),),
        name=np.full(launches, "generic"),
        kind=np.full(launches, "convolution"),
        phase=np.full(launches, "forward"),
        flops_fixed=zeros,
        flops_per_sample=zeros + flops / launches,
        bytes_fixed=zeros,
        bytes_per_sample=zeros + moved_bytes / launches,
        elements_fixed=zeros,
        elements_per_sample=zeros + moved_bytes / launches / (2 * FLOAT_BYTES),
    )
