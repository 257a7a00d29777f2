"""Simulate a run: every mini-batch of every epoch, and the readings that the sensors would give.

The stages' mean times come from the same equations as the closed form (`epoch.steady`); each
mini-batch draws its own, and the loader's events are played one by one (`loader.waits_s`). All
epochs of a run are played side by side: they do not depend on each other. The spread between
mini-batches, epochs and readings is put in by hand (parameters `noise_*`), that between the units
of a board as the paper prints it (`boards.yaml`): nothing that rests on either is evidence.

The timeline of power is exact: four intervals a mini-batch (wait, copy, compute, the rest of the
loop), the power of each part constant in each. The GPU works and the memory moves in compute only;
the cores' load is the epoch's mean throughout. Each source reads it at one random instant per
period, as the sampler does (`telemetry/channel.py`), and at both bounds.
"""

import hashlib
import json
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from epochwatt import columns
from epochwatt.board.telemetry.rails import ModulePower
from epochwatt.errors import EpochwattError
from epochwatt.twin import power
from epochwatt.twin.boards import Clocks, Factors, Values, number
from epochwatt.twin.epoch import (
    Epoch,
    Setting,
    cached_share,
    draw_spread,
    epoch,
    first_cluster,
    first_s,
    stage_times,
)
from epochwatt.twin.loader import BLOCK_BYTES, Stages, waits_s
from epochwatt.twin.twin import Twin

IDLE_BETWEEN_S = 2.0  # of the board, from one epoch to the next
# Factors that came after the first simulations: seeds leave them out where they are at the default.
YOUNGER = ("imported", "task", "precision", "compile", "container")
PERIOD_S = 1.0  # of readings, as of the 2023 logger, jtop's
MAX_ROWS = 1000  # of a source and epoch: a longer epoch is read less often
COMPUTE = 2  # index of compute among a mini-batch's intervals


class Samples(NamedTuple):
    """The samples of one telemetry source during an epoch; there is a row at both of its bounds."""

    name: str  # of the source: `twin` (rails and power_module_w), `host` and `board` as on a board
    scope: str  # power scope; empty: it reports no power
    period_s: float  # of its readings, s
    columns: tuple[str, ...]  # c names with their units
    total: str | None  # the column that holds its whole power; None: there is none
    t_s: np.ndarray  # float (k,), s on the run's clock, ascending
    values: np.ndarray  # float (k, c)


class SimulatedEpoch(NamedTuple):
    """One epoch of a simulated run, as a measurement would have seen it."""

    epoch: int  # its number
    t_start_s: float  # its start on the run's own clock, which begins at 0
    e2e_s: float  # its length
    times_s: np.ndarray  # float (n, 3), s: wait, copy, compute of each mini-batch
    fetch_s: float  # summed over the workers
    preprocess_s: float
    n_samples: int  # trained on
    cached_before_pct: float  # share of the data set in the page cache
    cached_after_pct: float
    sources: tuple[Samples, ...]  # readings of the sensors


class Mean(NamedTuple):
    """An epoch without any spread."""

    setting: Setting
    epoch: Epoch  # in closed form
    last: Stages  # stages of its last mini-batch, which may be smaller


def setting_of(
    factors: Factors, twin: Twin, cold: bool = False, clocks: Clocks | None = None
) -> Setting:
    """Return the `Setting` that a run's factors describe; EpochwattError: it is not simulated.

    `clocks`: other ones than those of its power mode, each a number or of shape (configurations,).
    """
    if clocks is None:
        mode = factors.get("power_mode_settings", {})
        if missing := [name for name in Clocks._fields if name not in mode]:
            problem = (
                f"power mode {factors['power_mode']} of {factors['device']} has no {missing[0]}"
            )
            raise EpochwattError(problem, do=f"give it all of {', '.join(Clocks._fields)}")
        clocks = Clocks(*(float(mode[name]) for name in Clocks._fields))
    f = factors
    board, work, samples = twin.find(f["device"], f["model"], f["dataset"], f.get("task", "train"))
    return Setting(
        board=board,
        work=work,
        samples=samples,
        medium=f["storage"],
        batch_size=f["batch_size"],
        clocks=clocks,
        num_workers=f["num_workers"],
        cold=cold,
        dvfs=f["dvfs"] == "on",
        scale=float(f["dataset_scale"]),
        setup=f["setup"],
    )


def simulate(factors: Factors, n_epochs: int, twin: Twin) -> list[SimulatedEpoch]:
    """Simulate the epochs of a run, in order, with mini-batches, sensors and noise drawn."""
    random = np.random.default_rng(_seeds(factors))
    p = twin.parameters
    kinds = {}
    for cold in (True, False):
        setting = setting_of(factors, twin, cold)
        mean = epoch(setting, p)
        smaller = replace(setting, batch_size=setting.n_last)
        kinds[cold] = Mean(setting, mean, stage_times(smaller, mean.clocks, p)[0])
    board = twin.boards[factors["device"]]
    time_factors, power_factors = draw_spread(factors, n_epochs, board, random, p)
    dropped = factors["cache_policy"] == "dropped"
    means = [kinds[dropped or k == 0] for k in range(n_epochs)]
    stages, wait_s = _draw_minibatches(
        means, time_factors, factors["prefetch_factor"] or 0, random, p
    )
    # wait, copy, compute and the rest of the loop, shape (mini-batches, 4, epochs)
    times_s = np.stack([wait_s, stages.copy_s, stages.compute_s, stages.loop_s], axis=1)
    fetch_s, preprocess_s = np.sum(stages.fetch_s, axis=0), np.sum(stages.preprocess_s, axis=0)
    epochs: list[SimulatedEpoch] = []
    now_s = 0.0
    for k, (setting, mean, _) in enumerate(means):
        reads = setting.samples.file_bytes > 0
        cached_pct = 100.0 * number(cached_share(setting, p)) if reads else 100.0
        epoch_times_s, power_factor = times_s[:, :, k], float(power_factors[k])
        sources = read_sensors(setting, mean, epoch_times_s, now_s, power_factor, random, p)
        simulated = SimulatedEpoch(
            epoch=k,
            t_start_s=now_s,
            # as the sensors' time line, to the last digit
            e2e_s=float(epoch_times_s.ravel().cumsum()[-1]),
            times_s=epoch_times_s[:, :3],
            fetch_s=float(fetch_s[k]),
            preprocess_s=float(preprocess_s[k]),
            n_samples=setting.n_samples,
            cached_before_pct=0.0 if setting.cold and reads else cached_pct,
            cached_after_pct=cached_pct,
            sources=sources,
        )
        epochs.append(simulated)
        now_s += simulated.e2e_s + IDLE_BETWEEN_S
    return epochs


def _seeds(factors: Factors) -> list[int]:
    """Return 16 seeds made of a run's factors, so that the same run is always the same."""
    defaults = {name: columns.FACTOR_DEFAULTS[name] for name in YOUNGER}
    seeding = {k: v for k, v in factors.items() if k not in YOUNGER or v != defaults[k]}
    return list(hashlib.sha256(json.dumps(seeding, sort_keys=True).encode()).digest()[:16])


def _draw_minibatches(
    means: list[Mean],
    time_factors: NDArray[np.floating],
    prefetch_factor: int,
    random: np.random.Generator,
    p: Values,
) -> tuple[Stages, NDArray[np.floating]]:
    """Draw the stages of every mini-batch and play the loader; return stages and waits, s.

    Each has shape (mini-batches, epochs).
    """
    setting = means[0].setting
    n, workers = setting.n_minibatches, int(setting.num_workers)

    def drawn(name: str, sigma: float) -> NDArray[np.floating]:
        mean_s = np.empty((n, len(means)))
        mean_s[:-1] = [number(getattr(mean.epoch.stages, name)) for mean in means]
        mean_s[-1] = [number(getattr(mean.last, name)) for mean in means]
        noise = np.exp(sigma * random.standard_normal(mean_s.shape) - 0.5 * sigma**2)
        return mean_s * time_factors * noise

    stages = Stages(
        fetch_s=drawn("fetch_s", p["noise_file"] / np.sqrt(setting.n_first)),
        preprocess_s=drawn("preprocess_s", p["noise_preprocess"]),
        handover_s=drawn("handover_s", p["noise_handover"]),
        copy_s=drawn("copy_s", p["noise_handover"]),
        compute_s=drawn("compute_s", p["noise_compute"]),
        loop_s=drawn("loop_s", p["noise_handover"]),
    )
    return stages, waits_s(stages, workers, prefetch_factor, first_s(workers, p) * time_factors)


class Timeline(NamedTuple):
    """Power of an epoch as a step function."""

    bounds_s: NDArray[np.floating]  # (intervals + 1,) from 0 to the epoch's end
    parts_w: NDArray[np.floating]  # (2, parts) power of each part outside and inside compute
    computing: NDArray[np.bool_]  # (intervals,) whether the interval is one of compute

    def at(self, t_s: NDArray[np.floating]) -> NDArray[np.floating]:
        """Return the power of each part at instants, W: shape (instants, parts)."""
        interval = np.searchsorted(self.bounds_s, t_s, side="right") - 1
        inside = self.computing[np.clip(interval, 0, len(self.computing) - 1)]
        return np.asarray(self.parts_w[inside.astype(int)])

    @property
    def energy_j(self) -> float:
        """The module's energy, exactly."""
        module_w = self.parts_w.sum(axis=1)
        return float(np.diff(self.bounds_s) @ module_w[self.computing.astype(int)])


def timeline(
    setting: Setting, mean: Epoch, times_s: NDArray[np.floating], factor: float, p: Values
) -> Timeline:
    """Return the power of an epoch over time as a step function.

    `times_s`: wait, copy, compute and the rest, shape (mini-batches, 4); `factor`: the power's, of
    this board and epoch.
    """
    bounds_s = np.concatenate([[0.0], np.cumsum(times_s.ravel())])
    computing = np.zeros(times_s.shape, dtype=bool)
    computing[:, COMPUTE] = True
    share = float(times_s[:, COMPUTE].sum() / bounds_s[-1])
    busy = mean.cpu_busy_s / mean.e2e_s
    moved = mean.moved_bytes / mean.e2e_s / share
    util = np.minimum(mean.gpu_busy_s / mean.compute_s, 1.0)
    arithmetic = util * mean.work.computing_s / mean.work.gpu_busy_s
    outside = power.parts(setting.board, mean.clocks, power.Load(busy, 0.0, 0.0, 0.0), p)
    inside = power.parts(setting.board, mean.clocks, power.Load(busy, util, arithmetic, moved), p)
    parts_w = np.array([[number(w) for w in part_w] for part_w in (outside, inside)])
    return Timeline(bounds_s, factor * parts_w, computing.ravel())


def read_sensors(
    setting: Setting,
    mean: Epoch,
    times_s: NDArray[np.floating],
    start_s: float,
    factor: float,
    random: np.random.Generator,
    p: Values,
) -> tuple[Samples, ...]:
    """Sample the power, host and board sources of an epoch that begins at `start_s`.

    Loads, utilisations and reads are means of the epoch; the host's are missing in the first row,
    as a real one's.
    """
    line = timeline(setting, mean, times_s, factor, p)
    end_s = float(line.bounds_s[-1])
    period_s = max(PERIOD_S, end_s / MAX_ROWS)  # work that does not grow with simulated seconds

    def instants_s() -> NDArray[np.floating]:
        n = int(end_s / period_s)
        return np.concatenate([[0.0], period_s * (np.arange(n) + random.random(n)), [end_s]])

    t_s, rails = instants_s(), setting.board.rails
    shares = np.array(
        [
            [rail.get(part.removesuffix("_w"), 0.0) for part in power.Parts._fields]
            for rail in rails.values()
        ]
    )
    noise = random.standard_normal((t_s.size, len(power.Parts._fields)))
    watts = line.at(t_s) * (1.0 + p["noise_reading"] * noise)
    values = np.column_stack([watts @ shares.T, watts.sum(axis=1)])
    module = ModulePower(setting.board.kind, list(rails))
    twin = Samples("twin", "module", period_s, module.columns, module.total, t_s + start_s, values)

    t_s, e2e_s = instants_s(), number(mean.e2e_s)
    read_bytes = number(mean.read_share) * setting.n_samples * setting.samples.file_bytes
    used_mib = p["system_mib"] + p["cuda_mib"] + p["worker_mib"] * number(setting.num_workers)
    means = {
        "cpu_util_pct": 100.0 * number(mean.cpu_busy_s / mean.e2e_s / mean.clocks.cores),
        "read_iops": read_bytes / BLOCK_BYTES / e2e_s,
        "read_mib_s": read_bytes / 2.0**20 / e2e_s,
        "ram_used_mib": min(used_mib, setting.board.ram_mib),
        "cpu0_mhz": number(mean.clocks.cpu_mhz),
    }
    values = np.tile(list(means.values()), (len(t_s), 1))
    values[0, :3] = np.nan
    if setting.dvfs:
        share, rest_mhz = first_cluster(setting, mean)
        is_at_top = random.random(len(t_s)) < number(share)
        values[:, -1] = np.where(is_at_top, number(mean.clocks.cpu_mhz), number(rest_mhz))
    host = Samples("host", "", period_s, tuple(means), None, t_s + start_s, values)

    t_s, emc_mhz = instants_s(), number(mean.clocks.emc_mhz)
    bandwidth = 1e6 * emc_mhz * setting.board.emc_bytes_per_clock
    means = {
        "gpu_mhz": number(mean.clocks.gpu_mhz),
        "gpu_util_pct": 100.0 * number(mean.gpu_busy_s / mean.e2e_s),
        "emc_mhz": emc_mhz,
        "emc_util_pct": 100.0 * number(mean.moved_bytes / mean.e2e_s) / bandwidth,
    }
    values = np.tile(list(means.values()), (len(t_s), 1))
    board = Samples("board", "", period_s, tuple(means), None, t_s + start_s, values)
    return twin, host, board
