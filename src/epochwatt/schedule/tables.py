"""Make the mode tables of a study of schedules, simulated or from public sweeps, and its workloads.

Public sweeps that vary the mini-batch size time whole epochs of training; none has inference. So
two things are assumed, which every row of the results says:

- an epoch is as long as its mini-batches, and has as many as its data set has;
- a mini-batch of inference takes and draws what one of training does. In truth it takes about a
  third; but that is the same in all modes, and latencies of the problems are relative to it.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np

from epochwatt.errors import ConfigError
from epochwatt.prediction.data.mode_tables import name_of, observations_of
from epochwatt.schedule.config import PublicJobs
from epochwatt.schedule.problem import Workload
from epochwatt.sweeps.mode_table import (
    ModeTable,
    SweepRow,
    read_mode_tables,
    tables_of,
)

FOLDER = "config/sweeps"  # of the tables whose licence lets us pass them on
ASSUMED = (
    "a mini-batch takes an equal part of the epoch; one of inference takes and draws what one of "
    "training does"
)


def workload_of(tables: Sequence[ModeTable]) -> Workload:
    """Build a workload from its mode tables, one for each mini-batch size.

    Raises ConfigError: tables of two devices, workloads or tasks; a mini-batch size that is missing
    or there twice; other modes in one than in another; no power.
    """
    keys = {(table.key.device, table.key.workload, table.key.task) for table in tables}
    if len(keys) != 1:
        raise ConfigError(
            "tables of one workload, please", found=sorted(keys), allowed="one device, one task"
        )
    sizes = [table.key.batch_size or 0 for table in tables]
    if len({*sizes}) != len(sizes) or 0 in sizes:
        raise ConfigError("mini-batch sizes of a workload", found=sizes, allowed="each once")
    rows = [observations_of(table) for table in sorted(tables, key=lambda t: t.key.batch_size or 0)]
    order = [np.lexsort(observed.modes.T[::-1]) for observed in rows]
    modes = rows[0].modes[order[0]]
    for observed, indices, table in zip(rows, order, tables, strict=True):
        if not np.array_equal(observed.modes[indices], modes):
            raise ConfigError("other modes than at other mini-batch sizes", where=name_of(table))
        if np.isnan(observed.power_w).any():
            raise ConfigError("power is not known of every mode", where=name_of(table))
    return Workload(
        tables[0].key.workload,
        modes,
        np.array(sorted(sizes)),
        np.stack([o.time_s[indices] for o, indices in zip(rows, order, strict=True)], 1),
        np.stack([o.power_w[indices] for o, indices in zip(rows, order, strict=True)], 1),
        tables[0].parts,
    )


def tables_of_job(network: str, task: str, tables: Iterable[ModeTable]) -> list[ModeTable]:
    """Select a job's tables, one for each mini-batch size; ConfigError where there is none."""
    keys = {table: (table.key.workload, table.key.task) for table in tables}
    if chosen := [table for table, key in keys.items() if key == (network, task)]:
        return chosen
    allowed = sorted({f"{name} ({kind})" for name, kind in keys.values()})
    raise ConfigError(f"no table of {network} ({task})", allowed=allowed)


def public_tables(jobs: PublicJobs, root: Path = Path()) -> list[ModeTable]:
    """Turn a public sweep of epochs into mode tables of mini-batches; `ASSUMED` says how.

    Raises ConfigError: no such table, or it lacks a network at a mini-batch size.
    """
    tables = read_mode_tables(root / FOLDER / f"{jobs.sweep}.csv.gz")
    by_key = {(table.key.workload, table.key.batch_size): table for table in tables}

    def rows(model: str, task: Literal["train", "infer"], size: int) -> Iterator[SweepRow]:
        """Yield the rows of one network, with the time of an epoch over its mini-batches."""
        if (model, size) not in by_key:
            sizes = sorted(other for name, other in by_key if name == model and other)
            raise ConfigError(
                f"{jobs.sweep} has no {model} at mini-batch size {size}",
                allowed=sizes or sorted({name for name, _ in by_key}),
            )
        n_minibatches = math.ceil(jobs.samples[model] / size)
        for row in by_key[model, size].rows:
            yield replace(row, task=task, work="mini-batch", time_s=row.time_s / n_minibatches)

    trained = [row for model, size in jobs.train.items() for row in rows(model, "train", size)]
    served = [
        row
        for model, sizes in jobs.infer.items()
        for size in sizes
        for row in rows(model, "infer", size)
    ]
    return tables_of([*trained, *served])
