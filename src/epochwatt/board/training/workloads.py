"""Choose network, input, optimiser and loss (board side: Python 3.6 grammar; imports torch).

Source: the public scripts of SIGMETRICS 2023 (branch sigmetrics-2023 of edge-train-bench), facts
only: network, transform, optimiser and loss of each workload.
"""

import copy
import time
from functools import partial
from typing import Any, Callable, Dict, NamedTuple, Optional

import torch
from torch import nn
from torch.nn import functional

from epochwatt.board.training import arithmetic, modern_networks, transforms
from epochwatt.board.training.language_models import Decoder
from epochwatt.board.training.networks import CifarResNet18, lenet5, mobilenet_v3, of_torchvision
from epochwatt.board.training.optimisers import ADAM, ADAMW, SGD, make_optimiser
from epochwatt.board.training.references import resolve
from epochwatt.columns import Factors
from epochwatt.errors import ConfigError, TrainingError


def classification_loss(
    network: nn.Module, inputs: torch.Tensor, labels: torch.Tensor
) -> torch.Tensor:
    """Return the mean cross entropy of a network's scores (B, classes) against labels (B,)."""
    return functional.cross_entropy(network(inputs), labels)


class Workload(NamedTuple):
    """A network, what it is fed with and how it learns."""

    build: Callable[[], nn.Module]
    transform: Callable[[Any], Any]  # one raw sample -> input tensor, or a `Sample`
    made_up: Callable[[], Any]  # a raw sample for the warm-up, which reads no disk
    # (network, inputs, targets) of a mini-batch -> mean loss
    loss: Callable[[nn.Module, Any, Any], torch.Tensor] = classification_loss
    optimiser: str = SGD  # of `optimisers`
    transform_to_infer: Optional[Callable[[Any], Any]] = None  # None: as in training


_CLASSIFIER = Workload(
    partial(of_torchvision, "resnet50"),
    transforms.augment_imagenet,
    partial(transforms.made_up_photograph, 375, 500),
    transform_to_infer=transforms.centre_imagenet,
)

WORKLOADS: Dict[str, Workload] = {
    "lenet": Workload(lenet5, transforms.normalise_mnist, partial(transforms.noise, 28, 28)),
    "mobilenet": Workload(
        mobilenet_v3,
        transforms.augment_landmark,
        partial(transforms.made_up_photograph, 600, 800),
        transform_to_infer=transforms.centre_landmark,
    ),
    "resnet": Workload(
        CifarResNet18, transforms.normalise_cifar10, partial(transforms.noise, 3, 32, 32)
    ),
    "vgg11": Workload(
        partial(of_torchvision, "vgg11"),
        transforms.normalise_cifar10,
        partial(transforms.noise, 3, 32, 32),
    ),
    "resnet18": _CLASSIFIER._replace(build=partial(of_torchvision, "resnet18")),
    "resnet50": _CLASSIFIER,
    "lstm": Workload(
        modern_networks.LanguageModel,
        transforms.next_words,
        transforms.made_up_words,
        modern_networks.next_word_loss,
        ADAM,
    ),
    "bert": Workload(
        modern_networks.bert_base,
        transforms.question_pieces,
        transforms.made_up_question,
        modern_networks.answer_loss,
        ADAMW,
    ),
    "ssdlite": Workload(
        modern_networks.Detector,
        transforms.augment_coco,
        transforms.made_up_coco,
        modern_networks.detection_loss,
        transform_to_infer=transforms.resize_coco,
    ),
    "smollm": Workload(
        Decoder,
        transforms.next_words,
        transforms.made_up_tokens,
        modern_networks.next_word_loss,
        ADAMW,
    ),
}


def workload_of(factors: Factors) -> Workload:
    """Return the workload of a run: one of `WORKLOADS`, with the user's own functions in it.

    `factors`: `model`, its key; or, where config/workloads.yaml names functions, `network` with
    `like`, the key, and references for fields of `Workload` such as `build`

    Raises ConfigError: no such workload or function.
    """
    model, network = factors["model"], factors.get("network")
    if network is None:
        where, name = "config/workloads.yaml: a row without build", model
    else:
        where, name = f"config/workloads.yaml: {model}.like", network["like"]
    if name not in WORKLOADS:
        raise ConfigError(f"{where} is {name!r}", allowed=WORKLOADS)
    if network is None:
        return WORKLOADS[name]
    changes = {
        key: resolve(network[key], f"config/workloads.yaml: {model}.{key}")
        for key in Workload._fields
        if key in network
    }
    if "transform" in changes:
        changes["transform_to_infer"] = None
    return WORKLOADS[name]._replace(**changes)


def transform_of(workload: Workload, factors: Factors) -> Callable[[Any], Any]:
    """Return the function from raw sample to input, in training or, by the task, inference."""
    if factors.get("task") == "infer" and workload.transform_to_infer is not None:
        return workload.transform_to_infer
    return workload.transform


def on_device(value: Any, device: torch.device) -> Any:
    """Copy tensors to a device, also in mappings and sequences, which become dicts and lists.

    Raises TrainingError: there is text in it.
    """
    if isinstance(value, torch.Tensor):
        return value.to(device)
    if isinstance(value, dict):
        return {key: on_device(element, device) for key, element in value.items()}
    if isinstance(value, (str, bytes)):
        raise TrainingError(
            "a mini-batch holds text, which no network computes with",
            found=repr(value),
            allowed="numbers and tensors, also in lists, tuples and mappings",
            do="have `read` or the transform return numbers, such as the index of a class",
        )
    return [on_device(element, device) for element in value]


class Trainer:
    """A network with its optimiser and loss on one device; with the task `infer` without them.

    `seed`: of the initial weights
    `task`: `train`, or `infer`: forward passes alone
    `precision`: `fp32`, `tf32`, `fp16` or `bf16` (see `arithmetic`)
    `compiled`: whether torch compiles the network; `rehearse` does it before an epoch
    """

    def __init__(
        self,
        workload: Workload,
        device: torch.device,
        seed: int,
        task: str = "train",
        precision: str = "fp32",
        compiled: bool = False,
    ) -> None:
        torch.manual_seed(seed)
        self.device = device
        self.infers = task == "infer"
        self.precision = precision
        arithmetic.allow(precision)
        self.workload = workload
        self.network = workload.build().to(device).train(not self.infers)
        self.optimiser: Any = None
        self.scaler: Any = None
        if not self.infers:
            self.optimiser = make_optimiser(self.network, self.workload.optimiser)
            self.scaler = arithmetic.make_scaler(precision, device)
        self.forward: Any = self.network
        self.compile_s = 0.0
        if compiled:
            torch._dynamo.reset()  # graphs of an earlier trainer count towards its limit
            self.forward = torch.compile(self.network, dynamic=False)

    def copy(self, minibatch: Any) -> Any:
        """Copy a mini-batch's inputs and targets to the device; with `infer` the inputs alone."""
        inputs, targets = minibatch
        moved = on_device(inputs, self.device)
        return moved, None if self.infers else on_device(targets, self.device)

    def step(self, minibatch: Any) -> Optional[torch.Tensor]:
        """Train on a mini-batch that is on the device, updating the weights in place.

        Returns its mean loss, still on the device; with the task `infer` it runs a forward pass
        without gradients and returns None.
        """
        inputs, targets = minibatch
        if self.infers:
            self._infer(inputs)
            return None
        self.optimiser.zero_grad()
        loss = self._loss(inputs, targets)
        if self.scaler is None:
            loss.backward()
            self.optimiser.step()
        else:
            self.scaler.scale(loss).backward()
            self.scaler.step(self.optimiser)
            self.scaler.update()
        return loss.detach()

    def _loss(self, inputs: Any, targets: Any) -> torch.Tensor:
        if self.precision not in arithmetic.AUTOCAST:
            return self.workload.loss(self.forward, inputs, targets)
        with arithmetic.autocast(self.precision, self.device):
            return self.workload.loss(self.forward, inputs, targets)

    def _infer(self, inputs: Any) -> Any:
        """Run a forward pass without gradients, in the run's precision."""
        with getattr(torch, "inference_mode", torch.no_grad)():  # torch < 1.9 has no such mode
            if self.precision not in arithmetic.AUTOCAST:
                return self.forward(inputs)
            with arithmetic.autocast(self.precision, self.device):
                return self.forward(inputs)

    def rehearse(self, minibatch: Any) -> None:
        """Run a mini-batch so that torch compiles for its size; add the time to `compile_s`.

        Weights and statistics stay as they are. Raises TrainingError: torch cannot compile it.
        """
        start_s = time.perf_counter()
        state = copy.deepcopy(self.network.state_dict())
        inputs, targets = self.copy(minibatch)
        try:
            if self.infers:
                self._infer(inputs)
            else:
                self._loss(inputs, targets).backward()
                self.optimiser.zero_grad()
        except Exception as error:
            raise TrainingError(
                f"torch {torch.__version__} cannot compile this network here",
                found=str(error).strip().split("\n")[0],
                do="choose `compile: off`",
            ) from error
        self.network.load_state_dict(state)
        self.compile_s += time.perf_counter() - start_s

    def state_dict(self) -> Dict[str, Any]:
        """Return the state for a checkpoint: `network`, `optimiser`, and with fp16 `scaler`."""
        state = {"network": self.network.state_dict(), "optimiser": {}}
        if self.optimiser is not None:
            state["optimiser"] = self.optimiser.state_dict()
        if self.scaler is not None:
            state["scaler"] = self.scaler.state_dict()
        return state

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Restore a checkpoint's state in place."""
        self.network.load_state_dict(state["network"])
        if self.optimiser is not None:
            self.optimiser.load_state_dict(state["optimiser"])
        if self.scaler is not None:
            self.scaler.load_state_dict(state["scaler"])


def make_trainer(factors: Factors, device: torch.device) -> Trainer:
    """Return the trainer of a run, in its initial state."""
    return Trainer(
        workload_of(factors),
        device,
        factors["seed"],
        # records of older runs have none of these factors
        factors.get("task", "train"),
        factors.get("precision", "fp32"),
        factors.get("compile", "off") == "on",
    )
