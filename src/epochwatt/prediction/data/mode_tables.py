"""Mode tables as observations: one row per mode, from which every method can learn.

The mean of a mode's valid repeats counts, as epoch 1. A part of the mode that the table leaves
empty is a constant here (`UNKNOWN`), the same in all modes: methods learn from how parts differ, so
it tells them nothing. A part that is known of some modes only is refused, since a constant beside
numbers would tell them something that nobody measured.
"""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from epochwatt.columns import MODE_PARTS
from epochwatt.prediction.data.modes import NO_LIMIT, Mode, Numbers, PredictionError
from epochwatt.prediction.data.observations import PROCESSES, Observations, observations_from_rows
from epochwatt.sweeps.mode_table import ModeTable, SweepRow

MHZ = 1000.0  # in place of a clock that is not known: 1 GHz, at which all its terms are one
# in place of a part that is not known; of as many cores as processes nobody waits for a core
UNKNOWN = Mode(PROCESSES, MHZ, MHZ, MHZ, 1.0, NO_LIMIT)


def observations_of(table: ModeTable) -> Observations:
    """Return a row for each mode of a table, in the order of its first rows.

    Power is the mean over the repeats that have it, weighted by their time, so that power times
    time is their energy; it is NaN where no repeat of a mode has any. Energy is that of the table's
    `work`, in Wh. Raises PredictionError: no valid row, or a part of the mode that is known of some
    rows only.
    """
    repeats = repeats_of(table)
    means = np.array([_means(rows) for rows in repeats.values()])
    return observations_from_rows(
        name_of(table),
        list(repeats),
        means[:, 0].tolist(),
        means[:, 1].tolist(),
        # inference has a thread for each core there is
        processes=max(int(m.cores) for m in repeats) if table.key.task == "infer" else PROCESSES,
    )


def repeats_of(table: ModeTable) -> dict[Mode, Numbers]:
    """Return mode -> time in s and power in W of its valid repeats, (r, 2), in the table's order.

    Raises as `observations_of`.
    """
    rows = table.valid().rows
    if not rows:
        raise PredictionError("a table of modes without a valid row", where=name_of(table))
    repeats: dict[Mode, list[tuple[float, float]]] = defaultdict(list)
    for row, mode in zip(rows, _modes(table, rows), strict=True):
        repeats[mode].append((row.time_s, np.nan if row.power_w is None else row.power_w))
    return {mode: np.array(values) for mode, values in repeats.items()}


def name_of(table: ModeTable) -> str:
    """Return sweep, workload and batch size as one name, for messages and as a key of tables."""
    batch = "" if table.key.batch_size is None else f", batch {table.key.batch_size}"
    return f"{table.key.sweep}: {table.key.workload}{batch}"


def _modes(table: ModeTable, rows: Sequence[SweepRow]) -> list[Mode]:
    """Return the mode of each row, a constant for what no row knows. Raises PredictionError."""
    columns = []
    for part, constant in zip(MODE_PARTS, UNKNOWN, strict=True):
        values = [getattr(row, part) for row in rows]
        n_known = sum(value is not None for value in values)
        if 0 < n_known < len(rows):
            raise PredictionError(
                f"{part} is known of {n_known} of {len(rows)} valid rows",
                where=name_of(table),
                allowed="all or none",
                do="complete the table, or give these rows a sweep of their own",
            )
        columns.append([constant if value is None else value for value in values])
    return [Mode(*parts) for parts in zip(*columns, strict=True)]


def _means(repeats: Numbers) -> tuple[float, float]:
    """Return mean time and power of repeats (r, 2), power weighted by the time of those with it."""
    metered = repeats[~np.isnan(repeats[:, 1])]
    power_w = metered.prod(1).sum() / metered[:, 0].sum() if len(metered) else np.nan
    return float(repeats[:, 0].mean()), float(power_w)
