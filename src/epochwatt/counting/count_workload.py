"""Count the kernels of one mini-batch of a workload, as the simulator and the rooflines read them.

The counts of each kernel (see `epochwatt.counting.recorder`) are linear in the mini-batch size: two
sizes give them, a third checks them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn
from torch.utils._pytree import tree_leaves, tree_map

from epochwatt.board.records import files
from epochwatt.board.records.shapes import Document
from epochwatt.board.training.transforms import Sample
from epochwatt.board.training.workloads import Workload, workload_of
from epochwatt.columns import Factors
from epochwatt.counting.kernel_counts import COUNTS, FLOAT_BYTES, SCHEMA_VERSION
from epochwatt.counting.operators import Kernel
from epochwatt.counting.recorder import META, Loss, mean_of, record
from epochwatt.errors import ConfigError, TrainingError

if TYPE_CHECKING:  # where pydantic may be missing, somebody's own network is counted
    from epochwatt.study.config import WorkloadRow

SIZES = (8, 16, 40)  # mini-batch sizes: two give the counts, the third checks them


def launches(
    workload: Workload, size: int, task: str = "train", precision: str = "fp32"
) -> list[tuple[str, Kernel]]:
    """Return (phase, kernel) of one mini-batch of `size` samples, in launch order (`record`)."""
    network, inputs, targets = made_on_meta(workload, size)

    def loss(network: nn.Module, minibatch: Any) -> torch.Tensor:
        return workload.loss(network, *minibatch)

    return record(
        network,
        inputs if task == "infer" else (inputs, targets),
        task=task,
        precision=precision,
        loss=loss,
        optimiser=workload.optimiser,
    )


def made_on_meta(workload: Workload, size: int) -> tuple[nn.Module, torch.Tensor, torch.Tensor]:
    """Return network, inputs and targets of a mini-batch on the meta device: shapes, no content."""
    with META:
        network = workload.build().to(META)
    sample = workload.transform(workload.made_up())
    if not isinstance(sample, Sample):  # inputs alone: the target is a class
        sample = Sample(sample, torch.tensor(0))
    inputs, targets = (
        torch.empty(size, *tensor.shape, dtype=tensor.dtype, device=META) for tensor in sample
    )
    return network, inputs, targets


def network_factors(model: str, rows: Mapping[str, WorkloadRow]) -> Factors:
    """Return the factors `model` and, unless the network is of this package, `network`: its row.

    Raises ConfigError: config/workloads.yaml has no row `model`.
    """
    if model not in rows:
        raise ConfigError(
            f"config/workloads.yaml has no row {model!r}\n  allowed: {', '.join(rows)}"
        )
    keys = {*Workload._fields, "like"}
    network = rows[model].model_dump(include=keys, exclude_defaults=True)
    return {"model": model, "network": network} if network else {"model": model}


def count_workload(factors: Factors, task: str = "train", precision: str = "fp32") -> Document:
    """Return the counts of one mini-batch as results/twin/workloads/{model}.json has them.

    Raises ConfigError: a model that is not there; TrainingError: the kernels depend on the
    mini-batch size other than linearly.

    `factors`: with `model` and, of a network that is not of this package, `network`; `task`,
    `precision`: of the run; see `record`
    """
    model, workload = factors["model"], workload_of(dict(factors))
    runs = [launches(workload, size, task, precision) for size in SIZES]
    network, sample, _ = made_on_meta(workload, 1)
    outputs = network.eval()(sample)
    # how many classes a network tells apart, or how many numbers it gives for a place
    if isinstance(outputs, tuple):  # a detector's: offsets, scores
        classes = outputs[-1].shape[-1]
    else:
        classes = outputs.shape[1] if outputs.dim() == 2 else outputs.shape[-1]
    return {
        "schema_version": SCHEMA_VERSION,
        "model": model,
        "task": task,
        "torch": torch.__version__,
        "classes": int(classes),
        "input": list(sample.shape[1:]),
        "parameters": sum(parameter.numel() for parameter in network.parameters()),
        "kernels": _linear(model, runs),
    }


def count_network(
    network: nn.Module,
    minibatch: Any,
    name: str,
    loss: Loss | None = None,
    optimiser: str = "sgd",
    precision: str = "fp32",
) -> dict[str, Any]:
    """Return the counts of a user's own training, as `count_workload` does, with `batch_size`.

    Raises ConfigError: a mini-batch without a tensor, an unknown optimiser or precision;
    TrainingError as `count_workload`.

    `minibatch`: a tensor, inputs first in a tuple, or names and tensors; samples lie along the
    first dimension of its tensors
    `loss`: (network, minibatch) -> number to train on; None: the network's own `loss`, or the mean
    of all that comes out
    """
    while isinstance(inner := getattr(network, "_orig_mod", None), nn.Module):
        network = inner  # of torch.compile
    if isinstance(network, (nn.DataParallel, nn.parallel.DistributedDataParallel)):
        network = network.module
    minibatch = dict(minibatch) if isinstance(minibatch, Mapping) else minibatch
    tensors = [x for x in tree_leaves(minibatch) if isinstance(x, torch.Tensor) and x.dim()]
    if not tensors:
        raise ConfigError(
            "a mini-batch without a tensor cannot be counted", found=type(minibatch).__name__
        )
    batch_size = len(tensors[0])

    def resized(size: int) -> Any:
        def resize(leaf: Any) -> Any:
            is_tensor = any(leaf is tensor for tensor in tensors)
            if not is_tensor or len(leaf) != batch_size:
                return leaf
            return torch.empty(size, *leaf.shape[1:], dtype=leaf.dtype, device=META)

        return tree_map(resize, minibatch)

    runs = [
        record(
            network,
            resized(size),
            precision=precision,
            loss=loss or _own_loss,
            optimiser=optimiser,
        )
        for size in SIZES
    ]
    per_sample = [tensor for tensor in tensors if len(tensor) == batch_size]
    sample_bytes = sum(tensor.element_size() * tensor[0].numel() for tensor in per_sample)
    return {
        "schema_version": SCHEMA_VERSION,
        "model": name,
        "task": "train",
        "torch": torch.__version__,
        "precision": precision,
        "batch_size": batch_size,
        "input": [math.ceil(sample_bytes / FLOAT_BYTES)],  # a sample with its label, in floats
        "parameters": sum(parameter.numel() for parameter in network.parameters()),
        "kernels": _linear(name, runs),
    }


def _own_loss(network: nn.Module, minibatch: Any) -> torch.Tensor:
    """Run a network and return the `loss` in its outputs, or the mean of all (`mean_of`)."""
    if isinstance(minibatch, dict):
        outputs = network(**minibatch)
    else:
        outputs = network(minibatch[0] if isinstance(minibatch, (tuple, list)) else minibatch)
    own = outputs.get("loss") if isinstance(outputs, Mapping) else getattr(outputs, "loss", None)
    return own if isinstance(own, torch.Tensor) else mean_of(outputs)


def _linear(model: str, runs: list[list[tuple[str, Kernel]]]) -> dict[str, list[Any]]:
    """Return the kernels as columns, each count as a fixed part and one per sample of a mini-batch.

    `runs`: (phase, kernel) at each of `SIZES`. Raises TrainingError as `count_workload`.
    """
    identities = [[(phase, kernel.name, kernel.kind) for phase, kernel in run] for run in runs]
    if any(kernels != identities[0] for kernels in identities[1:]):
        raise TrainingError(
            f"{model} launches other kernels at other mini-batch sizes ({SIZES}): its forward pass "
            "must not depend on the mini-batch size"
        )
    columns: dict[str, list[Any]] = {
        "phase": [phase for phase, _, _ in identities[0]],
        "name": [name for _, name, _ in identities[0]],
        "kind": [kind for _, _, kind in identities[0]],
    }
    sizes = np.array(SIZES)[:, None]
    for count in COUNTS:
        counts = np.array([[getattr(kernel, count) for _, kernel in run] for run in runs])
        per_sample = (counts[1] - counts[0]) // (SIZES[1] - SIZES[0])
        fixed = counts[0] - SIZES[0] * per_sample
        is_off = (counts != fixed + sizes * per_sample).any(axis=0)
        if is_off.any():
            i = int(is_off.argmax())
            raise TrainingError(
                f"{model}: {count} of {identities[0][i][1]} is {counts[:, i].tolist()} at "
                f"mini-batches of {SIZES} samples",
                allowed="a fixed part and one per sample; the simulation knows no other networks",
            )
        columns[f"{count}_fixed"] = fixed.tolist()
        columns[f"{count}_per_sample"] = per_sample.tolist()
    return columns


def write_workload(
    factors: Factors, path: str, task: str = "train", precision: str = "fp32"
) -> None:
    """Count a workload and write the counts, whole or not at all (see `count_workload`)."""
    with files.writing("the counts", path):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        files.write_json(path, count_workload(factors, task, precision))
