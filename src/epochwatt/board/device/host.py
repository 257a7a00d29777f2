"""Describe the machine at hand: CPU, memory, software (board side: Python 3.6 grammar)."""

import hashlib
import os
import platform
import re
import resource
import sys
from typing import List, NamedTuple, Optional, Tuple

from epochwatt.board.records.files import csv_rows
from epochwatt.board.records.shapes import Document

_LIBRARIES = ("torch", "torchvision", "numpy", "PIL")
# How variables begin by which the same libraries train at another speed: threads, memory, GPU.
# Those that name versions and folders, as CUDA_HOME in NVIDIA's images, are not among them.
TUNING = (
    *("OMP_", "GOMP_", "KMP_", "MKL_", "OPENBLAS_", "MALLOC_", "GLIBC_TUNABLES"),
    *("CUDA_LAUNCH_", "CUDA_MODULE_", "CUDA_DEVICE_", "CUDA_VISIBLE_", "CUBLAS_WORKSPACE_"),
    *("PYTORCH_ALLOC_", "PYTORCH_CUDA_ALLOC_", "PYTORCH_NO_CUDA_", "TORCH_ALLOW_", "TORCH_CUDNN_"),
    "NVIDIA_TF32_",
)
SHM = "/dev/shm"
PRELOADED = "LD_PRELOAD"  # such as another allocator


def describe() -> Document:
    """Describe CPU, memory, software and present state of this machine, for a record.

    `machine` and `software` must stay the same within a run (a change flags the epoch and those
    after it); `host_state` may differ between epochs. Versions are those of the libraries already
    imported: a description must not cost an import. `builds` tells builds of one version apart,
    `environment` holds the variables that make them faster or slower.
    """
    builds = {"python": sys.version.replace("\n", " ")}
    if "torch" in sys.modules:
        text = sys.modules["torch"].__config__.show()
        builds["torch"] = hashlib.sha256(text.encode("utf-8")).hexdigest()[:16]
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
        "builds": builds,
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


def shm_mib() -> int:
    """Return the size of shared memory, MiB: loader workers hand their mini-batches over in it."""
    sizes = shm_bytes()
    return 0 if sizes is None else sizes[0] // 2**20


def shm_bytes() -> Optional[Tuple[int, int]]:
    """Return size and free part of shared memory; None: there is none."""
    try:
        status = os.statvfs(SHM)
    except OSError:
        return None
    return status.f_blocks * status.f_frsize, status.f_bavail * status.f_frsize


def shm_words() -> str:
    """Describe size and free part of shared memory for a message."""
    sizes = shm_bytes()
    if sizes is None:
        return f"there is no {SHM}"
    total, free = sizes
    return f"{SHM} has {in_bytes(total)}, {in_bytes(free)} of them free"


def memory_words() -> str:
    """Return size and free part of the memory for a message."""
    total, free = (1024 * _meminfo_kib(name) for name in ("MemTotal", "MemAvailable"))
    return f"{in_bytes(total)}, {in_bytes(free)} of them free now"


def memory_limits() -> List[str]:
    """Describe the limits (ulimit, control group) below the machine's memory; empty: none."""
    limits = []
    for limit, letter in ((resource.RLIMIT_AS, "v"), (resource.RLIMIT_DATA, "d")):
        soft = resource.getrlimit(limit)[0]
        if soft != resource.RLIM_INFINITY:
            limits.append(f"`ulimit -{letter}` is {soft // 1024} ({in_bytes(soft)})")
    least = min((group.limit for group in memory_groups()), default=None)
    if least is not None and least < 1024 * _meminfo_kib("MemTotal"):
        limits.append(f"its control group (container, service or job) has {in_bytes(least)}")
    return limits


class MemoryGroup(NamedTuple):
    """A control group with a limit of memory that this process is in; bytes."""

    limit: int
    used: int  # without what is kept of files, which the kernel takes back
    kills: int  # of its processes, for want of memory


def memory_groups() -> List[MemoryGroup]:
    """Return the control groups of this process that have a limit of memory, outermost first."""
    groups = []
    for row in _read("/proc/self/cgroup").splitlines():
        _, controllers, path = row.split(":", 2)
        if controllers == "":
            top, names = "/sys/fs/cgroup", ("memory.max", "memory.current", "memory.events")
        elif "memory" in controllers.split(","):
            top = "/sys/fs/cgroup/memory"
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "memory.oom_control")
        else:
            continue
        parts = path.strip("/").split("/")
        # in a container the path may be that outside of it, and the top the container's own
        for n in range(len(parts) + 1):
            folder = os.path.join(top, *parts[:n])
            limit, used, events = (_read(os.path.join(folder, name)) for name in names)
            if not limit.strip().isdigit():
                continue
            stat = _read(os.path.join(folder, "memory.stat"))
            prefix = "" if controllers == "" else "total_"
            of_files = sum(_number(f"{prefix}{kind}_file", stat) for kind in ("active", "inactive"))
            held = int(used) - of_files if used.strip().isdigit() else 0
            groups.append(MemoryGroup(int(limit), max(0, held), _number("oom_kill", events)))
    return groups


def _number(key: str, content: str) -> int:
    """Return the number behind a key at the beginning of a line; 0: there is none."""
    match = re.search(f"^{key} ([0-9]+)$", content, re.MULTILINE)
    return int(match.group(1)) if match else 0


def free_memory() -> int:
    """Return how much memory a new process may take: of the machine and its control groups, bytes.

    What the page cache holds counts as free.
    """
    free = [1024 * _meminfo_kib("MemAvailable")]
    return max(0, min(free + [group.limit - group.used for group in memory_groups()]))


def oom_kills() -> Optional[int]:
    """Return how many processes the kernel has killed for want of memory since the machine started.

    None: the kernel does not count them (before 4.13).
    """
    match = re.search("^oom_kill ([0-9]+)$", _read("/proc/vmstat"), re.MULTILINE)
    return int(match.group(1)) if match else None


def oom_message() -> str:
    """Return the kernel's last message on a process that it killed for want of memory.

    Empty: there is none, or this user may not read its log.
    """
    messages = []
    try:
        log = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return ""
    try:
        while True:
            try:
                messages.append(os.read(log, 8192).decode("utf-8", "replace"))
            except BrokenPipeError:  # overwritten meanwhile
                continue
    except OSError:  # all is read
        pass
    finally:
        os.close(log)
    killed = [re.search(r"Killed process \d+ \(.*?anon-rss:\d+kB", text) for text in messages]
    return next((match.group(0) for match in reversed(killed) if match), "")


def in_bytes(n: int) -> str:
    """Format a number of bytes in GiB, MiB or KiB."""
    for unit, size in (("GiB", 2**30), ("MiB", 2**20)):
        if n >= size:
            return f"{n / float(size):.1f} {unit}"
    return f"{n // 1024} KiB"


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
    """Return the name of the CPU; on arm64, whose kernels may print numbers only, that of its core.

    The numbers are those of the MIDR register (SOURCE: arch/arm64/include/asm/cputype.h).
    """
    rows = [line.partition(":") for line in _read("/proc/cpuinfo").splitlines()]
    values = {key.strip(): value.strip() for key, _, value in rows[::-1]}
    for key in ("model name", "Model"):
        if values.get(key):
            return values[key]
    maker, part = values.get("CPU implementer"), values.get("CPU part")
    if maker and part:
        # of the boards, and of servers that a fleet may have
        cores = csv_rows(__file__, "arm_cores.csv")
        names = [core for *numbers, core in cores if numbers == [maker, part]]
        return names[0] if names else f"ARM core, maker {maker}, part {part}"
    return platform.processor() or "unknown"


def meminfo_kib(root: str, name: str) -> Optional[int]:
    """Return a number of /proc/meminfo below `root`; None where it is missing."""
    content = _read(os.path.join(root, "proc/meminfo"))
    match = re.search(f"^{name}:[ \t]*([0-9]{{1,15}}) kB$", content, re.MULTILINE)
    return int(match.group(1)) if match else None


def _meminfo_kib(name: str) -> int:
    return meminfo_kib("/", name) or 0
