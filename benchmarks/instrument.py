"""What timing an epoch costs: instrumented epoch / bare epoch, in pairs.

Both train the same network from the same weights on the same mini-batches in the same process. The
instrumented one is the real path: `TimedMinibatches`, `HostTimer`, the `Progress` thread and
`run_epoch`. The bare one reads, transforms, copies and trains alike and looks at no clock.

The two take turns of a few mini-batches, so that both meet the same machine: its speed changes
within tenths of a second (clocks, other programs, other guests of the same host).
"""

import gc
import io
import os
import random
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from time import perf_counter, thread_time
from typing import Any

import torch
from torch.utils.data import Dataset, default_collate

from benchmarks.results import Result, Row, at_most
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
TURN = 5  # mini-batches: some ten milliseconds
CPUS = os.sched_getaffinity(0)


class BareMinibatches(Dataset):
    """What `TimedMinibatches` does, without its clocks."""

    def __init__(self, source: Any, transform: Callable[[Any], torch.Tensor]) -> None:
        self.source = source
        self.transform = transform

    def __getitem__(self, indices: list[int]) -> Any:
        read, transform = self.source.read, self.transform
        samples = []
        for index in indices:
            raw, label = read(index)
            samples.append((transform(raw), label))
        return default_collate(samples)


@dataclass
class Times:
    """Time that an epoch took, in its turns alone."""

    turns_s: list[float] = field(default_factory=list)
    cpu_s: float = 0.0

    def start(self) -> None:
        self._since_s = perf_counter(), thread_time()

    def stop(self) -> None:
        wall_s, cpu_s = self._since_s
        self.turns_s.append(perf_counter() - wall_s)
        self.cpu_s += thread_time() - cpu_s

    @property
    def wall_s(self) -> float:
        return sum(self.turns_s)


def prepared(minibatches: Any, source: Any, factors: dict[str, Any]) -> tuple[Any, Trainer]:
    """Return a loader and a trainer, in the same state for every epoch."""
    generator = torch.Generator().manual_seed(SEED)
    loader = make_loader(minibatches, len(source), factors, generator)
    loader.worker_init_fn = lambda worker: os.sched_setaffinity(0, CPUS)  # not the loop's alone
    return loader, Trainer(WORKLOADS[factors["model"]], torch.device("cpu"), SEED)


def measure_pair(source: Any, factors: dict[str, Any], bare_first: bool) -> tuple[Times, Times]:
    """Train both epochs; return the times of the bare and of the instrumented one.

    The instrumented one, as a job trains it, takes all that the instrument adds: timer, thread,
    stamps, and reading them out. Raises EpochwattError: the two did not do the same arithmetic.
    """
    transform = WORKLOADS[factors["model"]].transform
    timed = TimedMinibatches(source, transform, factors["num_workers"])
    loader, trainer = prepared(timed, source, factors)
    plain = prepared(BareMinibatches(source, transform), source, factors)
    bare, instrumented = Times(), Times()
    bare_losses: list[torch.Tensor] = []
    losses: list[torch.Tensor] = []

    def bare_epoch(loader: Any, trainer: Trainer) -> Iterator[None]:
        """Do what `run_epoch` does, without its stamps."""
        copy, step, keep = trainer.copy, trainer.step, bare_losses.append
        for minibatch in loader:
            moved = copy(minibatch)
            loss = step(moved)
            keep(loss)
            yield

    rest = bare_epoch(*plain)

    def bare_turn(n_minibatches: int | None = TURN) -> None:
        bare.start()
        for _ in islice(rest, n_minibatches):
            pass
        bare.stop()

    def keep(loss: torch.Tensor) -> None:
        losses.append(loss)
        if len(losses) % TURN == 0:
            instrumented.stop()
            bare_turn()
            instrumented.start()

    gc.collect()
    if bare_first:
        bare_turn()
    instrumented.start()
    timer = timing.HostTimer()
    with Progress(timer, 0, len(loader), out=io.StringIO()):
        run_epoch(loader, trainer.copy, trainer.step, keep, timer)
    timed.seconds()
    timer.minibatch_s()
    instrumented.stop()
    bare_turn(None)
    if not torch.equal(torch.stack(bare_losses), torch.stack(losses)):
        raise EpochwattError("bare and instrumented epoch trained differently")
    return bare, instrumented


def measure_pairs(
    source: Any, factors: dict[str, Any], measure_s: float
) -> list[tuple[Times, Times]]:
    """Return the times of as many pairs as fit into `measure_s`; either begins equally often."""
    chance, pairs = random.Random(SEED), list[tuple[Times, Times]]()
    measure_pair(source, factors, True)  # caches, kernels and clocks get warm
    end_s = perf_counter() + measure_s
    while not pairs or perf_counter() < end_s:
        first = chance.random() < 0.5
        pairs += [measure_pair(source, factors, bare_first) for bare_first in (first, not first)]
    return pairs


@contextmanager
def steady() -> Iterator[None]:
    """Compute in one thread on one CPU inside the block.

    Garbage collections pass over what is there already, so that before an epoch they take no time.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    os.sched_setaffinity(0, {max(CPUS)})
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
        os.sched_setaffinity(0, CPUS)
        torch.set_num_threads(threads)


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
            wall = [timed.wall_s / bare.wall_s for bare, timed in pairs]
            cpu = [timed.cpu_s / bare.cpu_s for bare, timed in pairs]
            # of turns that followed each other, without the first and last of an epoch: they tell
            # nothing of what is paid once per epoch, but there are many of them
            by_turn = [
                timed_s / bare_s
                for bare, timed in pairs
                for timed_s, bare_s in zip(timed.turns_s[1:-1], bare.turns_s[1:-1], strict=False)
            ]
            rows.append(Row(f"instrumented / bare epoch, {place}", wall, "", 4, BUDGET))
            rows.append(Row("  the same turn by turn", by_turn, "", 4))
            rows.append(Row("  the same in CPU time", cpu, "", 4))
            details[f"pairs, {place}"] = [[asdict(times) for times in pair] for pair in pairs]
    return Result(rows, details)
