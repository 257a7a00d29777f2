"""HKBU: GPU core and memory clocks (dlbench_dvfs, GPU-DVFS-Job-Schedule, NV-DVFS-Benchmark).

Tables with `appName`, `coreF` and `memF` in MHz, `time/s`, `time/ms` or `time/us`, and `power/W`
of the GPU where it was measured. The GPU stands at the beginning of the file's name, as
`gtx1080ti-...`. Caffe's rows are training iterations; its network is the prototxt of `arg`.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from epochwatt.errors import ConfigError
from epochwatt.sweeps.mode_table import SweepRow
from epochwatt.sweeps.public.original import MHZ, Line, Wanted, lines_of, public_row

# A column of time -> how many of its unit are a second.
TIMES = {
    "time/s": 1.0,
    "iteration_s": 1.0,
    "time/ms": 1e3,
    "time_ms": 1e3,
    "time/us": 1e6,
    "time_us": 1e6,
}
CORE, MEMORY = ("coreF", "core_mhz"), ("memF", "memory_mhz")
POWER, ARGUMENTS = ("power/W", "power_w"), ("arg", "command_arguments")


def read(path: Path, wanted: Wanted) -> Iterator[SweepRow | str]:
    """Yield rows of a table, or why a line is left out.

    Raises
    ------
    ConfigError : clocks are offsets from clocks that the file does not say
    """
    for line in lines_of(path, wanted):
        if line.has("clock_kind") and line.text("clock_kind") != "absolute":
            yield f"{line.where}: clocks are offsets from clocks that nobody says"
            continue
        _refuse_offsets(line)
        gpu, dash, _ = line.stem.partition("-")
        in_name = gpu if dash and gpu.lower() != "dvfs" else ""
        power_w = line.measured(*POWER) if line.has(*POWER) else None
        yield public_row(
            line,
            wanted,
            device=line.device(wanted, "gpu", in_name=in_name),
            gpu_mhz=line.clock_mhz(*CORE, unit=MHZ),
            emc_mhz=line.clock_mhz(*MEMORY, unit=MHZ),
            time_s=_time_s(line),
            power_w=power_w,
            power_scope="gpu" if power_w else "",
            **_work(line),
        )


def _refuse_offsets(line: Line) -> None:
    if line.number(*CORE) <= 0 or line.number(*MEMORY) <= 0:
        raise ConfigError(
            "clocks are offsets from clocks that the file does not say",
            where=line.where,
            found=f"core {line.text(*CORE)}, memory {line.text(*MEMORY)}",
            allowed="clocks in MHz",
            do="use the authors' tables with absolute clocks",
        )


def _time_s(line: Line) -> float | None:
    for column, units in TIMES.items():
        if line.has(column):
            time = line.measured(column)
            return time and time / units
    return line.measured("time/s, time/ms or time/us")


def _work(line: Line) -> dict[str, Any]:
    """Return workload, task, batch size and work of a line."""
    if not line.has(*ARGUMENTS):
        names = ("appName", "application"), ("kernel",), ("argNo", "argument")
        words = [line.text(*some) for some in names if line.has(*some)]
        return {"workload": " ".join(words), "task": "infer", "work": "kernel"}
    arguments = line.text(*ARGUMENTS)
    prototxt = re.search(r"[\w.-]*?(?=\.prototxt)", arguments)
    network = prototxt[0] if prototxt else line.text("appName", "network")
    batch = re.search(r"-b(\d+)\b", network)
    trains = arguments.startswith("train")
    return {
        "workload": network.removesuffix("-GPU-solver").removesuffix("-solver-GPU"),
        "task": "train",
        "batch_size": int(batch[1]) if batch else None,
        "work": "iteration" if trains else "forward and backward pass",
    }
