"""Select the runs that the models of a backend are fitted to."""

from collections import defaultdict
from typing import Any, NamedTuple

from epochwatt import columns
from epochwatt.columns import CLOCKS
from epochwatt.study.runs import Run, RunTable

PER_MODE = ("power_mode", "dvfs")  # factors that say which mode a run has, not of which workload
LEAST_MODES = 2


class Fitted(NamedTuple):
    """Runs that the models of one backend are fitted to."""

    # those that share all but the power mode with another one, in the order of the table
    runs: list[Run]
    # run -> numbers of its `prediction.modes.Mode`, as the device file states them
    modes: dict[str, list[float]]


def fitted_runs(table: RunTable, backend: str) -> Fitted:
    """Select the runs of a backend that models are fitted to, with the numbers of their modes.

    Their clocks are pinned and known, and their workload was run in two modes or more.
    """
    pinned: list[Run] = []
    modes_of_workload: dict[tuple[Any, ...], set[str]] = defaultdict(set)
    for run in table.of_backend(backend):
        settings = run.factors.get("power_mode_settings", {})
        if run.factors["dvfs"] == "off" and settings.keys() >= set(CLOCKS):
            pinned.append(run)
            modes_of_workload[_workload(run)].add(run.factors["power_mode"])
    runs = [run for run in pinned if len(modes_of_workload[_workload(run)]) >= LEAST_MODES]
    return Fitted(runs, {run.id: _mode_numbers(run) for run in runs})


def backends(table: RunTable) -> list[str]:
    """Return the backends that have runs to fit models to."""
    names = sorted({run.factors["backend"] for run in table.runs.values()})
    return [name for name in names if fitted_runs(table, name).runs]


def _workload(run: Run) -> tuple[Any, ...]:
    names = [name for name in columns.FACTOR_NAMES if name not in PER_MODE]
    return tuple(run.factors[name] for name in names)


def _mode_numbers(run: Run) -> list[float]:
    """Return cores, MHz and share of the GPU of a run's mode; the share is 1 where not stated."""
    settings = run.factors["power_mode_settings"]
    return [*(float(settings[name]) for name in CLOCKS), float(settings.get("gpu_share", 1))]
