"""The parts of `make gpu-check`: each gives rows of the table, or says why it is skipped."""

import csv
import importlib.util
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.gpu_work import Epoch, Plan, bare_epoch_s, timed_epoch
from benchmarks.results import Budget, Result, Row, at_most, near
from epochwatt.board.records.run_folder import EpochRecord
from epochwatt.board.records.samples import read_samples
from epochwatt.board.telemetry.client import Sampler
from epochwatt.board.telemetry.nvml import open_gpu
from epochwatt.board.telemetry.which_gpu import gpu_of
from epochwatt.epochs import telemetry
from epochwatt.epochs.energy import trapezoid
from epochwatt.epochs.placement import laid_out

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


# -- the timers ----------------------------------------------------------------------------------


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


# -- the device and its power --------------------------------------------------------------------


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
    """Check the energy of planted stalls: as the tool tells it, and by the counter at their ends.

    The counter may be a refresh old at each end, by chance: of sixteen stalls that is a few per
    cent. Where the tool gives no energy of the stalls it has to say why.
    """
    rows, details = [], {}
    for kind in TIMINGS:
        sampled, epoch = _sampled(gpu, lambda kind=kind: timed_epoch(gpu, STALLING[kind], kind))
        found = stall_rows(kind, sampled, epoch)
        rows += found.rows
        details[kind] = found.details
    return Result(rows, details)


def stall_rows(kind: str, sampled: Sampled, epoch: Epoch) -> Result:
    """Return stall energy / counter's differences over the stalls."""
    begun_s, ended_s = laid_out(epoch.placement["starts"], epoch.minibatch_s)
    stalled_j = counter_at(sampled.table, ended_s) - counter_at(sampled.table, begun_s)
    counted_j = float(stalled_j.sum())
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


# -- arithmetic and the whole --------------------------------------------------------------------


def flops(gpu: Any, models: Sequence[str] = MODELS) -> Result:
    """Check the floating point operations that torch counts on this GPU, by hand and by the twin.

    torch's counter takes a convolution in groups for one without, so MobileNet is not compared.

    Parameters
    ----------
    gpu : a `RealGpu`
    models : networks to compare
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
        ours = sum(kernel.flops for kernel in kernels if kernel.kind in ("convolution", "gemm"))
        ratio = _counted(lambda step=trainer.step, on=minibatch: step(on)) / ours
        rows.append(Row(f"FLOPs of {model}, torch / twin", [ratio], "", 4, near(1.0, 0.001)))
    return Result(rows)


def _counted(work: Any) -> int:
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        work()
    return int(counter.get_total_flops())


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
        rows = [row for table in tables for row in _read(Path(name) / table)]
    return Result(study_rows(rows), {"epochs": rows})


def _read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


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
