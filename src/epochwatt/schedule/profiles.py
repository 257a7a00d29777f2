"""Hold time and power of a network's mini-batch in each mode and at each mini-batch size."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from epochwatt.columns import MODE_PARTS
from epochwatt.errors import ConfigError
from epochwatt.prediction.data.mode_tables import name_of, observations_of
from epochwatt.sweeps.mode_table import ModeTable

Numbers = NDArray[np.float64]
MINIBATCHES = 40  # of a profile; as a sweep counts
# ASSUME: s of a profile besides these: to set the mode, at rest in it, until power has followed; as
# in `prediction.profile.bench`, whose import would bring all that measures
AROUND_S = 14.0


@dataclass(frozen=True, eq=False)
class Workload:
    """One network in every mode and at every mini-batch size; the truth that solvers ask for."""

    name: str  # of the network
    modes: Numbers  # (m, 6) parts of each mode, `prediction.data.modes.Mode`
    batch_sizes: NDArray[np.int64]  # (k,) ascending; one of a training job
    time_s: Numbers  # (m, k), of one mini-batch
    power_w: Numbers  # (m, k), while it runs
    # of the modes that are known; others are placeholders (`mode_tables.UNKNOWN`)
    parts: tuple[str, ...] = MODE_PARTS

    def board_s(self, modes: NDArray[np.intp]) -> float:
        """Return how long a board takes to profile modes, at every mini-batch size, s.

        Each mode and size takes `AROUND_S` and `MINIBATCHES` mini-batches.
        """
        times_s = self.time_s[modes]
        return AROUND_S * times_s.size + MINIBATCHES * float(times_s.sum())


def workload_of(tables: Sequence[ModeTable]) -> Workload:
    """Return a workload from its mode tables, one for each mini-batch size.

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
    order = [np.lexsort(one.modes.T[::-1]) for one in rows]
    modes = rows[0].modes[order[0]]
    for one, places, table in zip(rows, order, tables, strict=True):
        if not np.array_equal(one.modes[places], modes):
            raise ConfigError("other modes than at other mini-batch sizes", where=name_of(table))
        if np.isnan(one.power_w).any():
            raise ConfigError("power is not known of every mode", where=name_of(table))
    return Workload(
        tables[0].key.workload,
        modes,
        np.array(sorted(sizes)),
        np.stack([one.time_s[places] for one, places in zip(rows, order, strict=True)], 1),
        np.stack([one.power_w[places] for one, places in zip(rows, order, strict=True)], 1),
        tables[0].parts,
    )
