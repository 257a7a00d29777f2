"""Set a run's precision, and compile its network (board side: Python 3.6; imports torch).

`fp32` leaves torch as it comes: on GPUs from Ampere on, its convolutions may then compute in TF32.
`tf32` allows that for matrix products, too. `fp16` and `bf16` are autocast, fp16 with its gradients
scaled. Which kinds of arithmetic were allowed is recorded. What the device's torch lacks is refused
before anything is measured.
"""

from typing import Any, Optional

import torch
from torch import nn

from epochwatt.board.records.shapes import Document
from epochwatt.columns import Factors
from epochwatt.errors import TrainingError

AUTOCAST = {"fp16": torch.float16, "bf16": torch.bfloat16}
AMPERE = (8, 0)  # compute capability: the first with TF32 and BF16 in its matrix units
_WITHOUT = "choose `precision: fp32`, or measure where torch has it"


def check(factors: Factors, device: torch.device) -> None:
    """Refuse arithmetic that torch or the device lacks; TrainingError says what and why.

    `precision` and `compile` of a run older than these factors are the defaults.
    """
    _check_precision(factors.get("precision", "fp32"), device)
    if factors.get("compile", "off") == "on" and not hasattr(torch, "compile"):
        raise TrainingError(
            f"compile: on needs torch 2 or newer, and this is torch {torch.__version__}",
            do="choose `compile: off`",
        )


def _check_precision(precision: str, device: torch.device) -> None:
    if device.type == "cuda":
        capability = torch.cuda.get_device_capability(device)
        if precision in ("tf32", "bf16") and capability < AMPERE:
            raise TrainingError(
                f"precision: {precision} needs a GPU of compute capability 8.0 (Ampere) or newer",
                found="{}, {}.{}".format(torch.cuda.get_device_name(device), *capability),
                do=_WITHOUT,
            )
    elif precision == "tf32":
        raise TrainingError(
            "precision: tf32 is arithmetic of NVIDIA's GPUs, and torch sees none here", do=_WITHOUT
        )
    if precision not in AUTOCAST:
        return
    try:
        dtype = _tried(precision, device)
    except Exception as error:
        raise TrainingError(
            f"torch {torch.__version__} cannot train in {precision} on {device.type}",
            found=str(error).split("\n")[0],
            do=_WITHOUT,
        ) from error
    if dtype != AUTOCAST[precision]:
        raise TrainingError(
            f"autocast of torch {torch.__version__} on {device.type} does not compute in "
            f"{precision}",
            found=str(dtype),
            do=_WITHOUT,
        )


def _tried(precision: str, device: torch.device) -> torch.dtype:
    """Train a tiny network for a step; return in what its matrix product was computed."""
    generator_state = torch.get_rng_state()
    network = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(8, 2)).to(device)
    with autocast(precision, device):
        outputs = network(torch.ones(1, 1, 4, 4, device=device))
    scaler = make_scaler(precision, device)
    loss = outputs.float().sum()
    (loss if scaler is None else scaler.scale(loss)).backward()
    torch.set_rng_state(generator_state)
    dtype: torch.dtype = outputs.dtype
    return dtype


def autocast(precision: str, device: torch.device) -> Any:
    """Return the context in which matrix products and convolutions compute in fp16 or bf16."""
    if hasattr(torch, "autocast"):
        return torch.autocast(device.type, dtype=AUTOCAST[precision])
    if precision == "fp16" and device.type == "cuda":  # torch < 1.10
        return torch.cuda.amp.autocast()
    raise TrainingError(f"its autocast knows fp16 on GPUs alone: torch {torch.__version__}")


def make_scaler(precision: str, device: torch.device) -> Optional[Any]:
    """Return what keeps gradients of fp16 from vanishing; None: the precision needs none."""
    if precision != "fp16":
        return None
    if hasattr(torch, "amp") and hasattr(torch.amp, "GradScaler"):
        return torch.amp.GradScaler(device.type)
    if device.type == "cuda":  # torch < 2.3
        return torch.cuda.amp.GradScaler()
    raise TrainingError(f"it scales gradients on GPUs alone: torch {torch.__version__}")


def allow(precision: str) -> None:
    """Let matrix products and convolutions use TF32 where that was asked for; else touch nothing.

    The setting is the process's own, which is why a process measures one run.
    """
    if precision == "tf32":
        torch.backends.cuda.matmul.allow_tf32 = True
        torch.backends.cudnn.allow_tf32 = True


def describe(factors: Factors, device: torch.device) -> Document:
    """Return which arithmetic was allowed, for the record; None: means nothing on the device."""
    dtype = AUTOCAST.get(factors.get("precision", "fp32"))
    on_gpu = device.type == "cuda"
    return {
        "autocast": None if dtype is None else str(dtype).replace("torch.", ""),
        "gradients_scaled": factors.get("precision") == "fp16" and factors.get("task") != "infer",
        "tf32_products": torch.backends.cuda.matmul.allow_tf32 if on_gpu else None,
        "tf32_convolutions": torch.backends.cudnn.allow_tf32 if on_gpu else None,
        "compiled": factors.get("compile", "off") == "on",
    }
