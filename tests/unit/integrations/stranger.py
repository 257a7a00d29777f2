"""A training script as somebody else writes it, and what may go wrong in it (`test_stranger.py`).

Each case trains twice: measured, and with `Bare` in the place of the monitor. A line of JSON says
of each whether the losses are equal, and what was told of the epochs.
"""

import contextlib
import functools
import json
import logging
import os
import signal
import sys
import traceback

import torch
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from benchmarks.synthetic import sampler_with
from epochwatt import EpochMonitor
from epochwatt.board.records.run_folder import RunFolder
from epochwatt.board.telemetry.client import Sampler

N = 6  # mini-batches of an epoch
PARTS = ("wait_s", "copy_s", "compute_s", "overhead_s")
POWER = {"period_s": 0.01, "signal": [[0.004, 8.0], [0.007, 22.0]]}


class Bare:
    """Measures nothing."""

    epoch = staticmethod(lambda loader: loader)
    copy = step = contextlib.nullcontext


def samples():
    draw = torch.Generator().manual_seed(1)
    return torch.randn(8 * N, 4, generator=draw), torch.arange(8 * N) % 2


class Stream(IterableDataset):
    def __iter__(self):
        yield from zip(*samples(), strict=True)


def loader(**options):
    torch.manual_seed(0)
    return DataLoader(TensorDataset(*samples()), batch_size=8, shuffle=True, **options)


def train(watch, minibatches=None, act=lambda epoch, n: None, every=1, epochs=2):
    """Return the losses; `act` is called with epoch and number of each mini-batch."""
    minibatches = loader() if minibatches is None else minibatches
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Dropout(), torch.nn.Linear(8, 2))
    optimiser, losses = torch.optim.SGD(model.parameters(), lr=0.1), []
    for epoch in range(epochs):
        with contextlib.suppress(KeyboardInterrupt, ZeroDivisionError):
            for n, (x, y) in enumerate(watch.epoch(minibatches)):
                with watch.copy():
                    x = x.to("cpu")
                with watch.step():
                    loss = torch.nn.functional.cross_entropy(model(x), y)
                    loss.backward()
                    if n % every == every - 1:
                        optimiser.step()
                        optimiser.zero_grad()
                losses.append(loss.item())
                if act(epoch, n):
                    break
    return losses


def at(where, do):
    """Return an `act` that does something in the middle of the first epoch."""
    return lambda epoch, n: do() if (epoch, n) == (0, where) else None


def nothing(watch):
    return train(watch)


def break_(watch):
    return train(watch, act=at(3, lambda: True))


def error(watch):
    return train(watch, act=at(3, lambda: 1 // 0))


def ctrl_c(watch):
    return train(watch, act=at(3, lambda: os.kill(os.getpid(), signal.SIGINT)))


def killed_sampler(watch):
    def kill():
        if watch is not Bare:
            os.kill(watch._observer.sampler.pid, signal.SIGKILL)

    return train(watch, act=at(3, kill))


def full_disk(watch):
    filler = os.path.join(DISK, "filler")

    def fill_and_empty(epoch, n):
        if (epoch, n) == (0, 3):
            with open(filler, "wb", buffering=0) as file, contextlib.suppress(OSError):
                for _ in range(1024):
                    file.write(bytes(512))
        if (epoch, n) == (1, 0):
            os.unlink(filler)

    return train(watch, act=fill_and_empty)


def read_only(watch):
    return train(watch)


def fork(watch):
    """The child goes on with the loop that it is in, as well as the parent."""
    children = []
    losses = train(watch, act=at(3, lambda: children.append(os.fork())))
    if children == [0]:
        os._exit(0 if len(losses) == 2 * N else 1)
    if os.waitpid(children[0], 0)[1] != 0:
        losses.append("the child failed")
    return losses


def forked_workers(watch):
    return train(watch, loader(num_workers=1, multiprocessing_context="fork"))


def spawned_workers(watch):
    if watch is Bare:
        return forked_workers(watch)  # the same losses; a spawned worker imports torch for seconds
    return train(
        watch, loader(num_workers=1, multiprocessing_context="spawn", persistent_workers=True)
    )


def two_at_once(watch):
    other = watch if watch is Bare else monitor("other")
    both = type("Both", (Bare,), {"epoch": lambda loader: watch.epoch(other.epoch(loader))})
    return train(both)


def cell_run_twice(watch):
    first = train(watch)
    return first + train(watch if watch is Bare else monitor("cell_run_twice"))


def generator(watch):
    batches = list(loader())
    return train(watch, epochs=1, minibatches=(batch for batch in batches))


def iterable(watch):
    return train(watch, DataLoader(Stream(), batch_size=8, num_workers=1))


def nested(watch):
    return train(watch, act=at(3, lambda: [0 for _ in watch.epoch(loader())] and None))


def empty(watch):
    return list(watch.epoch([])) + train(watch)


def accumulation(watch):
    return train(watch, every=3)


CASES = (nothing, break_, error, ctrl_c, killed_sampler, full_disk, read_only, fork)
CASES += (forked_workers, spawned_workers, two_at_once, cell_run_twice, generator, iterable)
CASES += (nested, empty, accumulation)


def monitor(name):
    """Return a monitor that notes what it tells."""
    folders = {"full_disk": DISK, "read_only": READ_ONLY}
    return EpochMonitor(name, folder=folders.get(name, "measured"), log_to=[SEEN.append])


def told(case):
    bare = case(Bare)
    SEEN.clear()
    with monitor(case.__name__) as watch:
        losses = case(watch)
    epochs = [
        {
            "n": epoch.n_minibatches,
            "flags": epoch.flags,
            "energy_wh": epoch.energy_wh,
            "parts_s": sum(getattr(epoch, part) or 0.0 for part in PARTS),
            "e2e_s": epoch.e2e_s,
            "recorded": None if epoch.folder is None else recorded(epoch.folder),
        }
        for epoch in SEEN
    ]
    return {"case": case.__name__, "is_equal": losses == bare, "epochs": epochs}


def recorded(folder):
    """Return the mini-batches of a record whose files are whole."""
    path, epoch = os.path.split(folder)
    root, run = os.path.split(path)
    return RunFolder(root, run).verify(int(epoch.split("-")[1])).meta["n_minibatches"]


if __name__ == "__main__":
    logging.disable()
    SEEN, (DISK, READ_ONLY) = [], sys.argv[1:]
    Sampler.start = functools.partial(Sampler.start, program=sampler_with(POWER))
    torch.set_num_threads(1)
    for each in CASES:
        try:
            print(json.dumps(told(each)), flush=True)
        except BaseException:  # noqa: BLE001  the other cases are worth having
            print(json.dumps({"case": each.__name__, "error": traceback.format_exc()}), flush=True)
