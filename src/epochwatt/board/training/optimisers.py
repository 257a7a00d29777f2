"""Make the optimisers of the workloads (board side: Python 3.6 grammar; imports torch).

Source: SGD 0.01 with momentum 0.9: the public scripts of SIGMETRICS 2023. Adam at 5e-5 (language
model) and AdamW at 2e-5 (questions): the settings that PowerTrain's workloads are known to use.
"""

from typing import Any, Iterable, List, Optional

import torch
from torch import nn

from epochwatt.board.records.shapes import Document

try:
    from torch.optim.sgd import sgd
except ImportError:  # torch < 1.12, whose torch.optim imports no compiler
    sgd = None

LEARNING_RATE = 0.01
MOMENTUM = 0.9
SGD, ADAM, ADAMW = "sgd", "adam", "adamw"
ADAM_RATE = {ADAM: 5e-5, ADAMW: 2e-5}


class MomentumSgd:
    """SGD with momentum: the update of `torch.optim.SGD`, taken from torch's own function.

    Making a `torch.optim` object of torch 2 imports its compiler, three seconds in each process
    (docs/decisions/0006); a test holds that both give the same bits.
    """

    def __init__(self, parameters: Iterable[torch.Tensor]) -> None:
        self.parameters = list(parameters)
        self.param_groups = [{"params": self.parameters}]  # what gradient scaling looks for
        self.momenta: List[Optional[torch.Tensor]] = [None] * len(self.parameters)

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Update in place the parameters with a gradient, and their momenta.

        m = MOMENTUM m + gradient (the gradient alone at first), parameter -= LEARNING_RATE m.
        """
        trained = [i for i, parameter in enumerate(self.parameters) if parameter.grad is not None]
        momenta = [self.momenta[i] for i in trained]
        sgd(  # fills `momenta` where there was none
            [self.parameters[i] for i in trained],
            [self.parameters[i].grad for i in trained],
            momenta,
            weight_decay=0.0,
            momentum=MOMENTUM,
            lr=LEARNING_RATE,
            dampening=0.0,
            nesterov=False,
            maximize=False,
        )
        for i, momentum in zip(trained, momenta):
            self.momenta[i] = momentum

    def state_dict(self) -> Document:
        """Return what a checkpoint has to hold."""
        return {"momenta": self.momenta}

    def load_state_dict(self, state: Document) -> None:
        """Take up the state of a checkpoint."""
        self.momenta = list(state["momenta"])


def make_optimiser(network: nn.Module, kind: str = SGD) -> Any:
    """Return the optimiser of a network: `sgd` (0.01, momentum 0.9), `adam` or `adamw`."""
    if kind == ADAMW:
        return torch.optim.AdamW(network.parameters(), lr=ADAM_RATE[kind])
    if kind == ADAM:
        return torch.optim.Adam(network.parameters(), lr=ADAM_RATE[kind])
    if sgd is None:
        return torch.optim.SGD(network.parameters(), lr=LEARNING_RATE, momentum=MOMENTUM)
    return MomentumSgd(network.parameters())
