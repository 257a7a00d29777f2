"""Networks, input and optimiser are those of the papers, and each trains from every format."""

import io
import math

import numpy as np
import pytest
import torch
from torch import nn

from epochwatt.board.training import transforms
from epochwatt.board.training.loaders import TimedMinibatches, make_loader
from epochwatt.board.training.workloads import (
    WORKLOADS,
    Trainer,
    make_optimiser,
    on_device,
    workload_of,
)
from epochwatt.errors import ConfigError, TrainingError

CPU = torch.device("cpu")

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("lenet", 61_706),
        ("mobilenet", 4_462_075),
        ("resnet", 11_173_962),
        ("vgg11", 132_863_336),  # Table 2: 132.86 M
    ],
)
def test_number_of_parameters(model, expected):
    with torch.device("meta"):  # without memory behind its weights
        network = WORKLOADS[model].build()
    assert sum(parameter.numel() for parameter in network.parameters()) == expected


OTHERS = [(600, 800), (230, 90), (1500, 60), (60, 1500)]


@pytest.mark.parametrize(
    "size", [(800, 600), *(pytest.param(each, marks=pytest.mark.thorough) for each in OTHERS)]
)
def test_augmentation_is_torchvisions_to_the_bit(size):
    from torchvision import transforms as theirs

    half = (0.5, 0.5, 0.5)
    before_cutout = theirs.Compose(
        [
            theirs.RandomResizedCrop(224),
            theirs.RandomHorizontalFlip(),
            theirs.ToTensor(),
            theirs.Normalize(half, half),
        ]
    )
    image = transforms.made_up_photograph(600, 800).resize(size)
    for seed in range(8):
        torch.manual_seed(seed)
        ours = transforms.augment_landmark(image)
        torch.manual_seed(seed)
        expected = before_cutout(image)
        kept = ours != 0
        assert torch.equal(ours[kept], expected[kept])
        assert 64 <= (~kept).all(dim=0).sum() <= 256  # a corner or the whole of 16x16


SCALES = {  # of a dozen samples
    ("mnist", "digits"): 0.007,
    ("mnist", "synthetic"): 0.0002,
    ("cifar10", "synthetic"): 0.00024,
    ("gld23k", "synthetic"): 0.0005,
}
LARGE = ("mobilenet", "vgg11")  # seconds each
FED = [
    ("lenet", "mnist", "digits"),
    ("lenet", "mnist", "synthetic"),
    ("mobilenet", "gld23k", "synthetic"),
    ("resnet", "cifar10", "synthetic"),
    ("vgg11", "cifar10", "synthetic"),
]


def trained_on(workload, trainer, source, num_workers):
    """Train one pass in two mini-batches; return the losses."""
    factors = {"batch_size": math.ceil(len(source) / 2), "num_workers": num_workers}
    minibatches = TimedMinibatches(source, workload.transform, num_workers)
    generator = torch.Generator().manual_seed(1)
    loader = make_loader(minibatches, len(source), {**factors, "prefetch_factor": 2}, generator)
    return [trainer.step(trainer.copy(minibatch)).item() for minibatch in loader]


@pytest.mark.parametrize(
    ("model", "dataset", "source"),
    [pytest.param(*fed, marks=pytest.mark.thorough if fed[0] in LARGE else []) for fed in FED],
)
def test_network_trains_on_two_minibatches_of_its_data_set(opened, model, dataset, source):
    reader = opened(dataset, source, SCALES[dataset, source])
    trainer = Trainer(WORKLOADS[model], CPU, seed=0)
    first, *_, last = trainer.network.parameters()
    before = first.clone(), last.clone()
    losses = trained_on(WORKLOADS[model], trainer, reader, num_workers=1)
    assert len(losses) == 2
    assert np.isfinite(losses).all()
    assert not torch.equal(before[0], first)
    assert not torch.equal(before[1], last)


def test_workers_augment_as_their_seed_says_and_differently_each(opened):
    reader = opened("gld23k", "synthetic", SCALES["gld23k", "synthetic"])
    minibatches = TimedMinibatches(reader, WORKLOADS["mobilenet"].transform, 2)
    factors = {"batch_size": 3, "num_workers": 2, "prefetch_factor": 2}

    def epoch(seed):
        generator = torch.Generator().manual_seed(seed)
        return [inputs for inputs, _ in make_loader(minibatches, len(reader), factors, generator)]

    first, again, other = epoch(1), epoch(1), epoch(2)
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not any(torch.equal(a, b) for a, b in zip(first, other, strict=True))


def one_weight():
    """An own network; its second weight is never used, hence never gets a gradient."""
    network = nn.Sequential(nn.Flatten(), nn.Linear(784, 10))
    network.register_parameter("unused", nn.Parameter(torch.ones(1)))
    return network


def own(**row):
    return {"model": "mine", "network": {"build": f"{__name__}.one_weight", "like": "lenet", **row}}


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"build": "no_such_module.f"}, "mine.build: 'no_such_module.f' cannot be imported"),
        ({"build": f"{__name__}.no_such"}, "has no no_such"),
        ({"build": "one_weight"}, "has no module before its last dot"),
        ({"like": "mine"}, "mine.like is 'mine'\n  allowed: lenet, mobilenet, resnet, vgg11"),
        ({"transform": "math.none"}, "mine.transform: 'math.none' is not there"),
    ],
)
def test_own_network_that_is_not_there_is_told_in_two_lines(row, told):
    with pytest.raises(ConfigError) as error:
        workload_of(own(**row))
    assert told in str(error.value)
    assert len(str(error.value).split("\n")) == 2
    assert "mine" not in WORKLOADS


def made_up_minibatch(seed, batch_size=4):
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(batch_size, 1, 28, 28, generator=generator)
    return inputs, torch.randint(10, (batch_size,), generator=generator)


def test_transform_normalises_every_level_as_the_scripts_do():
    raw = np.arange(784, dtype=np.uint32).astype(np.uint8).reshape(28, 28)  # each level 0..255
    before = raw.copy()
    tensor = WORKLOADS["lenet"].transform(raw)
    assert (tensor.shape, tensor.dtype) == ((1, 28, 28), torch.float32)
    expected = (raw.astype(np.float64) / 255 - 0.1307) / 0.3081
    np.testing.assert_allclose(tensor[0].numpy(), expected, rtol=0, atol=1e-6)
    np.testing.assert_array_equal(raw, before)


def trained(make, n_steps, n_before_reload):
    """Return the weights after some steps; the optimiser's state goes through a file on the way."""
    torch.manual_seed(5)
    network = WORKLOADS["lenet"].build()
    optimiser = make(network)
    criterion = nn.CrossEntropyLoss()
    for index in range(n_steps):
        if index == n_before_reload:
            file = io.BytesIO()
            torch.save(optimiser.state_dict(), file)
            file.seek(0)
            optimiser = make(network)
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
    ours, theirs = trained(make_optimiser, 6, n_before_reload), trained(torchs_own, 6, None)
    assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))


@pytest.mark.parametrize("targets", [["cat", "dog"], {"name": ["cat"]}, [b"cat"]])
def test_labels_of_text_are_refused_by_name(targets):
    with pytest.raises(TrainingError, match="holds text") as raised:
        on_device(targets, torch.device("cpu"))
    assert "cat" in raised.value.found
    assert "index of a class" in raised.value.do
