"""Energy Time Fairness (SEC 2023): networks and their kernels at each GPU clock of a Jetson TX2.

`{network}_profile.json`: of the whole network and of each kernel, clock in Hz -> time in whole us
and power of the GPU's rail in mW. CPU and memory clocks were not recorded. A table of the same
numbers (network, kernel, gpu_hz, time_us, gpu_power_mw) is read, too.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from epochwatt.errors import ConfigError
from epochwatt.sweeps.mode_table import SweepRow
from epochwatt.sweeps.public.original import HZ, Line, Wanted, lines_of, public_row, stem_of

WHOLE = "(whole network)"
COLUMNS = ("network", "kernel", "gpu_hz", "time_us", "gpu_power_mw")


def read(path: Path, wanted: Wanted) -> Iterator[SweepRow | str]:
    """Yield rows of a file, or why an entry is left out."""
    for line in _entries(path) if path.suffix == ".json" else lines_of(path, wanted):
        kernel = line.text("kernel")
        time_us, power_mw = line.measured("time_us"), line.measured("gpu_power_mw")
        yield public_row(
            line,
            wanted,
            device=line.device(wanted, in_name="tx2"),
            workload=line.text("network") + ("" if kernel == WHOLE else f" {kernel}"),
            task="infer",
            work="inference" if kernel == WHOLE else "kernel",
            gpu_mhz=line.clock_mhz("gpu_hz", unit=HZ),
            time_s=time_us and time_us / 1e6,
            power_w=power_mw and power_mw / 1e3,
            power_scope="gpu" if power_mw else "",
        )


def _entries(path: Path) -> Iterator[Line]:
    """Yield clock, time and power of the network and of each kernel as lines of a table."""
    try:
        profile = json.loads(path.read_text("utf-8"))
        network = profile["model_name"]
        parts = {WHOLE: profile, **profile.get("kernel_profile", {})}
        for kernel, part in parts.items():
            for clock, time_us in part["exec_time"].items():
                power_mw = part.get("gpu_power", {}).get(clock, "")
                cells = map(str, (network, kernel, clock, time_us, power_mw))
                columns = dict(zip(COLUMNS, cells, strict=True))
                yield Line(f"{path}, {kernel}", columns, stem_of(path))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error
    except (KeyError, TypeError, AttributeError) as error:
        raise ConfigError(
            "not a profile of this format",
            where=str(path),
            found=_found(error),
            allowed="model_name, exec_time, gpu_power and kernel_profile",
        ) from error


def _found(error: Any) -> str:
    return f"no {error}" if isinstance(error, KeyError) else str(error)
