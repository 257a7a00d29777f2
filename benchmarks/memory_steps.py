"""Train a few steps and say what memory they took: `python -m benchmarks.memory_steps TASK CASE`.

A process that imports no more than a training does; `benchmarks.memory` starts it. TASK is
`profiled`, `watched` or, on a GPU, `on_gpu`.
"""

import json
import sys
import time
from typing import Any

import numpy as np
import torch

from epochwatt.board.training import allocated
from epochwatt.board.training.allocated import Manner, Subject
from epochwatt.board.training.resident import MIB, blas_mib
from epochwatt.board.training.workloads import WORKLOADS

OURS = tuple(name for name in WORKLOADS if name != "smollm")  # at the end: draws stay
TORCHVISION = (
    *("alexnet", "squeezenet1_1", "shufflenet_v2_x1_0", "densenet121", "efficientnet_b0"),
    *("regnet_y_400mf", "convnext_tiny", "swin_t", "vit_b_16"),
)
CONFIGS: dict[str, dict[str, Any]] = {  # of transformers, small
    "llama": {
        "model_type": "llama",
        **{"hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 8},
        **{"num_attention_heads": 9, "num_key_value_heads": 3, "vocab_size": 16384},
    },
    "gpt2": {"model_type": "gpt2", "n_embd": 384, "n_layer": 6, "n_head": 6, "vocab_size": 16384},
}
NETWORKS = (*OURS, *TORCHVISION, *CONFIGS, "smollm")
TOKENS = 128
STEPS = 6  # after the first ones the heap grows slowly


def subject(name: str) -> Subject:
    """Return one of `NETWORKS`."""
    if name in CONFIGS:
        from epochwatt.memory.networks import stack_of_config

        stack = stack_of_config(CONFIGS[name], TOKENS)
        return stack.subject(stack.n)
    if name in TORCHVISION:
        from torchvision import models

        workload = WORKLOADS["resnet50"]._replace(build=getattr(models, name))
        return allocated.subject_of(workload)
    return allocated.subject_of(WORKLOADS[name])


def manner_of(case: dict[str, Any]) -> Manner:
    """Return how a case trains."""
    return Manner(**{key: case[key] for key in Manner._fields if key in case})


def train(case: dict[str, Any], steps: int, device: str = "cpu") -> None:
    """Train a few steps for real."""
    what = subject(case["network"])
    train_subject(what, manner_of(case), case["batch_size"], steps, device)


def train_subject(
    what: Subject,
    manner: Manner,
    batch_size: int,
    steps: int,
    device: str = "cpu",
    step_s: list[float] | None = None,
) -> None:
    """Train a few steps; `step_s` takes how long each was, s."""
    from epochwatt.board.training.optimisers import make_optimiser

    torch.manual_seed(0)
    with torch.device(device):
        network = what.build().to(device).train()
    if device == "cuda":  # a network that is made in fp32 and then cast, say
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    if manner.checkpointing:
        allocated.checkpoint_blocks(network)
    optimiser = make_optimiser(network, manner.optimiser)
    minibatch = _filled(what.sample(), batch_size, device)
    for _ in range(steps):
        start_s = time.perf_counter()
        optimiser.zero_grad()
        for _ in range(manner.accumulate):
            with torch.autocast(device, torch.bfloat16, enabled=manner.precision == "bf16"):
                loss = what.loss(network, minibatch)
            loss.backward()
        optimiser.step()
        if step_s is not None:
            torch.cuda.synchronize()
            step_s.append(time.perf_counter() - start_s)


def _filled(values: Any, size: int, device: str) -> Any:
    """Return a mini-batch of `size` copies of a sample."""
    if isinstance(values, torch.Tensor):
        return values.expand(size, *values.shape[1:]).clone().to(device)
    if isinstance(values, dict):
        return {key: _filled(value, size, device) for key, value in values.items()}
    return [_filled(value, size, device) for value in values]


def profiled(case: dict[str, Any]) -> dict[str, int]:
    """Return the peak of allocated bytes by torch's profiler."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        train(case, allocated.STEPS)
    events = profiler.profiler.kineto_results.events()
    changes = sorted((e.start_ns(), e.nbytes()) for e in events if e.name() == "[memory]")
    return {"peak": int(np.cumsum([n for _, n in changes]).max())}


def watched(case: dict[str, Any]) -> dict[str, int]:
    """Return the resident memory before and at most during training, bytes."""
    subject(case["network"]).sample()  # what it imports
    before = _status("VmRSS")
    train(case, STEPS)
    return {"before": before, "peak": _status("VmHWM")}


def on_gpu(case: dict[str, Any]) -> dict[str, int]:
    """Return what training takes of a GPU, bytes: its tensors, torch's allocator, the process.

    `blas`: what cuBLAS takes of the tensors for each thread that multiplies
    """
    before = _status("VmRSS")
    train(case, STEPS, "cuda")
    torch.cuda.synchronize()
    blas = int(MIB * blas_mib(torch.cuda.get_device_capability()[0]))
    return {**gpu_bytes(), "blas": blas, "rss_before": before, "rss": _status("VmHWM")}


def gpu_bytes() -> dict[str, int]:
    """Return what this process took of the GPU at most, and what it holds beside tensors."""
    free, total = torch.cuda.mem_get_info()
    return {
        "allocated": torch.cuda.max_memory_allocated(),
        "reserved": torch.cuda.max_memory_reserved(),
        # of the card, by whomever: the context is what is left where nobody else is there
        "outside": total - free - torch.cuda.memory_reserved(),
    }


def _status(key: str) -> int:
    with open("/proc/self/status", encoding="ascii") as status:
        return next(1024 * int(line.split()[1]) for line in status if line.startswith(key))


if __name__ == "__main__":
    tasks = {"profiled": profiled, "watched": watched, "on_gpu": on_gpu}
    print(json.dumps(tasks[sys.argv[1]](json.loads(sys.argv[2]))))
