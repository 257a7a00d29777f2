"""What timing an epoch costs: instrumented epoch / bare epoch, in interleaved pairs.

The two epochs of a pair take turns (turns.py), so each pair is a comparison on one machine state.

Both train the same network from the same weights on the same mini-batches in the same process. The
instrumented one is the real path: `TimedMinibatches`, `HostTimer`, the `Progress` thread and
`run_epoch`. The bare one reads, transforms, copies and trains alike and looks at no clock.
"""

import gc
import io
import os
import random
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
from torch.utils.data import Dataset, default_collate

from benchmarks.results import Result, Row, at_most
from benchmarks.turns import Loop, Turns, take_turns
from benchmarks.workflow import Workplace
from epochwatt.board.training import timing
from epochwatt.board.training.data import open_dataset
from epochwatt.board.training.loaders import TimedMinibatches, make_loader
from epochwatt.board.training.loop import run_epoch
from epochwatt.board.training.progress import Progress
from epochwatt.board.training.workloads import WORKLOADS, Trainer
from epochwatt.datasets.make import make_dataset
from epochwatt.errors import EpochwattError

BUDGET = at_most(1.005)
SEED = 0
SWEEP = {"num_workers": [0, 1], "batch_size": 16, "torch_threads": 1}
MEASURE_S = 27.0  # for each number of workers; as many pairs as fit
SCALE = 2  # 3,594 digits: half a second; a thread per epoch must not weigh more than in a real one


Factors = dict[str, Any]


class BareMinibatches(Dataset):
    """What `TimedMinibatches` does, without its clocks."""

    def __init__(self, source: Any, transform: Callable[[Any], torch.Tensor]) -> None:
        self.source = source
        self.transform = transform

    def __getitem__(self, indices: list[int]) -> Any:
        """Return inputs (B, ...) and labels (B,) of the samples `indices`."""
        read, transform = self.source.read, self.transform
        samples = []
        for index in indices:
            raw, label = read(index)
            samples.append((transform(raw), label))
        return default_collate(samples)


def make_epoch(kind: str, source: Any, factors: Factors) -> tuple[Loop, list[torch.Tensor]]:
    """Return an epoch that is ready to run, `bare` or `instrumented`, and the list for its losses.

    Loader and trainer are in the same state for every epoch, the garbage is collected. The
    instrumented one, as a job trains it, takes all that the instrument adds: timer, thread, stamps,
    and reading them out.
    """
    workload = WORKLOADS[factors["model"]]
    minibatches: Any = BareMinibatches(source, workload.transform)
    if kind == "instrumented":
        minibatches = TimedMinibatches(source, workload.transform, factors["num_workers"])
    generator = torch.Generator()
    generator.manual_seed(SEED)
    loader = make_loader(minibatches, len(source), factors, generator)
    cpus = os.sched_getaffinity(0)
    loader.worker_init_fn = lambda worker: os.sched_setaffinity(0, cpus)  # not the loop's alone
    trainer = Trainer(workload, torch.device("cpu"), SEED)
    losses: list[torch.Tensor] = []

    def bare(turns: Turns) -> None:
        """Do what `run_epoch` does, without its stamps."""
        minibatches, copy, step, keep = (
            loader,
            trainer.copy,
            trainer.step,
            turns.keeper(losses.append),
        )
        for minibatch in minibatches:
            moved = copy(minibatch)
            loss = step(moved)
            keep(loss)

    def instrumented(turns: Turns) -> None:
        timer = timing.HostTimer()
        with Progress(timer, 0, len(loader), out=io.StringIO()):
            run_epoch(loader, trainer.copy, trainer.step, turns.keeper(losses.append), timer)
        minibatches.seconds()
        timer.minibatch_s()

    gc.collect()
    return instrumented if kind == "instrumented" else bare, losses


def shuffled_orders(seed: int) -> Iterator[bool]:
    """Yield for each pair whether the bare epoch comes first.

    Of each two successive pairs one begins bare, in random order: wherever it ends, both orders
    are there alike.
    """
    chance = random.Random(seed)
    while True:
        bare_first = chance.random() < 0.5
        yield bare_first
        yield not bare_first


def measure_pairs(source: Any, factors: Factors, measure_s: float) -> list[dict[str, Any]]:
    """Return the times of as many pairs of epochs as fit into `measure_s`, and which came first.

    Raises EpochwattError: the two did not do the same arithmetic.
    """
    kinds = ("bare", "instrumented")
    pairs: list[dict[str, Any]] = []
    # both threads on one CPU: two are never equally fast, and a thread keeps to its own
    cpus = os.sched_getaffinity(0)
    with ThreadPoolExecutor(2, "turns", os.sched_setaffinity, (0, {max(cpus)})) as pool:
        end_s = perf_counter()
        for bare_first in shuffled_orders(SEED):
            names = kinds if bare_first else kinds[::-1]
            epochs = [make_epoch(name, source, factors) for name in names]
            turns = take_turns(pool, *(loop for loop, _ in epochs))
            losses = [torch.stack(of) for _, of in epochs]
            if not torch.equal(*losses):
                raise EpochwattError(f"bare and instrumented epoch trained differently: {losses}")
            times = [{"wall_s": t.wall_s, "cpu_s": t.cpu_s, "turns_s": t.turns_s} for t in turns]
            found = dict(zip(names, times, strict=True))
            pairs.append({"bare_first": bare_first, **found})
            if len(pairs) == 1:  # caches, kernels and clocks get warm: not counted
                end_s = perf_counter() + measure_s
            elif perf_counter() >= end_s:
                return pairs[1:]
    raise AssertionError("orders have no end")


@contextmanager
def steady() -> Iterator[None]:
    """Let torch use one thread inside the block, and garbage collections pass over what is there.

    So the collection before each epoch takes no time of the benchmark's.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
        torch.set_num_threads(before)


def run(quick: bool = False) -> Result:
    """Measure the ratio with 0 workers and with 1; `quick` only shows that it works."""
    rows, details = [], {}
    sweep = {**SWEEP, "dataset_scale": 0.1 if quick else SCALE}
    with tempfile.TemporaryDirectory() as name, steady():
        folder = Path(name)
        for row in Workplace(folder, sweep, epochs=1).settings().table.runs.values():
            if not (folder / row.data_folder).exists():
                make_dataset(folder / row.data_folder, row.factors["recipe"])
            source, _ = open_dataset(str(folder / row.data_root), row.factors)
            pairs = measure_pairs(source, row.factors, 0.0 if quick else MEASURE_S)
            place = f"w={row.factors['num_workers']}"
            wall, cpu = (
                [pair["instrumented"][key] / pair["bare"][key] for pair in pairs]
                for key in ("wall_s", "cpu_s")
            )
            # of turns that followed each other, without the first and last of an epoch: they tell
            # nothing of what is paid once per epoch, but there are many of them
            by_turn = [
                instrumented_s / bare_s
                for pair in pairs
                for instrumented_s, bare_s in zip(
                    pair["instrumented"]["turns_s"][1:-1],
                    pair["bare"]["turns_s"][1:-1],
                    strict=True,
                )
            ]
            rows.append(Row(f"instrumented / bare epoch, {place}", wall, "", 4, BUDGET))
            rows.append(Row("  the same turn by turn", by_turn, "", 4))
            rows.append(Row("  the same in CPU time", cpu, "", 4))
            details[f"pairs, {place}"] = pairs
    return Result(rows, details)
