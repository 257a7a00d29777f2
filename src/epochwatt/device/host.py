"""Description of the machine at hand: CPU, memory, software (board side: Python 3.6 grammar)."""

import hashlib
import os
import platform
import re
import sys
from typing import Any, Dict, Optional

_LIBRARIES = ("torch", "torchvision", "numpy", "PIL")
# How variables begin by which the same libraries train at another speed: threads, memory, GPU.
# Those that name versions and folders, as CUDA_HOME in NVIDIA's images, are not among them.
TUNING = (
    *("OMP_", "GOMP_", "KMP_", "MKL_", "OPENBLAS_", "MALLOC_", "GLIBC_TUNABLES"),
    *("CUDA_LAUNCH_", "CUDA_MODULE_", "CUDA_DEVICE_", "CUDA_VISIBLE_", "CUBLAS_WORKSPACE_"),
    *("PYTORCH_ALLOC_", "PYTORCH_CUDA_ALLOC_", "PYTORCH_NO_CUDA_", "TORCH_ALLOW_", "TORCH_CUDNN_"),
    "NVIDIA_TF32_",
)
PRELOADED = "LD_PRELOAD"  # such as another allocator


def describe() -> Dict[str, Any]:
    """Return the description of this machine for a record.

    `machine` and `software` must stay the same within a run (a change flags the epoch and those
    after it); `host_state` may differ between epochs. Versions are those of the libraries already
    imported: a description must not cost an import. `builds` tells builds of one version apart,
    `environment` holds the variables that make them faster or slower.
    """
    return {
        "machine": {
            "architecture": platform.machine(),
            "cpu_model": _cpu_model(),
            "n_cpus": os.cpu_count(),
            "ram_gib": round(_meminfo_kib("MemTotal") / 2.0**20),
        },
        "software": dict(
            {"python": platform.python_version(), "kernel": platform.release()},
            **{
                name: str(getattr(sys.modules[name], "__version__", "unknown"))
                for name in _LIBRARIES
                if name in sys.modules
            },
        ),
        "builds": _builds(),
        "environment": {
            name: value
            for name, value in sorted(os.environ.items())
            if name.startswith(TUNING) or name == PRELOADED
        },
        "host_state": {
            "hostname": platform.node(),
            "shm_mib": shm_mib(),
            "load_1min": round(os.getloadavg()[0], 2),
            "ram_available_mib": _meminfo_kib("MemAvailable") // 1024,
        },
    }


def _builds() -> Dict[str, str]:
    """Return how the interpreter and, once it is imported, torch were built."""
    builds = {"python": sys.version.replace("\n", " ")}
    if "torch" in sys.modules:
        text = sys.modules["torch"].__config__.show()
        builds["torch"] = hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]
    return builds


def shm_mib() -> int:
    """Return the size of shared memory, MiB: loader workers hand their mini-batches over in it."""
    try:
        status = os.statvfs("/dev/shm")
    except OSError:
        return 0
    return status.f_blocks * status.f_frsize // 2**20


def boot_id() -> str:
    """Return the kernel's id of this boot; empty where it cannot be read."""
    return _read("/proc/sys/kernel/random/boot_id").strip()


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as handle:
            return handle.read()
    except OSError:
        return ""


def _cpu_model() -> str:
    for line in _read("/proc/cpuinfo").splitlines():
        key, _, value = line.partition(":")
        if key.strip() in ("model name", "Model"):
            return value.strip()
    return platform.processor() or "unknown"


def meminfo_kib(root: str, name: str) -> Optional[int]:
    """Return a number of /proc/meminfo below `root`; None where it is missing."""
    match = re.search(
        f"^{name}:[ \t]*([0-9]{{1,15}}) kB$",
        _read(os.path.join(root, "proc/meminfo")),
        re.MULTILINE,
    )
    return int(match.group(1)) if match else None


def _meminfo_kib(name: str) -> int:
    return meminfo_kib("/", name) or 0
