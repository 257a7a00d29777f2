"""OpML 2019: Xception on a Jetson TX2, a full factorial of cores, CPU, GPU and memory clocks.

`output_{network}_{size}.csv`, separated by spaces: `core0_status` ... (1: online), `core_freq` in
kHz, `gpu_freq` and `emc_freq` in Hz, time of one `predict` in s. `power_consumption` is a sum of
the sensor's readings, which grows with time: neither power nor energy, so power is empty.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from epochwatt.errors import ConfigError
from epochwatt.sweeps.mode_table import SweepRow
from epochwatt.sweeps.public.original import HZ, KHZ, Line, Wanted, lines_of, public_row


def read(path: Path, wanted: Wanted) -> Iterator[SweepRow | str]:
    """Yield rows of a table, or why a line is left out."""
    for line in lines_of(path, wanted, _delimiter(path)):
        yield public_row(
            line,
            wanted,
            device=line.device(wanted, "system_name", in_name="tx2").lower(),
            workload=_workload(line),
            task="infer",
            work="predict",
            cores=_cores(line),
            cpu_mhz=line.clock_mhz("core_freq", "cpu_khz", unit=KHZ),
            gpu_mhz=line.clock_mhz("gpu_freq", "gpu_hz", unit=HZ),
            emc_mhz=line.clock_mhz("emc_freq", "emc_hz", unit=HZ),
            time_s=line.measured("inference_time", "inference_time_s"),
        )


def _delimiter(path: Path) -> str:
    try:
        with path.open("rb") as handle:
            return "," if b"," in handle.readline() else " "
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error


def _workload(line: Line) -> str:
    network = line.text("model_name") if line.has("model_name") else "xception"
    size = line.text("size", "image_size")
    return f"{network} {size if 'x' in size else f'{size}x{size}'}"


def _cores(line: Line) -> int:
    """Return how many cores were online."""
    if line.has("cpu_cores"):
        return line.whole("cpu_cores")
    return sum(int(line.number(n)) for n in line.cells if re.fullmatch(r"core\d+_status", n))
