"""Epochs of the runs that models are fitted to, grouped by workload, and workloads by board.

Runs of one workload differ in the power mode only. Workloads of one board group differ in the
network and its data only.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from epochwatt import columns
from epochwatt.columns import Factors
from epochwatt.epochs.table import EpochRow, read_rows
from epochwatt.prediction.data.modes import Mode, Numbers, as_rows
from epochwatt.prediction.data.observations import Observations

PER_NETWORK = ("model", "dataset", "dataset_source", "dataset_scale")

WORKLOAD_FACTORS = [name for name in columns.FACTOR_NAMES if name != "power_mode"]

Rows = Sequence[EpochRow]


@dataclass(frozen=True, eq=False)
class ProfiledWorkload:
    """Runs of one network on one board that differ in the power mode only."""

    factors: Factors  # all factors of its runs except `power_mode`; empty ones are None
    runs: tuple[str, ...]  # their ids, one per mode
    modes: Mapping[str, Mode]  # name -> mode
    # valid epochs, the first included; energy as the papers sum it, once a second
    observed: Observations
    # the same epochs with accurate energy: the papers' sum leaves out up to a second of an epoch,
    # which matters where epochs are short
    metered: Observations

    @property
    def name(self) -> str:
        """Its network."""
        return str(self.factors["model"])

    @property
    def no_energy(self) -> str:
        """Why some epoch after the first has no energy; empty: all have."""
        return self.observed.no_power


@dataclass(frozen=True)
class BoardGroup:
    """A board and its workloads, which differ in the network and its data only."""

    factors: Factors  # factors that they share
    workloads: dict[str, ProfiledWorkload]  # network -> its workload


def read_workloads(
    epochs: Iterable[str], modes: Mapping[str, Sequence[float]]
) -> list[ProfiledWorkload]:
    """Read the workloads of some runs, in the order of their first run.

    `modes` has the numbers of each run's power mode, in the order of `Mode`.
    """
    return workloads_of([rows for rows in map(read_rows, epochs) if rows], modes)


def workloads_of(
    runs: Iterable[Rows], modes: Mapping[str, Sequence[float]]
) -> list[ProfiledWorkload]:
    """Group runs, given as rows (`columns.RUN_EPOCH_COLUMNS`), into workloads, in order."""
    groups: dict[tuple[Any, ...], list[Rows]] = defaultdict(list)
    for rows in runs:
        groups[tuple(rows[0][name] for name in WORKLOAD_FACTORS)].append(rows)
    return [_workload(group, modes) for group in groups.values()]


def board_groups(workloads: Iterable[ProfiledWorkload]) -> list[BoardGroup]:
    """Group workloads by board, in order; a network on further data opens a further group."""
    groups: list[BoardGroup] = []
    for workload in workloads:
        shared = {k: v for k, v in workload.factors.items() if k not in PER_NETWORK}
        for group in groups:
            if group.factors == shared and workload.name not in group.workloads:
                group.workloads[workload.name] = workload
                break
        else:
            groups.append(BoardGroup(shared, {workload.name: workload}))
    return groups


def _workload(runs: Sequence[Rows], modes: Mapping[str, Sequence[float]]) -> ProfiledWorkload:
    """Gather the runs of one workload, one per mode, with their observations."""
    first = runs[0][0]
    by_name = {}
    for rows in runs:
        cores, *clocks = modes[rows[0]["run"]]
        by_name[rows[0]["power_mode"]] = Mode(int(cores), *clocks)
    valid = [row for rows in runs for row in rows if row["valid"]]
    no_energy = _no_energy(valid)
    time_s = np.array([float(row["e2e_s"]) for row in valid])

    def power_w(column: str) -> Numbers:
        energy_wh = [np.nan if no_energy else float(row.get(column) or "nan") for row in valid]
        return np.asarray(3600 * np.array(energy_wh, float) / time_s)

    observed = Observations(
        workload=first["model"],
        modes=as_rows([by_name[row["power_mode"]] for row in valid]),
        time_s=time_s,
        power_w=power_w("energy_paper_wh"),
        epoch=np.array([int(row["epoch"]) for row in valid], np.int64),
        processes=int(first["num_workers"]) + 1,
        no_power=no_energy,
    )
    return ProfiledWorkload(
        factors={name: first[name] for name in WORKLOAD_FACTORS},
        runs=tuple(rows[0]["run"] for rows in runs),
        modes=by_name,
        observed=observed,
        metered=replace(observed, power_w=power_w("energy_wh")),
    )


def _no_energy(valid: Rows) -> str:
    """Return why there is no energy of every epoch after the first; empty: there is."""
    scopes = sorted({row["power_scope"] for row in valid if row["energy_paper_wh"]})
    later = [bool(row["energy_paper_wh"]) for row in valid if int(row["epoch"]) > 0]
    if len(scopes) > 1:
        return f"energy was measured by several power scopes: {', '.join(scopes)}"
    if scopes and not all(later):
        return f"energy was measured in {sum(later)} of {len(later)} epochs after the first"
    return "" if scopes else "energy was not measured"
