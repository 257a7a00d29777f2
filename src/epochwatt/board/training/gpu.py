"""Identify the GPU that a process trains on (board side: Python 3.6 grammar).

Asked of CUDA's driver library, so the answer does not depend on the version of torch: torch 1.8
tells no UUID, later ones do not say whether it is a card's or that of a part of it (MIG).

Source: CUDA driver API, cuDeviceGetUuid (since 9.2) and cuDeviceGetUuid_v2 (since 11.4: of the
part, where the card is divided).
"""

import ctypes
import uuid
from typing import Any, Optional

from epochwatt.board.telemetry import which_gpu
from epochwatt.board.telemetry.source import in_words

DRIVER = "libcuda.so.1"


def gpu_of(device: Any, torch: Any, driver: Any = None) -> str:
    """Return what the sampler has to know of the GPU that trains (`telemetry.which_gpu`).

    Parameters
    ----------
    device : torch's device
    driver : CUDA's driver library; None: it is looked for
    """
    if device.type != "cuda":
        return which_gpu.NONE
    index = device.index or 0
    return _from_driver(index, driver) or _from_torch(index, torch) or which_gpu.UNKNOWN


def why_none(torch: Any) -> str:
    """Return why torch finds no GPU, in its own words (`device.remedies` knows them)."""
    if torch.version.cuda is None:
        return "Torch not compiled with CUDA enabled"
    try:
        torch.cuda.init()
    except Exception as error:  # noqa: BLE001  RuntimeError, AssertionError, those of the driver
        return in_words(error)
    return "No CUDA GPUs are available"


def _from_driver(index: int, driver: Any) -> Optional[str]:
    try:
        library = ctypes.CDLL(DRIVER) if driver is None else driver
        number, answer = ctypes.c_int(), (ctypes.c_ubyte * 16)()
        ask = getattr(library, "cuDeviceGetUuid_v2", None) or library.cuDeviceGetUuid
        failed = (
            library.cuInit(0)
            or library.cuDeviceGet(ctypes.byref(number), index)
            or ask(ctypes.byref(answer), number)
        )
    except (OSError, AttributeError):  # no such library, or an old one
        return None
    return None if failed else str(uuid.UUID(bytes=bytes(answer)))


def _from_torch(index: int, torch: Any) -> Optional[str]:
    uuid = getattr(torch.cuda.get_device_properties(index), "uuid", None)
    return None if uuid is None else str(uuid)
