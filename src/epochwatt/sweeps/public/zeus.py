"""Zeus (NSDI 2023): training under power limits of a GPU.

`summary_power_{gpu}.csv`: network, data set, batch size and optimiser, time of an epoch in s, mean
power of the GPU in W. The GPU stands in the file's name alone.
"""

from collections.abc import Iterator
from pathlib import Path

from epochwatt.sweeps.mode_table import SweepRow
from epochwatt.sweeps.public.original import Wanted, lines_of, public_row

PREFIX = "summary_power_"


def read(path: Path, wanted: Wanted) -> Iterator[SweepRow | str]:
    """Yield rows of a table, or why a line is left out."""
    for line in lines_of(path, wanted):
        gpu = line.stem.removeprefix(PREFIX).upper() if line.stem.startswith(PREFIX) else ""
        names = (line.text(name) for name in ("network", "dataset", "optimizer"))
        power_w = line.measured("average_power")
        yield public_row(
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
