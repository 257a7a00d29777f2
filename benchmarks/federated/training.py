"""Train a small network on a board's part of the digits, to the bit the same wherever it runs.

Nine tenths of a mini-batch's time are hashes, as if its data were checked. On a virtual machine
matrix products take up to 1.6 times as long while others use the host's cores; hashes do not, as
each waits for the one before. So fits differ by what a plan can know.
"""

import hashlib
import json
import os
import time
from pathlib import Path

import numpy as np
import torch
from torch.nn.functional import cross_entropy

BATCH, RATE = 32, 0.05
WIDTH = 64
HASHED, HASHES = bytes(65536), 160  # of a mini-batch: 6 ms


def network() -> torch.nn.Module:
    """Return the network with its first weights."""
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(64, WIDTH), torch.nn.ReLU(), torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU(),
        torch.nn.Linear(WIDTH, 10),
    )  # fmt: skip


def arrays_of(model: torch.nn.Module) -> list[np.ndarray]:
    """Return the weights as arrays."""
    return [value.detach().numpy().copy() for value in model.parameters()]


def initial_arrays() -> list[np.ndarray]:
    """Return the weights of the first round."""
    return arrays_of(network())


def fit(
    board: str, number: int, arrays: list[np.ndarray], n_minibatches: int | None = None
) -> tuple[list[np.ndarray], float, int]:
    """Train a board's mini-batches of a round; return weights, last loss and number of samples.

    `n_minibatches`: None: as many as the fleet's settings say
    """
    fleet = Path(os.environ["EPOCHWATT_FLEET"])
    boards = json.loads((fleet / "settings.json").read_text())["boards"]
    n_minibatches = n_minibatches or boards[board]
    torch.set_num_threads(1)
    digits = np.load(fleet / "digits.npz")
    part = slice(list(boards).index(board), None, len(boards))
    images, labels = (torch.from_numpy(digits[name][part]) for name in ("images", "labels"))
    model = network()
    with torch.no_grad():
        for value, array in zip(model.parameters(), arrays, strict=True):
            value.copy_(torch.from_numpy(array))
    draw, digest = torch.Generator().manual_seed(number), hashlib.sha256()
    for _ in range(n_minibatches):
        for _ in range(HASHES):
            digest.update(HASHED)
        chosen = torch.randint(len(images), (BATCH,), generator=draw)
        loss = cross_entropy(model(images[chosen]), labels[chosen])
        gradients = torch.autograd.grad(loss, list(model.parameters()))
        with torch.no_grad():  # torch.optim would import for a second in each fit
            for value, gradient in zip(model.parameters(), gradients, strict=True):
                value -= RATE * gradient
    return arrays_of(model), loss.item(), n_minibatches * BATCH


def minibatch_cpu_s(board: str, n_minibatches: int = 100) -> float:
    """Return the CPU time of a mini-batch, the median of five fits, s."""
    times_s = []
    for _ in range(6):
        start_s = time.process_time()
        fit(board, 1, initial_arrays(), n_minibatches)
        times_s.append((time.process_time() - start_s) / n_minibatches)
    return float(np.median(times_s[1:]))  # the first also warms up
