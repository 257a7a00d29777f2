"""BroncoSpace: complete 1 Hz logs of ResNet-50's training on a Jetson AGX Orin in stock modes.

`docs/data/{run}.csv`: a date, then a line per second with `Time (mS)`, the load of each core or
`off`, the CPU clock and the rails in mW. The mode is the end of the run's name (`_15W`; a training
without one ran in MAXN). Time is that of the whole log, ten epochs and a test; power is the
module's by the board's own rule, which adds three of the four rails. CPU cores and their clock are
what the log shows, GPU and memory clocks the mode's limits: the board chose below them.

Runs whose name has no `training` are left out: nothing says that each mode did the same work.
"""

import csv
import gzip
import re
import zlib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from epochwatt.device.kinds import AGX_ORIN, StockMode
from epochwatt.errors import ConfigError
from epochwatt.sweeps.mode_table import SweepRow
from epochwatt.sweeps.public.original import HZ, Line, Wanted, public_row, stem_of
from epochwatt.telemetry.rails import ModulePower

CLOCK = "Time (mS)"
CPU_CLOCK = "CPU Frequency (MHz)"
RAILS = tuple(rail.label for rail in AGX_ORIN.rails)
WORK = "10 epochs and a test"


def read(path: Path, wanted: Wanted) -> Iterator[SweepRow | str]:
    """Yield a row per run, or why a run is left out."""
    runs: dict[str, list[Line]] = defaultdict(list)
    for line in _samples(path):
        runs[line.text("run") if line.has("run") else line.stem].append(line)
    for run, samples in runs.items():
        mode = _mode(run)
        if "training" not in run:
            yield f"{path}: {run}: not known to do the same work in each mode"
        elif mode is None:
            yield f"{path}: {run}: no power mode of a {AGX_ORIN.title} by this name"
        elif len(samples) < 2:
            yield f"{path}: {run}: no time"
        else:
            yield _row(samples, mode, wanted)


def _row(samples: list[Line], mode: StockMode, wanted: Wanted) -> SweepRow | str:
    first, module = samples[0], ModulePower(AGX_ORIN.name, RAILS)
    clock_s = np.array([line.number(CLOCK) for line in samples]) / 1e3
    loads = [name for name in first.cells if re.fullmatch(r"CPU \d+ Load \(%\)", name)]
    gpu_hz = mode.gpu_hz[1] if mode.gpu_hz[1] > 0 else AGX_ORIN.gpu_hz[-1]
    return public_row(
        first,
        wanted,
        device=first.device(wanted, in_name=AGX_ORIN.name),
        workload="resnet50-cifar100",
        task="train",
        work=WORK,
        cores=sum(first.cells[name] != "off" for name in loads),
        cpu_mhz=max(line.positive(CPU_CLOCK) for line in samples),
        gpu_mhz=gpu_hz / HZ,
        emc_mhz=(mode.emc_hz or AGX_ORIN.emc_hz[-1]) / HZ,
        gpu_share=1 - (mode.tpc_mask or 0).bit_count() / AGX_ORIN.tpcs if AGX_ORIN.tpcs else None,
        time_s=float(clock_s[-1] - clock_s[0] + np.median(np.diff(clock_s))),
        power_w=float(np.mean([_module_w(line, module) for line in samples])),
        power_scope="module",
    )


def _module_w(line: Line, module: ModulePower) -> float:
    """Return the module's power of a sample, W."""
    watts = [line.number(f"{rail} Current (mW)") / 1e3 for rail in RAILS]
    return module.row(watts)[-1]


def _mode(run: str) -> StockMode | None:
    """Return the power mode that a run's name ends with; MAXN where a training names none."""
    name = run.rpartition("_")[2].upper()
    wanted = "MAXN" if name in ("MAXN", "MAXNS", "TRAINING") else f"MODE_{name}"
    modes = AGX_ORIN.releases[-1].modes
    return next((mode for mode in modes if mode.name == wanted), None)


def _samples(path: Path) -> Iterator[Line]:
    """Yield the lines below the one that names the columns. Raises ConfigError."""
    try:
        opened = gzip.open if path.suffix == ".gz" else open
        with opened(path, "rt", newline="", encoding="utf-8") as handle:
            rows = csv.reader(handle)
            header = next((row for row in rows if CLOCK in row), None)
            if header is None:
                raise ConfigError(f"no column {CLOCK}", where=str(path))
            for row in rows:
                cells = dict(zip(header, row, strict=False))
                if len(row) != len(header):
                    raise ConfigError(
                        f"{path}, line {rows.line_num} has more or fewer cells than the header"
                    )
                yield Line(f"{path}, line {rows.line_num}", cells, stem_of(path))
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error) as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error
