"""Explain what libraries and the kernel say when they fail (board side: Python 3.6).

One table for jobs, for `epochwatt doctor` and for the sampler, so that all of them say the same.
The messages are those that people report from boards; tests/data/failures.csv names where.
"""

import platform
import re
import signal
import sys
from typing import Any, NamedTuple, Optional, Tuple

from epochwatt.board.device import host

SOFTWARE = "docs/how-to/jetson-torch.md"
_PYTHON = "name an interpreter that can under `python:` in config/devices/"
_THIS_JETPACK = f"install torch for this JetPack: {SOFTWARE}"
_PAIR = f"install the torchvision of the same release as torch: {SOFTWARE}"
_MEMORY = (
    "end other programs, turn off the desktop, add swap on a disk that is not measured, or take a "
    "smaller batch_size and fewer num_workers"
)
MORE_SHARED_MEMORY = (
    "in a container: --shm-size=2g; else: sudo mount -o remount,size=2G /dev/shm; or num_workers: 0"
)
_SAME_PYTHON = (
    "use one Python for both: sudo {python} -m pip install --force-reinstall jetson-stats (7.x: "
    "then sudo jtop --install-service), or train with the Python that jtop.service runs in "
    "(`python:` in config/devices/)"
)
_RESTART = "sudo systemctl restart jtop.service"
_PACKAGES = {  # how the name of a library begins: how it comes onto the system
    "libcusparseLt": "sudo apt-get install libcusparselt0 (from NVIDIA's CUDA repository: "
    f"{SOFTWARE})",
    "libcudss": f"sudo apt-get install cudss (from NVIDIA's CUDA repository: {SOFTWARE})",
    "libnvpl": f"pip install nvpl-lapack nvpl-blas (from jetson-ai-lab's index: {SOFTWARE})",
    "libopenblas": "sudo apt-get install libopenblas-dev",
    "liblapack": "sudo apt-get install libopenblas-dev",
    "libmpi": "sudo apt-get install libopenmpi-dev; where the number of the library differs, torch "
    f"is for another JetPack: {SOFTWARE}",
    "libgomp": "sudo apt-get install libgomp1",
    "libomp": "sudo apt-get install libomp5",
    "libjpeg": "sudo apt-get install libjpeg-dev libpng-dev",
    "libpng": "sudo apt-get install libjpeg-dev libpng-dev",
    "libgfortran": "sudo apt-get install libgfortran5",
    "libtorch": _PAIR,
    "libc10": _PAIR,
}
# CUDA and what else JetPack brings, or the NVIDIA runtime mounts into a container
_OF_JETPACK = (
    "lib(cu(da|dart|blas|blasLt|dnn|fft|file|pti|rand|solver|sparse)|nccl|nv|tegra)"
    r"[\w.-]*\.so|lib(cu|nv)\w+\.so\.\*"
)

_TOO_MANY_FILES = (
    "this process may not open as many files as the workers share",
    "ulimit -n 4096, then start again, or fewer num_workers",
)
ENOUGH_SHM = 512 * 2**20  # eight mini-batches of 64 pictures of 224x224, and as much again
_SIGNALS = {  # but for those of shared memory, which torch says itself
    "Killed": signal.SIGKILL,
    "Segmentation fault": signal.SIGSEGV,
    "Illegal instruction": signal.SIGILL,
    "Aborted": signal.SIGABRT,
}

Remedy = NamedTuple(
    "Remedy",
    [
        ("cause", str),
        ("do", str),
        ("line", str),  # of the message, by which it was known
    ],
)


def _for_library(match: Any) -> Tuple[str, str]:
    """Return cause and remedy of a shared library that is missing."""
    name = match.group("lib")
    for start, do in _PACKAGES.items():
        if name.startswith(start):
            return f"the library {name} is missing", do
    if re.match(_OF_JETPACK, name):
        return (
            f"torch needs {name}, which this system does not have: it was built for another "
            "JetPack, or CUDA is not installed",
            f"{_THIS_JETPACK}; CUDA: sudo apt-get install nvidia-jetpack; in a container: "
            "--runtime nvidia",
        )
    return (
        f"the library {name} is missing",
        f"install the package that has it: apt-file search {name}",
    )


def _of_memory(match: Any) -> Tuple[str, str]:
    limits = host.memory_limits()
    if limits:
        return f"out of memory within its limit: {', '.join(limits)}", (
            "raise the limit (`ulimit -v unlimited`; --memory of the container; MemoryMax of the "
            "service)"
        )
    return f"out of memory: {host.memory_words()}", _MEMORY


def _of_shared_memory(match: Any) -> Tuple[str, str]:
    sizes = host.shm_bytes()
    if sizes is None or sizes[1] < ENOUGH_SHM:
        return f"shared memory is too small or full: {host.shm_words()}", MORE_SHARED_MEMORY
    if "open shared memory object" in match.group(0) and "(" not in match.string[match.end() :]:
        return _TOO_MANY_FILES
    return (
        f"shared memory was too small or full ({host.shm_words()} now), or a file of the data set "
        "was cut short or cannot be read",
        f"{MORE_SHARED_MEMORY}; else look for errors of the disk (dmesg)",
    )


Entry = Tuple[str, Any]  # pattern; cause and remedy, or a function of the match that makes them

_SO = r"(?P<lib>[\w./+~-]+\.so[\w.-]*)"
_IN_SHM = r"/dev/shm(/pym-|/torch_|/sem\.|'|$)"  # not the data sets that people keep there
_TABLE: Tuple[Entry, ...] = (
    (
        _SO + ": cannot allocate memory in static TLS block",
        (
            "{lib} is loaded too late: the memory that libraries share for their threads is used "
            "up",
            "export LD_PRELOAD={lib}, then start again (for good: `python: [env, "
            "LD_PRELOAD={lib}, {python}]` in config/devices/)",
        ),
    ),
    (
        "cannot load any more object with static TLS",
        (
            "a library is loaded too late: the memory that libraries share for their threads is "
            "used up",
            "export LD_PRELOAD=/usr/lib/{machine}-linux-gnu/libgomp.so.1, then start again",
        ),
    ),
    # -- shared memory, before memory: their messages name both
    (
        "(Permission denied|Read-only file system|Function not implemented)[^/]*" + _IN_SHM,
        (
            "this user may not write to /dev/shm, where workers hand over mini-batches",
            "sudo chmod 1777 /dev/shm; in a container: --tmpfs /dev/shm; or num_workers: 0",
        ),
    ),
    (
        r"insufficient shared memory|raise your shared memory limit|signal: Bus error|"
        rf"No space left[^/]*{_IN_SHM}|"
        r"(open shared memory object|mmap|write to file|allocate memory).*</?torch_(?!.*\(24\))|"
        r"shared memory object.*No space left",
        _of_shared_memory,
    ),
    (
        r"Too many open files|received 0 items of ancdata|</torch_.*\(24\)",
        _TOO_MANY_FILES,
    ),
    # -- libraries that cannot be loaded
    (
        _SO + ": failed to map segment from shared object: Operation not permitted",
        (
            "{lib} lies on a file system that is mounted noexec",
            "install the package elsewhere, or: sudo mount -o remount,exec",
        ),
    ),
    (
        _SO + ": (failed to map segment|cannot map)|cannot map zero-fill pages",
        _of_memory,
    ),
    (
        _SO + ": cannot enable executable stack",
        (
            "this system allows no executable stack, which {lib} asks for",
            "a newer build of the package, or: sudo patchelf --clear-execstack {lib}",
        ),
    ),
    (
        _SO + ": file too short",
        (
            "{lib} is empty: NVIDIA's libraries are not mounted into this container, or the file "
            "was cut short",
            "start the container with --runtime nvidia (`runtime: nvidia` of its entry in "
            "config/devices/); else install its package again",
        ),
    ),
    (
        _SO + ": (invalid ELF header|wrong ELF class)|Exec format error",
        ("a package was built for another processor", _THIS_JETPACK),
    ),
    (r"(?P<lib>lib[\w+.-]*?\.so[\w.-]*): cannot open shared object file", _for_library),
    (r"(?P<lib>lib\w+\.so\.\*\S*) not found in the system path", _for_library),
    (
        r"version [`'](?P<symbol>GLIBC_[\w.]+|GLIBCXX_[\w.]+|CXXABI_[\w.]+)' not found",
        (
            "a library needs {symbol}, which is newer than this system's: it was built for a newer "
            "Ubuntu, or an older libstdc++ (of conda) comes first",
            f"{_THIS_JETPACK}; outside of conda",
        ),
    ),
    (
        r"undefined symbol: (s|d|c|z|cblas_|LAPACKE_)\w*(gemm|gesdd|gesv|getr|potr|dot|axpy|heev)",
        ("a BLAS without LAPACK comes first", "sudo apt-get install libopenblas-dev"),
    ),
    (
        r"torchvision.*undefined symbol|undefined symbol.*torchvision|"
        r"operator torchvision::\w+ does not exist|No such operator torchvision::|"
        r"Couldn't load custom C\+\+ ops",
        ("torchvision was built for another torch", _PAIR),
    ),
    (
        r"undefined symbol: (?P<symbol>\w+)",
        ("two libraries do not fit together ({symbol} is missing)", _THIS_JETPACK),
    ),
    (
        r"_ARRAY_API not found|compiled using NumPy 1\.x|Numpy is not available|"
        r"numpy\.core\.multiarray failed to import|compiled against (ABI|API) version|"
        r"numpy\.\w+ size changed",
        (
            "torch was built for another numpy than this one",
            "{python} -m pip install 'numpy<2'",
        ),
    ),
    (
        "annotations is not defined|SyntaxError: invalid syntax",
        (
            "a package is too new for Python {version}",
            "install the last release for this Python, such as 'Pillow<9' for Python 3.6: "
            f"{SOFTWARE}",
        ),
    ),
    (
        "cannot import name '?PILLOW_VERSION",
        ("this torchvision is older than Pillow 7", f"{_PAIR}; or 'Pillow<7'"),
    ),
    (
        r"partially initialized module '(?P<module>\w+)|"
        r"No module named '(?P<part>torch|torchvision|numpy)\.|module 'torch' has no attribute",
        (
            "a file or folder named like the library comes first on the path, or its "
            "installation is not whole",
            "{python} -c 'import torch; print(torch)' shows where it lies; rename that, or install "
            "the library again",
        ),
    ),
    (
        r"No module named '?(?P<module>torch|torchvision|numpy|PIL)\b",
        ("it has no {module}", f"{_PYTHON}, or install it: {SOFTWARE}"),
    ),
    # -- the GPU
    (
        r"no kernel image is available|invalid device function|named symbol not found|"
        r"is not compatible with the current PyTorch installation",
        ("this build of torch is for other GPUs than the one here", _THIS_JETPACK),
    ),
    (
        r"driver on your system is too old|driver version is insufficient|forward compatibility",
        ("this build of torch is for a newer CUDA than that of this system", _THIS_JETPACK),
    ),
    (
        "not compiled with CUDA enabled",
        ("this build of torch knows no CUDA, as those of PyPI for aarch64", _THIS_JETPACK),
    ),
    (
        r"NvRmMem\w* failed.*Permission|CUDA unknown error|unknown error.*cuda|"
        r"no CUDA-capable device|devices? (is|are|is/are) busy or unavailable|"
        r"No CUDA GPUs are available",
        (
            "this user does not get at the GPU",
            "sudo usermod -aG video,render $USER, then restart the board; in a container: "
            "--runtime nvidia",
        ),
    ),
    (
        "Found no NVIDIA driver",
        (
            "torch finds no driver of an NVIDIA GPU here",
            f"on a board: {_THIS_JETPACK}; in a container: --runtime nvidia",
        ),
    ),
    (
        r"NVML_SUCCESS == r|NvMapMemAlloc|CUDA out of memory|CUDA error: out of memory|"
        r"CUBLAS_STATUS_ALLOC_FAILED|CUDNN_STATUS_ALLOC_FAILED",
        _of_memory,
    ),
    # -- the machine
    (
        "can't start new thread",
        (
            "this user may not start as many processes and threads",
            "see `ulimit -u`, TasksMax of the service and --pids-limit of the container",
        ),
    ),
    (
        r"cannot allocate memory|can't allocate memory|out of memory|MemoryError|bad_alloc|"
        r"could not create a primitive",
        _of_memory,
    ),
    # -- jtop
    (
        r"Mismatch of Python versions|unsupported pickle protocol|digest sent was rejected",
        ("jtop's client and its service run in different Pythons", _SAME_PYTHON),
    ),
    (
        r"Mismatch version jtop service: \[(?P<service>[\w.]+)\]",
        (
            "jtop's client and its service are of different versions",
            f"{_RESTART}; if that does not help, or in a container: {{python}} -m pip install "
            "jetson-stats=={service}",
        ),
    ),
    (
        "jtop.*version",
        ("jtop's client and its service are of different versions", _RESTART),
    ),
    (
        "no jetson-stats",
        (
            "this interpreter has no jtop",
            "sudo pip3 install jetson-stats for that interpreter, then restart",
        ),
    ),
    (
        r"jtop\.service is not active",
        ("jtop's service does not run", "sudo systemctl enable --now jtop.service"),
    ),
    (
        r"jtop.*(can't access|permission)",
        (
            "this user may not ask jtop's service",
            "sudo usermod -aG jtop $USER, then log in again",
        ),
    ),
    ("no answer from the jtop service", ("jtop's service hangs", _RESTART)),
)


def remedy_of(
    text: str, python: str = "", version: str = "", oom_kills: Optional[int] = None
) -> Optional[Remedy]:
    """Return cause and remedy of a message; None: nobody has reported it yet.

    Parameters
    ----------
    python, version : the interpreter that it is of; empty: this one
    oom_kills : `host.oom_kills` before; None: nobody looked
    """
    of_worker = _of_worker(text, python, oom_kills)
    if of_worker is not None:
        return of_worker
    for pattern, words in _TABLE:
        match = re.search(pattern, text, re.IGNORECASE)
        if match is None:
            continue
        values = {
            "python": python or sys.executable,
            "version": version or platform.python_version(),
            "machine": platform.machine(),
        }
        values.update((key, value) for key, value in match.groupdict().items() if value)
        cause, do = words(match) if callable(words) else [w.format(**values) for w in words]
        start = text.rfind("\n", 0, match.start()) + 1
        line = text[start:].partition("\n")[0].strip()
        return Remedy(cause, do, line)
    return None


def _of_worker(text: str, python: str, oom_kills: Optional[int]) -> Optional[Remedy]:
    """Return why a loader worker ended, where torch says no more than that or by which signal."""
    killed = re.search(r"killed by signal: (\w+( \w+)?)", text)
    if killed and killed.group(1) in _SIGNALS:
        return of_signal(_SIGNALS[killed.group(1)], python, oom_kills)
    if "exited unexpectedly" not in text:
        return None
    sizes = host.shm_bytes()
    if sizes is None or sizes[0] < ENOUGH_SHM:  # what a dead worker had is free again
        return Remedy(*_of_shared_memory(None), line=text)
    if oom_kills is not None and (host.oom_kills() or 0) > oom_kills:
        return of_signal(signal.SIGKILL, python, oom_kills)
    return None


def in_full(text: str) -> str:
    """Return a message with its cause before and its remedy below it, where they are known."""
    remedy = remedy_of(text)
    return text if remedy is None else f"{remedy.cause} ({text})\n  do: {remedy.do}"


def of_signal(number: int, python: str = "", oom_kills: Optional[int] = None) -> Remedy:
    """Return why a signal ended a process, and what to do.

    Parameters
    ----------
    python : the interpreter; empty: this one
    oom_kills : `host.oom_kills` before; None: nobody looked
    """
    again = "then start again"
    if number == signal.SIGILL:
        cause = "it met an instruction that this CPU does not have"
        do = f"install builds for this CPU: {SOFTWARE}"
        if platform.machine() == "aarch64":
            cause += ", as numpy 1.19.5 does on boards"
            do = f"export OPENBLAS_CORETYPE=ARMV8, {again}; else numpy 1.19.4: {SOFTWARE}"
    elif number == signal.SIGKILL:
        cause, do = _of_kill(oom_kills)
    elif number == signal.SIGBUS:
        cause = f"it met memory that is not there: {host.shm_words()}"
        do = f"{MORE_SHARED_MEMORY}; else look for errors of the disk (dmesg)"
    elif number == signal.SIGALRM:
        cause = "it took longer than it may"
        do = "try again, now that its files are in memory: a memory card is slow at first"
    else:
        cause = "a library crashed"
        do = (
            f"{python or sys.executable} -X faulthandler -c 'import torch, torchvision' shows "
            f"where; sudo apt-get install libopenblas-dev helps where BLAS is missing: {SOFTWARE}"
        )
    return Remedy(cause, do, _name(number))


def _of_kill(before: Optional[int]) -> Tuple[str, str]:
    kills = host.oom_kills()
    if kills is None:
        return "it was killed: often by the kernel for want of memory", (
            f"look for `Killed process` (dmesg); if it is there: {_MEMORY}"
        )
    n = kills - (before or 0)
    if n > 0:
        since = "since the machine was started" if before is None else "meanwhile"
        return (
            f"it was killed; {since} the kernel killed {n} for want of memory"
            + "".join(f"; {limit}" for limit in host.memory_limits()),
            _MEMORY,
        )
    return (
        "it was killed, but not by the kernel for want of memory, which would count it",
        "look for who did it (dmesg), then start again",
    )


def of_status(status: int, python: str = "") -> Optional[Remedy]:
    """Return why a program was ended, by its exit status here or in a shell.

    None: it ended by itself, or somebody asked it to, which it says.
    """
    number = -status if status < 0 else status - 128
    if not _name(number) or number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        return None
    return of_signal(number, python)


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return ""
