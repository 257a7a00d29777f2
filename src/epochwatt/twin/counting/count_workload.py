"""Count the kernels of one training mini-batch of a network, without a GPU.

The network trains on meta tensors, which have shapes but no content, and each operator that torch
dispatches is turned into the kernels that torch 1.8, the torch of the papers, launches for it (see
`epochwatt.twin.counting.operators`). Its zero_grad writes zeros, to which gradients are added, and
its SGD goes through the parameters one by one. The counts of each kernel are linear in the
mini-batch size: two sizes give them, a third checks them. The copy of the mini-batch to the GPU is
not among them.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from epochwatt.errors import ConfigError, TrainingError
from epochwatt.records import files
from epochwatt.study.config import WorkloadRow
from epochwatt.training.optimisers import ADAM, ADAMW, LEARNING_RATE, MOMENTUM, SGD
from epochwatt.training.transforms import Sample
from epochwatt.training.workloads import Workload, workload_of
from epochwatt.twin.counting.operators import Call, Kernel, kernels_of
from epochwatt.twin.inputs.kernel_counts import COUNTS, SCHEMA_VERSION

META = torch.device("meta")
SIZES = (8, 16, 40)  # mini-batch sizes: two give the counts, the third checks them


class _Recorder(TorchDispatchMode):
    """Collects the kernels of every operator that is dispatched within.

    Attributes
    ----------
    phase : of what comes next
    launches : (phase, kernel), in order
    """

    def __init__(self) -> None:
        super().__init__()
        self.phase = ""
        self.launches: list[tuple[str, Kernel]] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Run an operator on shapes and note its kernels."""
        result = func(*args, **(kwargs or {}))
        call = Call(str(func.overloadpacket), func, args, kwargs or {}, result)
        self.launches += [(self.phase, kernel) for kernel in kernels_of(call)]
        return result


def launches(workload: Workload, size: int) -> list[tuple[str, Kernel]]:
    """Return (phase, kernel) of one mini-batch of `size` samples, in launch order.

    The order is that of the papers' scripts: zero_grad, forward, loss, backward, optimiser.
    """
    network = _network(workload).train()
    inputs, targets = (
        torch.empty(size, *one.shape, dtype=one.dtype, device=META) for one in _sample(workload)
    )
    weights = list(network.parameters())
    states = [[torch.empty_like(weight) for weight in weights] for _ in range(2)]
    for weight in weights:
        weight.grad = torch.empty_like(weight)
    with _Recorder() as recorder:
        recorder.phase = "zero_grad"
        _zero_grad(weights)
        recorder.phase = "forward"
        network.register_forward_hook(lambda *_: setattr(recorder, "phase", "loss"))
        loss = workload.loss(network, inputs, targets)
        recorder.phase = "backward"
        loss.backward()
        recorder.phase = "optimiser"
        _STEPS[workload.optimiser](weights, *states)
    return [
        (phase, kernel._replace(kind="optimiser") if phase == "optimiser" else kernel)
        for phase, kernel in recorder.launches
    ]


@torch.no_grad()
def _zero_grad(weights: list[nn.Parameter]) -> None:
    for weight in weights:
        assert weight.grad is not None
        weight.grad.zero_()


@torch.no_grad()
def _sgd(weights: list[nn.Parameter], momenta: list[torch.Tensor], _: list[torch.Tensor]) -> None:
    """Do what SGD with momentum does in torch 1.8: three kernels for each parameter."""
    for weight, momentum in zip(weights, momenta, strict=True):
        assert weight.grad is not None
        momentum.mul_(MOMENTUM).add_(weight.grad)
        weight.add_(momentum, alpha=-LEARNING_RATE)


@torch.no_grad()
def _adam(
    weights: list[nn.Parameter], means: list[torch.Tensor], squares: list[torch.Tensor]
) -> None:
    """Do what Adam does in torch 1.8: eight kernels for each parameter."""
    for weight, mean, square in zip(weights, means, squares, strict=True):
        assert weight.grad is not None
        mean.mul_(0.9).add_(weight.grad, alpha=0.1)
        square.mul_(0.999).addcmul_(weight.grad, weight.grad, value=0.001)
        weight.addcdiv_(mean, (square.sqrt() / 0.5).add_(1e-8), value=-1e-5)


@torch.no_grad()
def _adamw(
    weights: list[nn.Parameter], means: list[torch.Tensor], squares: list[torch.Tensor]
) -> None:
    """Do what AdamW does in torch 1.8: the decay of the weights, then Adam."""
    for weight in weights:
        weight.mul_(0.99)
    _adam(weights, means, squares)


_STEPS = {SGD: _sgd, ADAM: _adam, ADAMW: _adamw}


def _network(workload: Workload) -> nn.Module:
    """Return the network without memory behind its weights."""
    with META:
        return workload.build().to(META)


def _sample(workload: Workload) -> Sample:
    """Return input and target of one sample, both tensors; a class is told by a number."""
    made = workload.transform(workload.made_up())
    return made if isinstance(made, Sample) else Sample(made, torch.tensor(0))


def _n_outputs(network: nn.Module, one: torch.Tensor) -> int:
    """Return how many classes a network tells apart, or how many numbers it gives for a place."""
    outputs = network(torch.empty(1, *one.shape, dtype=one.dtype, device=META))
    if isinstance(outputs, tuple):  # a detector's: offsets, scores
        return int(outputs[-1].shape[-1])
    return int(outputs.shape[1] if outputs.dim() == 2 else outputs.shape[-1])


def network_factors(model: str, rows: Mapping[str, WorkloadRow]) -> dict[str, Any]:
    """Return `model` and, of a network that is not of this package, what its row says of it."""
    if model not in rows:
        raise ConfigError(
            f"config/workloads.yaml has no row {model!r}\n  allowed: {', '.join(rows)}"
        )
    keys = {*Workload._fields, "like"}
    given = rows[model].model_dump(include=keys, exclude_defaults=True)
    return {"model": model, "network": given} if given else {"model": model}


def count_workload(factors: Mapping[str, Any]) -> dict[str, Any]:
    """Return the counts of one training mini-batch as results/twin/workloads/{model}.json has them.

    Parameters
    ----------
    factors : with `model` and, of a network that is not of this package, `network`

    Raises
    ------
    ConfigError : a model that is not there
    TrainingError : the kernels depend on the mini-batch size other than linearly
    """
    model, workload = factors["model"], workload_of(dict(factors))
    one = _sample(workload).input
    runs = [launches(workload, size) for size in SIZES]
    network = _network(workload).eval()
    classes = _n_outputs(network, one)
    return {
        "schema_version": SCHEMA_VERSION,
        "model": model,
        "torch": torch.__version__,
        "classes": classes,
        "input": list(one.shape),
        "parameters": sum(parameter.numel() for parameter in network.parameters()),
        "kernels": _linear(model, runs),
    }


def _linear(model: str, runs: list[list[tuple[str, Kernel]]]) -> dict[str, list[Any]]:
    """Return the columns of the kernels from their counts at `SIZES`."""
    what = [[(phase, kernel.name, kernel.kind) for phase, kernel in run] for run in runs]
    if any(names != what[0] for names in what[1:]):
        raise TrainingError(
            f"{model} launches other kernels at other mini-batch sizes ({SIZES}): its forward pass "
            "must not depend on the mini-batch size"
        )
    columns: dict[str, list[Any]] = {
        "phase": [phase for phase, _, _ in what[0]],
        "name": [name for _, name, _ in what[0]],
        "kind": [kind for _, _, kind in what[0]],
    }
    for count in COUNTS:
        lines = [
            _line(f"{model}: {count} of {kernel.name}", [getattr(run[i][1], count) for run in runs])
            for i, (_, kernel) in enumerate(runs[0])
        ]
        columns[f"{count}_fixed"] = [fixed for fixed, _ in lines]
        columns[f"{count}_per_sample"] = [per_sample for _, per_sample in lines]
    return columns


def _line(what: str, values: list[int]) -> tuple[int, int]:
    """Return the fixed and the per-sample part of values at `SIZES`."""
    per_sample = (values[1] - values[0]) // (SIZES[1] - SIZES[0])
    fixed = values[0] - SIZES[0] * per_sample
    if values != [fixed + size * per_sample for size in SIZES]:
        raise TrainingError(
            f"{what} is {values} at mini-batches of {SIZES} samples",
            allowed="a fixed part and one per sample; the simulation knows no other networks",
        )
    return fixed, per_sample


def write_workload(factors: Mapping[str, Any], path: str) -> None:
    """Count a workload and write the counts, whole or not at all (see `count_workload`)."""
    with files.writing("the counts", path):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        files.write_json(path, count_workload(factors))
