"""`make gpu-check`: everything that can only be checked on a GPU, in under eight minutes.

`python -m benchmarks.gpu_check` needs torch and numpy, and pynvml for the power; where Snakemake is
missing (a system's own torch, `PYTHONPATH=src`) the study is skipped. Without a GPU it says so.
Epochs have planted times: a loader that sleeps, copies and matrix products. Each of `PARTS` gives
rows of the table, or says why it is skipped. A test puts a GPU in simulated time in the place of
`RealGpu`.
"""

import argparse
import csv
import importlib
import importlib.util
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.results import REPOSITORY, Budget, Result, Row, at_most, near, save, table_lines
from epochwatt.board.device.locks import machine_lock
from epochwatt.board.records.run_folder import EpochRecord
from epochwatt.board.records.samples import read_samples
from epochwatt.board.telemetry.client import Sampler
from epochwatt.board.telemetry.nvml import open_gpu
from epochwatt.board.telemetry.which_gpu import gpu_of
from epochwatt.board.training import timing
from epochwatt.board.training.loop import Bounds, run_epoch
from epochwatt.epochs import telemetry
from epochwatt.epochs.energy import trapezoid
from epochwatt.epochs.placement import laid_out

OUT = REPOSITORY / "benchmarks/gpu"
SIZES = (256, 512, 1024, 2048, 4096, 8192)
SHORTEST_S = 1e-4  # of a product: launching it costs the host a tenth
CALIBRATION_S = 0.3


class Plan(NamedTuple):
    """An epoch: n mini-batches, s of the loader and of the GPU for each."""

    n: int
    load_s: float
    compute_s: float


class Epoch(NamedTuple):
    """What an epoch told, and what was planted."""

    bounds: Bounds
    minibatch_s: np.ndarray  # (n, 3), s
    placement: dict[str, Any]
    loaded_s: np.ndarray  # (n,), how long the loader really took
    got_s: np.ndarray  # (n,), when it handed over, on the monotonic clock

    @property
    def e2e_s(self) -> float:
        """Length of the epoch."""
        return self.bounds.t_end_mono_s - self.bounds.t_start_mono_s


class RealGpu:
    """The GPU that torch calls `cuda`.

    Parameters
    ----------
    torch : the module
    device : where to compute; a test without a GPU takes the CPU
    """

    def __init__(self, torch: Any, device: str = "cuda") -> None:
        self.torch, self.cuda = torch, torch.cuda
        self.device = torch.device(device)
        self._minibatch = torch.randn(16, 3, 64, 64)  # pageable, as the loop's
        for size in SIZES:
            self._factor = torch.randn(size, size, device=self.device)
            self._product = torch.empty_like(self._factor)
            self._each_s = self._product_s()
            if self._each_s >= SHORTEST_S:
                break

    def _product_s(self) -> float:
        """Return how long a product takes once the clocks have risen, s."""
        rounds, until_s = [], time.perf_counter() + CALIBRATION_S
        while time.perf_counter() < until_s:
            start_s = time.perf_counter()
            for _ in range(10):
                self._multiply()
            self.cuda.synchronize()
            rounds.append((time.perf_counter() - start_s) / 10)
        return float(np.median(rounds[len(rounds) // 2 :]))

    def _multiply(self) -> None:
        self.torch.mm(self._factor, self._factor, out=self._product)

    now = staticmethod(time.perf_counter)
    sleep = staticmethod(time.sleep)

    def load(self) -> Any:
        """Return a mini-batch in memory."""
        return self._minibatch

    def copy(self, minibatch: Any) -> Any:
        """Move it to the GPU."""
        return minibatch.to(self.device)

    def burn(self, seconds: float) -> None:
        """Launch products that keep the GPU busy for about so long."""
        for _ in range(max(1, round(seconds / self._each_s))):
            self._multiply()


def _loader(gpu: Any, plan: Plan, loaded_s: list[float], got_s: list[float]) -> Iterator[Any]:
    for _ in range(plan.n):
        start_s = gpu.now()
        gpu.sleep(plan.load_s)
        minibatch = gpu.load()
        got_s.append(gpu.now())
        loaded_s.append(got_s[-1] - start_s)
        yield minibatch


def timed_epoch(gpu: Any, plan: Plan, gpu_timing: str) -> Epoch:
    """Run an epoch as a session does; `gpu_timing` is `synchronised` or `pooled`."""
    loaded_s: list[float] = []
    got_s: list[float] = []
    timer = timing.make_timer(gpu_timing, gpu.cuda)
    loader = _loader(gpu, plan, loaded_s, got_s)
    bounds = run_epoch(
        loader, gpu.copy, lambda moved: gpu.burn(plan.compute_s), lambda loss: None, timer
    )
    minibatch_s = timer.minibatch_s()
    return Epoch(bounds, minibatch_s, timer.placement(), np.array(loaded_s), np.array(got_s))


def bare_epoch_s(gpu: Any, plan: Plan) -> float:
    """Run the same epoch without a clock in it; return how long it took, s."""
    start_s: float = gpu.now()
    for minibatch in _loader(gpu, plan, [], []):
        gpu.copy(minibatch)
        gpu.burn(plan.compute_s)
    gpu.cuda.synchronize()
    return float(gpu.now() - start_s)


TIMINGS = ("synchronised", "pooled")
LOADER_BOUND = Plan(60, load_s=0.020, compute_s=0.005)
GPU_BOUND = Plan(60, load_s=0.001, compute_s=0.010)
PAIRS = 12
SAME = near(1.0, 0.05)
YES = Budget(1.0, 1.0, "1")
# Stalls of 0.8 s, longer than any averaging of a sensor but the 1 s. With pooled timing the GPU
# computes while the host loads, so it waits for what loading takes longer.
STALL_S = 0.8
STALLING = {
    "synchronised": Plan(16, load_s=STALL_S, compute_s=0.8),
    "pooled": Plan(16, load_s=0.8 + STALL_S, compute_s=0.8),
}
LOAD_S = 20.0
MODELS = ("lenet", "resnet", "vgg11")
STUDY = {"gpu_timing": list(TIMINGS), "num_workers": 0, "batch_size": 16, "dataset_scale": 1}


class Skipped(Exception):  # noqa: N818  it is none
    """A part that cannot be done here, and why."""


def yes(what: str, holds: bool) -> Row:
    """Return the row of something that is so or not: 1 or 0."""
    return Row(what, [float(holds)], "", 0, YES)


def timers(gpu: Any, pairs: int = PAIRS) -> Result:
    """Check both timers: what was planted, against each other, and what they cost."""
    rows: list[Row] = []
    told: dict[str, Any] = {}
    for name, plan in (("loader-bound", LOADER_BOUND), ("GPU-bound", GPU_BOUND)):
        timed_epoch(gpu, plan, "pooled")  # clocks rise, memory is there
        epochs = {kind: timed_epoch(gpu, plan, kind) for kind in TIMINGS}
        for kind, epoch in epochs.items():
            rows += planted_rows(f"{name}, {kind}", epoch)
            told[f"{name}, {kind}"] = np.round(epoch.minibatch_s, 7).tolist()
        both = [epochs[kind].minibatch_s[1:, 2] for kind in ("pooled", "synchronised")]
        ratio = float(np.median(both[0]) / np.median(both[1]))
        rows.append(Row(f"{name}: compute, pooled / synchronised", [ratio], "", 3, SAME))
    return Result([*rows, *_cost(gpu, pairs)], told)


def planted_rows(name: str, epoch: Epoch) -> list[Row]:
    """Return what an epoch's times and places are, beside what was planted.

    A wait of the GPU ends when the loader hands over, which the host saw. With `synchronised` it is
    all that the loader took; a GPU with work left (pooled) waits less, or not at all.
    """
    starts, _ = laid_out(epoch.placement["starts"], epoch.minibatch_s)
    waits = epoch.minibatch_s[1:, 0]
    idle = waits > 0.2 * epoch.loaded_s[1:]  # else it is not the loader that ended the wait
    rows = []
    if idle.any():
        off_s = (starts[1:] + waits - epoch.got_s[1:])[idle]
        rows.append(
            Row(f"{name}: end of a wait, off by", 1e3 * np.abs(off_s), "ms", 3, at_most(1.0))
        )
    if epoch.placement["clock"] == "host":
        off_s = waits - epoch.loaded_s[1:]
        rows.append(Row(f"{name}: wait, off by", 1e3 * np.abs(off_s), "ms", 3, at_most(0.5)))
    tail_s = epoch.bounds.t_end_mono_s - epoch.placement["starts"][-1][1]
    rows.append(
        Row(
            f"{name}: after the last mini-batch",
            [1e3 * tail_s],
            "ms",
            3,
            Budget(-1.0, 3.0, "-1 to 3"),
        )
    )
    sums = epoch.minibatch_s.sum() / epoch.e2e_s
    rows.append(
        Row(f"{name}: its parts / E2E", [float(sums)], "", 4, Budget(0.9, 1.001, "0.9 to 1"))
    )
    return rows


def _cost(gpu: Any, pairs: int) -> list[Row]:
    """Return E2E with each timer / E2E of a bare loop, in interleaved pairs."""
    ratios: dict[str, list[float]] = {kind: [] for kind in TIMINGS}
    for _ in range(pairs):
        bare_s = bare_epoch_s(gpu, GPU_BOUND)
        for kind in TIMINGS:
            epoch_s = timed_epoch(gpu, GPU_BOUND, kind).e2e_s
            again_s = bare_epoch_s(gpu, GPU_BOUND)
            ratios[kind].append(2 * epoch_s / (bare_s + again_s))
            bare_s = again_s
    # synchronising costs what the host could have prepared meanwhile: the papers' way, only told
    budgets = {"pooled": at_most(1.01), "synchronised": None}
    return [Row(f"{k} / bare epoch", ratios[k], "", 4, budgets[k]) for k in TIMINGS]


class Sampled(NamedTuple):
    """What the sampler gave of a stretch of time."""

    table: dict[str, np.ndarray]  # of NVML, by column
    about: dict[str, Any]  # what telemetry.json says of it


def device(gpu: Any) -> Result:
    """Check that CUDA, torch and NVML speak of one card; tell what its sensor is."""
    uuid = gpu_of(gpu.device, gpu.torch)
    source = open_gpu(uuid)
    if source is None:
        raise Skipped("NVML cannot be used here, or tells nothing of this GPU")
    about = source.settings()
    source.close()
    properties = gpu.cuda.get_device_properties(0)
    rows = [
        yes("CUDA's driver names the GPU", uuid not in ("none", "unknown")),
        yes("NVML has it under this UUID", (about["uuid"] or "").lower().endswith(uuid.lower())),
        yes("both give it the same name", about["gpu"] == properties.name),
    ]
    if hasattr(properties, "uuid"):
        rows.append(yes("torch gives the same UUID", str(properties.uuid) == uuid))
    sensor = about["sensor"]
    for what, key in (("power", "update_s"), ("energy counter", "counter_update_s")):
        if sensor[key] is not None:
            rows.append(Row(f"refresh of the {what}", [1e3 * sensor[key]], "ms", 0))
    if sensor["seen_share"] is not None:
        rows.append(Row("share of the time its sensor sees", [sensor["seen_share"]], "", 2))
    return Result(rows, {"uuid": uuid, **about})


def power(gpu: Any, load_s: float = LOAD_S) -> Result:
    """Check the integral of NVML's power against the card's own counter, load on and off."""

    def load_and_rest() -> tuple[float, float]:
        start_s = gpu.now()
        while gpu.now() - start_s < load_s:
            gpu.burn(0.7)
            gpu.cuda.synchronize()
            gpu.sleep(0.3)
        return start_s, gpu.now()

    sampled, window = _sampled(gpu, load_and_rest)
    return Result(power_rows(sampled.table, window), {"about": sampled.about})


def power_rows(table: dict[str, np.ndarray], window: tuple[float, float]) -> list[Row]:
    """Return the integral of the power over the counter's difference; Skipped without a counter."""
    energy = trapezoid(table["t_mono_s"], table["power_gpu_w"], *window)
    start_j, end_j = counter_at(table, np.array(window))
    counted_j = float(end_j - start_j)
    if not counted_j > 0:
        raise Skipped("the card's energy counter does not move")
    mean_w = energy.energy_j / (window[1] - window[0])
    return [
        Row("mean power, by its integral", [mean_w], "W", 1),
        Row("integral of the power / counter", [energy.energy_j / counted_j], "", 3, SAME),
    ]


def counter_at(table: dict[str, np.ndarray], moments_s: np.ndarray) -> np.ndarray:
    """Return what the card's energy counter was at some moments, J; Skipped where there is none."""
    known = np.isfinite(table["energy_gpu_j"])
    if not known.any():
        raise Skipped("this card has no energy counter to compare with")
    return np.interp(moments_s, table["t_mono_s"][known], table["energy_gpu_j"][known])


FEWEST_RENEWALS = 4  # of the counter in a stall on average: each is known to within a sample


def renewals(
    table: dict[str, np.ndarray], begin_s: float, end_s: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return when the counter was renewed between two moments, about, s, and its values, J.

    Between the samples before and after, halfway; both lie between the moments.
    """
    known = np.isfinite(table["energy_gpu_j"])
    t_s, energy_j = table["t_mono_s"][known], table["energy_gpu_j"][known]
    is_new = np.flatnonzero(np.diff(energy_j) > 0) + 1
    is_new = is_new[(t_s[is_new - 1] >= begin_s) & (t_s[is_new] <= end_s)]
    return (t_s[is_new - 1] + t_s[is_new]) / 2, energy_j[is_new]


def _sampled(gpu: Any, work: Any) -> tuple[Sampled, Any]:
    """Do some work while the project's own sampler reads NVML; return both results."""
    with tempfile.TemporaryDirectory() as folder:
        uuid = gpu_of(gpu.device, gpu.torch)
        with Sampler.start(os.getpid(), folder, seed=0, gpu=uuid) as sampler:
            sampler.begin(folder)
            done = work()
            statistics = sampler.end()
            why = sampler.refused.get("nvml", "NVML tells nothing of this GPU")
        if statistics["lost"] or statistics["sources"].get("nvml", {}).get("scope") is None:
            raise Skipped(why)
        return Sampled(read_samples(folder, "nvml"), statistics["sources"]["nvml"]), done


def stalls(gpu: Any) -> Result:
    """Check the energy of planted stalls, as the tool tells it, against the card's counter.

    The counter is renewed ten times a second, so what it shows where a stall begins still lacks
    work: a third too much over 0.8 s on an H100. Its mean power over the renewals within a stall
    does not. Where the tool gives no energy of the stalls it has to say why.
    """
    rows, details = [], {}
    for kind in TIMINGS:
        sampled, epoch = _sampled(gpu, lambda kind=kind: timed_epoch(gpu, STALLING[kind], kind))
        found = stall_rows(kind, sampled, epoch)
        rows += found.rows
        details[kind] = found.details
    return Result(rows, details)


def stall_rows(kind: str, sampled: Sampled, epoch: Epoch) -> Result:
    """Return stall energy / mean power by the counter within the stalls, times their length."""
    begun_s, ended_s = laid_out(epoch.placement["starts"], epoch.minibatch_s)
    seen_j = seen_s = 0.0  # between the first and the last renewal of each stall
    n_renewals = 0
    for begin_s, end_s in zip(begun_s, ended_s, strict=True):
        times_s, energies_j = renewals(sampled.table, begin_s, end_s)
        n_renewals += len(times_s)
        if len(times_s) > 1:
            seen_j += float(energies_j[-1] - energies_j[0])
            seen_s += float(times_s[-1] - times_s[0])
    if n_renewals < FEWEST_RENEWALS * len(begun_s):
        raise Skipped("the card's counter is renewed too seldom to see a stall")
    counted_j = seen_j / seen_s * float(np.sum(ended_s - begun_s))
    meta = {
        **epoch.bounds._asdict(),
        "e2e_s": epoch.bounds.t_end_mono_s - epoch.bounds.t_start_mono_s,
        "timing_method": f"cuda_events_{kind}",
        "placement": epoch.placement,
        "tail_s": epoch.bounds.t_end_mono_s - epoch.placement["starts"][-1][1],
    }
    statistics = {"sources": {"nvml": sampled.about}}
    record = EpochRecord(meta, epoch.minibatch_s.astype(np.float32), statistics, "")
    (row,) = telemetry.energies(record, {"nvml": sampled.table})
    details = {"counted_j": counted_j, **{k: v for k, v in row.items() if k != "flags"}}
    details["flags"] = sorted(row["flags"])
    if row["stall_energy_j"] is None:
        said = yes(f"{kind}: stall energy is empty, and flagged", bool(row["flags"]))
        return Result([said], details)
    ratio = row["stall_energy_j"] / counted_j
    return Result(
        [Row(f"{kind}: stall energy / counter", [ratio], "", 3, near(1.0, 0.15))], details
    )


def flops(gpu: Any, models: Sequence[str] = MODELS) -> Result:
    """Check the floating point operations that torch counts on this GPU, by hand and by the twin.

    torch's counter takes a convolution in groups for one without, so MobileNet is not compared.
    """
    torch = gpu.torch
    if importlib.util.find_spec("torch.utils.flop_counter") is None:
        raise Skipped(f"torch {torch.__version__} has no FLOP counter")
    network = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.Flatten(), torch.nn.Linear(8 * 32 * 32, 10)
    ).to(gpu.device)
    inputs = torch.randn(16, 3, 32, 32, device=gpu.device)
    conv = 2 * 16 * 32 * 32 * 8 * 3 * 9
    linear = 2 * 16 * 8 * 32 * 32 * 10
    by_hand = 2 * conv + 3 * linear  # forward and backward; nobody asks for the inputs' gradient
    ratio = _counted(lambda: network(inputs).sum().backward()) / by_hand
    rows = [Row("FLOPs of two layers, torch / by hand", [ratio], "", 4, near(1.0, 0.001))]
    try:
        from epochwatt.board.training.workloads import WORKLOADS, Trainer
        from epochwatt.counting.count_workload import launches
    except ImportError:  # a system's own torch: neither torchvision nor what configuration needs
        return Result(rows)
    for model in models:
        workload, trainer = WORKLOADS[model], Trainer(WORKLOADS[model], gpu.device, 0)
        sample = workload.transform(workload.made_up())
        minibatch = trainer.copy((torch.stack([sample] * 16), torch.zeros(16, dtype=torch.long)))
        kernels = [kernel for _, kernel in launches(workload, 16)]
        ours = sum(
            kernel.flops for kernel in kernels if kernel.kind in ("convolution", "gemm", "gemm16")
        )
        ratio = _counted(lambda step=trainer.step, on=minibatch: step(on)) / ours
        rows.append(Row(f"FLOPs of {model}, torch / twin", [ratio], "", 4, near(1.0, 0.001)))
    return Result(rows)


def _counted(work: Any) -> int:
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        work()
    return int(counter.get_total_flops())


# six seconds: what a counter is late counts little
SCRIPT = Plan(60, load_s=0.020, compute_s=0.080)
MINIBATCHES, WARM = 120, 20  # of a block


def monitor(gpu: Any, blocks: int = PAIRS, plan: Plan = SCRIPT) -> Result:
    """Check `EpochMonitor` in a script's own loop: planted times, the card's counter, its cost."""
    from epochwatt import EpochMonitor

    rows: list[Row] = []
    told: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for kind in TIMINGS:
            with EpochMonitor("planted", folder=folder, gpu_timing=kind) as watch:
                for _ in range(2):
                    loaded_s: list[float] = []
                    watch.begin_window("epoch")
                    for minibatch in watch.epoch(_loader(gpu, plan, loaded_s, [])):
                        with watch.copy():
                            gpu.copy(minibatch)
                        with watch.step():
                            gpu.burn(plan.compute_s)
                    window = watch.end_window("epoch")
                epoch = watch.last
            found, told[kind] = monitor_rows(kind, epoch, window, loaded_s)
            rows += found
        costs, is_same = _monitored(gpu, blocks, folder)
    rows += [Row(what, ratios, "", 4) for what, ratios in costs.items()]
    rows.append(yes("losses are the same to the bit with and without it", is_same))
    return Result(rows, told)


def monitor_rows(
    kind: str, epoch: Any, window: Any, loaded_s: list[float]
) -> tuple[list[Row], dict[str, Any]]:
    """Return what `EpochMonitor` told of an epoch beside what was planted, and all it told."""
    told = {"epoch": str(epoch), "flags": list(epoch.flags), "window": str(window)}
    rows = []
    if kind == "synchronised":
        off_ms = 1e3 * abs(epoch.wait_s - sum(loaded_s)) / epoch.n_minibatches
        rows.append(Row(f"script, {kind}: wait, off by", [off_ms], "ms", 3, at_most(0.5)))
    sums = (epoch.wait_s + epoch.copy_s + epoch.compute_s + epoch.overhead_s) / epoch.e2e_s
    rows.append(Row(f"script, {kind}: its parts / E2E", [sums], "", 4, near(1.0, 0.001)))
    if epoch.energy_wh is None:
        return [*rows, yes(f"script, {kind}: no energy, and flagged", bool(epoch.flags))], told
    with open(os.path.join(epoch.folder, "record.json"), encoding="utf-8") as record:
        meta = json.load(record)
    table = read_samples(epoch.folder, "nvml")
    bounds_s = np.array([meta["t_start_mono_s"], meta["t_end_mono_s"]])
    start_j, end_j = counter_at(table, bounds_s)
    counted_wh = (end_j - start_j) / 3600.0
    ratio = float(epoch.energy_wh / counted_wh)
    rows.append(Row(f"script, {kind}: energy / counter", [ratio], "", 3, SAME))
    if epoch.energy_error_pct is not None:
        bound_pct = [epoch.energy_error_pct]
        rows.append(Row(f"script, {kind}: stated bound of the energy", bound_pct, "%", 1))
    if window.total_energy is not None:
        ratio = float(window.total_energy / (3600.0 * epoch.energy_wh))
        rows.append(Row(f"script, {kind}: window / epoch, energy", [ratio], "", 3, SAME))
    return rows, {**told, "counted_wh": float(counted_wh)}


def _monitored(gpu: Any, blocks: int, folder: str) -> tuple[dict[str, list[float]], bool]:
    """Train networks within `EpochMonitor`, a bare mini-batch after each of its own.

    Returns medians of a block's mini-batches / those of its bare ones, each waited for, by network
    and timing, and whether losses are the same without it.
    """
    from epochwatt import EpochMonitor
    from epochwatt.board.training.networks import CifarResNet18, lenet5

    torch = gpu.torch
    torch.backends.cudnn.deterministic = True
    costs: dict[str, list[float]] = {}
    is_same = True
    for network, make, shape in (
        ("LeNet", lenet5, (16, 1, 28, 28)),
        ("ResNet-18", CifarResNet18, (16, 3, 32, 32)),
    ):
        inputs, labels = torch.randn(*shape), torch.randint(10, shape[:1])
        loader = [(inputs, labels)] * MINIBATCHES

        def trained(minibatches: Any, make: Any = make, bare: Any = None) -> Any:
            """Return losses, and times of mini-batches, each followed by that of one of `bare`."""
            torch.manual_seed(0)
            model = make().to(gpu.device)
            optimiser = torch.optim.SGD(model.parameters(), lr=0.01)
            losses, times_s = [], []
            start_s = gpu.now()
            for images, targets in minibatches:
                while True:
                    optimiser.zero_grad()
                    scores = model(images.to(gpu.device))
                    loss = torch.nn.functional.cross_entropy(scores, targets.to(gpu.device))
                    loss.backward()
                    optimiser.step()
                    losses.append(loss.item())
                    gpu.cuda.synchronize()
                    times_s.append(gpu.now() - start_s)
                    start_s = gpu.now()
                    if bare is None or len(times_s) % 2 == 0:
                        break
                    images, targets = next(bare)
            return losses, np.array(times_s)

        plain, _ = trained(loader)
        for kind in TIMINGS:
            costs[f"{network}: {kind} / bare"] = ratios = []
            with EpochMonitor(network, folder=folder, gpu_timing=kind) as watch:
                losses, _ = trained(watch.epoch(loader))
                is_same &= losses == plain
                for _ in range(blocks):
                    _, times_s = trained(watch.epoch(loader), bare=iter(loader))
                    own_s, bare_s = times_s[WARM:].reshape(-1, 2).T
                    ratios.append(float(np.median(own_s) / np.median(bare_s)))
    return costs, is_same


def memory(gpu: Any) -> Result:
    """Check forecasts of a step's memory against torch's allocator: 24 trainings, two minutes."""
    try:
        from benchmarks.memory import N_ON_GPU, draw, gpu_rows, on_gpu
    except ImportError as error:
        raise Skipped(f"{error.name} cannot be imported") from None
    found = on_gpu((draw(2) + draw(3))[:N_ON_GPU])
    return Result(gpu_rows(found), {"trainings": found.to_dict("records")})


def interleaver(gpu: Any) -> Result:
    """Compare taking turns with two processes and with two streams, on this GPU; a minute."""
    try:
        from benchmarks.interleaver import N_ROUNDS, PLANS, SECONDS, compared
    except ImportError as error:  # a system's own torch, without what configuration needs
        raise Skipped(
            f"{error.name} cannot be imported: only the workflow's .venv has it"
        ) from None
    rows, left_out = compared({"lenet": PLANS["lenet"]}, N_ROUNDS, SECONDS)
    return Result(rows, dict(left_out))


def study(gpu: Any) -> Result:
    """Run a short study through Snakemake: both timings, from the data set to the table."""
    missing = [name for name in ("snakemake", "yaml") if importlib.util.find_spec(name) is None]
    if missing:
        raise Skipped(f"{', '.join(missing)} cannot be imported: only the workflow's .venv has it")
    from benchmarks.workflow import Workplace

    with tempfile.TemporaryDirectory() as name:
        workplace = Workplace(Path(name), STUDY, epochs=2)
        runs = list(workplace.settings().table.runs.values())
        tables = [f"results/runs/{run.id}/epochs.csv" for run in runs]
        workplace.snakemake("--quiet", "all", "--", *tables)
        rows = []
        for table in tables:
            with (Path(name) / table).open(newline="", encoding="utf-8") as handle:
                rows += csv.DictReader(handle)
    return Result(study_rows(rows), {"epochs": rows})


def study_rows(rows: list[dict[str, str]]) -> list[Row]:
    """Return what has to be so of a study's epochs on a GPU."""
    methods = {f"cuda_events_{kind}" for kind in TIMINGS}
    flags = {flag for row in rows for flag in row["flags"].split()}
    energies_wh = [float(row["energy_wh"] or "nan") for row in rows]
    return [
        yes("study: timed by events, both ways", {row["timing_method"] for row in rows} == methods),
        yes("study: all epochs are valid", all(row["valid"] == "True" for row in rows)),
        yes("study: its power is the GPU's", {row["power_scope"] for row in rows} == {"gpu"}),
        yes("study: each epoch has its energy", all(wh > 0 for wh in energies_wh)),
        yes("study: no flag against the GPU", not flags & {"gpu_power_unknown", "power_missing"}),
    ]


PARTS: tuple[tuple[str, Callable[[Any], Result]], ...] = (
    *(("device", device), ("timers", timers), ("power", power), ("stalls", stalls)),
    *(("flops", flops), ("monitor", monitor), ("memory", memory)),
    *(("interleaver", interleaver), ("study", study)),
)
HEAD = """# Cards that were checked

One file per card, written by `make gpu-check` ([gpu_check.py](../gpu_check.py)); this table is made
of them. What is checked: [benchmarks](../README.md#make-gpu-check).

| card | date | torch | checks met | not met, or could not be done |
| --- | --- | --- | --- | --- |
"""
NOBODY = "| none yet | | | | |\n"


def why_not() -> str | None:
    """Return why no GPU can be checked here; None: there is one."""
    try:
        torch = importlib.import_module("torch")
    except ImportError as error:
        return f"torch cannot be imported ({error})"
    if not torch.cuda.is_available():
        built = torch.version.cuda
        return (
            f"torch {torch.__version__} sees none (built for CUDA {built})"
            if built
            else (f"torch {torch.__version__} is built without CUDA")
        )
    return None


def check(gpu: Any, parts: Any) -> tuple[dict[str, Result], dict[str, str], set[str]]:
    """Carry out the parts, one after the other, each whatever the others came to.

    Returns their results, why a part gave none, and which of these broke off.
    """
    results: dict[str, Result] = {}
    notes: dict[str, str] = {}
    failed = set()
    for name, part in parts:
        start_s = time.perf_counter()
        _say(f"{name}: running")
        try:
            results[name] = part(gpu)
        except Skipped as error:
            notes[name] = f"skipped: {error}"
        except Exception as error:  # noqa: BLE001  the other parts are worth having all the same
            notes[name] = f"broke off: {type(error).__name__}: {' '.join(str(error).split())}"
            failed.add(name)
        _say(notes.get(name, f"{name}: took {time.perf_counter() - start_s:.0f} s"))
    return results, notes, failed


def main(argv: list[str] | None = None) -> int:
    """Run the command; return 1 when a check is not met or broke off, 0 also without a GPU."""
    parser = argparse.ArgumentParser(prog="benchmarks.gpu_check", description=__doc__)
    parser.add_argument("--out", type=Path, default=OUT, help="folder of the results")
    parser.add_argument("parts", nargs="*", help=f"of {', '.join(dict(PARTS))}; none: all")
    arguments = parser.parse_args(argv)
    if unknown := set(arguments.parts) - set(dict(PARTS)):
        parser.error(f"no part {min(unknown)!r}")
    parts = [(name, part) for name, part in PARTS if name in (arguments.parts or dict(PARTS))]
    reason = why_not()
    if reason is not None:
        print(f"no GPU to check here: {reason}. Nothing was done.")
        return 0
    with machine_lock().acquire({"GPU check of": os.getcwd()}, on_wait=_say):
        gpu = RealGpu(importlib.import_module("torch"))
        results, notes, failed = check(gpu, parts)
    card = gpu.cuda.get_device_name(0)
    versions = {"torch": gpu.torch.__version__, "cuda": gpu.torch.version.cuda}
    write(arguments.out, card, versions, results, notes)
    rows = [row for result in results.values() for row in result.rows]
    lines = table_lines(rows, "checks")
    print(
        "",
        card,
        "",
        *lines[:-2],
        *(f"{n} {note}" for n, note in notes.items()),
        *lines[-2:],
        sep="\n",
    )
    return int(bool(failed) or any(row.met is False for row in rows))


def write(
    out: Path,
    card: str,
    versions: dict[str, Any],
    results: dict[str, Result],
    notes: dict[str, str],
) -> Path:
    """Write what was found of a card, and the table of all cards; return the card's file."""
    path = out / (re.sub(r"[^a-z0-9]+", "-", card.lower()).strip("-") + ".json")
    path.unlink(missing_ok=True)
    rows = [row for result in results.values() for row in result.rows]
    details = {name: result.details for name, result in results.items()}
    told = {"card": card, **versions, "notes": notes, "parts": details}
    save(path, "gpu_check", Result(rows, told))
    write_readme(out)
    return path


def write_readme(out: Path) -> None:
    """Write the table of the cards whose files lie in a folder."""
    lines = [_line(json.loads(path.read_text("utf-8"))) for path in sorted(out.glob("*.json"))]
    (out / "README.md").write_text(HEAD + ("".join(lines) or NOBODY), encoding="utf-8")


def _line(told: dict[str, Any]) -> str:
    found = told["gpu_check"]
    judged = [row for row in found["rows"] if row["met"] is not None]
    missed = [row["what"] for row in judged if not row["met"]]
    details = found["details"]
    against = "; ".join([*missed, *(f"{k} {v}" for k, v in details["notes"].items())]) or "-"
    met = f"{len(judged) - len(missed)} of {len(judged)}"
    date = found["time"][:10]
    return f"| {details['card']} | {date} | {details['torch']} | {met} | {against} |\n"


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
