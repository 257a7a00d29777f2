"""Check our counts of kernels against torch's: `python -m benchmarks.counts`.

It writes the tables of docs/reference/counts.md to benchmarks/tables/counting/. Nothing is
measured, so the same versions give the same tables on any machine.
"""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import pandas as pd
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.results import REPOSITORY, write_tables
from epochwatt.board.training.workloads import WORKLOADS
from epochwatt.counting.count_workload import launches, made_on_meta
from epochwatt.counting.recorder import TASKS

FOLDER = REPOSITORY / "benchmarks/tables/counting"
SIZE = 8  # samples of a mini-batch
PRODUCTS = ("convolution", "depthwise", "gemm", "gemm16")


class Torch(NamedTuple):
    """What `torch.utils.flop_counter` gives."""

    flops: int  # of products and convolutions
    # of them, because its weight gradient of a grouped convolution forgets the groups
    too_many: int


class _Grouped(TorchDispatchMode):
    """Sums up what torch counts too many of weight gradients."""

    def __init__(self) -> None:
        super().__init__()
        self.flops = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if func.overloadpacket is torch.ops.aten.convolution_backward and args[10][1]:
            once = 2 * args[0].numel() * math.prod(args[2].shape[1:])
            self.flops += (args[9] - 1) * once
        return func(*args, **(kwargs or {}))


def by_torch(model: str, task: str, size: int = SIZE) -> Torch:
    """Return what torch counts of one mini-batch of a network of the package."""
    workload = WORKLOADS[model]
    network, inputs, targets = made_on_meta(workload, size)
    with _Grouped() as grouped, FlopCounterMode(display=False) as counter:
        if task == "infer":
            with torch.no_grad():
                network.eval()(inputs)
        else:
            workload.loss(network.train(), inputs, targets).backward()
    return Torch(counter.get_total_flops(), grouped.flops)


def rows(models: Iterable[str] = WORKLOADS) -> list[dict[str, Any]]:
    """Return a row for each network and task: our counts beside those of torch."""
    made = []
    for model in models:
        for task in TASKS:
            kernels = [kernel for _, kernel in launches(WORKLOADS[model], SIZE, task)]
            products = sum(kernel.flops for kernel in kernels if kernel.kind in PRODUCTS)
            there = by_torch(model, task)
            made.append(
                {
                    "network": model,
                    "task": task,
                    "products_flop": products,
                    "torch_flop": there.flops,
                    "torch_groups_forgotten_flop": there.too_many,
                    "left_flop": products - (there.flops - there.too_many),
                    "all_flop": sum(kernel.flops for kernel in kernels),
                    "bytes": sum(kernel.bytes for kernel in kernels),
                    "launches": len(kernels),
                }
            )
    return made


def ratios(counted: pd.DataFrame) -> pd.DataFrame:
    """Return training over inference, which others take to be three."""
    names = ["products_flop", "all_flop", "bytes", "launches"]
    train, infer = (
        counted[counted.task.eq(t)].set_index("network")[names] for t in ("train", "infer")
    )
    return (train / infer).map("{:.3f}".format).add_suffix("_ratio").reset_index()


if __name__ == "__main__":
    counted = pd.DataFrame(rows())
    write_tables(FOLDER, {"flop-counter": counted, "training": ratios(counted)})
