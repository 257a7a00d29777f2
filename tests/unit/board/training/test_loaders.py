"""The loader: whose order and mini-batches these are, and where fetch and pre-process are timed."""

import multiprocessing

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from epochwatt.board.training import loaders
from epochwatt.board.training.loaders import (
    TimedMinibatches,
    make_endless_loader,
    make_loader,
)

N_SAMPLES, BATCH_SIZE = 21, 4  # the last mini-batch has one sample

FETCH_S, TRANSFORM_S, COLLATE_S = 0.25, 0.0625, 0.5  # sums of them are exact in binary


class Clock:
    """Stands for `perf_counter`; a forked worker has its own copy."""

    def __init__(self):
        self.now_s = 0.0

    def __call__(self):
        return self.now_s


class Numbered:
    """Samples that say their number, and take `FETCH_S` of a clock to be read."""

    def __init__(self, clock=None):
        self.clock = clock or Clock()

    def __len__(self):
        return N_SAMPLES

    def read(self, index):
        self.clock.now_s += FETCH_S
        return np.array([index], dtype=np.float32), index


def load(num_workers, seed=3, source=None, transform=torch.from_numpy):
    """Return the mini-batches of one epoch and the (fetch, pre-process) seconds they took."""
    generator = torch.Generator()
    generator.manual_seed(seed)
    factors = {"batch_size": BATCH_SIZE, "num_workers": num_workers, "prefetch_factor": 2}
    minibatches = TimedMinibatches(source or Numbered(), transform, num_workers)
    loader = make_loader(minibatches, N_SAMPLES, factors, generator)
    loaded = [(inputs.ravel().tolist(), labels.tolist()) for inputs, labels in loader]
    assert len(loader) == len(loaded)
    return loaded, minibatches.seconds()


@pytest.mark.parametrize("num_workers", [0, 1, 2])
def test_minibatches_are_those_that_torch_itself_makes(num_workers):
    generator = torch.Generator()
    generator.manual_seed(3)
    numbers = torch.arange(N_SAMPLES)
    plain = DataLoader(
        TensorDataset(numbers, numbers), batch_size=BATCH_SIZE, shuffle=True, generator=generator
    )
    loaded, _ = load(num_workers)
    assert [labels for _, labels in loaded] == [labels.tolist() for _, labels in plain]


@pytest.mark.parametrize("num_workers", [0, 1, 2])
def test_fetch_and_preprocess_are_timed_apart_wherever_they_run(monkeypatch, num_workers):
    clock = Clock()
    collate = loaders.default_collate

    def transform(raw):
        clock.now_s += TRANSFORM_S
        return torch.from_numpy(raw)

    def slow_collate(samples):
        clock.now_s += COLLATE_S
        return collate(samples)

    monkeypatch.setattr(loaders, "perf_counter", clock)
    monkeypatch.setattr(loaders, "default_collate", slow_collate)
    loaded, (fetch_s, preprocess_s) = load(num_workers, source=Numbered(clock), transform=transform)
    assert fetch_s == FETCH_S * N_SAMPLES
    assert preprocess_s == TRANSFORM_S * N_SAMPLES + COLLATE_S * len(loaded)
    assert (clock.now_s > 0) == (num_workers == 0)  # with workers all of it happened elsewhere


@pytest.mark.parametrize("num_workers", [0, 2])
def test_endless_loader_gives_them_and_its_workers_end_with_it(num_workers):
    factors = {"batch_size": BATCH_SIZE, "num_workers": num_workers, "prefetch_factor": 2}
    generator = torch.Generator()
    minibatches = TimedMinibatches(Numbered(), torch.tensor, num_workers)
    loader = make_endless_loader(minibatches, N_SAMPLES, factors, generator)
    iterator = iter(loader)
    order = torch.cat([next(iterator)[1] for _ in range(3 * N_SAMPLES)]).tolist()
    assert sorted(order[:N_SAMPLES]) == list(range(N_SAMPLES))
    del iterator
    assert not multiprocessing.active_children()
