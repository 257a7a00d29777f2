"""Zeus (NSDI 2023): training under power limits of a GPU, in two forms of file.

`summary_power_{gpu}.csv`: network, data set, batch size and optimiser, time of an epoch in s, mean
power of the GPU in W. The GPU stands in the file's name alone.

`{gpu}+{network}+gpu{0,1,...}.csv`: windows of a fixed number of steps under each power limit, which
the window's name ends with: time in s, energy of each GPU in J. Power is that of all GPUs together.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from epochwatt.sweeps.mode_table import SweepRow
from epochwatt.sweeps.public.original import Line, Wanted, lines_of, public_row

PREFIX = "summary_power_"


def read(path: Path, wanted: Wanted) -> Iterator[SweepRow | str]:
    """Yield rows of a table, or why a line is left out."""
    for line in lines_of(path, wanted):
        yield (_window if line.has("window_name") else _epoch)(line, wanted)


def _epoch(line: Line, wanted: Wanted) -> SweepRow | str:
    gpu = line.stem.removeprefix(PREFIX).upper() if line.stem.startswith(PREFIX) else ""
    names = (line.text(name) for name in ("network", "dataset", "optimizer"))
    power_w = line.measured("average_power")
    return public_row(
        line,
        wanted,
        device=line.device(wanted, in_name=gpu),
        workload="-".join(names),
        task="train",
        batch_size=line.whole("batch_size"),
        work="epoch",
        power_limit_w=line.positive("power_limit"),
        time_s=line.measured("time_per_epoch"),
        power_w=power_w,
        power_scope="gpu" if power_w else "",
    )


def _window(line: Line, wanted: Wanted) -> SweepRow | str:
    limit = re.search(r"PowerLimitOptimizer_(\d+(?:\.\d+)?)$", line.text("window_name"))
    if limit is None:
        return f"{line.where}: window {line.text('window_name')} is of no power limit"
    gpu, _, rest = line.stem.partition("+")
    network = rest.partition("+")[0]
    gpus = [name for name in line.cells if re.fullmatch(r"gpu\d+_energy", name)]
    time_s = line.measured("elapsed_time")
    energies_j = [energy for name in gpus if (energy := line.measured(name)) is not None]
    complete = bool(gpus) and len(energies_j) == len(gpus)
    power_w = sum(energies_j) / time_s if time_s and complete else None
    return public_row(
        line,
        wanted,
        device=line.device(wanted, in_name=gpu if network else ""),
        workload=network + (f" on {len(gpus)} GPUs" if len(gpus) > 1 else ""),
        task="train",
        work="window of steps",
        power_limit_w=float(limit[1]),
        time_s=time_s,
        power_w=power_w,
        power_scope="gpu" if power_w else "",
    )
