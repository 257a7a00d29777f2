"""Task, precision and compile: what they change, what is recorded, what is refused beforehand."""

import shutil

import numpy as np
import pytest
import torch
from torch import nn

from epochwatt.board.training import arithmetic, checkpoint, workloads
from epochwatt.board.training.session import Session
from epochwatt.board.training.workloads import WORKLOADS, Trainer, make_trainer

CPU = torch.device("cpu")

pytestmark = pytest.mark.usefixtures("on_the_cpu")


def minibatch(seed, batch_size=16):
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(batch_size, 1, 28, 28, generator=generator)
    return inputs, torch.randint(10, (batch_size,), generator=generator)


def dtypes_of_layers(trainer):
    """Return a set that fills with the types that the trainer's layers give."""
    seen = set()
    for module in trainer.network.modules():
        if isinstance(module, (nn.Conv2d, nn.Linear)):
            module.register_forward_hook(lambda m, i, output: seen.add(output.dtype))
    return seen


@pytest.mark.parametrize(
    ("precision", "dtype"), [("fp32", torch.float32), ("bf16", torch.bfloat16)]
)
def test_products_are_computed_in_the_precision_and_the_loss_stays_close(precision, dtype):
    trainer, plain = (
        Trainer(WORKLOADS["lenet"], CPU, 0, precision=precision),
        Trainer(WORKLOADS["lenet"], CPU, 0),
    )
    seen = dtypes_of_layers(trainer)
    losses = [[t.step(minibatch(k)).item() for k in range(5)] for t in (trainer, plain)]
    assert seen == {dtype}
    assert losses[0] == pytest.approx(losses[1], rel=0.01)
    assert (losses[0] == losses[1]) == (precision == "fp32")
    assert {weight.dtype for weight in trainer.network.parameters()} == {torch.float32}


def test_fp16_scales_its_gradients_and_keeps_the_scale_in_the_checkpoint(tmp_path):
    trainer = Trainer(WORKLOADS["lenet"], CPU, 0, precision="fp16")
    before = [weight.detach().clone() for weight in trainer.network.parameters()]
    seen = dtypes_of_layers(trainer)
    loss = trainer.step(minibatch(0))
    assert seen == {torch.float16}
    assert loss.item() == pytest.approx(
        Trainer(WORKLOADS["lenet"], CPU, 0).step(minibatch(0)).item(), rel=0.01
    )
    moved = [weight.detach() for weight in trainer.network.parameters()]
    assert all(not torch.equal(a, b) for a, b in zip(before, moved, strict=True))
    trainer.scaler.update(512.0)
    path = str(tmp_path / "checkpoint.npz")
    checkpoint.save(path, trainer)
    other = Trainer(WORKLOADS["lenet"], CPU, 1, precision="fp16")
    assert checkpoint.load(path, other)
    assert other.scaler.get_scale() == 512.0


def test_fp32_touches_no_setting_and_a_run_older_than_the_factors_is_one():
    settings = torch.backends.cuda.matmul, torch.backends.cudnn
    before = [setting.allow_tf32 for setting in settings]
    arithmetic.check({}, CPU)
    arithmetic.allow("fp32")
    assert [setting.allow_tf32 for setting in settings] == before
    arithmetic.allow("tf32")
    allowed = [setting.allow_tf32 for setting in settings]
    for setting, value in zip(settings, before, strict=True):
        setting.allow_tf32 = value
    assert allowed == [True, True]
    assert arithmetic.describe({}, CPU) == {
        **{"autocast": None, "gradients_scaled": False, "compiled": False},
        **{"tf32_products": None, "tf32_convolutions": None},
    }


def test_inference_has_no_gradients_no_optimiser_and_no_loss():
    # with dropout: in training it would draw
    network = WORKLOADS["lenet"]._replace(build=lambda: nn.Sequential(nn.Dropout(), one_layer()))
    trainer = Trainer(network, CPU, 0, task="infer")
    assert (trainer.optimiser, trainer.network.training) == (None, False)
    seen = []
    trainer.network.register_forward_hook(lambda m, i, out: seen.append(out))
    moved = trainer.copy((torch.randn(1, 1, 28, 28), torch.tensor([1])))
    assert moved[1] is None
    assert [trainer.step(moved), trainer.step(moved)] == [None, None]
    assert torch.equal(*seen)
    assert all(out.is_inference() and not out.requires_grad for out in seen)
    assert all(weight.grad is None for weight in trainer.network.parameters())


def test_epochs_of_inference_leave_records_without_a_loss(folder, factors, data_root, machine):
    with Session(folder, {**factors, "task": "infer"}, data_root, machine, {}) as one:
        for epoch in range(2):
            one.measure(epoch)
    for epoch in range(2):
        meta = folder.read(epoch).meta
        assert meta["loss"] is None
        assert meta["compute_s"] > 0
        assert "fresh_weights" not in meta["flags"]
    weights = np.load(folder.checkpoint_path(1))
    fresh = make_trainer(factors, CPU).network.state_dict()
    for n, tensor in enumerate(fresh.values()):
        np.testing.assert_array_equal(weights[str(n)], tensor.numpy())


needs_compiler = pytest.mark.skipif(
    shutil.which("c++") is None and shutil.which("g++") is None,
    reason="torch.compile needs a C++ compiler",
)


def one_layer():
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 10))


@pytest.mark.thorough
@needs_compiler
def test_compiled_network_is_compiled_before_the_epoch_for_every_size_and_trains_alike(
    folder, factors, data_root, machine, monkeypatch
):
    from torch._dynamo.utils import counters

    small = workloads.WORKLOADS["lenet"]._replace(build=one_layer)  # a minute less to compile
    monkeypatch.setitem(workloads.WORKLOADS, "lenet", small)
    plain = make_trainer(factors, CPU)
    with Session(folder, {**factors, "compile": "on"}, data_root, machine, {}) as one:
        trainer = one._new_trainer()
        before = trainer.network.state_dict()
        for a, b in zip(before.values(), plain.network.state_dict().values(), strict=True):
            assert torch.equal(a, b)
        n_graphs = counters["stats"]["unique_graphs"]
        assert n_graphs >= 2  # 36 samples: mini-batches of 16 and a last one of 4
        one._train(trainer, one.source, 0)
        assert counters["stats"]["unique_graphs"] == n_graphs
        assert trainer.compile_s > 0
    other = trainer.step(minibatch(0)).item()
    one = Session(folder, factors, data_root, machine, {})
    with one:
        one._train(plain, one.source, 0)
    assert other == pytest.approx(plain.step(minibatch(0)).item(), rel=1e-3)
