"""Ali et al.: applications at each core clock of an A100 and a GV100.

Tables with `sm_app_clock` (MHz), `run_time` (s), `power_usage` (W, GPU) and `application`; tables
of run times alone (`dvfs`, `kernel_runtime`) have no power. The GPU stands at the beginning of some
files' names: `GA100-...`. Mostly HPC; nothing says whether the LSTM trains: all are `infer`.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from epochwatt.sweeps.mode_table import SweepRow
from epochwatt.sweeps.public.original import MHZ, Wanted, lines_of, public_row


def read(path: Path, wanted: Wanted) -> Iterator[SweepRow | str]:
    """Yield rows of a table, or why a line is left out."""
    for line in lines_of(path, wanted):
        chip = re.match(r"[A-Z]{1,2}\d+(?=-)", line.table)
        power = ("power_usage", "power_w")
        power_w = line.measured(*power) if line.has(*power) else None
        yield public_row(
            line,
            wanted,
            device=line.device(wanted, in_name=chip[0] if chip else ""),
            workload=line.text("application"),
            task="infer",
            work="run",
            gpu_mhz=line.clock_mhz("sm_app_clock", "core_mhz", "dvfs", unit=MHZ),
            time_s=line.measured("run_time", "run_time_s", "kernel_runtime"),
            power_w=power_w,
            power_scope="gpu" if power_w else "",
        )
