"""Networks, their input, optimiser and loss (board side: Python 3.6 grammar; imports torch).

Source: the public scripts of SIGMETRICS 2023 (branch sigmetrics-2023 of edge-train-bench), facts
only: network, transform, optimiser and loss of each workload.
"""

from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional

import torch
from torch import nn

from epochwatt.errors import ConfigError
from epochwatt.training import transforms
from epochwatt.training.networks import CifarResNet18, lenet5, mobilenet_v3, vgg11
from epochwatt.training.references import resolve

try:
    from torch.optim.sgd import sgd
except ImportError:  # torch < 1.12, whose torch.optim imports no compiler
    sgd = None

LEARNING_RATE = 0.01
MOMENTUM = 0.9

Workload = NamedTuple(
    "Workload",
    [
        ("build", Callable[[], nn.Module]),
        ("transform", Callable[[Any], torch.Tensor]),  # one raw sample -> input tensor
        ("made_up", Callable[[], Any]),  # a raw sample for the warm-up, which reads no disk
    ],
)

WORKLOADS: Dict[str, Workload] = {
    "lenet": Workload(lenet5, transforms.normalise_mnist, transforms.made_up_mnist),
    "mobilenet": Workload(mobilenet_v3, transforms.augment_landmark, transforms.made_up_landmark),
    "resnet": Workload(CifarResNet18, transforms.normalise_cifar10, transforms.made_up_cifar10),
    "vgg11": Workload(vgg11, transforms.normalise_cifar10, transforms.made_up_cifar10),
}


def workload_of(factors: Dict[str, Any]) -> Workload:
    """Return the workload of a run; one that brings its own network joins `WORKLOADS`.

    Parameters
    ----------
    factors : with `model` and, where the row of config/workloads.yaml names other functions,
        `network`: `build`, `like` and perhaps `transform` and `made_up` of that row

    Raises
    ------
    ConfigError : a name that is not there
    """
    model, network = factors["model"], factors.get("network")
    if network is not None:
        where = f"config/workloads.yaml: {model}."
        changes = {k: resolve(network[k], where + k) for k in Workload._fields if k in network}
        WORKLOADS[model] = _builtin(network["like"], where + "like")._replace(**changes)
    return _builtin(model, "config/workloads.yaml: a row without build")


def _builtin(model: str, where: str) -> Workload:
    if model not in WORKLOADS:
        raise ConfigError(f"{where} is {model!r}", allowed=WORKLOADS)
    return WORKLOADS[model]


class MomentumSgd:
    """SGD with momentum: the update of `torch.optim.SGD`, taken from torch's own function.

    Making a `torch.optim` object of torch 2 imports its compiler, three seconds in each process
    (docs/decisions/0006); a test holds that both give the same bits.

    Parameters
    ----------
    parameters : tensors to train, changed in place
    """

    def __init__(self, parameters: Iterable[torch.Tensor]) -> None:
        self.parameters = list(parameters)
        self.momenta: List[Optional[torch.Tensor]] = [None] * len(self.parameters)

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Move every parameter that has a gradient along it."""
        used = [i for i, parameter in enumerate(self.parameters) if parameter.grad is not None]
        momenta = [self.momenta[i] for i in used]
        sgd(
            [self.parameters[i] for i in used],
            [self.parameters[i].grad for i in used],
            momenta,
            weight_decay=0.0,
            momentum=MOMENTUM,
            lr=LEARNING_RATE,
            dampening=0.0,
            nesterov=False,
            maximize=False,
        )
        for i, momentum in zip(used, momenta):
            self.momenta[i] = momentum

    def state_dict(self) -> Dict[str, Any]:
        """Return what a checkpoint has to hold."""
        return {"momenta": self.momenta}

    def load_state_dict(self, state: Dict[str, Any]) -> None:
        """Take up the state of a checkpoint."""
        self.momenta = list(state["momenta"])


def make_optimiser(network: nn.Module) -> Any:
    """Return the optimiser of all workloads: SGD 0.01, momentum 0.9."""
    if sgd is None:
        return torch.optim.SGD(network.parameters(), lr=LEARNING_RATE, momentum=MOMENTUM)
    return MomentumSgd(network.parameters())


class Trainer:
    """A network with its optimiser and loss, on one device.

    Parameters
    ----------
    model : a key of `WORKLOADS`
    device : where the network lives
    seed : of the initial weights
    """

    def __init__(self, model: str, device: torch.device, seed: int) -> None:
        torch.manual_seed(seed)
        self.device = device
        self.network = WORKLOADS[model].build().to(device).train()
        self.optimiser = make_optimiser(self.network)
        self.criterion = nn.CrossEntropyLoss()

    def copy(self, minibatch: Any) -> Any:
        """Move inputs (B, ...) and labels (B,) to the device."""
        inputs, labels = minibatch
        return inputs.to(self.device), labels.to(self.device)

    def step(self, minibatch: Any) -> torch.Tensor:
        """Train on one mini-batch that is on the device; return its mean loss, still there."""
        inputs, labels = minibatch
        self.optimiser.zero_grad()
        loss = self.criterion(self.network(inputs), labels)
        loss.backward()
        self.optimiser.step()
        return loss.detach()
