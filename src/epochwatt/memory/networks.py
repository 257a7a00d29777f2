"""Find the network whose memory is asked for: of the package, a function, or a Hugging Face config.

None needs weights or a data set.
"""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn

from epochwatt.board.training.allocated import Subject, resized, subject_of
from epochwatt.board.training.optimisers import ADAMW, SGD
from epochwatt.board.training.references import is_reference, resolve
from epochwatt.board.training.workloads import workload_of
from epochwatt.columns import Factors
from epochwatt.counting.count_workload import count_network, count_workload, network_factors
from epochwatt.errors import ConfigError
from epochwatt.study.config import WorkloadRow
from epochwatt.study.devices import read_rows
from epochwatt.twin.boards import SampleFacts, load_samples

LENGTH = 512  # tokens of a sample, unless asked otherwise
SAMPLES = 1000  # of an epoch, where the network says nothing of its data


class Asked(NamedTuple):
    """A network that is asked about, and what it trains on."""

    name: str
    subject: Subject
    optimiser: str  # its default
    samples: SampleFacts
    # (task, precision) -> kernels of a mini-batch, as `count_workload` returns them
    count_kernels: Callable[[str, str], dict[str, Any]]
    is_config: bool = False  # of transformers


def find(
    model: str, like: str | None = None, length: int = LENGTH, lora: int = 0, root: Path = Path()
) -> Asked:
    """Return a network and what it trains on; ConfigError: there is none of that name.

    `model`: a row of config/workloads.yaml; `module:function` that returns a network, whose input
    is that of the network `like`, or a pair of network and mini-batch; or a folder or JSON file
    with the configuration of a network of transformers
    `length`: tokens of a sample, of the last
    `lora`: rank of its adapters; 0: all weights are trained
    """
    path = Path(model)
    if path.is_dir():
        path /= "config.json"
    if path.suffix == ".json":
        samples = SampleFacts(SAMPLES, 0.0, length, SAMPLES * length * 8 / 2.0**20, "asked")
        subject = subject_of_config(_read_config(path), length, lora)
        return _counted(model, subject, ADAMW, samples)._replace(is_config=True)
    if lora:
        raise ConfigError(
            "LoRA is for networks of transformers", found=f"--model {model}", do="leave --lora out"
        )
    rows = read_rows(WorkloadRow, root / "config/workloads.yaml")
    reference = model.replace(":", ".")
    is_function = model not in rows and is_reference(reference)
    if is_function and like is None:
        pair = _subject_of_pair(resolve(reference, "--model"), model)
        return _counted(model, pair, SGD, SampleFacts(SAMPLES, 0.0, 0.0, 0.0, "asked"))
    if is_function:
        factors: Factors = {"model": reference, "network": {"build": reference, "like": like}}
    elif like:
        raise ConfigError(f"--like goes with a function, and --model is {model!r}")
    else:
        factors = network_factors(model, rows)
    workload = workload_of(factors)
    row = rows[like if is_function and like in rows else model]
    samples = load_samples(root / "config/twin")[row.dataset]
    return Asked(
        model,
        subject_of(workload),
        workload.optimiser,
        samples,
        lambda task, precision: count_workload(factors, task, precision),
    )


def _counted(name: str, subject: Subject, optimiser: str, samples: SampleFacts) -> Asked:
    """Return a network that is counted on a mini-batch of its own."""

    def count(task: str, precision: str) -> dict[str, Any]:
        with torch.device("meta"):
            network = subject.build()
        minibatch = resized(subject.sample(), 8)
        return count_network(network, minibatch, name, subject.loss, optimiser, precision)

    return Asked(name, subject, optimiser, samples, count)


def _subject_of_pair(make: Callable[[], Any], name: str) -> Subject:
    """Return the subject of a function that gives a network and a mini-batch of any size."""
    with torch.device("meta"):
        made = make()
    if not isinstance(made, tuple) or not isinstance(made[0], nn.Module):
        raise ConfigError(
            f"--model {name} returns no pair of a network and a mini-batch",
            found=type(made).__name__,
            do="add --like and a network of the package with the same input, such as resnet50",
        )
    return Subject(lambda: make()[0], lambda: make()[1], _own_loss)


def _own_loss(network: nn.Module, minibatch: Any) -> torch.Tensor:
    """Return the loss that the network's output holds, or the mean of what comes out."""
    outputs = network(**minibatch) if isinstance(minibatch, Mapping) else network(*minibatch)
    loss = getattr(outputs, "loss", None)
    if loss is None:
        loss = outputs if isinstance(outputs, torch.Tensor) else outputs[0]
    return loss.float().mean()


def _read_config(path: Path) -> dict[str, Any]:
    try:
        config = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError("cannot be read", where=str(path), found=str(error)) from None
    if not isinstance(config, dict) or "model_type" not in config:
        raise ConfigError(
            "is no configuration of transformers: it has no model_type", where=str(path)
        )
    return config


def subject_of_config(config: dict[str, Any], length: int, lora: int = 0) -> Subject:
    """Return a language model of transformers, with random weights, on samples of `length` tokens.

    Raises ConfigError: no transformers, or it does not know the kind of network.
    """
    try:
        from transformers import AutoConfig, AutoModelForCausalLM
    except ImportError as error:
        raise ConfigError(
            "a configuration of Hugging Face needs the package transformers",
            found=str(error),
            do=".venv/bin/python -m pip install transformers",
        ) from None
    try:
        known = AutoConfig.for_model(**config)
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(
            f"transformers knows no network {config['model_type']!r}", found=str(error)
        ) from None
    known.use_cache = False

    def build() -> nn.Module:
        network = AutoModelForCausalLM.from_config(known)
        return with_adapters(network, lora) if lora else network

    def sample() -> Any:
        tokens = torch.zeros(1, length, dtype=torch.int64)
        return {"input_ids": tokens, "labels": tokens.clone()}

    return Subject(build, sample, _own_loss)


class Adapted(nn.Module):
    """A linear layer that is frozen, plus the product of two narrow ones that are trained."""

    def __init__(self, layer: nn.Linear, rank: int) -> None:
        super().__init__()
        self.layer = layer
        self.down = nn.Linear(layer.in_features, rank, bias=False)
        self.up = nn.Linear(rank, layer.out_features, bias=False)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return the layer's output, corrected."""
        return self.layer(inputs) + self.up(self.down(inputs))


def with_adapters(network: nn.Module, rank: int) -> nn.Module:
    """Freeze a network and give each linear layer but the last, its head, adapters of a rank."""
    network.requires_grad_(False)
    head = getattr(network, "get_output_embeddings", lambda: None)()
    for module in list(network.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, nn.Linear) and child is not head:
                setattr(module, name, Adapted(child, rank))
    return network
