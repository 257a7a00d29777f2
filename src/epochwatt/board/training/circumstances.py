"""Describe the circumstances of a measurement for its record (board side: Python 3.6 grammar)."""

from typing import Any, Dict, List

import torch

from epochwatt import columns
from epochwatt.board.device import host
from epochwatt.board.device.machine import Machine
from epochwatt.board.records.shapes import Document
from epochwatt.board.training.stops import has_stopped


def circumstances(machine: Machine, device: torch.device, gpu: str) -> Document:
    """Return what every record says of versions, machine and software.

    Parameters
    ----------
    device : where torch computes
    gpu : which GPU that is (`training.gpu.gpu_of`)
    """
    meta: Document = {
        "schema_version": columns.SCHEMA_VERSION,
        "protocol": columns.PROTOCOL,
        "backend": machine.backend,
        "boot_id": host.boot_id(),
        "torch_threads_used": int(torch.get_num_threads()),
    }
    meta.update(machine.describe())
    if device.type == "cuda":
        meta["gpu_uuid"] = gpu
        meta["machine"]["gpu"] = torch.cuda.get_device_name(device)
        meta["software"]["cuda"] = torch.version.cuda
    return meta


def mode_flags(meta: Document, wanted: Dict[str, Any], unmet: Dict[str, float]) -> Dict[str, bool]:
    """Return flag -> whether it holds, of those that any measurement of a mode may have.

    Parameters
    ----------
    meta : its record, with `telemetry_lost` and `stops`
    wanted, unmet : clocks of the mode, and what those were that were not as it wants them
    """
    below = [key for key in unmet if key != "cores" and unmet[key] < wanted[key]]
    return {
        "clock_below_request": bool(below),
        "mode_not_met": bool(set(unmet) - set(below)),
        "sampler_lost": meta["telemetry_lost"],
        "stopped": has_stopped(meta["stops"]),
    }


def raised(flags: Dict[str, bool]) -> List[str]:
    """Return the flags that hold, in order."""
    return sorted(flag for flag, holds in flags.items() if holds)
