"""Make the mode tables of a study of schedules from a public sweep.

Public sweeps that vary the mini-batch size time whole epochs of training; none has inference. So
two things are assumed, which every row of the results says:

- an epoch is as long as its mini-batches, and has as many as its data set has;
- a mini-batch of inference takes and draws what one of training does. In truth it takes about a
  third; but that is the same in all modes, and latencies of the problems are relative to it.
"""

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal

from epochwatt.errors import ConfigError
from epochwatt.schedule.config import PublicJobs
from epochwatt.sweeps.mode_table import (
    ModeTable,
    SweepRow,
    read_mode_tables,
    tables_of,
)

Task = Literal["train", "infer"]
FOLDER = "config/sweeps"  # of the tables whose licence lets us pass them on
ASSUMED = (
    "a mini-batch takes an equal part of the epoch; one of inference takes and draws what one of "
    "training does"
)


def public_tables(jobs: PublicJobs, root: Path = Path()) -> list[ModeTable]:
    """Return the mode tables of all jobs, each of one mini-batch; `ASSUMED` says how.

    Raises ConfigError: no such table, or it lacks a network at a mini-batch size.
    """
    tables = read_mode_tables(root / FOLDER / f"{jobs.sweep}.csv.gz")
    wanted: list[tuple[str, Task, list[int]]]
    wanted = [(model, "train", [size]) for model, size in jobs.train.items()]
    wanted += [(model, "infer", sizes) for model, sizes in jobs.infer.items()]
    return tables_of(
        row
        for model, task, sizes in wanted
        for size in sizes
        for row in _rows(tables, jobs, model, task, size)
    )


def _rows(
    tables: list[ModeTable],
    jobs: PublicJobs,
    model: str,
    task: Task,
    size: int,
) -> Iterator[SweepRow]:
    sizes = {table.key.batch_size: table for table in tables if table.key.workload == model}
    if size not in sizes:
        raise ConfigError(
            f"{jobs.sweep} has no {model} at mini-batch size {size}",
            allowed=sorted(filter(None, sizes)) or sorted({table.key.workload for table in tables}),
        )
    n_minibatches = math.ceil(jobs.samples[model] / size)
    for row in sizes[size].rows:
        yield replace(row, task=task, work="mini-batch", time_s=row.time_s / n_minibatches)
