"""Compute a whole epoch in closed form: means of the long run, for many configurations at once.

It gives the averages of the event simulation (`run.simulate`). The calibration, the what-if
questions and the checks use it, because it costs microseconds.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from epochwatt.counting.kernel_counts import FLOAT_BYTES, KernelCounts
from epochwatt.errors import EpochwattError
from epochwatt.twin import loader, power
from epochwatt.twin.boards import Array, Board, Clocks, Factors, SampleFacts, Values
from epochwatt.twin.compute import MAIN_OTHERS, Compute, compute, slowdown, work_s
from epochwatt.twin.loader import Stages


@dataclass(frozen=True)
class Setting:
    """Configurations that share board, network, data set, medium and mini-batch size.

    Raises EpochwattError: a medium, clock, size or number of workers that there is not.
    """

    board: Board
    work: KernelCounts
    samples: SampleFacts
    medium: str
    batch_size: int
    clocks: Clocks  # each a number or of shape (configurations,), as the number of workers
    num_workers: Array
    cold: bool = False  # nothing of the data set is in the page cache when the epoch begins
    dvfs: bool = False  # the governors choose the clocks
    scale: float = 1.0  # size of the data set relative to the source
    setup: str = ""  # paper whose boards these are; its page cache may have more room

    def __post_init__(self) -> None:
        if self.medium not in loader.MEDIA:
            problem = f"no storage medium {self.medium!r} is simulated"
            raise EpochwattError(problem, allowed=loader.MEDIA)
        if self.batch_size < 1 or self.scale <= 0 or np.min(self.num_workers) < 0:
            raise EpochwattError(
                f"batch size {self.batch_size}, scale {self.scale:g}, workers {self.num_workers}",
                allowed="1 or more, above 0, 0 or more",
            )
        power.check_clocks(self.board, self.clocks)

    @property
    def n_samples(self) -> int:
        """Samples of an epoch."""
        return max(1, round(self.samples.n_samples * self.scale))

    @property
    def n_minibatches(self) -> int:
        """Mini-batches of an epoch; the last may be smaller."""
        return -(-self.n_samples // self.batch_size)

    @property
    def n_first(self) -> int:
        """Samples of the first mini-batch, and of all but the last."""
        return min(self.batch_size, self.n_samples)

    @property
    def n_last(self) -> int:
        """Samples of the last mini-batch."""
        return self.n_samples - (self.n_minibatches - 1) * self.batch_size

    @property
    def batch_bytes(self) -> float:
        """Size of a mini-batch in memory."""
        return float(self.n_first * self.work.sample_bytes)


class Epoch(NamedTuple):
    """Times, loads and power of one epoch, each a number per configuration."""

    e2e_s: Array
    stall_s: Array
    compute_s: Array
    overhead_s: Array
    fetch_s: Array
    preprocess_s: Array
    gpu_busy_s: Array
    cpu_busy_s: Array  # summed over the cores
    main_work_s: Array  # of them the training process, without its polling for the GPU
    beside_s: Array  # of them loader and monitor
    read_share: Array  # of the samples, read from the medium
    moved_bytes: Array
    clocks: Clocks
    parts: power.Parts
    stages: Stages
    work: Compute

    @property
    def power_w(self) -> Array:
        """Mean power of the module, W."""
        return self.parts.module_w

    @property
    def energy_wh(self) -> Array:
        """Energy of the module, Wh."""
        return self.power_w * self.e2e_s / 3600.0


def epoch(setting: Setting, p: Values) -> Epoch:
    """Return times, loads and power of an epoch of the long run, with the start of its workers."""
    workers = np.asarray(setting.num_workers)
    return _governed(setting, np.where(workers > 0, first_s(workers, p), 0.0), p)


def steady(setting: Setting, p: Values) -> Epoch:
    """Return `epoch` without the start of its workers: all mini-batches as in the long run."""
    return _governed(setting, 0.0, p)


def _governed(setting: Setting, start_s: Array, p: Values) -> Epoch:
    """Return an epoch at the clocks of its mode, or at those that the governors choose."""
    top = setting.clocks
    at_top = _at_clocks(setting, top, start_s, p)
    if not setting.dvfs:
        return at_top
    bandwidth = 1e6 * top.emc_mhz * setting.board.emc_bytes_per_clock
    chosen = power.governed(
        setting.board,
        top,
        np.minimum(at_top.cpu_busy_s / at_top.e2e_s, 1.0),
        at_top.gpu_busy_s / at_top.e2e_s,
        at_top.moved_bytes / at_top.e2e_s / bandwidth,
        p,
    )
    return _at_clocks(setting, chosen, start_s, p)


def _at_clocks(setting: Setting, clocks: Clocks, start_s: Array, p: Values) -> Epoch:
    """Return an epoch at given clocks, whose workers take `start_s` to begin."""
    stages, work, read_share = stage_times(setting, clocks, p)
    n, workers = setting.n_minibatches, np.asarray(setting.num_workers)
    slow = slowdown(workers + MAIN_OTHERS, clocks.cores, p)
    wait_s = loader.steady_wait_s(stages, workers)
    stall_s = n * (wait_s + stages.copy_s) + start_s
    compute_s, overhead_s = n * stages.compute_s, n * stages.loop_s
    e2e_s = stall_s + compute_s + overhead_s
    decode_s = n * stages.preprocess_s
    # the training process polls while the GPU works and sleeps while the loader makes it wait
    late_s = n * np.maximum(wait_s - stages.handover_s, 0.0)
    main_s = e2e_s - np.where(workers > 0, late_s, n * stages.fetch_s)
    loading_s = np.where(workers > 0, decode_s / slow, 0.0)  # without the time off the core
    beside_s = loading_s + p["monitor_cores"] / setting.board.ipc * e2e_s
    in_line_s = np.where(workers > 0, 0.0, stages.preprocess_s)
    main_work_s = n * (
        work.launch_s + stages.handover_s + stages.copy_s + stages.loop_s + in_line_s
    )
    busy_s = main_s + beside_s
    busy_cores = np.minimum(busy_s / e2e_s, clocks.cores)
    gpu_busy_s = n * work.gpu_busy_s
    moved = n * (work.moved_bytes + 2.0 * setting.batch_bytes)
    load = power.Load(busy_cores, gpu_busy_s / e2e_s, n * work.computing_s / e2e_s, moved / e2e_s)
    return Epoch(
        e2e_s=e2e_s,
        stall_s=stall_s,
        compute_s=compute_s,
        overhead_s=overhead_s,
        fetch_s=n * stages.fetch_s,
        preprocess_s=decode_s,
        gpu_busy_s=gpu_busy_s,
        cpu_busy_s=busy_cores * e2e_s,
        main_work_s=main_work_s,
        beside_s=beside_s,
        read_share=read_share,
        moved_bytes=moved,
        clocks=clocks,
        parts=power.parts(setting.board, clocks, load, p),
        stages=stages,
        work=work,
    )


def first_s(num_workers: Array, p: Values) -> Array:
    """Return how long the loader's workers, at least one, take to begin, s: one after the other."""
    return 1e-3 * p["worker_start_ms"] * np.maximum(num_workers, 1)


def stage_times(setting: Setting, clocks: Clocks, p: Values) -> tuple[Stages, Compute, Array]:
    """Return mean stages of a mini-batch, its computing, and the share of samples that are read."""
    board, samples, b = setting.board, setting.samples, setting.n_first
    workers = np.asarray(setting.num_workers)
    others = workers + MAIN_OTHERS
    slow = slowdown(others, clocks.cores, p)

    def cpu_s(kcycles: Array) -> Array:
        return work_s(kcycles, board, clocks.cpu_mhz, clocks.emc_mhz, p) * slow

    work = compute(setting.work, b, board, clocks[1:], clocks.cores, others, p)
    sample_kcycles = samples.kcycles
    if sample_kcycles is None:
        sample_kcycles = p["sample_kcycles"] + 1e-3 * p["pixel_cycles"] * samples.pixels
    decode_s = cpu_s(b * sample_kcycles)
    read_share: Array = 0.0 * workers
    fetch_s: Array = 0.0 * workers
    if samples.file_bytes:
        cached = cached_share(setting, p)
        hits = loader.hit_share(cached)
        read_share = 1.0 + 0.0 * workers if setting.cold else 1.0 - hits
        files = b * read_share * (1.0 + p["metadata_reads"] * (1.0 - cached))
        readers = np.maximum(workers, 1)
        service_s = loader.file_s(samples.file_bytes, setting.medium, readers, p)
        think_s = decode_s / np.maximum(files, 1e-9)
        fetch_s = files * loader.response_s(service_s, think_s, readers)
    copy_kcycles = p["copy_kcycles"] + 1e-3 * p["copy_cycles_per_byte"] * setting.batch_bytes
    stages = Stages(
        fetch_s=fetch_s,
        preprocess_s=decode_s,
        handover_s=np.where(workers > 0, cpu_s(p["handover_kcycles"]), 0.0),
        copy_s=cpu_s(copy_kcycles),
        compute_s=work.compute_s,
        loop_s=cpu_s(p["loop_kcycles"]),
    )
    return stages, work, read_share


def cached_share(setting: Setting, p: Values) -> Array:
    """Return the share of the data set that the page cache has room for, 0 to 1."""
    work, b = setting.work, setting.n_first
    floats = work.parameters
    if work.task == "train":  # gradients, momentum, and activations for the way back
        floats += 2 * work.parameters + work.elements(b)[work.phase == "forward"].sum()
    model_mib = FLOAT_BYTES * floats / 2.0**20
    used_mib = model_mib - p.get(f"{setting.setup}_spare_mib", 0.0)
    room = loader.capacity_mib(setting.board, setting.num_workers, used_mib, p)
    return np.minimum(1.0, room / (setting.samples.mib * setting.scale))


def first_cluster(setting: Setting, mean: Epoch) -> tuple[Array, Array]:
    """Return the first CPU cluster's share of time at its fastest clock, and its other clock, MHz.

    For DVFS, when the governors choose. A cluster is at the top while one of its cores works. The
    training process wanders, on one cluster after the other; while it only polls for the GPU it
    yields, and its clock may fall. Loader and monitor are spread over all cores.
    """
    cores, busy = mean.clocks.cores, mean.cpu_busy_s / mean.e2e_s
    cluster_cores = np.minimum(setting.board.cluster_cores, cores)
    at_work = np.minimum(mean.main_work_s / mean.e2e_s, 1.0) * cluster_cores / cores
    beside = np.minimum(mean.beside_s / mean.e2e_s / cores, 1.0)
    share = 1.0 - (1.0 - at_work) * (1.0 - beside) ** cluster_cores
    rest_util = np.maximum(busy - 1.0, 0.0) / np.maximum(cores - 1.0, 1.0)
    return share, power.cpu_mhz(setting.board, setting.clocks, rest_util)


def draw_spread(
    factors: Factors, n_epochs: int, board: Board, random: np.random.Generator, p: Values
) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """Draw factors of time and power of each of a run's epochs, shape (epochs,) each.

    Each is the factor of the unit, which the epochs share, times a noise of the epoch's own.
    """
    time_factor, power_factor = board.factors_of(factors["instance"])
    time_noise, power_noise = random.normal(size=n_epochs), random.normal(size=n_epochs)
    sigma = p["noise_epoch"]
    return time_factor * np.exp(sigma * time_noise), power_factor * np.exp(sigma * power_noise)
