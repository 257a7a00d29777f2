"""Real effects on real data: a loader worker hides the wait, the page cache hides the disk.

MobileNet on synthetic JPEGs. Pairs of epochs with no worker and with one, in turn; then epochs that
follow a dropped page cache, and epochs that follow those.
"""

import statistics
import tempfile
from pathlib import Path
from typing import Any

import torch

from benchmarks.results import Budget, Result, Row, at_most
from epochwatt.board.device import page_cache
from epochwatt.board.training.data import dataset_folder, dataset_paths, open_dataset
from epochwatt.board.training.loaders import TimedMinibatches, make_loader
from epochwatt.board.training.loop import run_epoch
from epochwatt.board.training.timing import HostTimer
from epochwatt.board.training.workloads import WORKLOADS, Trainer, workload_of
from epochwatt.datasets.make import make_dataset
from epochwatt.datasets.recipes import recipe

SCALE, BATCH_SIZE = 0.002, 8  # 46 photographs, 6 mini-batches
N_PAIRS, N_DROPS = 5, 3
AT_LEAST_30 = Budget(30.0, 100.0, ">= 30")


def factors_of(root: Path, scale: float) -> dict[str, Any]:
    """Make the data set; return the factors that name it."""
    factors: dict[str, Any] = {
        "model": "mobilenet",
        "dataset": "gld23k",
        "dataset_source": "synthetic",
        "dataset_scale": scale,
        "batch_size": BATCH_SIZE,
        "prefetch_factor": 2,
        "recipe": recipe("gld23k", "synthetic", scale),
    }
    make_dataset(Path(dataset_folder(str(root), factors)), factors["recipe"])
    return factors


def train(trainer: Trainer, source: Any, factors: dict[str, Any], seed: int) -> dict[str, float]:
    """Train one epoch; return its wait and E2E, s."""
    minibatches = TimedMinibatches(source, workload_of(factors).transform, factors["num_workers"])
    generator = torch.Generator()
    generator.manual_seed(seed)
    loader = make_loader(minibatches, len(source), factors, generator)
    timer = HostTimer(len(loader))
    bounds = run_epoch(loader, trainer.copy, trainer.step, lambda loss: None, timer)
    wait_s = float(timer.minibatch_s()[:, 0].sum())
    return {"wait_s": wait_s, "e2e_s": bounds.t_end_mono_s - bounds.t_start_mono_s}


def read_from_disk_mib(source: Any) -> float:
    """Read every sample once; return what this process took from the disk for it."""
    before = _read_bytes()
    for index in range(len(source)):
        source.read(index)
    return (_read_bytes() - before) / 2**20


def _read_bytes() -> int:
    lines = Path("/proc/self/io").read_text("ascii").splitlines()
    return int(dict(line.split(": ") for line in lines)["read_bytes"])


def run(quick: bool = False) -> Result:
    """Measure both effects; `quick` only shows that it works."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(dir=".") as folder:  # not on a tmpfs, which has no cache
        root = Path(folder)
        factors = factors_of(root, SCALE / 4 if quick else SCALE)
        source, manifest = open_dataset(str(root), factors)
        trainer = Trainer(WORKLOADS["mobilenet"], torch.device("cpu"), 0)
        train(trainer, source, {**factors, "num_workers": 0}, 0)  # warm-up
        pairs = []
        for seed in range(1 if quick else N_PAIRS):
            order = (0, 1) if seed % 2 == 0 else (1, 0)
            found = {w: train(trainer, source, {**factors, "num_workers": w}, seed) for w in order}
            pairs.append({"without": found[0], "with_one": found[1]})
        reads = []
        paths = dataset_paths(str(root), factors, manifest)
        for _ in range(1 if quick else N_DROPS):
            page_cache.drop(paths)
            reads.append({"first_mib": read_from_disk_mib(source)})
            reads[-1]["second_mib"] = read_from_disk_mib(source)
        size_mib = sum(Path(path).stat().st_size for path in paths) / 2**20
    return Result(_rows(pairs, reads, size_mib), {"pairs": pairs, "reads": reads})


def _rows(
    pairs: list[dict[str, dict[str, float]]], reads: list[dict[str, float]], size_mib: float
) -> list[Row]:
    def change(key: str) -> list[float]:
        return [100 * (p["without"][key] - p["with_one"][key]) / p["without"][key] for p in pairs]

    first = [100 * read["first_mib"] / size_mib for read in reads]
    second = [100 * read["second_mib"] / size_mib for read in reads]
    wait_s = statistics.median(pair["without"]["wait_s"] for pair in pairs)
    return [
        Row(f"wait with one worker, less than without ({wait_s:.2f} s)", change("wait_s"), "%", 1,
            AT_LEAST_30),
        Row("  E2E with one worker, less than without", change("e2e_s"), "%", 1),
        Row("read from the disk after the cache was dropped", first, "%", 1,
            Budget(90.0, 200.0, ">= 90")),
        Row("  and in the epoch after it", second, "%", 1, at_most(1.0)),
    ]  # fmt: skip
