"""Telemetry of a run over time, one epoch after the other."""

import os
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from epochwatt.board.records import files, record_shapes
from epochwatt.board.records.record_shapes import DURATION, INSTANT
from epochwatt.board.records.run_folder import TELEMETRY
from epochwatt.board.records.samples import read_source, samples_path
from epochwatt.epochs.telemetry import RATES
from epochwatt.figures.common.runs import RunData

_WINDOW = {"t_start_mono_s": INSTANT, "t_end_mono_s": INSTANT, "e2e_s": DURATION}


class Series(NamedTuple):
    """One column of a source over the valid epochs that have records."""

    # float (n,), training time: the epochs are put together, what lay between them is left out
    t_s: NDArray[np.floating]
    values: NDArray[np.floating]  # float (n,)
    epoch: NDArray[np.integer]  # int (n,), which epoch
    bounds_s: list[float]  # where an epoch ends
    missing: str = ""  # why there is nothing; empty when there is


def series(run: RunData, folder: str, source: str, column: str) -> Series:
    """Read a telemetry column over all valid epochs of a run, from the records in `folder`.

    `source` is the telemetry's (`host`, ...). A `*` in `column` (`cpu*_mhz`) means over all columns
    that match. A rate is a mean since the sample before: it counts where all of its time is in the
    epoch. Epochs without samples of the source are skipped.
    """
    times, values, epochs, bounds = [np.zeros(0)], [np.zeros(0)], [np.zeros(0, dtype=int)], [0.0]
    for row in run.valid("all"):
        epoch_folder = os.path.join(folder, f"epoch-{row['epoch']}")
        telemetry = os.path.join(epoch_folder, TELEMETRY)
        sources: dict[str, Any] = {source: {}}
        if os.path.exists(telemetry):
            sources = files.read_json(telemetry, record_shapes.TELEMETRY).get("sources", {})
        if source not in sources or not os.path.exists(samples_path(epoch_folder, source)):
            continue
        record = files.read_json(os.path.join(epoch_folder, "record.json"), _WINDOW)
        table = read_source(epoch_folder, source, sources[source])
        columns = [table[name] for name in table if fnmatchcase(name, column)]
        t_s = table["t_mono_s"]
        sampled = np.mean(columns, axis=0) if columns else np.full(t_s.shape, np.nan)
        inside = (t_s >= record["t_start_mono_s"]) & (t_s <= record["t_end_mono_s"])
        if column in RATES:
            inside[1:] &= t_s[:-1] >= record["t_start_mono_s"]
        inside &= np.isfinite(sampled)
        times.append(t_s[inside] - record["t_start_mono_s"] + bounds[-1])
        values.append(sampled[inside])
        epochs.append(np.full(int(inside.sum()), row["epoch"]))
        bounds.append(bounds[-1] + record["e2e_s"])
    t_s = np.concatenate(times)
    reason = "" if t_s.size else run.reason or f"no {column} of a valid epoch"
    return Series(t_s, np.concatenate(values), np.concatenate(epochs), bounds[1:], reason)
