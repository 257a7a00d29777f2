"""A checkpoint carries the training on to the bit; a lost one is noticed and costs no run."""

import os
import resource

import pytest
import torch

from epochwatt.errors import RecordWriteError
from epochwatt.training import checkpoint
from epochwatt.training.workloads import Trainer

CPU = torch.device("cpu")


def made_up_minibatch(seed):
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(4, 1, 28, 28, generator=generator)
    return inputs, torch.randint(10, (4,), generator=generator)


@pytest.fixture
def trainer():
    """A trainer after two steps, so that it has momentum."""
    trainer = Trainer("lenet", CPU, seed=0)
    for index in range(2):
        trainer.step(made_up_minibatch(index))
    return trainer


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "checkpoint.pt")


def test_training_goes_on_to_the_bit(trainer, path):
    checkpoint.save(path, trainer)
    other = Trainer("lenet", CPU, seed=1)
    assert checkpoint.load(path, other)
    for index in range(2, 5):
        assert torch.equal(
            trainer.step(made_up_minibatch(index)), other.step(made_up_minibatch(index))
        )


def test_checkpoint_before_the_first_step_is_taken_up(path):
    checkpoint.save(path, Trainer("lenet", CPU, seed=0))
    other = Trainer("lenet", CPU, seed=1)
    assert checkpoint.load(path, other)
    expected = Trainer("lenet", CPU, seed=0)
    for index in range(2):
        assert torch.equal(
            other.step(made_up_minibatch(index)), expected.step(made_up_minibatch(index))
        )


def test_missing_checkpoint_is_said(trainer, path, caplog):
    assert not checkpoint.load(path, trainer)
    assert f"no checkpoint at {path}: fresh weights" in caplog.text


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.99])
def test_checkpoint_cut_short_is_said(trainer, path, caplog, share):
    checkpoint.save(path, trainer)
    os.truncate(path, int(share * os.path.getsize(path)))
    assert not checkpoint.load(path, trainer)
    assert f"the checkpoint at {path} cannot be read" in caplog.text


@pytest.mark.parametrize("content", [b"not a checkpoint", b"\x80\x04.", bytes(1000)])
def test_what_is_no_checkpoint_is_said(trainer, path, caplog, content):
    with open(path, "wb") as handle:
        handle.write(content)
    assert not checkpoint.load(path, trainer)
    assert "cannot be read" in caplog.text


def test_checkpoint_of_another_network_is_not_taken_up(trainer, path):
    torch.save({"network": {"weight": torch.zeros(3)}, "optimiser": {}}, path)
    assert not checkpoint.load(path, trainer)


def test_checkpoint_without_the_optimiser_is_not_taken_up(trainer, path):
    torch.save({"network": trainer.network.state_dict()}, path)
    assert not checkpoint.load(path, trainer)


def test_file_size_limit_is_explained(trainer, path, in_child):
    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        checkpoint.save(path, trainer)

    with pytest.raises(RecordWriteError, match=r"cannot write the checkpoint .*file size limit"):
        in_child(limited)


def test_full_disk_is_explained(trainer, small_disk):
    with pytest.raises(RecordWriteError, match=r"cannot write the checkpoint .*disk is full"):
        checkpoint.save(str(small_disk / "checkpoint.pt"), trainer)


def test_missing_folder_is_explained(trainer, tmp_path):
    with pytest.raises(RecordWriteError, match="No such file or directory"):
        checkpoint.save(str(tmp_path / "gone" / "checkpoint.pt"), trainer)
