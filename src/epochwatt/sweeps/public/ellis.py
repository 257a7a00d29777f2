"""Ellis: PyTorch operators at locked core clocks of a laptop's GPU.

`data/raw/{set}/{operator}.csv`: a line per clock and repeat (`run_id` as `clk3105_r1_...`), clocks
in MHz, run time in s, mean power of the GPU in W. The files do not name the GPU. Lines whose mean
clock stayed over 5 % below the locked one do not count: `clock_below_request`.
"""

from collections.abc import Iterator
from pathlib import Path

from epochwatt.sweeps.mode_table import SweepRow
from epochwatt.sweeps.public.original import MHZ, Wanted, lines_of, public_row

LEAST_OF_REQUEST = 0.95
LOCKED = ("clock_applied_mhz", "locked_core_mhz")
UNNAMED = "laptop-gpu"


def read(path: Path, wanted: Wanted) -> Iterator[SweepRow | str]:
    """Yield rows of a table, or why a line is left out."""
    for line in lines_of(path, wanted):
        if line.text(*LOCKED) == "none":
            yield f"{line.where}: the clock was not locked"
            continue
        requested = line.clock_mhz(*LOCKED, unit=MHZ)
        mean = line.measured("avg_clock_mhz", "mean_core_mhz")
        kept = mean is not None and mean >= LEAST_OF_REQUEST * requested
        named = ("workload", "operator")
        folder = line.text("set") if line.has("set") else path.parent.name
        power_w = line.measured("avg_power_w", "mean_power_w")
        operator = line.text(*named) if line.has(*named) else line.stem
        yield public_row(
            line,
            wanted,
            device=line.device(wanted, in_name=UNNAMED),
            workload=f"{folder} {operator}",
            task="infer",
            work="run",
            gpu_mhz=requested,
            time_s=line.measured("runtime_s", "run_time_s"),
            power_w=power_w,
            power_scope="gpu" if power_w else "",
            valid=kept,
            flags="" if kept else "clock_below_request",
        )
