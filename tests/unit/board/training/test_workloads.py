"""The network, its input and its optimiser are those of the papers' scripts."""

import io

import numpy as np
import pytest
import torch
from torch import nn

from epochwatt.board.training import workloads
from epochwatt.board.training.workloads import WORKLOADS, on_device
from epochwatt.errors import TrainingError


def made_up_minibatch(seed, batch_size=4):
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(batch_size, 1, 28, 28, generator=generator)
    return inputs, torch.randint(10, (batch_size,), generator=generator)


def assert_same_bits(first, second):
    assert len(first) == len(second)
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def test_transform_normalises_every_level_as_the_scripts_do():
    raw = np.arange(784, dtype=np.uint32).astype(np.uint8).reshape(28, 28)  # each level 0..255
    before = raw.copy()
    tensor = WORKLOADS["lenet"].transform(raw)
    assert (tensor.shape, tensor.dtype) == ((1, 28, 28), torch.float32)
    expected = (raw.astype(np.float64) / 255 - 0.1307) / 0.3081
    np.testing.assert_allclose(tensor[0].numpy(), expected, rtol=0, atol=1e-6)
    np.testing.assert_array_equal(raw, before)


# -- the optimiser -------------------------------------------------------------------------------


def trained(make_optimiser, n_steps, n_before_reload):
    """Return the weights after some steps; the optimiser's state goes through a file on the way."""
    torch.manual_seed(5)
    network = WORKLOADS["lenet"].build()
    optimiser = make_optimiser(network)
    criterion = nn.CrossEntropyLoss()
    for index in range(n_steps):
        if index == n_before_reload:
            file = io.BytesIO()
            torch.save(optimiser.state_dict(), file)
            file.seek(0)
            optimiser = make_optimiser(network)
            optimiser.load_state_dict(torch.load(file))
        inputs, labels = made_up_minibatch(index)
        optimiser.zero_grad()
        criterion(network(inputs), labels).backward()
        optimiser.step()
    return [parameter.detach() for parameter in network.parameters()]


def torchs_own(network):
    return torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9)


@pytest.mark.parametrize("n_before_reload", [None, 0, 3], ids=["never", "before", "amid"])
def test_optimiser_moves_the_weights_as_torchs_own_to_the_bit(n_before_reload):
    ours = trained(workloads.make_optimiser, 6, n_before_reload)
    assert_same_bits(ours, trained(torchs_own, 6, None))


# -- the trainer ---------------------------------------------------------------------------------


@pytest.mark.parametrize("targets", [["cat", "dog"], {"name": ["cat"]}, [b"cat"]])
def test_labels_of_text_are_refused_by_name(targets):
    with pytest.raises(TrainingError, match="holds text") as raised:
        on_device(targets, torch.device("cpu"))
    assert "cat" in raised.value.found
    assert "index of a class" in raised.value.do
