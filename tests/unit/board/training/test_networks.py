"""The four networks are those of the papers, and each trains from every format it is fed from."""

import math

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from epochwatt.board.records.dataset_folder import folder_name
from epochwatt.board.training import transforms
from epochwatt.board.training.data import open_dataset
from epochwatt.board.training.loaders import TimedMinibatches, make_loader
from epochwatt.board.training.session import MadeUpSamples
from epochwatt.board.training.workloads import WORKLOADS, Trainer, workload_of
from epochwatt.datasets import recipes
from epochwatt.datasets.make import make_dataset
from epochwatt.errors import ConfigError

CPU = torch.device("cpu")
INPUTS = {
    "lenet": (1, 28, 28),
    "mobilenet": (3, 224, 224),
    "resnet": (3, 32, 32),
    "vgg11": (3, 32, 32),
}


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


def n_multiply_adds(network, shape):
    with FlopCounterMode(display=False) as counter:
        network(torch.empty(1, *shape, device="meta"))
    return counter.get_total_flops() // 2


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


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("lenet", 416_520),  # 0.42 M; the 4.4 M of Table 2 belong to a larger LeNet
        ("mobilenet", 215_569_600),
        ("resnet", 555_422_720),  # 0.56 G; Table 2 has those of 224x224
        ("vgg11", 276_398_080),  # at 32x32; Table 2 has those of 224x224
    ],
)
def test_multiply_adds_of_convolutions_and_dense_layers(model, expected):
    assert n_multiply_adds(on_meta(WORKLOADS[model].build), INPUTS[model]) == expected


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


def test_cutout_takes_a_square_of_16_pixels_and_less_at_the_border():
    torch.manual_seed(0)
    sizes = set()
    for _ in range(300):
        zero = transforms.cut_out(torch.ones(3, 40, 48))[0] == 0
        rows, columns = zero.any(dim=1).sum().item(), zero.any(dim=0).sum().item()
        assert zero.sum() == rows * columns
        sizes.add((rows, columns))
    assert max(sizes) == (16, 16)
    assert min(min(size) for size in sizes) == 8


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


@pytest.mark.parametrize("model", list(INPUTS))
def test_made_up_sample_has_the_form_of_a_real_one(made, model):
    _, dataset, source = next(row for row in FED if row[0] == model)
    root, named = made(dataset, source)
    real, _ = open_dataset(root, named)[0].read(0)
    made_up, label = MadeUpSamples(WORKLOADS[model].made_up(), 3).read(2)
    assert isinstance(real, type(made_up))
    assert (np.shape(made_up), label) == (np.shape(real), 0)
    assert WORKLOADS[model].transform(made_up).shape == INPUTS[model]


# -- own networks --------------------------------------------------------------------------------


def one_weight():
    """An own network; its second weight is never used, hence never gets a gradient."""
    network = nn.Sequential(nn.Flatten(), nn.Linear(784, 10))
    network.register_parameter("unused", nn.Parameter(torch.ones(1)))
    return network


def own(**row):
    return {"model": "mine", "network": {"build": f"{__name__}.one_weight", "like": "lenet", **row}}


def test_own_network_takes_the_input_of_the_one_it_is_like():
    workload = workload_of(own())
    assert workload == WORKLOADS["lenet"]._replace(build=one_weight)
    trainer = Trainer(workload, CPU, seed=0)
    minibatch = torch.ones(2, 1, 28, 28), torch.tensor([0, 1])
    losses = [trainer.step(minibatch).item() for _ in range(3)]
    assert losses[2] < losses[0]
    assert trainer.network.unused.item() == 1.0


def twice(network, inputs, labels):
    return 2 * nn.functional.cross_entropy(network(inputs), labels)


def test_own_network_may_have_a_loss_of_its_own():
    minibatch = torch.ones(2, 1, 28, 28), torch.tensor([0, 1])
    plain_and_own = [workload_of(own(**row)) for row in ({}, {"loss": f"{__name__}.twice"})]
    losses = [Trainer(workload, CPU, seed=0).step(minibatch).item() for workload in plain_and_own]
    assert losses[1] == pytest.approx(2 * losses[0])


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
