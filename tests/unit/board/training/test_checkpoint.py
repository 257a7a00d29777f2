"""A checkpoint carries the training on to the bit; a lost one is noticed and costs no run."""

import os

import numpy as np
import pytest
import torch

from epochwatt.board.training import checkpoint, optimisers
from epochwatt.board.training.workloads import WORKLOADS, Trainer

CPU = torch.device("cpu")


def made_up_minibatch(seed):
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(4, 1, 28, 28, generator=generator)
    return inputs, torch.randint(10, (4,), generator=generator)


@pytest.fixture
def trainer():
    """A trainer after two steps, so that it has momentum."""
    trainer = Trainer(WORKLOADS["lenet"], CPU, seed=0)
    for index in range(2):
        trainer.step(made_up_minibatch(index))
    return trainer


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "checkpoint.npz")


def test_training_goes_on_to_the_bit(trainer, path):
    checkpoint.save(path, trainer)
    other = Trainer(WORKLOADS["lenet"], CPU, seed=1)
    assert checkpoint.load(path, other)
    for index in range(2, 5):
        assert torch.equal(
            trainer.step(made_up_minibatch(index)), other.step(made_up_minibatch(index))
        )


@pytest.mark.parametrize("content", [b"not a checkpoint", b"\x80\x04.", bytes(1000)])
def test_what_is_no_checkpoint_is_said(trainer, path, caplog, content):
    with open(path, "wb") as handle:
        handle.write(content)
    assert not checkpoint.load(path, trainer)
    assert "cannot be read" in caplog.text


class Mischief:
    """What runs code when a pickle of it is read."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)


@pytest.mark.parametrize("name", ["checkpoint.pt", "checkpoint.npz"])
@pytest.mark.parametrize("torch_can", [True, False])
def test_no_checkpoint_runs_what_it_holds(trainer, tmp_path, monkeypatch, name, torch_can):
    monkeypatch.setattr(checkpoint, "_WEIGHTS_ONLY", torch_can)
    path, made = str(tmp_path / name), str(tmp_path / "made")
    if name.endswith(".pt"):
        torch.save({"network": Mischief(made), "optimiser": {}}, path)
    else:
        np.savez(path, tree=np.array([Mischief(made)], dtype=object))
    assert not checkpoint.load(path, trainer)
    assert not os.path.exists(made)


def test_checkpoint_in_torchs_own_form_is_taken_up_where_torch_reads_it_safely(trainer, tmp_path):
    path = str(tmp_path / "checkpoint.pt")
    state = {"network": trainer.network.state_dict(), "optimiser": trainer.optimiser.state_dict()}
    torch.save(state, path)
    other = Trainer(WORKLOADS["lenet"], CPU, seed=1)
    assert checkpoint.load(path, other)
    assert torch.equal(trainer.step(made_up_minibatch(9)), other.step(made_up_minibatch(9)))


@pytest.mark.thorough
def test_state_of_torchs_own_optimiser_is_kept_to_the_bit(trainer, path, monkeypatch):
    """An older torch has no function of SGD: its own class has numbers for keys."""
    monkeypatch.setattr(optimisers, "sgd", None)
    one, other = (Trainer(WORKLOADS["lenet"], CPU, seed=seed) for seed in (0, 1))
    minibatch = torch.randn(4, 1, 28, 28), torch.tensor([0, 1, 2, 3])
    one.step(minibatch)
    checkpoint.save(path, one)
    assert checkpoint.load(path, other)
    assert torch.equal(one.step(minibatch), other.step(minibatch))
    assert torch.equal(one.step(minibatch), other.step(minibatch))
