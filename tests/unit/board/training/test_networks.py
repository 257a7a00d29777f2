"""The four networks are those of the papers, and each trains from every format it is fed from."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from epochwatt.board.records.dataset_folder import folder_name
from epochwatt.board.training import transforms
from epochwatt.board.training.data import open_dataset
from epochwatt.board.training.loaders import TimedMinibatches, make_loader
from epochwatt.board.training.workloads import WORKLOADS, Trainer, workload_of
from epochwatt.datasets import recipes
from epochwatt.datasets.make import make_dataset
from epochwatt.errors import ConfigError

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def one_thread():
    """Results and times that do not depend on who else uses the machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def on_meta(build):
    """Build a network without memory behind its weights: it only has shapes."""
    with torch.device("meta"):
        return build()


def n_parameters(network):
    return sum(parameter.numel() for parameter in network.parameters())


# -- counts --------------------------------------------------------------------------------------


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
    assert n_parameters(on_meta(WORKLOADS[model].build)) == expected


# -- structure -----------------------------------------------------------------------------------


# -- transforms ----------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [(800, 600), (600, 800), (230, 90), (1500, 60), (60, 1500)])
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
    image = transforms.made_up_landmark().resize(size)
    for seed in range(8):
        torch.manual_seed(seed)
        ours = transforms.augment_landmark(image)
        torch.manual_seed(seed)
        expected = before_cutout(image)
        kept = ours != 0
        assert torch.equal(ours[kept], expected[kept])
        assert 64 <= (~kept).all(dim=0).sum() <= 256  # a corner or the whole of 16x16


# -- training ------------------------------------------------------------------------------------

SCALES = {  # of a dozen samples
    ("mnist", "digits"): 0.007,
    ("mnist", "synthetic"): 0.0002,
    ("cifar10", "synthetic"): 0.00024,
    ("gld23k", "synthetic"): 0.0005,
}
FED = [
    ("lenet", "mnist", "digits"),
    ("lenet", "mnist", "synthetic"),
    ("mobilenet", "gld23k", "synthetic"),
    ("resnet", "cifar10", "synthetic"),
    ("vgg11", "cifar10", "synthetic"),
]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Make data sets, once each; a function that returns root and factors of one."""
    root = tmp_path_factory.mktemp("sets")

    def make(dataset, source):
        scale = SCALES[dataset, source]
        recipe = recipes.recipe(dataset, source, scale)
        folder = root / folder_name(dataset, source, scale)
        if not folder.exists():
            make_dataset(folder, recipe)
        named = {"dataset": dataset, "dataset_source": source, "dataset_scale": scale}
        return str(root), {**named, "recipe": recipe}

    return make


def trained_on(workload, trainer, source, num_workers):
    """Train one pass in two mini-batches; return the losses."""
    factors = {"batch_size": math.ceil(len(source) / 2), "num_workers": num_workers}
    minibatches = TimedMinibatches(source, workload.transform, num_workers)
    generator = torch.Generator().manual_seed(1)
    loader = make_loader(minibatches, len(source), {**factors, "prefetch_factor": 2}, generator)
    return [trainer.step(trainer.copy(minibatch)).item() for minibatch in loader]


@pytest.mark.parametrize(
    ("model", "dataset", "source"),
    [*FED[:-1], pytest.param(*FED[-1], marks=pytest.mark.thorough)],  # 133 M weights
)
def test_network_trains_on_two_minibatches_of_its_data_set(made, model, dataset, source):
    root, named = made(dataset, source)
    reader, _ = open_dataset(root, named)
    trainer = Trainer(WORKLOADS[model], CPU, seed=0)
    first, *_, last = trainer.network.parameters()
    before = first.clone(), last.clone()
    losses = trained_on(WORKLOADS[model], trainer, reader, num_workers=1)
    assert len(losses) == 2
    assert np.isfinite(losses).all()
    assert not torch.equal(before[0], first)
    assert not torch.equal(before[1], last)


def test_workers_augment_as_their_seed_says_and_differently_each(made):
    root, named = made("gld23k", "synthetic")
    reader, _ = open_dataset(root, named)
    minibatches = TimedMinibatches(reader, WORKLOADS["mobilenet"].transform, 2)
    factors = {"batch_size": 3, "num_workers": 2, "prefetch_factor": 2}

    def epoch(seed):
        generator = torch.Generator().manual_seed(seed)
        return [inputs for inputs, _ in make_loader(minibatches, len(reader), factors, generator)]

    first, again, other = epoch(1), epoch(1), epoch(2)
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not any(torch.equal(a, b) for a, b in zip(first, other, strict=True))


# -- own networks --------------------------------------------------------------------------------


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
