"""What somebody's own loop would take on a simulated board, from planted records."""

import time
from pathlib import Path

import pytest
import torch

from epochwatt import EpochMonitor
from epochwatt.cli import main
from epochwatt.twin.own_loop import own_loop
from epochwatt.twin.power_modes import load_twin_with_modes

ROOT = Path(__file__).parents[3]
WAIT_S, BODY_S, N, SIZE = 0.008, 0.002, 20, 32


def train(folder, wait_s=WAIT_S, is_counted=True, **settings):
    """Return the id of a run whose loader and body take their time."""

    def loader():
        for _ in range(N):
            if wait_s:
                time.sleep(wait_s)
            yield

    network = torch.nn.Sequential(
        torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 4)
    )
    with EpochMonitor("loop", folder=str(folder), **settings) as monitor:
        for _ in range(2):
            for _ in monitor.epoch(loader()):
                time.sleep(BODY_S)
        if is_counted:
            monitor.count(network, (torch.rand(SIZE, 64), torch.zeros(SIZE)))
    return f"{folder}/{monitor.run}"


@pytest.fixture(scope="module")
def twin():
    return load_twin_with_modes([], ROOT)


@pytest.mark.parametrize(
    ("wait_s", "workers", "words"),
    [
        (WAIT_S, 0, "measured in the training process"),
        (WAIT_S, 2, "of 2 busy workers"),
        (0.0, 2, "at most"),
        (WAIT_S, None, "unknown number"),
    ],
)
def test_a_sample_costs_a_core_of_the_board_what_it_cost_here(
    tmp_path, twin, wait_s, workers, words
):
    told = {} if workers is None else {"num_workers": workers}
    run = train(tmp_path, wait_s, batch_size=SIZE, **told)
    board, p = twin.boards["orin"], twin.parameters
    loop = own_loop(run, board, p)
    assert words in loop.unknown[0]
    assert (loop.network.samples.n_samples, loop.network.work.parameters) == (N * SIZE, 17668)
    # a core at its highest clock, alone, and memory at its highest
    per_kcycle_s = (
        1e-3 / (board.ipc * board.cpu_mhz[1]) + 1e-3 * p["cpu_memory_stall"] / board.emc_mhz[1]
    )
    here_s = loop.network.samples.kcycles * per_kcycle_s * SIZE
    busy_s = loop.seen.wait_s + (loop.seen.compute_s if workers else 0.0)
    assert here_s == pytest.approx((workers or 1) * busy_s / N)
    assert loop.without_loading.samples.kcycles == 0.0


def test_answer_says_what_is_simulated_and_what_is_not_known(tmp_path, monkeypatch, capsys):
    run = train(tmp_path, batch_size=SIZE, num_workers=0)
    monkeypatch.chdir(ROOT)
    assert main(["what-if", "--run", run, "--device", "agx"]) == 0
    told = capsys.readouterr().out
    for words in (
        "SIMULATED, not measured: one epoch of the run loop-",
        "nothing is published of loop on agx",
        f"{N} mini-batches",
        "measured on host/",
        "not known of this loop:",
        "no storage medium",
        "held-out error",
        "bound by the loader",
    ):
        assert words in told
    cells = next(line.split() for line in told.splitlines() if line.startswith("epoch s"))
    simulated, free, measured = map(float, cells[2:])
    assert measured >= N * (WAIT_S + BODY_S)
    assert free < simulated
    assert "in compute" in told


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        ([], 1, "call `monitor.count(model, minibatch)`"),
        (["--storage", "sd"], 2, "--run goes with none of"),
        (["--model", "lenet"], 2, "--run goes with none of"),
    ],
)
def test_what_cannot_be_answered_is_said(tmp_path, monkeypatch, capsys, words, status, said):
    run = train(tmp_path, is_counted=False)
    monkeypatch.chdir(ROOT)
    assert main(["what-if", "--run", run, "--device", "agx", *words]) == status
    assert said in capsys.readouterr().err
