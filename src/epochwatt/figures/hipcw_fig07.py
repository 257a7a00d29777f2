"""HiPCW 2021, figure 7: stall of each mini-batch, on NX, by medium and size of the data set.

Source: sections III.E and III.F. Order of the panels and number of workers: as figure 6.
"""

import os

import numpy as np

from epochwatt.fields import MINIBATCH_COLUMNS
from epochwatt.figures.hipcw import Points, draw_series
from epochwatt.figures.job import Job
from epochwatt.figures.runs import RunData
from epochwatt.records.run_folder import RunFolder

STALL = [MINIBATCH_COLUMNS.index(name) for name in ("wait_s", "copy_s")]


def draw(job: Job) -> None:
    """Draw the panels."""
    said = "stall per mini-batch", "ms"
    along = "minibatch", "mini-batches since the run began"
    draw_series(job, "stall_ms_per_minibatch", said, along, stalls)


def stalls(run: RunData, folder: str) -> Points:
    """Return the stall of each mini-batch, ms, over their number."""
    records = RunFolder(*os.path.split(folder))
    epochs = [row["epoch"] for row in run.valid("all") if records.has(row["epoch"])]
    values = [1e3 * records.read(k).minibatch_s[:, STALL].sum(axis=1) for k in epochs]
    all_ms = np.concatenate([np.zeros(0), *values])
    bounds = np.cumsum([len(part) for part in values]).tolist()
    missing = "" if epochs else run.reason or "no record of a valid epoch"
    return Points(np.arange(all_ms.size) + 0.5, all_ms, bounds, epochs, missing)
