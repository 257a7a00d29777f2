"""Training, step by step the same as torch's."""

import numpy as np
import pytest

from epochwatt.prediction.models.powertrain import train as training
from epochwatt.prediction.models.powertrain.network import activations
from epochwatt.prediction.models.powertrain.recipe import BATCH, DROPOUT, HIDDEN, MAPE, MSE
from epochwatt.prediction.models.powertrain.train import (
    EPSILON,
    Adam,
    Parameters,
    Rows,
    dropout,
    gradient,
    new_last_layer,
    new_layers,
    train,
)

torch = pytest.importorskip("torch")


def rows(n, seed=0):
    rng = np.random.default_rng(seed)
    inputs = rng.standard_normal((n, 4)).astype(np.float32)
    return Rows(inputs, (5 + inputs[:, 0] + np.abs(inputs[:, 1])).astype(np.float32))


def torchs(parameters, batch, masks, loss):
    """Return the loss's slope in each parameter as torch has it, flat."""
    parts = [
        torch.tensor(part, requires_grad=True) for layer in parameters.layers for part in layer
    ]
    hidden = torch.tensor(batch.inputs)
    for place, mask in enumerate(masks):
        hidden = torch.relu(hidden @ parts[2 * place] + parts[2 * place + 1])
        hidden = hidden if mask is None else hidden * torch.tensor(mask)
    off = (hidden @ parts[-2] + parts[-1])[:, 0] - torch.tensor(batch.outputs)
    whole = (off / torch.tensor(batch.outputs)).abs() if loss == MAPE else off**2
    whole.mean().backward()
    return np.concatenate([part.grad.numpy().ravel() for part in parts])


@pytest.mark.parametrize("loss", [MSE, MAPE])
def test_gradient_is_torchs(loss):
    rng = np.random.default_rng(2)
    parameters, batch = Parameters.copy_of(new_layers(rng)), rows(BATCH)
    masks = dropout(BATCH, rng)
    slope = Parameters.copy_of(parameters.layers)
    gradient(parameters, batch, masks, loss, slope)
    assert slope.flat == pytest.approx(torchs(parameters, batch, masks, loss), rel=1e-3, abs=1e-6)


def test_adam_is_torchs():
    start = np.linspace(-1, 1, 50, dtype=np.float32)
    slopes = np.random.default_rng(3).standard_normal((20, 50)).astype(np.float32)
    ours, theirs = start.copy(), torch.tensor(start, requires_grad=True)
    adam, torchs_adam = Adam(50), torch.optim.Adam([theirs], lr=1e-3, eps=EPSILON)
    for slope in slopes:
        adam.step(ours, slope)
        theirs.grad = torch.tensor(slope)
        torchs_adam.step()
    assert ours == pytest.approx(theirs.detach().numpy(), abs=1e-6)


def test_dropout_leaves_out_its_share_and_keeps_the_mean():
    for mask, share, n_units in zip(
        dropout(4000, np.random.default_rng(4)), DROPOUT, HIDDEN, strict=True
    ):
        if not share:
            assert mask is None
            continue
        assert mask.shape == (4000, n_units)
        assert np.mean(mask == 0) == pytest.approx(share, abs=0.005)
        assert mask.mean() == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize("loss", [MSE, MAPE])
def test_training_learns_repeatably_and_changes_all_layers(loss):
    learned, validation = rows(320), rows(40, seed=1)
    first, second = (
        train(new_layers(rng), learned, validation, rng, loss)
        for rng in (np.random.default_rng(5), np.random.default_rng(5))
    )
    start = new_layers(np.random.default_rng(5))
    off = activations(first, validation.inputs) - validation.outputs
    assert np.abs(off).mean() < 0.15 * np.ptp(validation.outputs)
    for one, same, before in zip(first, second, start, strict=True):
        assert one.weights.tolist() == same.weights.tolist()
        assert not np.allclose(one.weights, before.weights)


def test_the_best_epoch_is_kept_where_it_is_asked_for(monkeypatch):
    reached = iter([5.0, 1.0, 3.0, 2.0] * 2)
    seen = []

    def loss(answers, some, kind):
        seen.append(answers)
        return next(reached)

    monkeypatch.setattr(training, "EPOCHS", 4)
    monkeypatch.setattr(training, "_loss", loss)
    learned, validation = rows(64), rows(8, seed=1)
    for keeps_best, epoch in ((True, 1), (False, 3)):
        seen.clear()
        rng = np.random.default_rng(6)
        layers = train(new_layers(rng), learned, validation, rng, MSE, keeps_best)
        assert activations(layers, validation.inputs) == pytest.approx(seen[epoch], rel=1e-4)


def test_a_new_last_layer_leaves_the_others():
    layers = new_layers(np.random.default_rng(7))
    others = new_last_layer(layers, np.random.default_rng(8))
    assert [a is b for a, b in zip(layers, others, strict=True)] == [True, True, True, False]
    assert others[-1].weights.shape == (HIDDEN[-1], 1)
