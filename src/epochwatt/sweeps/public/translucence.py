"""Translucence: inference on Jetson boards over cores, CPU, GPU and memory clocks.

The tables are named `{board}_{inputs}_{workload}_...`, as `tx1_5000_image_target`; the number is
missing where the authors do not say how many inputs there were. Time is that of the whole set;
energy is in mJ by plausibility (TX1: 9.5 W), and undocumented. Settings of the Linux kernel were
drawn along with the mode; lines of one mode are its repeats, whatever else was set.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

from epochwatt.sweeps.mode_table import SweepRow
from epochwatt.sweeps.public.original import HZ, KHZ, Line, Wanted, lines_of, public_row

# Below it the energy cannot be the module's: one that runs TensorFlow on its GPU draws more.
LEAST_MODULE_W = 4.0


def read(path: Path, wanted: Wanted) -> Iterator[SweepRow | str]:
    """Yield rows of a table, or why a line is left out; power is empty where it cannot be all."""
    lines = list(lines_of(path, wanted))
    readings = [_reading(line, wanted) for line in lines]
    powers_w = [r["power_w"] for r in readings if r["power_w"] is not None]
    partial = bool(powers_w) and median(powers_w) < LEAST_MODULE_W
    for line, columns in zip(lines, readings, strict=True):
        if partial:
            columns |= {"power_w": None, "power_scope": "", "flags": "power_of_some_rails"}
        yield public_row(line, wanted, **columns)


def _reading(line: Line, wanted: Wanted) -> dict[str, Any]:
    board, inputs, workload = _named(line.table)
    time_s = line.measured("inference_time")
    energy_mj = line.measured("total_energy_consumption")
    power_w = energy_mj / 1e3 / time_s if time_s and energy_mj else None
    return {
        "device": line.device(wanted, in_name=board),
        "workload": workload,
        "task": "infer",
        "work": f"{inputs} {workload}s" if inputs else f"all {workload} inputs",
        "cores": line.whole("num_cores"),
        "cpu_mhz": line.clock_mhz("core_freq", unit=KHZ),
        "gpu_mhz": line.clock_mhz("gpu_freq", unit=HZ),
        "emc_mhz": line.clock_mhz("emc_freq", unit=HZ),
        "time_s": time_s,
        "power_w": power_w,
        "power_scope": "module" if power_w else "",
    }


def _named(table: str) -> tuple[str, str, str]:
    """Return board, number of inputs and workload of a table's name."""
    match = re.match(r"([A-Za-z]\w*?)_(?:(\d+)_)?([a-z]+)(?:_|$)", table)
    return (match[1], match[2] or "", match[3]) if match else ("", "", table)
