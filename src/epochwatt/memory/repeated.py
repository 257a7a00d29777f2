"""Forecast and count a network of many equal blocks from those of one and of two of them.

The second block adds operators to the sequence of one: a run of them in each phase of a step. The
whole network has that run once for each block after the first. Where what the second adds is no
such run, the whole network is taken.

Memory is linear in the mini-batch operator by operator, as counts of kernels are: two sizes give
all others.
"""

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any, NamedTuple, TypeVar

import numpy as np

from epochwatt.board.training.allocated import MARK, Allocated, Manner, Subject, forecast

SIZES = (2, 3)  # mini-batches; of one sample some operators copy nothing
T = TypeVar("T")


class Stack(NamedTuple):
    """A network of repeated blocks."""

    n: int  # blocks; of one each, in order, where layers take turns
    subject: Callable[[int], Subject]  # with that many blocks


def repeated(one: Sequence[T], two: Sequence[T], n: int) -> list[T] | None:
    """Return the sequence of `n` blocks from those of one and of two; None: there is no such rule.

    If one = A b C and two = A b b C, it is A b ... b C.
    """
    added = len(two) - len(one)
    same = next((i for i, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), len(one))
    if added < 0 or list(one[same:]) != list(two[same + added :]):
        return None
    return [*two[:same], *(n - 1) * list(two[same : same + added]), *two[same + added :]]


def memory_of(subject: Subject, stack: Stack | None, manner: Manner) -> Callable[[int], Allocated]:
    """Return a function that forecasts the memory of a mini-batch of any size."""
    law = None
    if stack is not None and stack.n > 2 and manner.on_gpu:
        law = _law(stack, manner)
    return law or (lambda batch_size: forecast(subject, batch_size, manner))


def _law(stack: Stack, manner: Manner) -> Callable[[int], Allocated] | None:
    """Return the same of a stack; None: its blocks do not just repeat."""
    # a third mini-batch takes what the second did
    manner = manner._replace(accumulate=min(manner.accumulate, 2))
    small = [[forecast(stack.subject(n), size, manner) for size in SIZES] for n in (1, 2)]
    one, two = (_phases(*sizes) for sizes in small)
    if one is None or two is None or len(one) != len(two):
        return None
    whole: list[tuple[int, ...]] = []
    for of_one, of_two in zip(one, two, strict=True):
        if len(of_one) == len(of_two):  # such as the optimiser's, all blocks at once
            pairs = np.array([of_one, of_two], np.int64).reshape(2, -1, len(SIZES))
            whole += map(tuple, (pairs[0] + (stack.n - 1) * (pairs[1] - pairs[0])).tolist())
            continue
        made = repeated(of_one, of_two, stack.n)
        if made is None:
            return None
        whole += made
    changes = np.array(whole, np.int64)  # (runs, SIZES), bytes
    per_sample = np.diff(changes, axis=1)[:, 0]

    def field(name: str, batch_size: int) -> int:
        values = np.array([[getattr(made, name) for made in sizes] for sizes in small], np.int64)
        of_sizes = values[0] + (stack.n - 1) * (values[1] - values[0])
        return int(of_sizes[0] + (batch_size - SIZES[0]) * (of_sizes[1] - of_sizes[0]))

    def law(batch_size: int) -> Allocated:
        course = np.cumsum(changes[:, 0] + (batch_size - SIZES[0]) * per_sample)
        names = ("weights", "gradients", "optimiser", "minibatch")
        known = {name: field(name, batch_size) for name in names}
        threads = small[0][0].blas_threads
        return Allocated(int(course.max()), first=(), step=(), blas_threads=threads, **known)

    return law


def _phases(*sizes: Allocated) -> list[list[tuple[int, ...]]] | None:
    """Return what each phase allocates and frees in turn, bytes at each size.

    None: the turns depend on the size. Within one the order does not matter, and is not certain.
    """
    runs = []
    for made in sizes:
        phases: list[list[int]] = [[]]
        for event in (*made.first, *made.step):
            if event == MARK:
                phases.append([])
            elif phases[-1] and (phases[-1][-1] > 0) == (event[1] > 0):
                phases[-1][-1] += event[1]
            elif event[1]:
                phases[-1].append(event[1])
        runs.append(phases)
    if len({str([[n > 0 for n in phase] for phase in phases]) for phases in runs}) > 1:
        return None
    return [list(zip(*phase, strict=True)) for phase in zip(*runs, strict=True)]


def kernels_of(counts: Callable[[int], dict[str, Any]], n: int) -> dict[str, Any] | None:
    """Return the counts of a stack of `n` blocks; None: its blocks do not just repeat.

    `counts`: of a network of that many blocks, as `count_network` returns them
    """
    one, two = counts(1), counts(2)
    columns = [*one["kernels"]]
    rows: list[tuple[Any, ...]] = []
    by_phase = [rows_by_phase(made["kernels"]) for made in (one, two)]
    if list(by_phase[0]) != list(by_phase[1]):
        return None
    for phase in by_phase[0]:
        made = repeated(by_phase[0][phase], by_phase[1][phase], n)
        if made is None:
            return None
        rows += made
    parameters = one["parameters"] + (n - 1) * (two["parameters"] - one["parameters"])
    kernels = dict(zip(columns, map(list, zip(*rows, strict=True)), strict=True))
    return {**one, "parameters": parameters, "kernels": kernels}


def rows_by_phase(kernels: dict[str, list[Any]]) -> dict[str, list[tuple[Any, ...]]]:
    """Return the rows of each phase, from columns of counts."""
    rows = zip(*kernels.values(), strict=True)
    place = [*kernels].index("phase")
    return {phase: list(part) for phase, part in groupby(rows, key=lambda row: row[place])}
