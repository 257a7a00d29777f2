"""The networks and what they are fed (board side: Python 3.6 grammar; imports torch).

Source: the public scripts of SIGMETRICS 2023 (branch sigmetrics-2023 of edge-train-bench), facts
only: network, transform, optimiser and loss of each workload.
"""

from typing import Any, Callable, Dict, Iterable, List, NamedTuple, Optional, Tuple

import numpy as np
import torch
from torch import nn

try:
    from torch.optim.sgd import sgd
except ImportError:  # torch < 1.12, whose torch.optim imports no compiler
    sgd = None

LEARNING_RATE = 0.01
MOMENTUM = 0.9

# SOURCE: transform of the MNIST workload (mean and deviation of MNIST's training pixels).
MNIST_MEAN, MNIST_STD = 0.1307, 0.3081

Workload = NamedTuple(
    "Workload",
    [
        ("build", Callable[[], nn.Module]),
        ("transform", Callable[[np.ndarray], torch.Tensor]),  # one raw sample -> input tensor
        ("raw_shape", Tuple[int, ...]),  # of one raw sample, uint8; for the warm-up's made-up data
    ],
)


def lenet5() -> nn.Module:
    """Return LeNet-5 for 1x28x28 inputs and 10 classes: 61,706 parameters."""
    return nn.Sequential(
        nn.Conv2d(1, 6, kernel_size=5, padding=2),  # (B, 6, 28, 28)
        nn.ReLU(),
        nn.MaxPool2d(2),  # (B, 6, 14, 14)
        nn.Conv2d(6, 16, kernel_size=5),  # (B, 16, 10, 10)
        nn.ReLU(),
        nn.MaxPool2d(2),  # (B, 16, 5, 5)
        nn.Flatten(),  # (B, 400)
        nn.Linear(400, 120),
        nn.ReLU(),
        nn.Linear(120, 84),
        nn.ReLU(),
        nn.Linear(84, 10),
    )


def normalise_mnist(raw: np.ndarray) -> torch.Tensor:
    """Return a (28, 28) uint8 image as a normalised (1, 28, 28) float32 tensor."""
    tensor = torch.from_numpy(raw).to(torch.float32).div_(255.0)
    return tensor.sub_(MNIST_MEAN).div_(MNIST_STD).unsqueeze_(0)


WORKLOADS: Dict[str, Workload] = {
    "lenet": Workload(lenet5, normalise_mnist, (28, 28)),
}


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
        """Move every parameter along its gradient."""
        sgd(
            self.parameters,
            [parameter.grad for parameter in self.parameters],
            self.momenta,
            weight_decay=0.0,
            momentum=MOMENTUM,
            lr=LEARNING_RATE,
            dampening=0.0,
            nesterov=False,
            maximize=False,
        )

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
