"""Load data as the papers do, fetch and pre-processing timed apart (board side: Python 3.6).

Protocol: shuffled, last mini-batch kept, prefetch factor from the run, workers started anew for
each epoch (by fork), no pinned memory.
"""

import multiprocessing
import os
import tempfile
from time import perf_counter
from typing import Any, Callable, Iterable, Iterator, List, Tuple

import torch
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler, get_worker_info

from epochwatt.board.training.transforms import Sample
from epochwatt.errors import TrainingError

try:
    from torch.utils.data import default_collate
except ImportError:  # torch < 1.11
    from torch.utils.data.dataloader import default_collate

# Workers hand mini-batches over through sockets in the folder for temporary files, whose paths have
# at most 107 bytes (unix(7)). Python's names below it have 32: /pymp-xxxxxxxx/listener-xxxxxxxx.
LONGEST_FOLDER = 107 - 32


class TimedMinibatches(Dataset):
    """Mini-batches by their list of indices, made as torch's own fetcher makes them, and timed.

    Handing torch whole mini-batches (`batch_size=None`) instead of samples lets one object time all
    of a mini-batch with one clock reading after each step; order and content are the same.

    `source`: reader with `read(i) -> (raw, label)` and a length
    `transform`: makes of one raw sample an input tensor, or a `Sample` (input and target); the
        same of every sample
    `num_workers`: loader workers; 0 means the training process itself
    """

    def __init__(self, source: Any, transform: Callable[[Any], Any], num_workers: int) -> None:
        self.source = source
        self.transform = transform
        self._has_workers = num_workers > 0
        # Seconds of fetching and pre-processing: worker w adds to items 2 w and 2 w + 1 of an array
        # that forked workers share. Each item has one writer, so there is no lock.
        self._seconds: Any = [0.0, 0.0]  # a shared array would cost 5 us a mini-batch
        if num_workers:
            self._seconds = multiprocessing.RawArray("d", 2 * num_workers)

    def __getitem__(self, indices: List[int]) -> Any:
        """Read, transform and collate samples; add the times to `seconds`.

        Returns inputs (B, ...) and labels (B,) or targets (B, ...).
        """
        read, transform = self.source.read, self.transform
        samples = []
        fetch_s = 0.0
        start = perf_counter()
        for index in indices:
            fetch_s -= perf_counter()
            raw, label = read(index)
            fetch_s += perf_counter()
            samples.append((transform(raw), label))
        if isinstance(samples[0][0], Sample):  # to ask each was a quarter of the cost of timing
            samples = [sample for sample, _ in samples]
        minibatch = default_collate(samples)
        worker = get_worker_info() if self._has_workers else None
        fetch_index = 0 if worker is None else 2 * worker.id
        self._seconds[fetch_index] += fetch_s
        self._seconds[fetch_index + 1] += perf_counter() - start - fetch_s
        return minibatch

    def seconds(self) -> Tuple[float, float]:
        """Return fetch and pre-process time so far, in seconds summed over all workers."""
        return sum(self._seconds[0::2]), sum(self._seconds[1::2])


def make_loader(
    minibatches: Dataset, n_samples: int, factors: dict, generator: torch.Generator
) -> DataLoader:
    """Return the loader of one shuffled epoch, by `batch_size`, `num_workers`, `prefetch_factor`.

    `generator` draws the order and the workers' seeds. Raises TrainingError: TMPDIR is too long a
    path for the workers' sockets.
    """
    order = RandomSampler(range(n_samples), generator=generator)
    batches = BatchSampler(order, factors["batch_size"], drop_last=False)
    return _loader(minibatches, batches, factors, generator)


def make_endless_loader(
    minibatches: Dataset, n_samples: int, factors: dict, generator: torch.Generator
) -> DataLoader:
    """Return a loader as `make_loader` does, of whole mini-batches without end."""
    batches = EndlessBatches(n_samples, factors["batch_size"], generator)
    return _loader(minibatches, batches, factors, generator)


class EndlessBatches:
    """Lists of sample indices without end: one shuffled pass over the data set after the other.

    `n_samples`: number of samples to shuffle
    `batch_size`: length of each list; what a pass leaves over begins the next
    `generator`: source of the order
    """

    def __init__(self, n_samples: int, batch_size: int, generator: torch.Generator) -> None:
        self._n_samples = n_samples
        self._batch_size = batch_size
        self._generator = generator

    def __iter__(self) -> Iterator[List[int]]:
        batch_size, indices = self._batch_size, []  # type: int, List[int]
        while True:
            indices = indices + torch.randperm(self._n_samples, generator=self._generator).tolist()
            end = len(indices) - len(indices) % batch_size  # of the last whole mini-batch
            for start in range(0, end, batch_size):
                yield indices[start : start + batch_size]
            indices = indices[end:]


def _loader(
    minibatches: Dataset, batches: Iterable, factors: dict, generator: torch.Generator
) -> DataLoader:
    """Build torch's DataLoader with forked workers; raises as `make_loader`."""
    options = {}
    if factors["num_workers"] > 0:
        folder = tempfile.gettempdir()
        if len(os.fsencode(folder)) > LONGEST_FOLDER:  # the loop would wait for ever
            raise TrainingError(
                "the path of the folder for temporary files is too long for the sockets of workers",
                found=folder,
                allowed=f"at most {LONGEST_FOLDER} bytes",
                do="set TMPDIR to a shorter one",
            )
        options["prefetch_factor"] = factors["prefetch_factor"]
        options["multiprocessing_context"] = "fork"  # newer Pythons default to another
    return DataLoader(
        minibatches,
        batch_size=None,
        sampler=batches,
        num_workers=factors["num_workers"],
        generator=generator,
        **options,
    )
