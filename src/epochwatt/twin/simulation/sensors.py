"""Simulate the readings that the sensors of a board give during an epoch.

The timeline is exact: four intervals a mini-batch (wait, copy, compute, the rest of the loop), the
power of each part constant in each. The GPU works and the memory moves in compute only; the cores'
load is the epoch's mean throughout. Each source reads it at one random instant per period, as the
sampler does (`telemetry/channel.py`), and at both bounds. No reading of a power is like another:
their spread is put in by hand (`noise_reading`).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from epochwatt.board.telemetry.rails import ModulePower
from epochwatt.twin.inputs.numbers import Values, number
from epochwatt.twin.model import power
from epochwatt.twin.model.epoch import Epoch, Setting, first_cluster
from epochwatt.twin.model.power import Load
from epochwatt.twin.model.storage import BLOCK_BYTES
from epochwatt.twin.simulation.simulated_epoch import Samples

PERIOD_S = 1.0  # of the 2023 logger, jtop's
MAX_ROWS = 1000  # of a source and epoch: a longer epoch is read less often
COMPUTE = 2  # place of compute among a mini-batch's intervals
PARTS = ("soc", "cpu", "gpu", "memory")
_MIB = 2.0**20


class Timeline(NamedTuple):
    """Power of an epoch as a step function."""

    bounds_s: NDArray[np.floating]  # (intervals + 1,) from 0 to the epoch's end
    parts_w: NDArray[np.floating]  # (2, parts) power of each part outside and inside compute
    computing: NDArray[np.bool_]  # (intervals,) whether the interval is one of compute

    def at(self, t_s: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return the power of each part at instants, W: shape (instants, parts)."""
        place = np.searchsorted(self.bounds_s, t_s, side="right") - 1
        inside = self.computing[np.clip(place, 0, len(self.computing) - 1)]
        return np.asarray(self.parts_w[inside.astype(int)])

    @property
    def energy_j(self) -> float:
        """The module's energy, exactly."""
        module_w = self.parts_w.sum(axis=1)
        return float(np.diff(self.bounds_s) @ module_w[self.computing.astype(int)])


def timeline(
    setting: Setting, mean: Epoch, times_s: NDArray[np.floating], factor: float, p: Values
) -> Timeline:
    """Return the power of an epoch over time.

    Parameters
    ----------
    times_s : wait, copy, compute and the rest, shape (mini-batches, 4)
    factor : the power's, of this board and epoch
    """
    bounds_s = np.concatenate([[0.0], np.cumsum(times_s.ravel())])
    computing = np.zeros(times_s.shape, dtype=bool)
    computing[:, COMPUTE] = True
    share = float(times_s[:, COMPUTE].sum() / bounds_s[-1])
    busy = mean.cpu_busy_s / mean.e2e_s
    moved = mean.moved_bytes / mean.e2e_s / share
    util = np.minimum(mean.gpu_busy_s / mean.compute_s, 1.0)
    outside = power.parts(setting.board, mean.clocks, Load(busy, 0.0, 0.0), p)
    inside = power.parts(setting.board, mean.clocks, Load(busy, util, moved), p)
    parts_w = np.array([[number(w) for w in part_w] for part_w in (outside, inside)])
    return Timeline(bounds_s, factor * parts_w, computing.ravel())


def sources(
    setting: Setting,
    mean: Epoch,
    times_s: NDArray[np.floating],
    start_s: float,
    factor: float,
    random: np.random.Generator,
    p: Values,
) -> tuple[Samples, ...]:
    """Return the rows of the power, host and board sources of an epoch that begins at `start_s`."""
    line = timeline(setting, mean, times_s, factor, p)
    end_s = float(line.bounds_s[-1])
    return (
        _rails(setting, line, _instants_s(end_s, random), start_s, p["noise_reading"], random),
        _host(setting, mean, _instants_s(end_s, random), start_s, p, random),
        _board(setting, mean, _instants_s(end_s, random), start_s),
    )


def _instants_s(end_s: float, random: np.random.Generator) -> NDArray[np.floating]:
    """Return one random instant per period, and both bounds."""
    period_s = _period_s(end_s)
    n = int(end_s / period_s)
    return np.concatenate([[0.0], period_s * (np.arange(n) + random.random(n)), [end_s]])


def _period_s(end_s: float) -> float:
    """Return the period of an epoch's readings: its work does not grow with simulated seconds."""
    return max(PERIOD_S, end_s / MAX_ROWS)


def _rails(
    setting: Setting,
    line: Timeline,
    t_s: NDArray[np.floating],
    start_s: float,
    spread: float,
    random: np.random.Generator,
) -> Samples:
    """Return readings of the rails and their total; what a part takes varies by `spread`, of 1."""
    rails = setting.board.rails
    shares = np.array([[rail.get(part, 0.0) for part in PARTS] for rail in rails.values()])
    module = ModulePower(setting.board.kind, list(rails))
    watts = line.at(t_s) * (1.0 + spread * random.standard_normal((t_s.size, len(PARTS))))
    values = np.column_stack([watts @ shares.T, watts.sum(axis=1)])
    return Samples(
        "twin", "module", _period_s(t_s[-1]), module.columns, module.total, t_s + start_s, values
    )


def _host(
    setting: Setting,
    mean: Epoch,
    t_s: NDArray[np.floating],
    start_s: float,
    p: Values,
    random: np.random.Generator,
) -> Samples:
    """Return the host's counters: means of the epoch, none in the first row, as a real one."""
    e2e_s, workers = number(mean.e2e_s), number(setting.num_workers)
    read_bytes = number(mean.read_share) * setting.n_samples * setting.samples.file_bytes
    used_mib = p["system_mib"] + p["cuda_mib"] + p["worker_mib"] * workers
    means = {
        "cpu_util_pct": 100.0 * number(mean.cpu_busy_s / mean.e2e_s / mean.clocks.cores),
        "read_iops": read_bytes / BLOCK_BYTES / e2e_s,
        "read_mib_s": read_bytes / _MIB / e2e_s,
        "ram_used_mib": min(used_mib, setting.board.ram_mib),
        "cpu0_mhz": number(mean.clocks.cpu_mhz),
    }
    values = np.tile(list(means.values()), (len(t_s), 1))
    values[0, :3] = np.nan
    if setting.dvfs:
        values[:, -1] = _first_cluster_mhz(setting, mean, len(t_s), random)
    return Samples("host", "", _period_s(t_s[-1]), tuple(means), None, t_s + start_s, values)


def _first_cluster_mhz(
    setting: Setting, mean: Epoch, n: int, random: np.random.Generator
) -> NDArray[np.floating]:
    """Return the clock of the first cluster at `n` instants when the governors choose, MHz."""
    share, rest_mhz = first_cluster(setting, mean)
    here = random.random(n) < number(share)
    return np.where(here, number(mean.clocks.cpu_mhz), number(rest_mhz))


def _board(setting: Setting, mean: Epoch, t_s: NDArray[np.floating], start_s: float) -> Samples:
    """Return clocks and loads; loads are means over a sensor's own window of many kernels."""
    emc_mhz = number(mean.clocks.emc_mhz)
    bandwidth = 1e6 * emc_mhz * setting.board.emc_bytes_per_clock
    means = {
        "gpu_mhz": number(mean.clocks.gpu_mhz),
        "gpu_util_pct": 100.0 * number(mean.gpu_busy_s / mean.e2e_s),
        "emc_mhz": emc_mhz,
        "emc_util_pct": 100.0 * number(mean.moved_bytes / mean.e2e_s) / bandwidth,
    }
    values = np.tile(list(means.values()), (len(t_s), 1))
    return Samples("board", "", _period_s(t_s[-1]), tuple(means), None, t_s + start_s, values)
