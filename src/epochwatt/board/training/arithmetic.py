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
    """Raise TrainingError where torch or the device lacks the run's precision or `compile`.

    Runs older than these factors have the defaults, `fp32` and `off`.
    """
    _check_precision(factors.get("precision", "fp32"), device)
    if factors.get("compile", "off") == "on" and not hasattr(torch, "compile"):
        raise TrainingError(
            f"compile: on needs torch 2 or newer, and this is torch {torch.__version__}",
            do="choose `compile: off`",
        )


def _check_precision(precision: str, device: torch.device) -> None:
    """Raise TrainingError where the device lacks a precision; autocast is tried with a step."""
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
        dtype = _autocast_dtype(precision, device)
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


def _autocast_dtype(precision: str, device: torch.device) -> torch.dtype:
    """Run a tiny network forward and backward; return the dtype of its matrix product."""
    generator_state = torch.get_rng_state()
    network = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(8, 2)).to(device)
    with autocast(precision, device):
        outputs = network(torch.ones(1, 1, 4, 4, device=device))
    scaler = make_scaler(precision, device)
    loss = outputs.float().sum()
    if scaler is not None:
        loss = scaler.scale(loss)
    loss.backward()
    torch.set_rng_state(generator_state)
    dtype: torch.dtype = outputs.dtype
    return dtype


def autocast(precision: str, device: torch.device) -> Any:
    """Return torch's autocast context for fp16 or bf16; TrainingError: this torch has none."""
    if hasattr(torch, "autocast"):
        return torch.autocast(device.type, dtype=AUTOCAST[precision])
    if precision == "fp16" and device.type == "cuda":  # torch < 1.10
        return torch.cuda.amp.autocast()
    raise TrainingError(f"its autocast knows fp16 on GPUs alone: torch {torch.__version__}")


def make_scaler(precision: str, device: torch.device) -> Optional[Any]:
    """Return a `GradScaler` for fp16, None for other precisions.

    Raises TrainingError: this torch has none for the device.
    """
    if precision != "fp16":
        return None
    if hasattr(torch, "amp") and hasattr(torch.amp, "GradScaler"):
        return torch.amp.GradScaler(device.type)
    if device.type == "cuda":  # torch < 2.3
        return torch.cuda.amp.GradScaler()
    raise TrainingError(f"it scales gradients on GPUs alone: torch {torch.__version__}")


def allow(precision: str) -> None:
    """Allow TF32 in matrix products and convolutions of the whole process, for `tf32` alone."""
    if precision == "tf32":
        torch.backends.cuda.matmul.allow_tf32 = True
        torch.backends.cudnn.allow_tf32 = True


def describe(factors: Factors, device: torch.device) -> Document:
    """Return the record's `arithmetic`: autocast's dtype (None: no autocast), scaling, TF32.

    Without a GPU the two of TF32 are None.
    """
    dtype = AUTOCAST.get(factors.get("precision", "fp32"))
    on_gpu = device.type == "cuda"
    return {
        "autocast": None if dtype is None else str(dtype).replace("torch.", ""),
        "gradients_scaled": factors.get("precision") == "fp16" and factors.get("task") != "infer",
        "tf32_products": torch.backends.cuda.matmul.allow_tf32 if on_gpu else None,
        "tf32_convolutions": torch.backends.cudnn.allow_tf32 if on_gpu else None,
        "compiled": factors.get("compile", "off") == "on",
    }
