"""Telemetry of a run over time, one epoch after the other."""

import os
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
    """Return a column of a source's samples.

    Of several columns (`cpu*_mhz`) it is the mean. A mean since the sample before, as a rate is,
    counts where all of its time is in the epoch.
    """
    times, values, epochs, bounds = [np.zeros(0)], [np.zeros(0)], [np.zeros(0, dtype=int)], [0.0]
    head, star, tail = column.partition("*")
    for row in run.valid("all"):
        place = os.path.join(folder, f"epoch-{row['epoch']}")
        telemetry = os.path.join(place, TELEMETRY)
        written: dict[str, Any] = {source: {}}
        if os.path.exists(telemetry):
            written = files.read_json(telemetry, record_shapes.TELEMETRY).get("sources", {})
        if source not in written or not os.path.exists(samples_path(place, source)):
            continue
        record = files.read_json(os.path.join(place, "record.json"), _WINDOW)
        table = read_source(place, source, written[source])
        names = [n for n in table if n.startswith(head) and n.endswith(tail)] if star else [column]
        columns = [table[name] for name in names if name in table]
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
