"""Find the network whose memory is asked for: of the package, a function, or a Hugging Face config.

None needs weights or a data set.
"""

import copy
import json
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import torch
from torch import nn

from epochwatt.board.training.allocated import Subject, resized, subject_of
from epochwatt.board.training.language_models import four_bit, with_adapters
from epochwatt.board.training.optimisers import ADAMW, SGD
from epochwatt.board.training.references import is_reference, resolve
from epochwatt.board.training.workloads import workload_of
from epochwatt.columns import Factors
from epochwatt.counting.count_workload import count_network, count_workload, network_factors
from epochwatt.errors import ConfigError
from epochwatt.memory.repeated import Stack, kernels_of
from epochwatt.study.config import WorkloadRow
from epochwatt.study.devices import read_rows
from epochwatt.twin.boards import SampleFacts, load_samples

LENGTH = 512  # tokens of a sample, unless asked otherwise
SAMPLES = 1000  # of an epoch, where the network says nothing of its data


class Tuning(NamedTuple):
    """Trained weights of a network of transformers, and the form in which it keeps all of them."""

    lora: int = 0  # rank of adapters; 0: all weights are trained
    weights: str = "fp32"  # or bf16, or NF4


NF4 = "nf4"  # in four bits, frozen


class Asked(NamedTuple):
    """A network that is asked about, and what it trains on."""

    name: str
    subject: Subject
    optimiser: str  # its default
    samples: SampleFacts
    # (task, precision) -> kernels of a mini-batch, as `count_workload` returns them
    count_kernels: Callable[[str, str], dict[str, Any]]
    is_config: bool = False  # of transformers
    stack: Stack | None = None  # the same network as repeated blocks; None: it is not known to be


def find(
    model: str,
    like: str | None = None,
    length: int = LENGTH,
    tuning: Tuning = Tuning(),  # noqa: B008 # never changed
    root: Path = Path(),
) -> Asked:
    """Return a network and what it trains on; ConfigError: there is none of that name.

    `model`: a row of config/workloads.yaml; `module:function` that returns a network, whose input
    is that of the network `like`, or a pair of network and mini-batch; or a folder or JSON file
    with the configuration of a network of transformers
    `length`: tokens of a sample, of the last
    `tuning`: of the last
    """
    path = Path(model)
    if path.is_dir():
        path /= "config.json"
    if path.suffix == ".json":
        samples = SampleFacts(SAMPLES, 0.0, length, SAMPLES * length * 8 / 2.0**20, "asked")
        stack = stack_of_config(_read_config(path), length, tuning)
        return counted(model, stack.subject(stack.n), ADAMW, samples, stack)
    if tuning != Tuning():
        raise ConfigError(
            "LoRA and the type of weights are asked of networks of transformers",
            found=f"--model {model}",
            do="leave --lora and --weights out; smollm.lora and smollm.qlora have them built in",
        )
    rows = read_rows(WorkloadRow, root / "config/workloads.yaml")
    reference = model.replace(":", ".")
    is_function = model not in rows and is_reference(reference)
    if is_function and like is None:
        pair = _subject_of_pair(resolve(reference, "--model"), model)
        return counted(model, pair, SGD, SampleFacts(SAMPLES, 0.0, 0.0, 0.0, "asked"))
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


def counted(
    name: str, subject: Subject, optimiser: str, samples: SampleFacts, stack: Stack | None = None
) -> Asked:
    """Return a network that is counted on a mini-batch of its own."""

    def count(subject: Subject, precision: str) -> dict[str, Any]:
        with torch.device("meta"):
            network = subject.build()
        minibatch = resized(subject.sample(), 8)
        return count_network(network, minibatch, name, subject.loss, optimiser, precision)

    def count_all(task: str, precision: str) -> dict[str, Any]:
        made = None
        if stack is not None and stack.n > 2:
            blocks = stack.subject
            made = kernels_of(lambda n: count(blocks(n), precision), stack.n)
        return made or count(subject, precision)

    return Asked(name, subject, optimiser, samples, count_all, stack is not None, stack)


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


def stack_of_config(
    config: dict[str, Any],
    length: int,
    tuning: Tuning = Tuning(),  # noqa: B008 # never changed
    names: Collection[str] | None = None,
) -> Stack:
    """Return a language model of transformers, with random weights, on samples of `length` tokens.

    Raises ConfigError: no transformers, it does not know the kind of network, or four bits without
    adapters.

    `names`: of the layers that get adapters; None: all but the last
    """
    if tuning.weights == NF4 and not tuning.lora:
        raise ConfigError(
            "weights of four bits are frozen", do="add --lora RANK: adapters to train"
        )
    try:
        from transformers import AutoConfig, AutoModelForCausalLM, masking_utils
    except ImportError as error:
        raise ConfigError(
            "a configuration of Hugging Face needs the package transformers, 4.53 or newer",
            found=str(error),
            do=".venv/bin/python -m pip install transformers",
        ) from None
    try:
        known = AutoConfig.for_model(**config).get_text_config()
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(
            f"transformers knows no network {config['model_type']!r}", found=str(error)
        ) from None
    known.use_cache = False
    kinds = getattr(known, "layer_types", None) or [""] * known.num_hidden_layers
    period = next(n for n in range(1, len(kinds) + 1) if _repeats(kinds, n))

    def subject(n: int) -> Subject:
        shortened = copy.deepcopy(known)
        shortened.num_hidden_layers = n * period
        if getattr(known, "layer_types", None):
            shortened.layer_types = kinds[: n * period]

        def build() -> nn.Module:
            network = AutoModelForCausalLM.from_config(shortened)
            if tuning.weights == "bf16":
                network.to(torch.bfloat16)
            if not tuning.lora:
                return network
            frozen = four_bit if tuning.weights == NF4 else None
            return with_adapters(network, tuning.lora, frozen, names)

        return Subject(build, sample, loss)

    def loss(network: nn.Module, minibatch: Any) -> torch.Tensor:
        # On shapes alone it cannot see that no sample is packed, and would make a mask. A mock
        # would hold the tensors that it is called with.
        name = "find_packed_sequence_indices"
        with mock.patch.object(masking_utils, name, lambda _: None):  # noqa: PT008
            return _own_loss(network, minibatch)

    def sample() -> Any:
        tokens = torch.zeros(1, length, dtype=torch.int64)
        return {"input_ids": tokens, "labels": tokens.clone()}

    return Stack(len(kinds) // period, subject)


def _repeats(kinds: list[str], period: int) -> bool:
    """Tell whether layers take turns with a period, and the last turn is whole."""
    return len(kinds) % period == 0 and kinds == kinds[:period] * (len(kinds) // period)
