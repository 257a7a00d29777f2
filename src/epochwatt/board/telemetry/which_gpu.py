"""Find the GPU that a process computes on, for CUDA and for NVML (board side: Python 3.6 grammar).

CUDA numbers the GPUs it may use, the fastest first; NVML numbers all of the machine by their place
on the bus. Only the UUID means the same to both, so the trainer passes that of its GPU to the
sampler. It asks CUDA's driver library: torch 1.8 tells no UUID, later ones do not say whether it
is a card's or that of a part of it (MIG).

Source: CUDA programming guide, environment variables; CUDA driver API, cuDeviceGetUuid (since 9.2)
and cuDeviceGetUuid_v2 (since 11.4: of the part, where the card is divided); NVML API reference,
device queries and MIG.
"""

import ctypes
import os
import uuid
from typing import Any, Dict, List, Optional, Tuple

from epochwatt.board.telemetry.source import in_words

ANY = "any"  # nobody trains: the GPU that CUDA would call 0, if that is certain
NONE = "none"  # the training is on the CPU
UNKNOWN = "unknown"  # it is on a GPU that cannot be named
DRIVER = "libcuda.so.1"

Gpu = Tuple[str, Any]  # its UUID as NVML gives it, and its handle


# -- in the process that computes ------------------------------------------------------------------
def gpu_of(device: Any, torch: Any, driver: Any = None) -> str:
    """Return the UUID of the GPU that a torch device is, `NONE` (a CPU) or `UNKNOWN`.

    `driver`: CUDA's driver library, None: it is looked for. Where it does not answer, torch's UUID
    is taken.
    """
    if device.type != "cuda":
        return NONE
    index = device.index or 0
    torch_uuid = getattr(torch.cuda.get_device_properties(index), "uuid", None)
    return _from_driver(index, driver) or (UNKNOWN if torch_uuid is None else str(torch_uuid))


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
    """Ask the CUDA driver for a GPU's UUID; None: there is no driver, or it fails."""
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


# -- in the sampler --------------------------------------------------------------------------------
def choose(nvml: Any, gpu: str, environment: Optional[Dict[str, str]] = None) -> Any:
    """Return NVML's handle of a GPU; None where there is none to look at.

    `nvml`: the module `pynvml`, initialised, or what stands for it in a test
    `gpu`: `ANY`, `NONE`, `UNKNOWN` or the UUID that CUDA gives, with or without `GPU-`
    `environment`: where CUDA's variables stand, for `ANY`; None: this process's

    Raises ValueError: there is one, but its power cannot be attributed: why.
    """
    if gpu == NONE:
        return None
    if gpu == UNKNOWN:
        raise ValueError("CUDA does not say which GPU the training is on, so none is read")
    gpus: List[Gpu] = []  # those of the machine that this user may ask, in the order of the bus
    for index in range(nvml.nvmlDeviceGetCount()):
        try:
            handle = nvml.nvmlDeviceGetHandleByIndex(index)
            gpus.append((text(nvml.nvmlDeviceGetUUID(handle)), handle))
        except nvml.NVMLError:
            continue  # another container's
    if gpu == ANY:
        chosen = _first_visible(gpus, dict(os.environ if environment is None else environment))
    else:
        chosen = _by_uuid(nvml, gpus, gpu)
    if chosen is not None and _is_divided(nvml, chosen[1]):
        raise ValueError(
            f"{chosen[0]} is divided (MIG): NVML reports the power of the whole card, not of the "
            "part that computes"
        )
    return None if chosen is None else chosen[1]


def text(answer: Any) -> str:
    """Return an answer of NVML as text; older modules give bytes."""
    return answer.decode("utf-8", "replace") if isinstance(answer, bytes) else str(answer)


def _by_uuid(nvml: Any, gpus: List[Gpu], uuid: str) -> Gpu:
    """Return the GPU with that UUID; ValueError: NVML has none, or it is a part of one."""
    wanted = uuid[4:] if uuid[:4] in ("GPU-", "MIG-") else uuid
    for name, handle in gpus:
        if name[4:].lower() == wanted.lower():
            return name, handle
    if any(_is_divided(nvml, handle) for _, handle in gpus):
        raise ValueError(
            f"the training is on {uuid}, a part of a divided GPU (MIG): NVML reports the power of "
            "whole cards only"
        )
    raise ValueError(
        "the training is on {}, NVML knows {}: the power of another GPU would be recorded".format(
            uuid, ", ".join(name for name, _ in gpus) or "no GPU"
        )
    )


def _first_visible(gpus: List[Gpu], environment: Dict[str, str]) -> Optional[Gpu]:
    """Return the GPU that CUDA would call 0; None: it sees none; ValueError: it is not certain."""
    first = environment.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0].strip()
    if first[:4].upper() == "MIG-":
        raise ValueError(
            f"CUDA_VISIBLE_DEVICES names {first}, a part of a divided GPU (MIG): NVML reports the "
            "power of whole cards only"
        )
    if not first.isdigit():
        matching = [gpu for gpu in gpus if first and gpu[0].lower().startswith(first.lower())]
        return matching[0] if len(matching) == 1 else None  # so does CUDA: not unique is invalid
    if int(first) >= len(gpus):
        return None
    if len(gpus) > 1 and environment.get("CUDA_DEVICE_ORDER") != "PCI_BUS_ID":
        raise ValueError(
            f"{len(gpus)} GPUs, and CUDA may number them otherwise than NVML does: set "
            "CUDA_VISIBLE_DEVICES to a UUID, or CUDA_DEVICE_ORDER=PCI_BUS_ID"
        )
    return gpus[int(first)]


def _is_divided(nvml: Any, handle: Any) -> bool:
    try:
        return bool(nvml.nvmlDeviceGetMigMode(handle)[0])
    except (nvml.NVMLError, AttributeError):  # a card or a module without it
        return False
